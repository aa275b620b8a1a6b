import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Settlement from "../../../src/application/lanes/Settlement.js"
import { BudgetsError } from "../../../src/application/ports/Budgets.js"
import type { OpSettlement } from "../../../src/application/ports/journal/Requests.js"
import type { TransactionSettlement } from "../../../src/application/ports/journal/Transactions.js"
import type { Address } from "../../../src/domain/primitives/Address.js"
import type { Bytes32 } from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"
import * as Landings from "../../support/lanes/Landings.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import { test } from "../../support/Test.js"

type Journals = Pick<Settlement.Dependencies, "transactionJournal">

const [shallow, deep] = [
  { confirmations: 1, final: false },
  { confirmations: 2, final: true }
]

const [own, elsewhere, lost] = [Make.word(0x0a), Make.word(0x0b), Make.word(0x0c)]

/** A transaction of the service's EOA with three ops: it carries the first, the second landed earlier, the third is nowhere. */
const record = Monitor.recordOf(0, Monitor.service, {
  ops: [own, elsewhere, lost].map((userOpHash, index) => ({
    requestId: "r",
    index,
    userOpHash,
    entryPoint: Landings.entryPoint,
    wallet: Make.address(1),
    key: 0n
  }))
})

interface Knows {
  /** Bookings fail. */
  readonly booksFail?: boolean
  /** Account of the lane's transaction that took the op; absent: not in the journal. */
  readonly taker?: typeof Make.alice
  /** EOA that signed that transaction, according to the node. */
  readonly sender?: Address
}

const world = ({ booksFail = false, sender, taker }: Knows = {}) =>
  Effect.gen(function* () {
    const chain = Landings.makeChain()
    chain.mine(5)
    chain.land(elsewhere, 1n)
    chain.mine(1)
    chain.land(own, 1n)
    const receipt = yield* chain.client.receipt(Landings.txHashOf(own))
    if (receipt === null) return yield* Effect.die(new Error("it is in a block"))
    const told: Array<string> = []
    const tell = <A>(what: string, value: A) =>
      Effect.sync(() => {
        told.push(what)
        return value
      })
    const placesOf = (outcomes: ReadonlyArray<OpSettlement>) =>
      outcomes.map(
        ({ blockNumber, confirmations, userOpHash }) =>
          `${BigInt(userOpHash)} in block ${blockNumber} (${confirmations})`
      )
    const journals = {
      transactionJournal: {
        transactionOf: (_: unknown, txHash: Bytes32) =>
          Effect.succeed(
            taker !== undefined && txHash === Landings.txHashOf(elsewhere)
              ? Monitor.recordOf(1, { ...Monitor.service, accountId: taker })
              : null
          ),
        recordSubmitted: (_: unknown, versions: ReadonlyArray<{ nonce: bigint; txHash: Bytes32 }>) =>
          tell(`submitted ${versions.map(({ nonce, txHash }) => `${nonce}: ${BigInt(txHash)}`)}`, undefined),
        settle: ({ nonce }: TransactionSettlement, outcomes: ReadonlyArray<OpSettlement>, final: boolean) =>
          tell(`settled ${nonce}${final ? " finally" : ""}: ${placesOf(outcomes)}`, ["r"]),
        finalise: (_: unknown, nonce: bigint) => tell(`finalised ${nonce}`, ["r"]),
        unsettle: (_: unknown, nonce: bigint) => tell(`withdrawn ${nonce}`, ["r"]),
        recordExternalUse: (_: unknown, nonce: bigint, outcomes: ReadonlyArray<OpSettlement>) =>
          tell(`used elsewhere ${nonce}: ${placesOf(outcomes)}`, ["r"])
      }
    } as unknown as Journals
    const booked = (what: string) =>
      booksFail ? Effect.fail(new BudgetsError({ message: "away" })) : Effect.asVoid(tell(what, undefined))
    const settlement = Settlement.make({
      ...journals,
      listener: {
        affected: (_, requestIds) => tell(`affected: ${requestIds}`, undefined),
        mined: (_, isForGood) => tell(isForGood ? "mined finally" : "mined", undefined),
        reopened: Effect.asVoid(tell("reopened", undefined)),
        notifyEvents: Effect.asVoid(tell("events", undefined))
      },
      losses: {
        mined: (_, __, bearer) => booked(`loss of ${bearer}`),
        finalised: () => booked("loss finally"),
        stranded: () => booked("no loss")
      }
    })
    const sent = (hash: Bytes32) =>
      sender !== undefined && hash === Landings.txHashOf(elsewhere) ? ({ from: sender } as never) : null
    return {
      chain: { ...chain.client, transaction: (hash: Bytes32) => Effect.succeed(sent(hash)) },
      lagWithLogs: chain.fallBehindWithLogs,
      receipt,
      settlement,
      told
    }
  })

const affected = "affected: r"
const [ownPlace, otherPlace] = ["10 in block 6", "11 in block 5"]

describe("a mined transaction", () => {
  test("is recorded with its ops' outcomes, wherever they landed, after its losses", function* () {
    const { chain, receipt, settlement, told } = yield* world()
    yield* settlement.mined(chain, record, receipt, shallow)
    expect(told).toEqual(["loss of alice", `settled 0: ${ownPlace} (1),${otherPlace} (1)`, affected, "mined"])
  })

  test("charges the account whose transaction took its op, and no account if the key itself did", function* () {
    for (const [knows, bearer] of [
      [{ taker: Make.bob, sender: record.signer }, "bob"],
      [{ sender: record.signer }, "null"],
      [{ sender: Make.address(0xe0) }, "alice"]
    ] as const) {
      const { chain, receipt, settlement, told } = yield* world(knows)
      yield* settlement.mined(chain, record, receipt, shallow)
      expect(told[0]).toBe(`loss of ${bearer}`)
    }
  })

  test("is not recorded by a node that lags behind its block, since ops landed there would go again", function* () {
    const { chain, lagWithLogs, receipt, settlement, told } = yield* world()
    lagWithLogs(1)
    expect(yield* Effect.flip(settlement.mined(chain, record, receipt, deep))).toMatchObject({
      _tag: "ChainRpcError",
      reason: "unreachable"
    })
    expect(told).toEqual([])
  })

  test("finalises its losses at settled depth", function* () {
    const { chain, receipt, settlement, told } = yield* world()
    yield* settlement.mined(chain, record, receipt, deep)
    expect(told).toEqual([
      "loss of alice",
      "loss finally",
      `settled 0 finally: ${ownPlace} (2),${otherPlace} (2)`,
      affected,
      "mined finally"
    ])
    told.length = 0
    yield* settlement.finalised(record, 2)
    expect(told).toEqual(["loss finally", "finalised 0", affected, "mined finally"])
  })

  test("is not recorded while its loss cannot be booked, since the loss would be missing later", function* () {
    const { chain, receipt, settlement, told } = yield* world({ booksFail: true })
    for (const settling of [settlement.mined(chain, record, receipt, deep), settlement.finalised(record, 2)])
      expect((yield* Effect.flip(settling))._tag).toBe("JournalError")
    expect(told).toEqual([])
  })

  test("is signed again after it has left the chain, and its reported answers are withdrawn", function* () {
    const { settlement, told } = yield* world()
    yield* settlement.vanished(record)
    expect(told).toEqual(["withdrawn 0", affected, "reopened"])
  })
})

test("a transaction accepted by a node is recorded with its newest version", function* () {
  const { settlement, told } = yield* world()
  const replaced = Monitor.recordOf(1, Monitor.service).versions
  const original = Monitor.recordOf(0, Monitor.service).versions
  yield* settlement.submitted(Make.lane, [{ nonce: 7n, versions: [...original, ...replaced] }])
  expect(told).toEqual([`submitted 7: ${0x101}`, "events"])
})

describe("a transaction whose nonce another transaction used", () => {
  const use = { blockNumber: 6n, settledTo: 6n, confirmations: 2 }

  test("frees only ops that are not on the chain, in one journal write", function* () {
    const { chain, settlement, told } = yield* world()
    expect(yield* settlement.stranded(chain, record, use)).toBe(true)
    expect(told).toEqual(["no loss", `used elsewhere 0: ${otherPlace} (2),${ownPlace} (2)`, affected])
  })

  test("is not recorded until all its landed ops are at settled depth, since watching ends then", function* () {
    const { chain, settlement, told } = yield* world()
    expect(yield* settlement.stranded(chain, record, { ...use, settledTo: 5n })).toBe(false)
    expect(told).toEqual([])
  })

  test("is not recorded by a node that lags behind the other transaction's block", function* () {
    const { chain, lagWithLogs, settlement, told } = yield* world()
    lagWithLogs(1)
    expect(yield* Effect.flip(settlement.stranded(chain, record, use))).toMatchObject({
      _tag: "ChainRpcError",
      reason: "unreachable"
    })
    expect(told).toEqual([])
  })
})
