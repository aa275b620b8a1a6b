import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import type { Methods } from "../../support/journal/Journals.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

/** What the sweep and waiters ask from time to time, whether there is a request or not. */
const periodic = new Set(["work", "claim", "finalAmong", "remoteSubmissions", "forget"])

describe("an execution by itself", () => {
  let stack: Stack
  const calls: Array<string> = []
  /** Every method, which tells when it is called. */
  const told = (journal: Methods): Methods =>
    Object.fromEntries(
      Object.entries(journal).map(([name, method]) => {
        const tell = <A>(make: () => A): A => {
          if (!periodic.has(name)) calls.push(name)
          return make()
        }
        return [
          name,
          typeof method === "function"
            ? (...args: ReadonlyArray<never>) =>
                Effect.suspend(() =>
                  tell(() => (method as (...args: ReadonlyArray<never>) => typeof method)(...args) as never)
                )
            : Effect.suspend(() => tell(() => method as never))
        ]
      })
    ) as unknown as Methods

  beforeAll(async () => {
    stack = await startStack({ wrapJournal: told })
    const [wallet] = await stack.create("alone")
    await stack.mint(String(wallet), 10n)
  })
  afterAll(() => stack.stop())

  it("calls the journal seven times, each time for something that has to be durable or known, and waits for it before signatures leave", async () => {
    const to = Address.unsafe(await stack.token.getAddress())
    const dead = "0x000000000000000000000000000000000000dEaD"
    const execute = () =>
      stack.ask(
        ExecuteOperations.run(stack.caller(), {
          operations: [
            {
              salt: "alone",
              walletCustody: 1,
              to,
              funcSignature: "transfer(address,uint256)",
              funcParams: [dead, "1"]
            }
          ],
          settings: stack.settings
        })
      )
    // What is read once for a wallet is known from then on.
    await execute()
    calls.length = 0
    await execute()
    expect(await stack.balanceOf(dead)).toBe(2n)
    // Where the node had not mined it at the first look, that it was taken is told by itself.
    expect(calls.filter((name) => name === "recordSubmitted").length).toBeLessThanOrEqual(1)
    expect(calls.filter((name) => name !== "recordSubmitted")).toEqual([
      "lease",
      "accept",
      "durable",
      "allocate",
      "recordSigned",
      "settle",
      "ofRequest",
      "finish"
    ])
  })
})
