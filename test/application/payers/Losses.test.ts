import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as Losses from "../../../src/application/payers/Losses.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import type { Receipt } from "../../../src/application/ports/chain/ChainRpc.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import * as Landings from "../../support/lanes/Landings.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const [own, elsewhere] = [Make.word(0x1000), Make.word(0x2000)]

const record: TransactionRecord = {
  ...Make.lane,
  nonce: 0n,
  access: Make.access({ key: "serviceEoa", trust: "operator" }),
  state: "signed",
  versions: [],
  signedAt: 0,
  ops: [1, 2].map((index) => ({
    requestId: "r",
    index,
    userOpHash: Make.word(index),
    entryPoint: Make.entryPoint,
    wallet: Make.address(1),
    key: 0n
  })),
  direct: null,
  mined: null
}

const receipt: Receipt = {
  txHash: own,
  success: false,
  blockNumber: 7n,
  blockHash: Make.word(0xb10c),
  gasUsed: 1_000n,
  cumulativeGasUsed: 1_000n,
  effectiveGasPrice: 3n,
  from: Make.lane.signer,
  logs: []
}

const landed = (n: number, txHash = elsewhere) => ({ userOpHash: Make.word(n), txHash })

const bearer = (
  places: ReadonlyArray<ReturnType<typeof landed>>,
  accounts: Readonly<Record<string, AccountId>> = {},
  sender = Make.address(0x99)
) =>
  Losses.bearerOf(record, receipt, places, {
    accountOf: (txHash) => Effect.succeed(accounts[txHash] ?? null),
    senderOf: () => Effect.succeed(sender)
  })

describe("the bearer of a failed transaction's cost", () => {
  test("is its own account when none of its ops landed elsewhere", function* () {
    expect(yield* bearer([])).toBe(Make.alice)
    expect(yield* bearer([landed(1, own), landed(2, own)])).toBe(Make.alice)
  })

  test("is the account of the lane's transaction that landed one of its ops", function* () {
    expect(yield* bearer([landed(2)], { [elsewhere]: Make.bob })).toBe(Make.bob)
    const carol = Make.accountId("carol")
    const third = Make.word(0x3000)
    // Also together with an op that landed elsewhere and is attributed.
    expect(yield* bearer([landed(1, own), landed(2)], { [own]: Make.alice, [elsewhere]: Make.bob })).toBe(
      Make.bob
    )
    // The first op in the bundle reverted it.
    expect(yield* bearer([landed(2), landed(1, third)], { [elsewhere]: Make.bob, [third]: carol })).toBe(
      carol
    )
  })

  test("is its own account when a foreign transaction took an unbound op, and none when the EOA signed that transaction", function* () {
    expect(yield* bearer([landed(1)])).toBe(Make.alice)
    expect(yield* bearer([landed(1)], {}, Make.lane.signer)).toBeNull()
  })
})

describe("the loss of a transaction", () => {
  it("is its gas and its layer 1 fee, less what the ops paid", () => {
    expect(Losses.lossOf(record, receipt)).toBe(3_000n)
    expect(Losses.lossOf(record, { ...receipt, l1Fee: 5n })).toBe(3_005n)
    expect(Losses.lossOf(record, { ...receipt, gasUsed: 0n })).toBe(0n)
  })

  test("is zero where the ops paid more than it cost", function* () {
    const ops = record.ops.map((op) => ({ ...op, entryPoint: Landings.entryPoint }))
    const paid = (wei: bigint) =>
      Effect.gen(function* () {
        const chain = Landings.makeChain()
        chain.land(Make.word(1), wei)
        const shown = yield* chain.client.receipt(Landings.txHashOf(Make.word(1)))
        return Losses.lossOf({ ops }, { ...receipt, logs: shown?.logs ?? [] })
      })
    expect([yield* paid(2_999n), yield* paid(3_000n), yield* paid(3_001n)]).toEqual([1n, 0n, 0n])
  })

  const booked = Effect.gen(function* () {
    const budgets = Context.get(yield* Layer.build(InMemory.budgets), Budgets)
    const figures = (accountId: AccountId) =>
      budgets.figures({ accountId, chainId: Make.chainId, name: Losses.budget }, 0, "day")
    return { losses: Losses.make(budgets), figures }
  })

  test("is booked to its bearer at settled depth, once", function* () {
    const { figures, losses } = yield* booked
    yield* losses.mined(record, receipt, Make.bob)
    yield* losses.mined(record, receipt, Make.bob)
    expect(yield* figures(Make.bob)).toEqual({ held: 3_000n, booked: 0n })
    yield* losses.finalised(record)
    yield* losses.finalised(record)
    expect(yield* figures(Make.bob)).toEqual({ held: 0n, booked: 3_000n })
    expect(yield* figures(Make.alice)).toEqual({ held: 0n, booked: 0n })
  })

  test("stays held until then, however many days it takes", function* () {
    const { figures, losses } = yield* booked
    yield* losses.mined(record, receipt, Make.bob)
    yield* Time.adjust("10 days")
    expect(yield* figures(Make.bob)).toEqual({ held: 3_000n, booked: 0n })
    yield* losses.finalised(record)
    expect(yield* figures(Make.bob)).toEqual({ held: 0n, booked: 3_000n })
  })

  test("belongs to one nonce: a nonce with the same first digits is not settled with it", function* () {
    const { figures, losses } = yield* booked
    for (const nonce of [1n, 10n]) yield* losses.mined({ ...record, nonce }, receipt, Make.bob)
    yield* losses.stranded({ ...record, nonce: 1n })
    expect(yield* figures(Make.bob)).toEqual({ held: 3_000n, booked: 0n })
  })

  test("follows the chain when a reorganisation changes who bears it", function* () {
    const { figures, losses } = yield* booked
    yield* losses.mined(record, receipt, Make.alice)
    yield* losses.mined(record, receipt, Make.bob)
    expect(yield* figures(Make.alice)).toEqual({ held: 0n, booked: 0n })
    yield* losses.mined(record, receipt, null)
    expect(yield* figures(Make.bob)).toEqual({ held: 0n, booked: 0n })
    yield* losses.mined(record, receipt, Make.bob)
    yield* losses.finalised(record)
    expect(yield* figures(Make.alice)).toEqual({ held: 0n, booked: 0n })
    expect(yield* figures(Make.bob)).toEqual({ held: 0n, booked: 3_000n })
  })

  test("is zero when another transaction has its nonce permanently, or the key is the caller's", function* () {
    const { figures, losses } = yield* booked
    yield* losses.mined(record, receipt, Make.alice)
    yield* losses.stranded(record)
    yield* losses.mined({ ...record, nonce: 1n, access: Make.access() }, receipt, Make.alice)
    expect(yield* figures(Make.alice)).toEqual({ held: 0n, booked: 0n })
  })
})
