import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type * as ManagedRuntime from "effect/ManagedRuntime"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as CancelRequest from "../../../src/application/usecases/operations/CancelRequest.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as GetRequest from "../../../src/application/usecases/operations/GetRequest.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { Address, type Ports, type Stack, startStack } from "../../support/stack/Stack.js"

type Life = ManagedRuntime.ManagedRuntime<Ports, unknown>

let stack: Stack
let folder: string
const wallets = ["a", "b", "c", "d"]
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "batches-"))
  stack = await startStack()
  await stack.create(...wallets)
  for (const salt of wallets) {
    await stack.mint(String(stack.predict(salt)), 1_000_000n)
    await stack.fund(String(stack.predict(salt)), 10n ** 20n)
  }
})
afterAll(async () => {
  await stack.stop()
  rmSync(folder, { recursive: true, force: true })
})

let receivers = 0
const receiver = (): string => `0x${(0xabc0_0000 + receivers++).toString(16).padStart(40, "0")}`

/** Payments of 1 by one wallet after the other. */
const payments = (count: number, to: string, from = wallets): ReadonlyArray<Operation> =>
  Array.from({ length: count }, (_, index) => ({
    salt: from[index % from.length] ?? "a",
    walletCustody: 1,
    to: Address.unsafe(String(stack.token.target)),
    funcSignature: "transfer(address,uint256)",
    funcParams: [to, "1"]
  }))

const living = async <A>(database: string, body: (life: Life) => Promise<A>): Promise<A> => {
  const life = stack.begin({ database: join(folder, database) })
  try {
    await life.runPromise(Sweep.start)
    return await body(life)
  } finally {
    await life.dispose()
  }
}

const accepted = async (
  life: Life,
  operations: ReadonlyArray<Operation>,
  more: Partial<Caller> = {}
): Promise<Caller> => {
  const caller = { ...stack.caller(), ...more }
  const requestId = await new Promise<string>((resolve, reject) => {
    const asked: Caller = { ...caller, isAsynchronous: true, onAccepted: resolve }
    life.runPromise(ExecuteOperations.run(asked, { operations, settings: stack.settings })).catch(reject)
  })
  return { ...caller, requestId }
}

const stateOf = (life: Life, caller: Caller) =>
  life.runPromise(GetRequest.run(caller, { requestId: caller.requestId }))

const final = async (life: Life, caller: Caller) => {
  for (;;) {
    const state = await life.runPromise(GetRequest.run(caller, { requestId: caller.requestId, wait: "60" }))
    if (state.state === "final") return state
  }
}

interface Answer {
  readonly status: number
  readonly logs: ReadonlyArray<unknown>
  readonly returnData: ReadonlyArray<{
    readonly [index: number]: { readonly success: boolean; readonly error: string | null }
  }>
}

describe("a request of more operations than a slice has", () => {
  it("is accepted at once, executed once in several transactions, and tells of each operation", () =>
    living("whole", async (life) => {
      const to = receiver()
      const [good, bad] = [payments(600, to), 7]
      const operations = good.map((each, index) =>
        index === bad
          ? { ...each, funcParams: [to, "5000000"] }
          : index === 11
            ? { ...each, dependsOn: 590 }
            : each
      )
      const caller = await accepted(life, operations)
      const early = await stateOf(life, caller)
      expect(early).toMatchObject({ state: "pending", progress: { total: 600 } })
      const state = await final(life, caller)
      expect(state).toMatchObject({
        httpStatus: 200,
        progress: { total: 600, waiting: 0, sent: 0, succeeded: 599, failed: 1 }
      })
      const answer = state.answer as Answer
      expect([answer.status, answer.returnData.length, answer.logs]).toEqual([4, 600, []])
      const failed = answer.returnData.flatMap((entry, index) =>
        entry[index]?.success === true ? [] : [index]
      )
      expect(failed).toEqual([bad])
      expect(answer.returnData[bad]?.[bad]?.error).toContain("ERC20InsufficientBalance")
      expect(await stack.balanceOf(to)).toBe(599n)
      expect(state.txHashes.length).toBeGreaterThan(2)
      // Those that failed, again, under another key.
      const again = await accepted(
        life,
        failed.map((index) => good[index] as Operation)
      )
      expect(await final(life, again)).toMatchObject({ answer: { status: 1 } })
      expect(await stack.balanceOf(to)).toBe(600n)
    }))

  it("is refused as a whole, by name, when one of its operations can not be executed", () =>
    living("refused", async (life) => {
      const to = receiver()
      const before = await stack.provider.getTransactionCount(stack.signer.address)
      const with599 = (more: Partial<Operation>) =>
        payments(600, to).map((each, index) => (index === 599 ? { ...each, ...more } : each))
      const rejected = async (more: Partial<Operation>, expected: object) =>
        await expect(accepted(life, with599(more))).rejects.toMatchObject(expected)
      const at = (path: string) => ({
        message: expect.any(String),
        details: [expect.objectContaining({ path })]
      })
      const failureOf = async (more: Partial<Operation>) =>
        await stack.refused(
          ExecuteOperations.run(
            { ...stack.caller(), isAsynchronous: true },
            { operations: with599(more), settings: stack.settings }
          )
        )
      expect(await failureOf({ salt: "nobody" })).toMatchObject({
        code: "wallet_not_deployed",
        ...at("operations[599]")
      })
      expect(await failureOf({ funcParams: [to, "x"] })).toMatchObject(at("operations[599].funcParams[1]"))
      expect(await failureOf({ walletCustody: 2, salt: "a" })).toMatchObject(at("operations[599]"))
      expect(await failureOf({ validUnitl: 1 })).toMatchObject(at("operations[599].validUnitl"))
      expect(await failureOf({ dependsOn: 600 })).toMatchObject(at("operations[599].dependsOn"))
      await rejected({ salt: "nobody" }, {})
      expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(before)
    }))

  it("is one request under one key, and goes on after a restart in the middle: nothing is done twice or left out", async () => {
    const to = receiver()
    const operations = payments(700, to)
    const idempotency = { key: "payday", bodyHash: Hex.unsafe32(`0x${"77".repeat(32)}`) }
    const caller = await living("restart", async (life) => {
      const caller = await accepted(life, operations, { idempotency })
      expect((await accepted(life, operations, { idempotency })).requestId).toBe(caller.requestId)
      await expect.poll(() => stack.balanceOf(to), { timeout: 60_000, interval: 20 }).toBeGreaterThan(0n)
      return caller
    })
    const before = await stack.balanceOf(to)
    expect(before).toBeLessThan(700n)
    await living("restart", async (life) => {
      expect(await final(life, caller)).toMatchObject({
        answer: { status: 1 },
        progress: { total: 700, succeeded: 700, failed: 0 }
      })
      expect(await stack.balanceOf(to)).toBe(700n)
    })
  })

  it("is cancelled as far as nothing of it is signed", () =>
    living("cancelled", async (life) => {
      const to = receiver()
      const caller = await accepted(life, payments(800, to))
      await expect.poll(() => stack.balanceOf(to), { timeout: 60_000, interval: 20 }).toBeGreaterThan(0n)
      const { cancelled, kept } = await life.runPromise(
        CancelRequest.run(caller, { requestId: caller.requestId })
      )
      expect(cancelled.length + kept.length).toBe(800)
      expect(cancelled.length).toBeGreaterThan(0)
      const state = await final(life, caller)
      expect(await stack.balanceOf(to)).toBe(BigInt(kept.length))
      expect(state.progress).toMatchObject({ succeeded: kept.length, failed: cancelled.length })
    }))
})
