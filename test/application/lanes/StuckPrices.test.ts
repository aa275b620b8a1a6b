import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/TestClock"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import * as Make from "../../support/journal/Make.js"
import * as Log from "../../support/Log.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import * as Stuck from "../../support/lanes/Stuck.js"

const { recordOf, service } = Monitor
const { profile, start } = Stuck
const gwei = 10n ** 9n

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

describe("a price that is raised", () => {
  it.scoped("is not raised twice: another process, or a request, may have done it meanwhile", () =>
    Effect.gen(function* () {
      const record = recordOf(0, service)
      const [version] = record.versions
      if (version === undefined) return
      const renewed = { ...record, versions: [version, { ...version, txHash: Make.word(0x200) }] }
      for (const now of [renewed, { ...record, state: "mined" as const }, null]) {
        let asked = 0
        const { monitor, node, replaced } = yield* start([record], ({ records }) => {
          asked += 1
          if (now === null) records.delete(0n)
          else records.set(0n, now)
        })
        yield* monitor.watch({ chain: null, profile, record })
        yield* TestClock.adjust("1 minute")
        node.height += 1n
        yield* TestClock.adjust("1 minute")
        expect(asked).toBeGreaterThan(0)
        expect(replaced()).toBe(0)
      }
    })
  )
})

describe("a raised price", () => {
  /** The prices of the first replacement of a transaction of 10 gwei and 1 wei; null: there is none. */
  const raised = (fees: { readonly nextBaseFee: bigint | null; readonly tip: bigint }, caps = profile.caps) =>
    Effect.gen(function* () {
      const record = recordOf(0, service)
      const { monitor, node, prices } = yield* start([record], undefined, {
        chain: () => ({ fees: Effect.succeed(fees) })
      })
      yield* monitor.watch({ chain: null, profile: { ...profile, caps }, record })
      yield* TestClock.adjust("1 minute")
      node.height += 1n
      yield* TestClock.adjust("1 minute")
      return prices[0] ?? null
    })

  it.scoped("is a tenth more, or what the chain asks for now with a fifth more", () =>
    Effect.gen(function* () {
      expect(yield* raised({ nextBaseFee: 1n, tip: 1n })).toEqual({
        maxFeePerGas: 11n * gwei,
        maxPriorityFeePerGas: 2n,
        legacy: false
      })
      expect(yield* raised({ nextBaseFee: 18n * gwei, tip: 2n * gwei })).toEqual({
        maxFeePerGas: 24n * gwei,
        maxPriorityFeePerGas: 2n * gwei,
        legacy: false
      })
    })
  )

  it.scoped("is never above the operator's caps", () =>
    Effect.gen(function* () {
      const market = { nextBaseFee: 1n, tip: 1n }
      expect(yield* raised(market, { ...profile.caps, maxFeePerGas: 11n * gwei })).not.toBeNull()
      expect(yield* raised(market, { ...profile.caps, maxFeePerGas: 11n * gwei - 1n })).toBeNull()
      expect(yield* raised(market, { ...profile.caps, maxPriorityFeePerGas: 1n })).toBeNull()
    })
  )

  it.scoped("is asked of the key once at a time, however long its signature takes", () =>
    Effect.gen(function* () {
      const record = recordOf(0, service)
      const { counts, monitor, node } = yield* start([record], undefined, { isSilent: true })
      yield* monitor.watch({ chain: null, profile, record })
      for (const _ of Array(5)) {
        node.height += 1n
        yield* TestClock.adjust("1 minute")
      }
      expect(counts.signers).toBe(1)
    })
  )

  it.scoped("that is not stored since the lane is another process's by now is no reason to warn", () =>
    Effect.gen(function* () {
      for (const isFenced of [true, false]) {
        const told: Array<string> = []
        const log = Logger.make(({ logLevel, message }) => {
          if (logLevel._tag === "Warning") told.push(String(message))
        })
        const record = recordOf(0, service)
        yield* Effect.gen(function* () {
          const refusal = new JournalError({ message: "no", ...(isFenced && { isFenced }) })
          const { monitor, node } = yield* start([record], undefined, { refusal })
          yield* monitor.watch({ chain: null, profile, record })
          yield* TestClock.adjust("1 minute")
          node.height += 1n
          yield* TestClock.adjust("1 minute")
        }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, log)))
        expect(told.includes("a waiting transaction is left as it is")).toBe(!isFenced)
      }
    })
  )
})

describe("what keeps a price from being raised", () => {
  const gwei10 = { ...profile.caps, maxFeePerGas: 10n * gwei }
  const kinds = [
    ["the operator's cap allows no higher price", { ...profile, caps: gwei10 }, {}],
    ["a waiting transaction is left as it is", profile, { refusal: new JournalError({ message: "away" }) }]
  ] as const
  it.scoped.each(kinds)("for an hour is told of six times: %s", ([what, own, options]) => {
    const log = Log.make()
    return Effect.gen(function* () {
      const record = recordOf(0, service)
      const { counts, monitor, node } = yield* start([record], undefined, options)
      yield* monitor.watch({ chain: null, profile: own, record })
      for (let minute = 0; minute < 62; minute += 1) {
        node.height += 1n
        yield* TestClock.adjust("1 minute")
      }
      expect(counts.signers).toBeGreaterThan(40)
      expect(Log.told(log.lines, what)).toEqual(Array(6).fill("WARN"))
    }).pipe(Effect.provide(log.layer))
  })
})

describe("a transaction that no node takes since the chain asks for more", () => {
  const refused = new ChainRpcError({
    reason: "rejected",
    origin: "operator",
    message: "max fee per gas less than block base fee"
  })
  /** How often it is replaced within its first seconds, while the base fee is that. */
  const replaced = (
    fees: { readonly nextBaseFee: bigint | null; readonly tip: bigint },
    { caps = profile.caps, nonce = 0, takes = false } = {}
  ) =>
    Effect.gen(function* () {
      const record = recordOf(nonce, service)
      const world = yield* start([record], undefined, {
        chain: () => ({
          fees: Effect.succeed(fees),
          sendRawTransaction: () => (takes ? Effect.void : Effect.fail(refused))
        })
      })
      yield* world.monitor.watch({ chain: null, profile: { ...profile, caps }, record })
      yield* TestClock.adjust(profile.bumpAfterMillis / 3)
      return world.replaced()
    })

  it.scoped("is priced anew at once, and not when it was refused for something else", () =>
    Effect.gen(function* () {
      expect(yield* replaced({ nextBaseFee: 10n * gwei + 1n, tip: 1n })).toBe(1)
      expect(yield* replaced({ nextBaseFee: null, tip: 10n * gwei + 1n })).toBe(1)
      expect(yield* replaced({ nextBaseFee: 10n * gwei, tip: 1n })).toBe(0)
      expect(yield* replaced({ nextBaseFee: null, tip: 10n * gwei })).toBe(0)
    })
  )

  it.scoped("waits as any other one when a node has taken it, or its turn has not come", () =>
    Effect.gen(function* () {
      expect(yield* replaced({ nextBaseFee: 20n * gwei, tip: 1n }, { takes: true })).toBe(0)
      expect(yield* replaced({ nextBaseFee: 20n * gwei, tip: 1n }, { nonce: 1 })).toBe(0)
    })
  )

  it.scoped(
    "waits where the chain asks for more than the operator allows: a smaller raise is of no use",
    () =>
      Effect.gen(function* () {
        const caps = { ...profile.caps, maxFeePerGas: 15n * gwei }
        expect(yield* replaced({ nextBaseFee: 20n * gwei, tip: 1n }, { caps })).toBe(0)
      })
  )
})

describe("a node", () => {
  const known = (txHash: string) =>
    ({ txHash, from: Make.lane.signer, nonce: 0n, blockNumber: null }) as never

  it.scoped("that has a waiting transaction is not given it again, and one that has lost it is", () =>
    Effect.gen(function* () {
      for (const hasIt of [true, false]) {
        const record = recordOf(0, service)
        const { monitor, node } = yield* start([record], undefined, {
          chain: () => ({ transaction: (txHash) => Effect.succeed(hasIt ? known(txHash) : null) })
        })
        yield* monitor.watch({ chain: null, profile, record })
        yield* TestClock.adjust("1 minute")
        if (hasIt) expect(node.given).toHaveLength(1)
        else {
          // Every ten seconds, and once each time.
          expect(node.given.length).toBeGreaterThan(1)
          expect(node.given.length).toBeLessThan(10)
        }
      }
    })
  )

  it.scoped(
    "is asked about what waits for long every quarter of the time after which prices are raised",
    () =>
      Effect.gen(function* () {
        let looks = 0
        const record = recordOf(0, service)
        const { monitor } = yield* start([record], undefined, {
          chain: ({ chain }) => ({
            transaction: (txHash) => Effect.succeed(known(txHash)),
            transactionCount: (eoa, tag) => {
              if (tag === "pending") looks += 1
              return chain.transactionCount(eoa, tag)
            }
          })
        })
        const often = { ...profile, pollIntervalMillis: 1_000, bumpAfterMillis: 80_000 }
        yield* monitor.watch({ chain: null, profile: often, record })
        yield* TestClock.adjust("81 seconds")
        looks = 0
        yield* TestClock.adjust("1 minute")
        // Beside these it is looked for at the node every ten seconds, see above.
        expect(looks).toBeGreaterThan(2)
        expect(looks).toBeLessThan(12)
      })
  )

  it.scoped("of the operator says whether blocks come once a transaction's own node is in doubt", () =>
    Effect.gen(function* () {
      for (const isFollowing of [true, false]) {
        const record = recordOf(0, Monitor.callers)
        const { monitor, node: operators, replaced } = yield* start([record])
        const own = yield* Monitor.node("alice")
        yield* monitor.watch({ chain: own.chain, profile, record })
        yield* TestClock.adjust("1 minute")
        operators.height += 1n
        if (isFollowing) own.height += 1n
        yield* TestClock.adjust("1 minute")
        expect(replaced()).toBe(1)
      }
    })
  )

  it.scoped("that does not answer holds up what waits for a few seconds, and no longer", () =>
    Effect.gen(function* () {
      let isHanging = true
      const record = recordOf(0, service)
      const { monitor, node, replaced } = yield* start([record], undefined, {
        chain: ({ chain }) => ({
          transactionCount: (...of) => (isHanging ? Effect.never : chain.transactionCount(...of))
        })
      })
      yield* monitor.watch({ chain: null, profile, record })
      yield* TestClock.adjust("1 minute")
      isHanging = false
      yield* TestClock.adjust("1 minute")
      node.height += 1n
      yield* TestClock.adjust("1 minute")
      expect(replaced()).toBeGreaterThan(0)
    })
  )
})
