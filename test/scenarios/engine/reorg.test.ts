import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as Hits from "../../support/stack/Hits.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

describe("a reorganisation above settled depth", () => {
  let stack: Stack
  let hits: Hits.Hits
  let runtime: Hits.Runtime
  beforeAll(async () => {
    stack = await startStack()
    hits = await Hits.make(stack)
    await stack.create("one", "two")
  })
  afterAll(() => stack.stop())
  beforeEach(async () => {
    runtime = stack.begin({ profile: { settledDepth: 4 } })
    await runtime.runPromise(Sweep.start)
  })
  afterEach(async () => {
    await hits.automine(true)
    await runtime.dispose()
  })

  /** Executes, and undoes the block. The block in its place is empty. */
  const undone = async (name: string) => {
    const caller = stack.caller()
    const id = hashOf(name)
    const before = await hits.nonce()
    const snapshot = await stack.provider.send("evm_snapshot", [])
    const first = await runtime.runPromise(hits.execute(caller, hits.hit("one", id)))
    expect(first.status).toBe(1)
    expect((await hits.openOf(runtime)).map(({ state }) => state)).toEqual(["mined"])
    await hits.automine(false)
    expect(await stack.provider.send("evm_revert", [snapshot])).toBe(true)
    expect(await hits.countOf(id)).toBe(0)
    return { requestId: caller.requestId, id, first, before }
  }

  it("makes the transaction wait again; it is offered again, mined again, and the answer is renewed", async () => {
    const { before, first, id, requestId } = await undone("renewed")
    await hits.mine()
    const [again] = await hits.pooled(1)
    expect(again?.hash).toBe(first.txHash)
    expect((await hits.openOf(runtime)).map(({ state }) => state)).toEqual(["signed"])
    expect((await hits.requestOf(runtime, requestId))?.outcome).toBeNull()
    // Another transaction before it in the block: the answer is not the same.
    await stack.provider.send("eth_sendTransaction", [
      {
        from: "0x14dC79964da2C08b23698B3D3cc7Ca32193d9955",
        to: stack.signer.address,
        value: "0x1",
        maxFeePerGas: "0x174876e800",
        maxPriorityFeePerGas: "0x165a0bc00"
      }
    ])
    await hits.mine()
    const { answer } = await hits.answerOf(runtime, requestId)
    expect(answer).toMatchObject({ status: 1, txHash: first.txHash })
    expect(answer.cumulativeGasUsed).toBe(first.cumulativeGasUsed + 21_000)
    expect(await hits.countOf(id)).toBe(1)
    expect(await hits.nonce()).toBe(before + 1)
    await expect
      .poll(
        async () => {
          await hits.mine()
          return (await hits.openOf(runtime)).length
        },
        { timeout: 10_000 }
      )
      .toBe(0)
    expect((await hits.answerOf(runtime, requestId)).answer).toEqual(answer)
  })

  it("in which another transaction takes the nonce moves the work on to the next one, done once", async () => {
    const { before, first, id, requestId } = await undone("taken")
    await hits.foreign(before)
    await hits.mine()
    expect(await hits.nonce()).toBe(before + 1)
    // At settled depth, and not before, the nonce is given up.
    await expect.poll(async () => (await hits.requestOf(runtime, requestId))?.outcome ?? null).toBeNull()
    expect((await hits.openOf(runtime)).map(({ nonce }) => Number(nonce))).toEqual([before])
    await expect
      .poll(
        async () => {
          await hits.mine()
          return (await hits.requestOf(runtime, requestId))?.outcome ?? null
        },
        { timeout: 30_000, interval: 100 }
      )
      .not.toBeNull()
    const { answer } = await hits.answerOf(runtime, requestId)
    expect(answer.status).toBe(1)
    expect(answer.txHash).not.toBe(first.txHash)
    expect(await hits.countOf(id)).toBe(1)
    expect(await hits.nonce()).toBe(before + 2)
    const next = hashOf("after the taken one")
    await hits.automine(true)
    expect((await runtime.runPromise(hits.execute(stack.caller(), hits.hit("two", next)))).status).toBe(1)
    expect(await hits.countOf(next)).toBe(1)
  })

  it("of two transactions of one request has it go on once, not twice at a time", async () => {
    const caller = stack.caller()
    const ids = Array.from({ length: 12 }, (_, n) => hashOf(`several ${n}`))
    await runtime.dispose()
    const transactionGas = 1_000_000n
    runtime = stack.begin({
      profile: {
        settledDepth: 4,
        caps: { maxFeePerGas: 5n * 10n ** 11n, maxPriorityFeePerGas: 10n ** 11n, transactionGas }
      }
    })
    await runtime.runPromise(Sweep.start)
    const before = await hits.nonce()
    const snapshot = await stack.provider.send("evm_snapshot", [])
    const work = hits.execute(caller, ...ids.map((id) => hits.hit("one", id)))
    const first = await runtime.runPromise(work)
    const { length } = first.txHashes
    expect(length).toBeGreaterThan(1)
    await hits.automine(false)
    await stack.provider.send("evm_revert", [snapshot])
    await hits.mine()
    await hits.pooled(length)
    await expect.poll(async () => (await hits.requestOf(runtime, caller.requestId))?.outcome).toBeNull()
    await hits.mine()
    const { answer } = await hits.answerOf(runtime, caller.requestId)
    expect(answer).toMatchObject({ status: 1, txHashes: first.txHashes })
    expect(await Promise.all(ids.map(hits.countOf))).toEqual(ids.map(() => 1))
    expect(await hits.nonce()).toBe(before + length)
  })
})

describe("a reorganisation below settled depth", () => {
  let stack: Stack
  let hits: Hits.Hits
  beforeAll(async () => {
    stack = await startStack({ profile: { bumpAfterMillis: 2_000 } })
    hits = await Hits.make(stack)
    await stack.create("one", "two")
  })
  afterAll(() => stack.stop())

  it("is healed by the lane's next transaction: what it undid lands again, nothing else is sent", async () => {
    const [a, b, c] = ["settled a", "settled b", "after them"].map(hashOf)
    if (a === undefined || b === undefined || c === undefined) return
    const before = await hits.nonce()
    const snapshot = await stack.provider.send("evm_snapshot", [])
    const run = (salt: string, id: string) => stack.ask(hits.execute(stack.caller(), hits.hit(salt, id)))
    expect([(await run("one", a)).status, (await run("one", b)).status]).toEqual([1, 1])
    expect(await hits.openOf(stack.runtime)).toEqual([])
    expect(await stack.provider.send("evm_revert", [snapshot])).toBe(true)
    expect([await hits.countOf(a), await hits.countOf(b), await hits.nonce()]).toEqual([0, 0, before])
    expect((await run("two", c)).status).toBe(1)
    expect(await Promise.all([a, b, c].map(hits.countOf))).toEqual([1, 1, 1])
    expect(await hits.nonce()).toBe(before + 3)
    expect(await hits.pool()).toEqual([])
    const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(stack.signer.address) }
    const above = await stack.ask(
      Effect.orDie(
        Effect.flatMap(TransactionJournal, (transactionJournal) =>
          transactionJournal.transactionsBetween(lane, BigInt(before) + 3n, BigInt(before) + 64n)
        )
      )
    )
    expect(above).toEqual([])
  }, 60_000)
})
