import { Effect } from "effect"
import { SigningKey } from "ethers"
import { describe, expect } from "vitest"
import { type ChainClient, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import * as Transaction from "../../../src/domain/evm/Transaction.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"
import * as Log from "../../support/Log.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import { start } from "../../support/lanes/Stuck.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const { callers, rawOf, recordOf, service } = Monitor

describe("a nonce that another transaction of the key used", () => {
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

  const record = recordOf(0, service, { versions: [own] })
  /** A world whose block 5 has this transaction, with this height and these records in the journal. */
  const used = (
    by: Monitor.Node["foreign"],
    height: bigint,
    {
      held = record,
      isShallow = false,
      of = record
    }: { held?: TransactionRecord | null; isShallow?: boolean; of?: TransactionRecord } = {}
  ) =>
    Effect.gen(function* () {
      const world = yield* start(held === null ? [] : [held], undefined, { isShallow })
      Object.assign(world.node, { nonce: 1n, height, foreign: by })
      yield* world.watch(of, { profile: { settledDepth: 3 } })
      return {
        isWatched: world.monitor.isWatched(of),
        stranded: world.stranded[0] ?? null,
        use: world.uses[0]
      }
    })
  const kept = { isWatched: true, stranded: null }
  const freed = { isWatched: false, stranded: 0n }

  test("frees the work at settled depth, not a block earlier, and is no longer watched", function* () {
    expect(yield* used(foreign, 6n)).toMatchObject(kept)
    expect(yield* used(foreign, 7n)).toMatchObject(freed)
    // Its ops landed in a block that is not deep enough.
    for (const isShallow of [false, true])
      expect(yield* used(foreign, 10n, { isShallow })).toEqual({
        isWatched: isShallow,
        stranded: 0n,
        use: { blockNumber: 5n, settledTo: 8n, confirmations: 3 }
      })
    // The journal has settled it meanwhile.
    expect(yield* used(foreign, 10n, { held: null })).toMatchObject({ isWatched: false, stranded: null })
  })

  test("frees nothing when the transaction is an own version that the node shows late", function* () {
    expect(yield* used({ ...foreign, txHash: own.txHash }, 100n)).toMatchObject(kept)
    // Another process signed it: the journal knows it, the watched record does not.
    const held = { ...record, versions: [own, { ...own, txHash: foreign.txHash }] }
    expect(yield* used(foreign, 100n, { held })).toMatchObject({ stranded: null })
  })

  /** A chain of this height, at a node without past states. */
  const forgetful = (height: bigint) =>
    Effect.gen(function* () {
      const world = yield* start([record], undefined, {
        chain: ({ chain }) => ({
          transactionCount: ((eoa, tag) =>
            typeof tag === "bigint" && tag < height
              ? new ChainRpcError({ reason: "rejected", origin: "operator", message: "BlockOutOfRangeError" })
              : chain.transactionCount(eoa, tag)) satisfies ChainClient["transactionCount"]
        })
      })
      Object.assign(world.node, { nonce: 1n, height, foreign })
      return world
    })

  test("is found in its block by a node without past states", function* () {
    const { stranded, watch } = yield* forgetful(69n)
    yield* watch(record, { profile: { settledDepth: 3 } })
    expect(stranded[0]).toBe(0n)
  })

  test("causes warnings at growing intervals while a node does not show it", function* () {
    const { lines, layer } = Log.make()
    yield* Effect.gen(function* () {
      const { stranded, watch } = yield* forgetful(1_000n)
      yield* watch(record, { profile: { settledDepth: 3 } })
      yield* Time.adjust("20 minutes")
      expect(stranded).toEqual([])
      const told = lines.filter(({ message }) => message.includes("replacement skipped"))
      expect(told.length).toBeGreaterThan(0)
      expect(told.length).toBeLessThan(7)
    }).pipe(Effect.provide(layer))
  })

  test("frees a request's own transaction, and adopts a transaction with the same payload", function* () {
    const direct = recordOf(0, service, { versions: [own], direct: "r" })
    const same = { ...foreign, to: Make.address(7) }
    for (const [by, outcome] of [
      [foreign, 0n],
      [same, null],
      [{ ...same, value: 6n }, 0n],
      [{ ...same, data: Hex.unsafe("0x01") }, 0n]
    ] as const)
      expect((yield* used(by, 100n, { held: direct, of: direct })).stranded).toBe(outcome)
    // An adopted version has no bytes here.
    const adopted = { ...direct, versions: [own, { ...own, txHash: Make.word(0x200), raw: Hex.empty }] }
    expect((yield* used(same, 100n, { held: adopted, of: adopted })).stranded).toBeNull()
  })
})

describe("open nonces below a waiting transaction", () => {
  test("get the bytes that a deep reorganisation undid, or one filler each", function* () {
    const settled = [5, 6].map((nonce) => recordOf(nonce, service, { state: "settled" }))
    const { filled, node, watch } = yield* start([...settled, recordOf(8, service)])
    node.nonce = 5n
    yield* watch(recordOf(8, service))
    expect(filled).toEqual([7n])
    for (const nonce of [5, 6, 7, 8]) expect(node.given).toContain(rawOf(nonce))
    // The lower nonce lets all of them be mined together.
    expect(node.given.indexOf(rawOf(6))).toBeLessThan(node.given.indexOf(rawOf(5)))
  })

  test("get no filler at first sight, since a node may lag, and no higher price for later transactions", function* () {
    const record = recordOf(6, service)
    // The nonce is taken once its signature is requested: nothing is filled.
    const { counts, filled, monitor, node, replaced } = yield* start([record], ({ node: asked }) => {
      asked.pending = 6n
    })
    node.nonce = 5n
    yield* monitor.watch({ chain: null, profile: Monitor.profile, record })
    for (let sixth = 1; sixth <= 17; sixth += 1) {
      yield* Time.adjust(Monitor.profile.bumpAfterMillis / 6)
      node.height += 1n
      if (sixth === 5) expect(counts.signers).toBe(0)
    }
    expect(counts.signers).toBeGreaterThan(0)
    expect([filled, replaced()]).toEqual([[], 0])
  })

  test("get undone bytes of an account at every node that serves it, and at no other account's node", function* () {
    const record = recordOf(6, callers)
    for (const accountId of [Make.alice, Make.bob]) {
      const undone = recordOf(5, { ...callers, accountId }, { state: "settled" })
      const { node: operators, watch } = yield* start([undone, record])
      const own = yield* Monitor.node("alice")
      for (const node of [own, operators]) node.nonce = 5n
      yield* watch(record, { chain: own.chain })
      // Now the operator's node may be polled.
      own.is = "dead"
      yield* Time.adjust("1 minute")
      own.is = "healthy"
      yield* Time.adjust("1 minute")
      expect(operators.given).toContain(rawOf(5))
      expect(own.given).toContain(rawOf(6))
      expect(own.given.includes(rawOf(5))).toBe(accountId === Make.alice)
    }
  })

  test("get no filler if they were used by the time of its signature", function* () {
    const record = recordOf(6, service)
    for (const taken of ["by the node", "by the journal"]) {
      const { counts, filled, node, watch } = yield* start([record], (world) => {
        if (taken === "by the node") world.node.pending = 6n
        else world.records.set(5n, recordOf(5, service))
      })
      node.nonce = 5n
      yield* watch(record)
      expect(counts.signers).toBeGreaterThan(0)
      expect(filled).toEqual([])
    }
  })

  test("never get bytes whose work continued under another nonce, and are reported while they stay open", function* () {
    const log = Log.make()
    const record = recordOf(6, service)
    const { filled, monitor, node } = yield* start([recordOf(5, service, { state: "external" }), record])
    node.nonce = 5n
    const errors = () => log.lines.filter(({ level }) => level === "ERROR").map(({ message }) => message)
    yield* Effect.gen(function* () {
      yield* monitor.watch({ chain: null, profile: Monitor.profile, record })
      yield* Time.adjust(Monitor.profile.bumpAfterMillis / 2)
      expect(errors()).toEqual([])
      yield* Time.adjust("1 minute")
    }).pipe(Effect.provide(log.layer))
    expect(errors()[0]).toContain("nonce open again")
    expect(filled).toEqual([])
    expect(node.given).not.toContain(rawOf(5))
  })
})

test("accounts that share a key have no waiting transactions offered to each other's nodes", function* () {
  for (const isOperatorSilent of [false, true]) {
    const [first, second] = [recordOf(0, callers), recordOf(1, { ...callers, accountId: Make.bob })]
    const { node: operators, watch } = yield* start([first, second])
    if (isOperatorSilent) operators.is = "dead"
    const [alices, bobs] = yield* Effect.all([Monitor.node("alice"), Monitor.node("bob")])
    yield* watch(first, { chain: alices.chain })
    yield* watch(second, { chain: bobs.chain })
    // Each node got its account's bytes again, since it does not show them.
    expect(alices.given.length).toBeGreaterThan(1)
    expect([...new Set(alices.given)]).toEqual([rawOf(0)])
    expect([...new Set(bobs.given)]).toEqual([rawOf(1)])
  }
})

test("a node that takes one transaction at a time from an EOA with delegated code gets each one when the previous one is mined", function* () {
  const records = Array.from({ length: 8 }, (_, nonce) => recordOf(nonce, service))
  const message = "in-flight transaction limit reached for delegated accounts"
  for (const depth of [1, 20]) {
    let pending: Hex.Hex | null = null
    const { monitor, node, replaced } = yield* start(records, undefined, {
      chain: (state) => ({
        sendRawTransaction: (raw) =>
          Effect.suspend(() => {
            if (pending !== null || raw !== rawOf(Number(state.nonce)))
              return Effect.fail(new ChainRpcError({ reason: "rejected", origin: "operator", message }))
            pending = raw
            state.has.add(raw)
            return Effect.void
          })
      })
    })
    const profile = { ...Monitor.profile, confirmations: depth, settledDepth: depth }
    yield* Effect.forEach(records, (record) => monitor.watch({ chain: null, profile, record }))
    const blocks: Array<Hex.Hex | null> = []
    // A block comes every 2 seconds, with the transactions that the node took since the block before.
    for (const _ of records) {
      yield* Time.adjust(2_000)
      blocks.push(pending)
      if (pending !== null) node.shows.add(Make.word(0x100 + Number(node.nonce++)))
      pending = null
      node.height += 1n
    }
    expect(blocks).toEqual(records.map((_, nonce) => rawOf(nonce)))
    expect(replaced()).toBe(0)
  }
})
