import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import type * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import * as StuckTransactions from "../../../src/application/lanes/StuckTransactions.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import type { Signer } from "../../../src/application/ports/Signers.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"

const { rawOf, recordOf, service } = Monitor
const profile = { ...Monitor.profile, pollIntervalMillis: 5_000 }

const signer: Signer = {
  address: Make.lane.signer,
  publicKey: "04",
  type: "PRIVATE_KEY",
  sign: () => Effect.die(new Error("nothing is signed here"))
}

/** The lane of the service's EOA at one node. Its journal holds these transactions. */
const start = (held: ReadonlyArray<TransactionRecord>) =>
  Effect.gen(function* () {
    const node = yield* Monitor.node("operator")
    const records = new Map(held.map((record) => [record.nonce, record]))
    const filled: Array<bigint> = []
    let replacements = 0
    const lanes: NonceManager.NonceManager = {
      exclusive: (_, effect) => effect,
      current: ({ nonce }) => Effect.sync(() => records.get(nonce) ?? null),
      firstFree: () => Effect.die(new Error("not asked for")),
      admits: () => Effect.succeed(true),
      sign: () => Effect.die(new Error("nothing is sent")),
      fill: ({ chainNonce }) =>
        Effect.sync(() => {
          filled.push(chainNonce)
          const record = recordOf(Number(chainNonce), service)
          records.set(chainNonce, record)
          return record
        }),
      replace: (record) =>
        Effect.sync(() => {
          replacements += 1
          const [version] = record.versions
          if (version === undefined) return record
          const next = { ...version, txHash: Make.word(0x1000 + replacements) }
          const renewed = { ...record, versions: [...record.versions, next] }
          records.set(record.nonce, renewed)
          return renewed
        })
    }
    const { monitor } = yield* Monitor.start({
      operatorNode: () => Effect.succeed(node.chain),
      attend: StuckTransactions.make({
        transactionJournal: {
          transactionsBetween: (_, from, below) =>
            Effect.sync(() => [...records.values()].filter(({ nonce }) => nonce >= from && nonce < below))
        },
        lanes,
        settlement: {
          mined: () => Effect.void,
          finalised: () => Effect.void,
          vanished: () => Effect.void,
          stranded: () => Effect.void
        },
        signerOf: () => Effect.succeed(signer),
        scope: yield* Effect.scope
      })
    })
    return { filled, monitor, node, replaced: () => replacements, records }
  })

describe("the price of a waiting transaction", () => {
  it.scoped("is raised when blocks come and do not take it, and not while the chain stands still", () =>
    Effect.gen(function* () {
      const record = recordOf(0, service)
      const { monitor, node, replaced } = yield* start([record])
      yield* monitor.watch({ chain: null, profile, record })
      yield* TestClock.adjust("1 minute")
      expect(replaced()).toBe(0)
      for (const raised of [1, 2]) {
        node.height += 1n
        yield* TestClock.adjust("1 minute")
        expect(replaced()).toBe(raised)
      }
      node.is = "dead"
      node.height += 1n
      yield* TestClock.adjust("1 minute")
      expect(replaced()).toBe(2)
    })
  )
})

describe("nonces that the chain has open below a waiting transaction", () => {
  it.scoped(
    "get the bytes again that a deep reorganisation undid, and one filler each where there are none",
    () =>
      Effect.gen(function* () {
        const record = recordOf(8, service)
        const settled = [5, 6].map((nonce) => recordOf(nonce, service, { state: "settled" }))
        const { filled, monitor, node } = yield* start([...settled, record])
        node.nonce = 5n
        yield* monitor.watch({ chain: null, profile, record })
        yield* TestClock.adjust("1 minute")
        expect(filled).toEqual([7n])
        for (const nonce of [5, 6, 7, 8]) expect(node.given).toContain(rawOf(nonce))
      })
  )

  it.scoped("never get bytes whose work has gone on under another nonce", () =>
    Effect.gen(function* () {
      const record = recordOf(6, service)
      const foreign = recordOf(5, service, { state: "foreign" })
      const { filled, monitor, node } = yield* start([foreign, record])
      node.nonce = 5n
      yield* monitor.watch({ chain: null, profile, record })
      yield* TestClock.adjust("1 minute")
      expect(filled).toEqual([])
      expect(node.given).not.toContain(rawOf(5))
    })
  )
})
