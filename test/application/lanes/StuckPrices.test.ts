import { Clock, Effect } from "effect"
import { describe, expect } from "vitest"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import { start } from "../../support/lanes/Stuck.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const gwei = 10n ** 9n
const { caps } = Monitor.profile
const record = Monitor.recordOf(0, Monitor.service)

interface Fees {
  readonly nextBaseFee: bigint | null
  readonly tip: bigint
}

describe("the price of a waiting transaction", () => {
  test("rises when blocks pass without it, but not while no block comes", function* () {
    const { blocks, node, replaced, watch } = yield* start([record])
    yield* watch(record)
    expect(replaced()).toBe(0)
    for (const raised of [1, 2]) {
      yield* blocks()
      expect(replaced()).toBe(raised)
    }
    node.is = "dead"
    yield* blocks()
    expect(replaced()).toBe(2)
  })

  test("does not rise twice, since another process or a request may have raised it", function* () {
    const versions = [
      ...record.versions,
      ...record.versions.map((version) => ({ ...version, txHash: Make.word(0x200) }))
    ]
    for (const now of [{ ...record, versions }, { ...record, state: "mined" as const }, null]) {
      const { blocks, counts, replaced, watch } = yield* start([record], ({ records }) => {
        if (now === null) records.delete(0n)
        else records.set(0n, now)
      })
      yield* watch(record)
      yield* blocks()
      expect(counts.signers).toBeGreaterThan(0)
      expect(replaced()).toBe(0)
    }
  })

  test("rises by a tenth, or to a fifth above the chain's price, and never above the operator's caps", function* () {
    const market = { nextBaseFee: 1n, tip: 1n }
    const dear = { nextBaseFee: 18n * gwei, tip: 2n * gwei }
    // The transaction had 10 gwei and 1 wei.
    for (const [fees, most, raised] of [
      [market, {}, { maxFeePerGas: 11n * gwei, maxPriorityFeePerGas: 2n, legacy: false }],
      [dear, {}, { maxFeePerGas: 24n * gwei, maxPriorityFeePerGas: 2n * gwei, legacy: false }],
      [
        market,
        { maxFeePerGas: 11n * gwei },
        { maxFeePerGas: 11n * gwei, maxPriorityFeePerGas: 2n, legacy: false }
      ],
      [market, { maxFeePerGas: 11n * gwei - 1n }, undefined],
      [market, { maxPriorityFeePerGas: 1n }, undefined]
    ] as const) {
      const { blocks, prices, watch } = yield* start([record], undefined, {
        chain: () => ({ fees: Effect.succeed(fees) })
      })
      yield* watch(record, { profile: { caps: { ...caps, ...most } } })
      yield* blocks()
      expect(prices[0]).toEqual(raised)
    }
  })

  test("is signed by the key once at a time, however long a signature takes", function* () {
    const { blocks, counts, watch } = yield* start([record], undefined, { isSilent: true })
    yield* watch(record)
    yield* blocks(5)
    expect(counts.signers).toBe(1)
  })

  test("rises immediately when no node accepts it because the chain asks for more", function* () {
    const message = "max fee per gas less than block base fee"
    const refused = new ChainRpcError({ reason: "rejected", origin: "operator", message })
    /** Replacements in its first seconds at this base fee. */
    const replaced = (fees: Fees, { most = {}, nonce = 0, takes = false } = {}) =>
      Effect.gen(function* () {
        const signedAt = yield* Clock.currentTimeMillis
        const waiting = Monitor.recordOf(nonce, Monitor.service, { signedAt })
        const world = yield* start([waiting], undefined, {
          chain: () => ({
            fees: Effect.succeed(fees),
            sendRawTransaction: () => (takes ? Effect.void : Effect.fail(refused))
          })
        })
        const profile = { ...Monitor.profile, pollIntervalMillis: 5_000, caps: { ...caps, ...most } }
        yield* world.monitor.watch({ chain: null, profile, record: waiting })
        yield* Time.adjust(profile.bumpAfterMillis / 3)
        return world.replaced()
      })
    expect(yield* replaced({ nextBaseFee: 10n * gwei + 1n, tip: 1n })).toBe(1)
    expect(yield* replaced({ nextBaseFee: null, tip: 10n * gwei + 1n })).toBe(1)
    // It was refused for another reason.
    expect(yield* replaced({ nextBaseFee: 10n * gwei, tip: 1n })).toBe(0)
    expect(yield* replaced({ nextBaseFee: null, tip: 10n * gwei })).toBe(0)
    const dear = { nextBaseFee: 20n * gwei, tip: 1n }
    // A node has it, its turn has not come, or the caps make a raise useless.
    for (const waits of [{ takes: true }, { nonce: 1 }, { most: { maxFeePerGas: 15n * gwei } }])
      expect(yield* replaced(dear, waits)).toBe(0)
  })
})

test("a node gets a waiting transaction again only if it has lost it, and only at intervals", function* () {
  const known = (txHash: string) =>
    ({ txHash, from: Make.lane.signer, nonce: 0n, blockNumber: null }) as never
  for (const hasIt of [true, false]) {
    const { node, watch } = yield* start([record], undefined, {
      chain: () => ({ transaction: (txHash) => Effect.succeed(hasIt ? known(txHash) : null) })
    })
    yield* watch(record)
    expect(node.given.length).toBeGreaterThanOrEqual(hasIt ? 1 : 2)
    expect(node.given.length).toBeLessThan(hasIt ? 2 : 10)
  }
})
