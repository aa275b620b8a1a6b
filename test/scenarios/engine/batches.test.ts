import { describe, expect, it } from "vitest"
import * as CancelRequest from "../../../src/application/endpoints/operations/CancelRequest.js"
import type * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as GetRequest from "../../../src/application/endpoints/operations/GetRequest.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Known from "../../support/stack/Known.js"
import { errorsOf, type Runtime, useStack } from "../../support/stack/Stack.js"

const wallets = ["a", "b", "c", "d"]
const stack = useStack({}, async (stack) => {
  for (const wallet of await stack.create(...wallets)) {
    await stack.mint(wallet, 1_000_000n)
    await stack.fund(wallet, 10n ** 20n)
  }
})

let receivers = 0
const receiver = (): string => `0x${(0xabc0_0000 + receivers++).toString(16).padStart(40, "0")}`

/** Payments of 1, alternating between the wallets. */
const payments = (count: number, to: string): ReadonlyArray<Operation> =>
  Array.from({ length: count }, (_, index) => stack.transfer(wallets[index % 4] ?? "a", to))

const final = async (life: Runtime, caller: Caller) => {
  for (;;) {
    const state = await life.runPromise(GetRequest.run(caller, { requestId: caller.requestId, wait: "60" }))
    if (state.state === "final") return state
  }
}
const begun = (to: string) =>
  expect.poll(() => stack.balanceOf(to), { timeout: 60_000, interval: 20 }).toBeGreaterThan(0n)

describe("a request of more operations than a slice has", () => {
  it("is accepted immediately, executed once in several transactions, and reports each operation", () =>
    stack.living({}, async (life) => {
      const [to, bad] = [receiver(), 7]
      const operations = payments(600, to).map((each, index) => {
        if (index === bad) return { ...each, funcParams: [to, "5000000"] }
        return index === 11 ? { ...each, dependsOn: 590 } : each
      })
      const caller = await stack.accepted(life, operations)
      const early = await life.runPromise(GetRequest.run(caller, { requestId: caller.requestId }))
      expect(early).toMatchObject({ state: "pending", progress: { total: 600 } })
      const state = await final(life, caller)
      expect(state).toMatchObject({
        httpStatus: 200,
        progress: { total: 600, waiting: 0, sent: 0, succeeded: 599, failed: 1 }
      })
      const answer = state.answer as ExecuteOperations.Response
      expect([answer.status, answer.logs]).toEqual([4, []])
      expect(errorsOf(answer)).toEqual(
        operations.map((_, index) =>
          index === bad ? expect.stringContaining("ERC20InsufficientBalance") : null
        )
      )
      expect(await stack.balanceOf(to)).toBe(599n)
      expect(state.txHashes.length).toBeGreaterThan(2)
    }))

  it("is refused as a whole, by name, when one of its operations cannot be executed", async () => {
    const before = await stack.nonce()
    const failureOf = (more: Partial<Operation>) => {
      const operations = payments(600, receiver()).map((each, index) =>
        index === 599 ? { ...each, ...more } : each
      )
      return stack.refused(stack.execute(operations, {}, { ...stack.caller(), isAsynchronous: true }))
    }
    for (const [more, path] of [
      [{ salt: "nobody" }, "operations[599]"],
      [{ funcParams: ["0x", "x"] }, "operations[599].funcParams[0]"],
      [{ walletCustody: 2, salt: "a" }, "operations[599]"],
      [{ validUnitl: 1 }, "operations[599].validUnitl"],
      [{ dependsOn: 600 }, "operations[599].dependsOn"]
    ] as const)
      expect((await failureOf(more)).details).toEqual([expect.objectContaining({ path })])
    expect(await stack.nonce()).toBe(before)
  })

  it("is one request under one key and resumes after a restart in the middle, neither repeating nor omitting work", async () => {
    const [to, database] = [receiver(), stack.database()]
    const idempotency = { key: "payday", bodyHash: Hex.unsafe32(`0x${"77".repeat(32)}`) }
    const caller = await stack.living({ database }, async (life) => {
      await Known.past(stack, life)
      const caller = await stack.accepted(life, payments(700, to), { idempotency })
      const again = await stack.accepted(life, payments(700, to), { idempotency })
      expect(again.requestId).toBe(caller.requestId)
      await begun(to)
      return caller
    })
    expect(await stack.balanceOf(to)).toBeLessThan(700n)
    await stack.living({ database }, async (life) => {
      expect(await final(life, caller)).toMatchObject({
        answer: { status: 1 },
        progress: { total: 700, succeeded: 700, failed: 0 }
      })
      expect(await stack.balanceOf(to)).toBe(700n)
    })
  })

  it("is cancelled except for its signed operations", () =>
    stack.living({}, async (life) => {
      const to = receiver()
      const caller = await stack.accepted(life, payments(800, to))
      await begun(to)
      const { requestId } = caller
      const { cancelled, kept } = await life.runPromise(CancelRequest.run(caller, { requestId }))
      expect(cancelled.length + kept.length).toBe(800)
      expect(cancelled.length).toBeGreaterThan(0)
      const { progress } = await final(life, caller)
      expect(await stack.balanceOf(to)).toBe(BigInt(kept.length))
      expect(progress).toMatchObject({ succeeded: kept.length, failed: cancelled.length })
    }))
})
