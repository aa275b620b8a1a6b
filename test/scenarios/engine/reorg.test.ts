import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { describe, expect, it } from "vitest"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import { Address, type LifeOptions, type Runtime, useStack } from "../../support/stack/Stack.js"

const gwei = 10n ** 9n
const stack = useStack({}, (stack) => stack.create("one", "two"))
const revert = async (snapshot: string) =>
  expect(await stack.provider.send("evm_revert", [snapshot])).toBe(true)

describe("a reorganisation above settled depth", () => {
  const life = { profile: { settledDepth: 4 } }

  /** Executes and undoes the block. The replacing block is empty. */
  const undone = async (runtime: Runtime, name: string) => {
    const caller = stack.caller()
    const id = hashOf(name)
    const before = await stack.nonce()
    const snapshot = await stack.provider.send("evm_snapshot", [])
    const first = await runtime.runPromise(stack.execute([stack.hit("one", id)], {}, caller))
    expect(first.status).toBe(1)
    expect((await stack.openOf(runtime)).map(({ state }) => state)).toEqual(["mined"])
    await stack.automine(false)
    await revert(snapshot)
    expect(await stack.counts(id)).toEqual([0])
    const outcome = async () => (await stack.requestOf(runtime, caller.requestId))?.outcome ?? null
    return { requestId: caller.requestId, id, first, before, outcome }
  }

  it("makes the transaction wait again; it is sent again, mined again, and the answer is renewed", () =>
    stack.living(life, async (runtime) => {
      const { before, first, id, outcome, requestId } = await undone(runtime, "renewed")
      await stack.mine()
      const [again] = await stack.pooled(1)
      expect(again?.hash).toBe(first.txHash)
      expect((await stack.openOf(runtime)).map(({ state }) => state)).toEqual(["signed"])
      expect(await outcome()).toBeNull()
      // Another transaction comes first in the block, so the answer differs.
      await stack.faucet.sendTransaction({
        to: stack.signer.address,
        value: 1n,
        maxFeePerGas: 100n * gwei,
        maxPriorityFeePerGas: 6n * gwei
      })
      await stack.mine()
      const { answer } = await stack.answerOf(runtime, requestId)
      expect(answer).toMatchObject({
        status: 1,
        txHash: first.txHash,
        cumulativeGasUsed: first.cumulativeGasUsed + 21_000
      })
      expect([await stack.counts(id), await stack.nonce()]).toEqual([[1], before + 1])
      const open = () => stack.mine().then(() => stack.openOf(runtime))
      await expect.poll(open, { timeout: 10_000 }).toEqual([])
      expect((await stack.answerOf(runtime, requestId)).answer).toEqual(answer)
    }))

  it("where another transaction takes the nonce moves the work to the next nonce, done once", () =>
    stack.living(life, async (runtime) => {
      const { before, first, id, outcome, requestId } = await undone(runtime, "taken")
      await stack.foreign(before)
      await stack.mine()
      expect(await stack.nonce()).toBe(before + 1)
      // At settled depth, and not before, the nonce is abandoned.
      await expect.poll(outcome).toBeNull()
      expect((await stack.openOf(runtime)).map(({ nonce }) => Number(nonce))).toEqual([before])
      const mined = () => stack.mine().then(outcome)
      await expect.poll(mined, { timeout: 30_000, interval: 100 }).not.toBeNull()
      const { answer } = await stack.answerOf(runtime, requestId)
      expect(answer.status).toBe(1)
      expect(answer.txHash).not.toBe(first.txHash)
      expect([await stack.counts(id), await stack.nonce()]).toEqual([[1], before + 2])
      const next = hashOf("after the taken one")
      await stack.automine(true)
      expect((await runtime.runPromise(stack.execute([stack.hit("two", next)]))).status).toBe(1)
      expect(await stack.counts(next)).toEqual([1])
    }))

  it("resumes a request with two transactions once, not twice at a time", () => {
    const caps = { maxFeePerGas: 500n * gwei, maxPriorityFeePerGas: 100n * gwei, transactionGas: 1_000_000n }
    return stack.living({ profile: { ...life.profile, caps } } satisfies LifeOptions, async (runtime) => {
      const caller = stack.caller()
      const ids = Array.from({ length: 12 }, (_, n) => hashOf(`several ${n}`))
      const before = await stack.nonce()
      const snapshot = await stack.provider.send("evm_snapshot", [])
      const operations = ids.map((id) => stack.hit("one", id))
      const { txHashes } = await runtime.runPromise(stack.execute(operations, {}, caller))
      expect(txHashes.length).toBeGreaterThan(1)
      await stack.automine(false)
      await revert(snapshot)
      await stack.mine()
      await stack.pooled(txHashes.length)
      await expect.poll(async () => (await stack.requestOf(runtime, caller.requestId))?.outcome).toBeNull()
      await stack.mine()
      const { answer } = await stack.answerOf(runtime, caller.requestId)
      expect(answer).toMatchObject({ status: 1, txHashes })
      expect(await stack.counts(...ids)).toEqual(ids.map(() => 1))
      expect(await stack.nonce()).toBe(before + txHashes.length)
    })
  })
})

it("a reorganisation below settled depth is healed by the lane's next transaction: the undone work lands again, no other is sent", () =>
  stack.living({ profile: { bumpAfterMillis: 2_000 } }, async (runtime) => {
    const ids = ["settled a", "settled b", "after them"].map(hashOf)
    const before = await stack.nonce()
    const snapshot = await stack.provider.send("evm_snapshot", [])
    const run = async (salt: string, n: number) =>
      expect((await runtime.runPromise(stack.execute([stack.hit(salt, ids[n] ?? "")]))).status).toBe(1)
    await run("one", 0)
    await run("one", 1)
    expect(await stack.openOf(runtime)).toEqual([])
    await revert(snapshot)
    expect([await stack.counts(...ids), await stack.nonce()]).toEqual([[0, 0, 0], before])
    await run("two", 2)
    expect([await stack.counts(...ids), await stack.nonce()]).toEqual([[1, 1, 1], before + 3])
    expect(await stack.pool()).toEqual([])
    const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(stack.signer.address) }
    const above = Effect.flatMap(TransactionJournal, (journal) =>
      journal.transactionsBetween(lane, BigInt(before) + 3n, BigInt(before) + 64n)
    )
    expect(await runtime.runPromise(above)).toEqual([])
  }))
