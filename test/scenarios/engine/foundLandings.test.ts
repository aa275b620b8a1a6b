import { copyFileSync, existsSync } from "node:fs"
import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { describe, expect, it } from "vitest"
import { missedMillis } from "../../../src/application/lanes/monitor/TransactionState.js"
import { RemoteOpJournal } from "../../../src/application/ports/journal/RemoteOpJournal.js"
import * as Power from "../../support/stack/Power.js"
import { type Runtime, useStack } from "../../support/stack/Stack.js"

const stack = useStack({ profile: { settledDepth: 6, bumpAfterMillis: 600_000 } }, (stack) =>
  stack.create("one")
)

/**
 * An op lands in a transaction unknown to the returned backup, which predates its signature. `snapshot`: the chain
 * before the block.
 */
const landed = async (name: string) => {
  const [database, backup] = [stack.database(), stack.database()]
  const before: Power.Around = (step, effect) =>
    Effect.suspend(() => {
      if (step === "record")
        for (const suffix of ["", "-wal"])
          if (existsSync(`${database}${suffix}`)) copyFileSync(`${database}${suffix}`, `${backup}${suffix}`)
      return effect
    })
  const first = stack.begin({ database, wrapJournal: (journal) => Power.wrap(journal, before) })
  await stack.automine(false)
  const caller = stack.caller()
  const id = hashOf(name)
  first.runFork(stack.execute([stack.hit("one", id)], {}, caller))
  await stack.pooled(1)
  await first.dispose()
  const snapshot = await stack.provider.send("evm_snapshot", [])
  await stack.mine()
  expect(await stack.counts(id)).toEqual([1])
  return { life: { database: backup }, id, requestId: caller.requestId, snapshot }
}

const kindsOf = async (life: Runtime, requestId: string) =>
  (await stack.eventsOf(life, requestId)).map(({ kind }) => kind)
const watchedOf = (life: Runtime) =>
  life.runPromise(Effect.flatMap(RemoteOpJournal, ({ remoteSubmissions }) => Effect.orDie(remoteSubmissions)))

/** Mines until the request is reported as settled; returns its events. */
const settledOf = async (life: Runtime, requestId: string) => {
  const told = () => stack.mine().then(() => kindsOf(life, requestId))
  await expect.poll(told, { timeout: 40_000, interval: 200 }).toContain("settled")
  return kindsOf(life, requestId)
}

describe("a landing found on the chain", () => {
  it("is watched until settled depth, also by the next life of the process, and reported as settled once", async () => {
    const { id, life, requestId } = await landed("stays")
    const known = ["accepted", "submitted", "included", "final"]
    await stack.living(life, async (second) => {
      expect((await stack.answerOf(second, requestId)).answer).toMatchObject({ status: 1 })
      expect(await kindsOf(second, requestId)).toEqual(known)
      expect(await watchedOf(second)).toMatchObject([{ requestId, signed: null }])
    })
    await stack.living(life, async (third) => {
      expect(await settledOf(third, requestId)).toEqual([...known, "settled"])
      expect(await watchedOf(third)).toEqual([])
    })
    expect(await stack.counts(id)).toEqual([1])
  }, 90_000)

  it("taken back by a reorganisation in the next life is noticed: the work is done again under its nonce, once", async () => {
    const { id, life, requestId, snapshot } = await landed("goes")
    await stack.living(life, async (second) => {
      expect((await stack.answerOf(second, requestId)).answer).toMatchObject({ status: 1 })
    })
    expect(await stack.provider.send("evm_revert", [snapshot])).toBe(true)
    expect(await stack.counts(id)).toEqual([0])
    for (const { hash } of await stack.pool()) await stack.provider.send("anvil_dropTransaction", [hash])
    await stack.mine()
    await stack.mine()
    await stack.living(life, async (third) => {
      // The next life does not know its block: it must be hidden for a while.
      const timeout = missedMillis + 20_000
      await expect.poll(() => kindsOf(third, requestId), { timeout }).toContain("reopened")
      await stack.pooled(1)
      expect((await stack.requestOf(third, requestId))?.outcome).toBeNull()
      await stack.mine()
      expect((await stack.answerOf(third, requestId)).answer).toMatchObject({ status: 1 })
      const told = await settledOf(third, requestId)
      expect(told.slice(0, 5)).toEqual(["accepted", "submitted", "included", "final", "reopened"])
      const again = ["signed", "submitted", "included", "settled"]
      expect(told.slice(5).filter((kind) => kind !== "final")).toEqual(again)
      expect(await stack.counts(id)).toEqual([1])
    })
  }, 90_000)
})
