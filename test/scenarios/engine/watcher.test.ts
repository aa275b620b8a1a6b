import { describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/TestClock"
import { expect } from "vitest"
import * as MemoryRpc from "../../../src/adapters/memory/ChainRpc.js"
import * as InFlight from "../../../src/application/lanes/InFlight.js"
import * as TransactionState from "../../../src/application/lanes/monitor/TransactionState.js"
import * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import * as StuckTransactions from "../../../src/application/lanes/StuckTransactions.js"
import * as TransactionMonitor from "../../../src/application/lanes/TransactionMonitor.js"
import {
  type Block,
  type ChainClient,
  ChainRpcError,
  type Receipt
} from "../../../src/application/ports/chain/ChainRpc.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Journals from "../../support/journal/Journals.js"

const hashOf = (n: number) => Hex.unsafe32(`0x${n.toString(16).padStart(64, "0")}`)

/** The sealed block of each receipt. */
const block: Block = { number: 1n, hash: hashOf(9_999), timestamp: 0, gasLimit: 0n, baseFeePerGas: null }

const receiptOf = (txHash: Hex.Bytes32): Receipt => ({
  txHash,
  success: true,
  blockNumber: block.number,
  blockHash: block.hash,
  gasUsed: 21_000n,
  cumulativeGasUsed: 21_000n,
  effectiveGasPrice: 1n,
  from: Address.zero,
  logs: []
})

const profile = NetworkProfile.make({ chainId: 80_002n, settledDepth: 1, pollIntervalMillis: 1 })

const version = { txHash: hashOf(0), raw: Hex.unsafe("0x02"), maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }

const recordOf = (n: number): TransactionRecord => ({
  chainId: 31_337n,
  signer: Address.zero,
  nonce: BigInt(n),
  access: {
    accountId: "a" as AccountId,
    key: "serviceEoa",
    rpc: Redacted.make("http://node"),
    trust: "operator"
  },
  state: "signed",
  versions: [{ ...version, txHash: hashOf(n) }],
  signedAt: 0,
  ops: [],
  direct: null,
  mined: null
})

/** Watches transactions 1 to `count` at a node with these receipts, and waits for the last one's. */
const lastOf = (count: number, receipt: ChainClient["receipt"]) =>
  Effect.gen(function* () {
    const node = yield* MemoryRpc.make({ chainId: 31_337n })
    const chain: ChainClient = {
      ...node.client("http://node"),
      receipt,
      block: () => Effect.succeed(block)
    }
    const last = yield* Deferred.make<Receipt>()
    const inFlight = InFlight.make()
    const watcher = yield* TransactionMonitor.make({
      settlement: {
        submitted: () => Effect.void,
        mined: (_, { nonce }, mined) =>
          nonce === BigInt(count) ? Effect.asVoid(Deferred.succeed(last, mined)) : Effect.void,
        finalised: () => Effect.void,
        vanished: () => Effect.void,
        stranded: () => Effect.succeed(true)
      },
      inFlight,
      attend: () => Effect.void,
      accessNodes: { ofOperator: () => Effect.succeed(chain), ofCaller: () => Effect.succeed(null) }
    })
    for (let n = 1; n <= count; n += 1) yield* watcher.watch({ chain, profile, record: recordOf(n) })
    return yield* Effect.timeoutOption(Deferred.await(last), 5_000)
  })

describe("the watcher", () => {
  it.scopedLive("a thousand transactions that are never mined do not keep one that is from its turn", () =>
    Effect.gen(function* () {
      const found = yield* lastOf(1_001, (txHash) =>
        Effect.succeed(txHash === hashOf(1_001) ? receiptOf(txHash) : null)
      )
      expect(found).toMatchObject({ _tag: "Some", value: { gasUsed: 21_000n } })
    })
  )

  it.scopedLive("a crash of one look does not end the watch", () =>
    Effect.gen(function* () {
      let looks = 0
      const found = yield* lastOf(1, (txHash) =>
        Effect.suspend(() => {
          looks += 1
          return looks === 1 ? Effect.die("a bug of the adapter") : Effect.succeed(receiptOf(txHash))
        })
      )
      expect(found).toMatchObject({ _tag: "Some", value: { gasUsed: 21_000n } })
    })
  )

  it.scopedLive("a receipt that cannot be had does not hold up another", () =>
    Effect.gen(function* () {
      const broken = new ChainRpcError({ reason: "notAnRpc", origin: "http://node", message: "malformed" })
      const found = yield* lastOf(2, (txHash) =>
        txHash === hashOf(1) ? Effect.fail(broken) : Effect.succeed(receiptOf(txHash))
      )
      expect(found).toMatchObject({ _tag: "Some", value: { gasUsed: 21_000n } })
    })
  )

  /** A watched transaction that is mined in block 1, at a node whose receipt and block 1 are as they are set. */
  const mined = Effect.gen(function* () {
    const node = yield* MemoryRpc.make({ chainId: 31_337n })
    // The latest block is above the one of the receipt, which is asked for.
    yield* node.mine
    yield* node.mine
    const seen = { looks: 0, vanished: 0 }
    const say: {
      receipt: Effect.Effect<Receipt | null, ChainRpcError>
      block: Block | null
    } = { receipt: Effect.succeed(receiptOf(hashOf(1))), block }
    const client = node.client("http://node")
    const chain: ChainClient = {
      ...client,
      block: (tag) => (tag === 1n ? Effect.sync(() => say.block) : client.block(tag)),
      receipt: () =>
        Effect.suspend(() => {
          seen.looks += 1
          return say.receipt
        })
    }
    const inFlight = InFlight.make()
    const watcher = yield* TransactionMonitor.make({
      settlement: {
        submitted: () => Effect.void,
        mined: () => Effect.void,
        finalised: () => Effect.void,
        vanished: () =>
          Effect.sync(() => {
            seen.vanished += 1
          }),
        stranded: () => Effect.succeed(true)
      },
      inFlight,
      attend: () => Effect.void,
      accessNodes: { ofOperator: () => Effect.succeed(chain), ofCaller: () => Effect.succeed(null) }
    })
    const deep = { ...profile, pollIntervalMillis: 1_000, settledDepth: 100 }
    yield* watcher.watch({ chain, profile: deep, record: recordOf(1) })
    yield* TestClock.adjust(1_000)
    expect(inFlight.count(recordOf(1))).toBe(0)
    say.block = null
    return { inFlight, node, say, seen }
  })

  it.scoped("a node that is silent does not undo what is mined, and one that is 6 s behind does not", () =>
    Effect.gen(function* () {
      const { inFlight, say, seen } = yield* mined
      say.receipt = Effect.fail(
        new ChainRpcError({ reason: "unreachable", origin: "http://node", message: "down" })
      )
      yield* TestClock.adjust(60_000)
      expect(seen.looks).toBeGreaterThan(30)
      expect(seen.vanished).toBe(0)
      for (let n = 0; n < 5; n += 1) {
        say.receipt = Effect.succeed(null)
        yield* TestClock.adjust(6_000)
        say.receipt = Effect.succeed(receiptOf(hashOf(1)))
        yield* TestClock.adjust(1_000)
      }
      expect(seen.vanished).toBe(0)
      say.receipt = Effect.succeed(null)
      yield* TestClock.adjust(TransactionState.missedMillis + 2_000)
      expect(seen.vanished).toBe(1)
      expect(inFlight.count(recordOf(1))).toBe(1)
    })
  )

  it.scoped(
    "a block that still is where it was keeps what is in it; another one in its place undoes it",
    () =>
      Effect.gen(function* () {
        const { node, say, seen } = yield* mined
        const head = yield* node.mine
        say.receipt = Effect.succeed(null)
        say.block = { ...head, number: 1n, hash: receiptOf(hashOf(1)).blockHash }
        yield* TestClock.adjust(60_000)
        expect(seen.vanished).toBe(0)
        say.block = { ...head, number: 1n, hash: hashOf(7) }
        yield* TestClock.adjust(3_000)
        expect(seen.vanished).toBe(1)
      })
  )

  it.scoped("a crash while bytes are sent leaves them watched, and offered again later each time", () =>
    Effect.gen(function* () {
      const node = yield* MemoryRpc.make({ chainId: 31_337n })
      const offers: Array<number> = []
      const chain: ChainClient = {
        ...node.client("http://node"),
        sendRawTransaction: () =>
          Effect.flatMap(Clock.currentTimeMillis, (now) => {
            offers.push(now)
            return offers.length === 1
              ? Effect.die(new Error("a bug of the adapter"))
              : Effect.fail(new ChainRpcError({ reason: "rejected", origin: "http://node", message: "full" }))
          })
      }
      const settlement = {
        submitted: () => Effect.void,
        mined: () => Effect.void,
        finalised: () => Effect.void,
        vanished: () => Effect.void,
        stranded: () => Effect.succeed(true)
      }
      const inFlight = InFlight.make()
      const journal = Journals.methodsOf(yield* InMemory.makeJournal)
      const accessNodes = { ofOperator: () => Effect.succeed(chain), ofCaller: () => Effect.succeed(null) }
      const watcher = yield* TransactionMonitor.make({
        settlement,
        inFlight,
        accessNodes,
        attend: StuckTransactions.make({
          accessNodes,
          transactionJournal: journal,
          lanes: NonceManager.make(journal),
          settlement,
          signerOf: () => Effect.die(new Error("nobody signs here")),
          scope: yield* Effect.scope
        })
      })
      const patient = { ...profile, pollIntervalMillis: 125, bumpAfterMillis: 600_000 }
      const record = { ...recordOf(0), versions: [{ ...version, maxFeePerGas: 10n ** 18n }] }
      yield* watcher.watch({ chain, profile: patient, record })
      expect(inFlight.count(record)).toBe(1)
      for (let n = 0; n < 60; n += 1) yield* TestClock.adjust(1_000)
      const pauses = offers.slice(1).map((at, n) => at - (offers[n] ?? 0))
      // 250 ms doubled up to 10 s, to the next poll.
      for (const [n, pause] of pauses.entries()) {
        const expected = Math.min(250 * 2 ** n, 10_000)
        expect(pause).toBeGreaterThanOrEqual(expected)
        expect(pause).toBeLessThanOrEqual(expected + 125)
      }
      expect(offers.length).toBeGreaterThanOrEqual(9)
    })
  )
})
