import * as Effect from "effect/Effect"
import { expect, it } from "vitest"
import { type Around, wrap } from "../../support/stack/Power.js"
import { useStack } from "../../support/stack/Stack.js"

/** Periodic calls of the sweep, waiters and idle workers, with or without a request. */
const periodic = new Set(["work", "claim", "finalAmong", "remoteSubmissions", "forget", "ready"])

const calls: Array<string> = []
const told: Around = (name, effect) =>
  Effect.suspend(() => {
    if (!periodic.has(name)) calls.push(name)
    return effect
  })

const stack = useStack({ wrapJournal: (journal) => wrap(journal, told) }, async (stack) => {
  const [wallet] = await stack.create("alone")
  await stack.mint(String(wallet), 10n)
})

it("a single execution calls the journal nine times, each time for durability or a needed fact", async () => {
  const dead = "0x000000000000000000000000000000000000dEaD"
  const execute = () => stack.ask(stack.execute([stack.transfer("alone", dead)]))
  // A wallet's facts are read once.
  await execute()
  calls.length = 0
  await execute()
  expect(await stack.balanceOf(dead)).toBe(2n)
  // Where the node had not mined it at the first poll, its submission is recorded separately.
  expect(calls.filter((name) => name === "recordSubmitted").length).toBeLessThanOrEqual(1)
  expect(calls.filter((name) => name !== "recordSubmitted")).toEqual([
    "read",
    "accept",
    "nextNonce",
    "record",
    "settle",
    "ended",
    "newestEvents",
    "requests",
    "answer"
  ])
})
