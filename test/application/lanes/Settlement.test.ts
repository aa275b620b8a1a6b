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

/** A transaction of the service's EOA with three ops: one that it carries, one that landed before it, one that is nowhere. */
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
  /** Nothing can be booked. */
  readonly booksFail?: boolean
  /** Whose transaction of the lane it was that took the op; left out: the journal has none. */
  readonly taker?: typeof Make.alice
  /** The EOA that signed that one, as the node says. */
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
          tell(`settled ${nonce}${final ? " for good" : ""}: ${placesOf(outcomes)}`, ["r"]),
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
        mined: (_, isForGood) => tell(isForGood ? "mined for good" : "mined", undefined),
        reopened: Effect.asVoid(tell("reopened", undefined)),
        told: Effect.asVoid(tell("events", undefined))
      },
      losses: {
        mined: (_, __, bearer) => booked(`loss of ${bearer}`),
        finalised: () => booked("loss for good"),
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
  test("is recorded with the outcomes of its ops, wherever they landed, after what it has lost", function* () {
    const { chain, receipt, settlement, told } = yield* world()
    yield* settlement.mined(chain, record, receipt, shallow)
    expect(told).toEqual(["loss of alice", `settled 0: ${ownPlace} (1),${otherPlace} (1)`, affected, "mined"])
  })

  test("whose op another one took has cost the account of that one, and nobody's where the key did", function* () {
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

  test("is not recorded by a node that lags behind its block: what landed there would go again", function* () {
    const { chain, lagWithLogs, receipt, settlement, told } = yield* world()
    lagWithLogs(1)
    expect(yield* Effect.flip(settlement.mined(chain, record, receipt, deep))).toMatchObject({
      _tag: "ChainRpcError",
      reason: "unreachable"
    })
    expect(told).toEqual([])
  })

  test("at settled depth has lost for good what it has lost", function* () {
    const { chain, receipt, settlement, told } = yield* world()
    yield* settlement.mined(chain, record, receipt, deep)
    expect(told).toEqual([
      "loss of alice",
      "loss for good",
      `settled 0 for good: ${ownPlace} (2),${otherPlace} (2)`,
      affected,
      "mined for good"
    ])
    told.length = 0
    yield* settlement.finalised(record, 2)
    expect(told).toEqual(["loss for good", "finalised 0", affected, "mined for good"])
  })

  test("is not recorded as long as its loss can not be booked: nobody would book it later", function* () {
    const { chain, receipt, settlement, told } = yield* world({ booksFail: true })
    for (const settling of [settlement.mined(chain, record, receipt, deep), settlement.finalised(record, 2)])
      expect((yield* Effect.flip(settling))._tag).toBe("JournalError")
    expect(told).toEqual([])
  })

  test("that has left the chain is signed again, and answers that told of it are taken back", function* () {
    const { settlement, told } = yield* world()
    yield* settlement.vanished(record)
    expect(told).toEqual(["withdrawn 0", affected, "reopened"])
  })
})

test("a transaction that a node took is recorded by its newest version", function* () {
  const { settlement, told } = yield* world()
  const replaced = Monitor.recordOf(1, Monitor.service).versions
  const original = Monitor.recordOf(0, Monitor.service).versions
  yield* settlement.submitted(Make.lane, [{ nonce: 7n, versions: [...original, ...replaced] }])
  expect(told).toEqual([`submitted 7: ${0x101}`, "events"])
})

describe("a transaction whose nonce another one has", () => {
  const use = { blockNumber: 6n, settledTo: 6n, confirmations: 2 }

  test("sets free only ops that are not on the chain: the journal is told of all of them at once", function* () {
    const { chain, settlement, told } = yield* world()
    expect(yield* settlement.stranded(chain, record, use)).toBe(true)
    expect(told).toEqual(["no loss", `used elsewhere 0: ${otherPlace} (2),${ownPlace} (2)`, affected])
  })

  test("is not recorded before all that landed of it is at settled depth: nobody watches it then", function* () {
    const { chain, settlement, told } = yield* world()
    expect(yield* settlement.stranded(chain, record, { ...use, settledTo: 5n })).toBe(false)
    expect(told).toEqual([])
  })

  test("is not recorded by a node that lags behind the block of the other one", function* () {
    const { chain, lagWithLogs, settlement, told } = yield* world()
    lagWithLogs(1)
    expect(yield* Effect.flip(settlement.stranded(chain, record, use))).toMatchObject({
      _tag: "ChainRpcError",
      reason: "unreachable"
    })
    expect(told).toEqual([])
  })
})
