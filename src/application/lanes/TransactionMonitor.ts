import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FiberRef from "effect/FiberRef"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { Block, ChainClient, Receipt } from "../ports/chain/ChainRpc.js"
import type { Lane, TransactionRecord } from "../ports/journal/Lanes.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { InFlight } from "./InFlight.js"
import type { Settlement } from "./Settlement.js"

/** A transaction whose bytes are stored. */
export interface Watched {
  readonly chain: ChainClient
  readonly profile: NetworkProfile
  readonly record: TransactionRecord
}

/** What the monitor remembers of one nonce, until it is settled. */
export interface Entry extends Watched {
  /** When the newest bytes are given to the node again, milliseconds, and how long after that once more. */
  offerAt: number
  offerDelay: number
  /** When it has waited long enough for a look at what keeps it, milliseconds. */
  careAt: number
  /** Block at which its receipt was last looked at, when it is mined already. */
  lookedAt: bigint
  /** How often in a row a mined one was not to be seen any more. */
  missed: number
}

/** Cares for what is not mined: see `Upkeep`. */
export type Attend = (
  chain: ChainClient,
  entries: ReadonlyArray<Entry>,
  monitor: TransactionMonitor
) => Effect.Effect<void>

export interface TransactionMonitor {
  /**
   * Gives the newest bytes to the node, and watches the transaction until it is settled, however long that takes. A
   * node that refuses or does not answer is no failure: unknown means perhaps sent. Of a nonce that is watched
   * already the record is renewed.
   */
  readonly watch: (watched: Watched) => Effect.Effect<void>
  /** Forgets a nonce that somebody else used, or that is settled. */
  readonly forget: (watched: Watched) => Effect.Effect<void>
  readonly isWatched: (record: TransactionRecord) => boolean
  /** Forgets the lane's transactions: another process works on the lane. */
  readonly leave: (lane: Lane) => Effect.Effect<void>
  /** The receipt of a transaction that the journal knows as mined; asks the node when it was not seen just now. */
  readonly receiptOf: (chain: ChainClient, txHash: Bytes32) => Effect.Effect<Receipt>
}

export const TransactionMonitor: Context.Tag<TransactionMonitor, TransactionMonitor> = Context.GenericTag(
  "castellan/TransactionMonitor"
)

/** A node that has lost a transaction is given the same bytes again, this often at most. */
export const offerMillis = 10_000
/** After a refused offer it is sooner, and then twice as late each time. */
export const firstOfferMillis = 250
/** One poll asks a node for at most this many receipts, in turn. */
const maxReceiptsPerPoll = 256
const maxReceipts = 512
/** A mined transaction is gone when this many looks in a row do not show it: nodes behind a balancer lag. */
const missesForGone = 2

/** Of a node that does not tell the receipt of what it has mined. */
const patience = Schedule.intersect(Schedule.spaced("500 millis"), Schedule.recurs(40))

const keyOf = ({ chainId, nonce, signer }: TransactionRecord): string => `${chainId}:${signer}:${nonce}`

interface Node {
  readonly entries: Map<string, Entry>
}

/** What a node says of a transaction. */
interface Seen {
  readonly receipt: Receipt | null
  /** It did answer: a node that is silent does not say that something is gone. */
  readonly told: boolean
}

const silence: Seen = { receipt: null, told: false }

/**
 * Watches transactions: one loop per node serves all waiters, and asks for everything in one batch. The receipts
 * themselves are polled, never only new heads: a chain that mines on demand may not make another block.
 */
export const make = (options: {
  readonly settlement: Settlement
  readonly inFlight: InFlight
  readonly attend: Attend
}): Effect.Effect<TransactionMonitor, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const { attend, inFlight, settlement } = options
    const nodes = new Map<ChainClient, Node>()
    // What one node says is nothing that another one's callers are told.
    const receipts = new WeakMap<ChainClient, Map<Bytes32, Receipt>>()

    const put = (node: Node, entry: Entry) => {
      const key = keyOf(entry.record)
      const known = node.entries.get(key)
      if (entry.record.state === "signed") inFlight.add(entry.record)
      if (known?.record.state === "signed") inFlight.remove(known.record)
      node.entries.delete(key)
      node.entries.set(key, entry)
    }
    const drop = (node: Node, record: TransactionRecord) => {
      const known = node.entries.get(keyOf(record))
      if (known?.record.state === "signed") inFlight.remove(known.record)
      node.entries.delete(keyOf(record))
    }
    const remember = (chain: ChainClient, receipt: Receipt) => {
      const seen = receipts.get(chain) ?? new Map<Bytes32, Receipt>()
      receipts.set(chain, seen)
      seen.delete(receipt.txHash)
      seen.set(receipt.txHash, receipt)
      for (const oldest of seen.keys()) {
        if (seen.size <= maxReceipts) break
        seen.delete(oldest)
      }
    }

    const deepEnough = (receipt: { readonly blockNumber: bigint }, depth: number, head: Block | null) =>
      depth <= 1 || (head !== null && receipt.blockNumber + BigInt(depth) - 1n <= head.number)

    const settle = (node: Node, entry: Entry, receipt: Receipt, head: Block | null) =>
      Effect.gen(function* () {
        const { chain, profile, record } = entry
        if (!deepEnough(receipt, profile.confirmations, head)) return
        const final = deepEnough(receipt, profile.settledDepth, head)
        remember(chain, receipt)
        yield* settlement.mined(chain, record, receipt, final)
        const { blockHash, blockNumber, success, txHash } = receipt
        if (final) return drop(node, record)
        const mined = { blockHash, blockNumber, success, txHash }
        put(node, {
          ...entry,
          record: { ...record, state: "mined", mined },
          lookedAt: blockNumber,
          missed: 0
        })
      })

    const confirm = (node: Node, entry: Entry, { receipt, told }: Seen, head: Block | null) =>
      Effect.gen(function* () {
        const { mined } = entry.record
        if (mined === null || !told) return
        entry.lookedAt = head?.number ?? entry.lookedAt
        if (receipt === null || receipt.blockHash !== mined.blockHash) {
          entry.missed += 1
          if (entry.missed < missesForGone) return
          yield* settlement.vanished(entry.record)
          receipts.get(entry.chain)?.delete(mined.txHash)
          put(node, { ...entry, record: { ...entry.record, state: "signed", mined: null }, offerAt: 0 })
          return
        }
        entry.missed = 0
        if (!deepEnough(mined, entry.profile.settledDepth, head)) return
        yield* settlement.finalised(entry.record)
        drop(node, entry.record)
      })

    /** The receipt of whichever version was mined. */
    const receiptOf = ({ chain, record }: Entry): Effect.Effect<Seen> => {
      const hashes =
        record.mined === null ? record.versions.map(({ txHash }) => txHash) : [record.mined.txHash]
      // One that fails is asked for again, and holds up none of the others.
      return Effect.map(
        Effect.forEach(hashes, (hash) => Effect.either(chain.receipt(hash)), { concurrency: "unbounded" }),
        (answers) => ({
          receipt: Arr.getRights(answers).find((receipt) => receipt !== null) ?? null,
          told: answers.every(Either.isRight)
        })
      )
    }

    const round = (chain: ChainClient, node: Node) =>
      Effect.gen(function* () {
        const all = [...node.entries.values()]
        const deep = all.some(({ profile }) => profile.settledDepth > 1)
        const signed = all.filter(({ record }) => record.state === "signed").slice(0, maxReceiptsPerPoll)
        const room = maxReceiptsPerPoll - signed.length
        const mined = all
          .filter(({ record }) => record.state === "mined")
          .sort((a, b) => (a.lookedAt < b.lookedAt ? -1 : 1))
          .slice(0, Math.max(room, 16))
        const asked = [...signed, ...mined]
        const [head, seen] = yield* Effect.all(
          [
            deep ? Effect.orElseSucceed(chain.block("latest"), () => null) : Effect.succeed(null),
            Effect.forEach(asked, receiptOf, { concurrency: "unbounded" })
          ],
          { concurrency: "unbounded" }
        )
        const waiting: Array<Entry> = []
        yield* Effect.forEach(
          asked,
          (entry, place) => {
            const answer = seen[place] ?? silence
            const { receipt } = answer
            const step =
              entry.record.state === "mined"
                ? confirm(node, entry, answer, head)
                : receipt === null
                  ? Effect.sync(() => void waiting.push(entry))
                  : settle(node, entry, receipt, head)
            return step.pipe(
              Effect.catchAllCause((cause) =>
                Effect.logError("a mined transaction could not be settled and is tried again", cause)
              ),
              Effect.annotateLogs({ nonce: entry.record.nonce.toString(), signer: entry.record.signer })
            )
          },
          { concurrency: "unbounded", discard: true }
        )
        // To the end of the queue: transactions that never are mined shall not keep others from their turn.
        for (const entry of waiting) if (node.entries.get(keyOf(entry.record)) === entry) put(node, entry)
        if (waiting.length > 0) yield* attend(chain, waiting, monitor)
      }).pipe(
        // The loop serves everybody who waits at this node: it ends with the process only.
        Effect.catchAllDefect((defect) => Effect.logError("a look at watched transactions crashed", defect))
      )

    const loop = (chain: ChainClient, node: Node): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (node.entries.size === 0) {
          nodes.delete(chain)
          return Effect.void
        }
        const interval = Math.min(
          ...[...node.entries.values()].map(({ profile }) => profile.pollIntervalMillis)
        )
        return Effect.zipRight(
          round(chain, node),
          Effect.suspend(() =>
            Effect.zipRight(node.entries.size === 0 ? Effect.void : Effect.sleep(interval), loop(chain, node))
          )
        )
      })

    const monitor: TransactionMonitor = {
      watch: ({ chain, profile, record }) =>
        Effect.gen(function* () {
          const newest = record.versions.at(-1)
          const offered =
            newest === undefined || record.state !== "signed"
              ? null
              : yield* Effect.exit(chain.sendRawTransaction(newest.raw))
          const refused = offered !== null && Exit.isFailure(offered)
          if (refused)
            yield* Effect.annotateLogs(
              Effect.logWarning(
                "the node did not take a transaction; it stays watched",
                Option.match(Cause.failureOption(offered.cause), {
                  onNone: () => offered.cause,
                  onSome: ({ message }) => message
                })
              ),
              { txHash: newest?.txHash ?? "" }
            )
          const now = yield* Clock.currentTimeMillis
          const known = nodes.get(chain)
          const node = known ?? { entries: new Map<string, Entry>() }
          put(node, {
            chain,
            profile,
            record,
            offerAt: now + (refused ? firstOfferMillis : offerMillis),
            offerDelay: firstOfferMillis,
            careAt: record.signedAt + profile.bumpAfterMillis,
            lookedAt: 0n,
            missed: 0
          })
          if (known !== undefined) return
          nodes.set(chain, node)
          // It is everybody's, not the request's that began it.
          const detached = Effect.locally(loop(chain, node), FiberRef.currentLogAnnotations, HashMap.empty())
          yield* Effect.forkIn(Effect.interruptible(detached), scope)
        }).pipe(Effect.uninterruptible),
      forget: ({ chain, record }) =>
        Effect.sync(() => {
          const node = nodes.get(chain)
          if (node !== undefined) drop(node, record)
        }),
      isWatched: (record) => [...nodes.values()].some(({ entries }) => entries.has(keyOf(record))),
      leave: (lane) =>
        Effect.sync(() => {
          for (const node of nodes.values())
            for (const { record } of [...node.entries.values()])
              if (record.chainId === lane.chainId && record.signer === lane.signer) drop(node, record)
        }),
      receiptOf: (chain, txHash) =>
        Effect.suspend(() => {
          const seen = receipts.get(chain)?.get(txHash)
          if (seen !== undefined) return Effect.succeed(seen)
          return chain.receipt(txHash).pipe(
            Effect.filterOrFail(
              (receipt) => receipt !== null,
              () => "not there"
            ),
            Effect.retry(patience),
            Effect.orDieWith(() => new Error("the node does not give the receipt of a mined transaction"))
          )
        })
    }
    return monitor
  })
