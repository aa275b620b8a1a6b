import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/TestClock"
import { SigningKey } from "ethers"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import * as Transaction from "../../../src/domain/evm/Transaction.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import * as Stuck from "../../support/lanes/Stuck.js"

const { callers, rawOf, recordOf, service } = Monitor
const { profile, start } = Stuck

describe("a nonce that another transaction of the key has used", () => {
  const deep = { ...profile, settledDepth: 3 }
  const raw = Transaction.serialize(
    {
      chainId: Make.chainId,
      nonce: 0n,
      legacy: false,
      maxFeePerGas: 10n ** 10n,
      maxPriorityFeePerGas: 1n,
      gasLimit: 21_000n,
      to: Make.address(7),
      value: 5n,
      data: Hex.empty
    },
    Hex.unsafe(new SigningKey(Make.word(1)).sign(Make.word(2)).serialized)
  )
  const own = { txHash: Make.word(0x100), raw, maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1n }
  const foreign = {
    txHash: Make.word(0xf0),
    from: Make.lane.signer,
    nonce: 0n,
    to: Make.address(8),
    data: Hex.empty,
    value: 5n,
    gasLimit: 21_000n,
    maxFeePerGas: 1n,
    maxPriorityFeePerGas: 1n,
    blockNumber: 5n
  }

  /** Block 5 has this transaction. What is set free when the chain is at that height. */
  const setFree = (
    used: Monitor.Node["foreign"],
    height: bigint,
    over: Partial<TransactionRecord> = { versions: [own] }
  ) =>
    Effect.gen(function* () {
      const record = recordOf(0, service, over)
      const { monitor, node, stranded } = yield* start([record])
      Object.assign(node, { nonce: 1n, height, foreign: used })
      yield* monitor.watch({ chain: null, profile: deep, record })
      yield* TestClock.adjust("1 minute")
      return stranded
    })

  it.scoped("sets the work free at settled depth, and not a block before", () =>
    Effect.gen(function* () {
      expect(yield* setFree(foreign, 6n)).toEqual([])
      expect((yield* setFree(foreign, 7n))[0]).toBe(0n)
    })
  )

  it.scoped("is told with the newest block that is at settled depth, and is watched no more", () =>
    Effect.gen(function* () {
      const record = recordOf(0, service, { versions: [own] })
      for (const isShallow of [false, true]) {
        const { monitor, node, uses } = yield* start([record], undefined, { isShallow })
        Object.assign(node, { nonce: 1n, height: 10n, foreign })
        yield* monitor.watch({ chain: null, profile: deep, record })
        yield* TestClock.adjust("1 minute")
        expect(uses[0]).toEqual({ blockNumber: 5n, settledTo: 8n, confirmations: 3 })
        expect(monitor.isWatched(record)).toBe(isShallow)
      }
    })
  )

  it.scoped("is watched no more when the journal has settled it meanwhile", () =>
    Effect.gen(function* () {
      const record = recordOf(0, service, { versions: [own] })
      const { monitor, node, stranded } = yield* start([])
      Object.assign(node, { nonce: 1n, height: 10n, foreign })
      yield* monitor.watch({ chain: null, profile: deep, record })
      yield* TestClock.adjust("1 minute")
      expect(stranded).toEqual([])
      expect(monitor.isWatched(record)).toBe(false)
    })
  )

  it.scoped(
    "is looked at less and less often while its receipt is not shown, and the journal is not asked",
    () =>
      Effect.gen(function* () {
        let looks = 0
        const record = recordOf(0, service, { versions: [own] })
        const { counts, monitor, node } = yield* start([record], undefined, {
          chain: ({ chain }) => ({
            transactionsIn: (block) =>
              Effect.suspend(() => {
                looks += 1
                return chain.transactionsIn(block)
              })
          })
        })
        Object.assign(node, { nonce: 1n, height: 10n, foreign: { ...foreign, txHash: own.txHash } })
        yield* monitor.watch({ chain: null, profile: { ...deep, pollIntervalMillis: 1_000 }, record })
        yield* TestClock.adjust("1 minute")
        expect(counts.reads).toBe(0)
        expect(looks).toBeGreaterThan(1)
        expect(looks).toBeLessThan(12)
      })
  )

  it.scoped("sets nothing free when that transaction is one of its own, which the node shows late", () =>
    Effect.gen(function* () {
      expect(yield* setFree({ ...foreign, txHash: own.txHash }, 100n)).toEqual([])
      // Another process has signed it: the journal knows of it, and what is watched here does not.
      const record = recordOf(0, service, { versions: [own] })
      const renewed = { ...record, versions: [own, { ...own, txHash: foreign.txHash }] }
      const { monitor, node, stranded } = yield* start([renewed])
      Object.assign(node, { nonce: 1n, height: 100n, foreign })
      yield* monitor.watch({ chain: null, profile: deep, record })
      yield* TestClock.adjust("1 minute")
      expect(stranded).toEqual([])
    })
  )

  it.scoped("sets a request's own transaction free, and takes one that does the same for its own", () =>
    Effect.gen(function* () {
      const direct = { versions: [own], direct: "r" }
      expect((yield* setFree(foreign, 100n, direct))[0]).toBe(0n)
      const same = { ...foreign, to: Make.address(7) }
      expect(yield* setFree(same, 100n, direct)).toEqual([])
      expect((yield* setFree({ ...same, value: 6n }, 100n, direct))[0]).toBe(0n)
      expect((yield* setFree({ ...same, data: Hex.unsafe("0x01") }, 100n, direct))[0]).toBe(0n)
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
        // The lower one lets all of them be mined at once.
        expect(node.given.indexOf(rawOf(6))).toBeLessThan(node.given.indexOf(rawOf(5)))
      })
  )

  it.scoped(
    "get no filler at first sight, since a node may be behind, and no higher price for what waits above",
    () =>
      Effect.gen(function* () {
        const record = recordOf(6, service)
        let hasAsked = false
        // Once it is asked for a signature, the nonce is taken: nothing is filled.
        const { filled, monitor, node, replaced } = yield* start([record], ({ node: asked }) => {
          hasAsked = true
          asked.pending = 6n
        })
        node.nonce = 5n
        yield* monitor.watch({ chain: null, profile, record })
        for (const _ of Array(5)) {
          yield* TestClock.adjust(profile.bumpAfterMillis / 6)
          node.height += 1n
        }
        expect(hasAsked).toBe(false)
        for (const _ of Array(12)) {
          yield* TestClock.adjust(profile.bumpAfterMillis / 6)
          node.height += 1n
        }
        expect(hasAsked).toBe(true)
        expect([filled, replaced()]).toEqual([[], 0])
      })
  )

  it.scoped("get undone bytes of an account at every node that serves it", () =>
    Effect.gen(function* () {
      const record = recordOf(6, callers)
      const { monitor, node: operators } = yield* start([recordOf(5, callers, { state: "settled" }), record])
      const own = yield* Monitor.node("alice")
      for (const node of [own, operators]) node.nonce = 5n
      yield* monitor.watch({ chain: own.chain, profile, record })
      yield* TestClock.adjust("1 minute")
      for (const node of [own, operators]) expect(node.given).toContain(rawOf(5))
    })
  )

  it.scoped("get bytes of an account at no node of another one", () =>
    Effect.gen(function* () {
      const record = recordOf(6, callers)
      const others = recordOf(5, { ...callers, accountId: Make.bob }, { state: "settled" })
      const { monitor, node: operators } = yield* start([others, record])
      const own = yield* Monitor.node("alice")
      for (const node of [own, operators]) node.nonce = 5n
      yield* monitor.watch({ chain: own.chain, profile, record })
      own.is = "dead"
      yield* TestClock.adjust("1 minute")
      own.is = "healthy"
      yield* TestClock.adjust("1 minute")
      expect(operators.given).toContain(rawOf(5))
      expect(own.given).toContain(rawOf(6))
      expect(own.given).not.toContain(rawOf(5))
    })
  )

  it.scoped("get no filler when something has taken them by the time of its signature", () =>
    Effect.gen(function* () {
      for (const meanwhile of [
        ({ node }: { readonly node: Monitor.Node }) => {
          node.pending = 6n
        },
        ({ records }: { readonly records: Map<bigint, TransactionRecord> }) => {
          records.set(5n, recordOf(5, service))
        }
      ]) {
        const record = recordOf(6, service)
        const asked: Array<true> = []
        const { filled, monitor, node } = yield* start([record], (world) => {
          asked.push(true)
          meanwhile(world)
        })
        node.nonce = 5n
        yield* monitor.watch({ chain: null, profile, record })
        yield* TestClock.adjust("1 minute")
        expect(asked.length).toBeGreaterThan(0)
        expect(filled).toEqual([])
      }
    })
  )

  it.scoped("never get bytes whose work has gone on under another nonce", () =>
    Effect.gen(function* () {
      const record = recordOf(6, service)
      const foreign = recordOf(5, service, { state: "external" })
      const { filled, monitor, node } = yield* start([foreign, record])
      node.nonce = 5n
      yield* monitor.watch({ chain: null, profile, record })
      yield* TestClock.adjust("1 minute")
      expect(filled).toEqual([])
      expect(node.given).not.toContain(rawOf(5))
    })
  )

  it.scoped(
    "are told of when a transaction from elsewhere had used them and they stay open, not at first sight",
    () =>
      Effect.gen(function* () {
        const told: Array<string> = []
        const record = recordOf(6, service)
        const { monitor, node } = yield* start([recordOf(5, service, { state: "external" }), record])
        node.nonce = 5n
        const log = Logger.make(({ logLevel, message }) => {
          if (logLevel._tag === "Error") told.push(String(message))
        })
        yield* Effect.gen(function* () {
          yield* monitor.watch({ chain: null, profile, record })
          yield* TestClock.adjust(profile.bumpAfterMillis / 2)
          expect(told).toEqual([])
          yield* TestClock.adjust("1 minute")
          expect(told[0]).toContain("nonce open again")
        }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, log)))
      })
  )
})

describe("accounts that share a key", () => {
  it.scoped("have the bytes of their waiting transactions given to no node of each other", () =>
    Effect.gen(function* () {
      for (const isOperatorSilent of [false, true]) {
        const [first, second] = [recordOf(0, callers), recordOf(1, { ...callers, accountId: Make.bob })]
        const { monitor, node: operators } = yield* start([first, second])
        if (isOperatorSilent) operators.is = "dead"
        const [alices, bobs] = yield* Effect.all([Monitor.node("alice"), Monitor.node("bob")])
        yield* monitor.watch({ chain: alices.chain, profile, record: first })
        yield* monitor.watch({ chain: bobs.chain, profile, record: second })
        yield* TestClock.adjust("2 minutes")
        // Each has been given its own again: nothing shows it there.
        expect(alices.given.length).toBeGreaterThan(1)
        expect([...new Set(alices.given)]).toEqual([rawOf(0)])
        expect([...new Set(bobs.given)]).toEqual([rawOf(1)])
      }
    })
  )
})

describe("a node that takes one transaction of an EOA at a time, since its code is delegated", () => {
  /** A block comes every 2 seconds; what the node took is in the next one, and in no later one. */
  const blockMillis = 2_000
  const refusal = "in-flight transaction limit reached for delegated accounts"

  const inTurn = (depth: number) =>
    Effect.gen(function* () {
      const records = Array.from({ length: 8 }, (_, nonce) => recordOf(nonce, service))
      let pending: Hex.Hex | null = null
      const { monitor, node, replaced } = yield* start(records, undefined, {
        chain: (state) => ({
          sendRawTransaction: (raw) =>
            Effect.suspend(() => {
              if (pending !== null || raw !== rawOf(Number(state.nonce)))
                return Effect.fail(
                  new ChainRpcError({ reason: "rejected", origin: "operator", message: refusal })
                )
              pending = raw
              state.has.add(raw)
              return Effect.void
            })
        })
      })
      yield* Effect.forEach(records, (record) =>
        monitor.watch({
          chain: null,
          profile: { ...profile, pollIntervalMillis: 1_000, confirmations: depth, settledDepth: depth },
          record
        })
      )
      const blocks: Array<ReadonlyArray<Hex.Hex>> = []
      for (const _ of records) {
        yield* Effect.repeatN(TestClock.adjust(blockMillis / 8), 7)
        blocks.push(pending === null ? [] : [pending])
        if (pending !== null) node.shows.add(Make.word(0x100 + Number(node.nonce++)))
        pending = null
        node.height += 1n
      }
      expect(blocks).toEqual(records.map((_, nonce) => [rawOf(nonce)]))
      expect(replaced()).toBe(0)
    })

  it.scoped("is given each in the moment that the one before it is mined, in nonce order, at one price", () =>
    inTurn(1)
  )
  it.scoped("does not wait until the block of the one before it is deep enough to count", () => inTurn(20))
})
