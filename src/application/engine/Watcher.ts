import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Bytes32 } from "../../domain/evm/Hex.js"
import type { Block, ChainClient, Receipt } from "../ports/ChainRpc.js"
import type { Lane, TransactionRecord } from "../ports/Journal.js"
import type { NetworkProfile } from "../ports/Networks.js"
import type { Releases } from "./Releases.js"
import type { Settlement } from "./Settlement.js"

/** A transaction whose bytes are stored. */
export interface Watched {
  readonly chain: ChainClient
  readonly profile: NetworkProfile
  readonly record: TransactionRecord
}

/** What the watcher remembers of one nonce, until it is settled. */
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
  /** Something with it is under way in a fiber of its own. */
  busy: boolean
}

/** Cares for what is not mined: see `Upkeep`. */
export type Attend = (
  chain: ChainClient,
  entries: ReadonlyArray<Entry>,
  watcher: Watcher
) => Effect.Effect<void>

export interface Watcher {
  /**
   * Gives the newest bytes to the node, and watches the transaction until it is settled, however long that takes. A
   * node that refuses or does not answer is no failure: unknown means perhaps sent. Of a nonce that is watched
   * already the record is renewed.
   */
  readonly watch: (watched: Watched) => Effect.Effect<void>
  /** Forgets a nonce that somebody else used. */
  readonly forget: (entry: Entry) => Effect.Effect<void>
  /** The receipt of a transaction that the journal knows as mined; asks the node when it was not seen just now. */
  readonly receiptOf: (chain: ChainClient, txHash: Bytes32) => Effect.Effect<Receipt>
  /** Waits until fewer than so many transactions of the lane are signed and not mined. */
  readonly room: (lane: Lane, below: number) => Effect.Effect<void>
}

/** A node that has lost a transaction is given the same bytes again, this often at most. */
export const offerMillis = 10_000
/** After a refused offer it is sooner, and then twice as late each time. */
const firstOfferMillis = 250
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

/**
 * Watches transactions: one loop per node serves all waiters, and asks for everything in one batch. The receipts
 * themselves are polled, never only new heads: a chain that mines on demand may not make another block.
 */
export const make = (options: {
  readonly settlement: Settlement
  readonly releases: Releases
  readonly attend: Attend
}): Effect.Effect<Watcher, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const { attend, releases, settlement } = options
    const nodes = new Map<ChainClient, Node>()
    const inFlight = new Map<string, number>()
    const receipts = new Map<Bytes32, Receipt>()

    const laneOf = ({ chainId, signer }: Lane): string => `${chainId}:${signer}`
    const count = (lane: Lane, by: number) => {
      const left = (inFlight.get(laneOf(lane)) ?? 0) + by
      if (left > 0) inFlight.set(laneOf(lane), left)
      else inFlight.delete(laneOf(lane))
    }
    const put = (node: Node, entry: Entry) => {
      const key = keyOf(entry.record)
      const known = node.entries.get(key)
      if (known?.record.state === "signed") count(known.record, -1)
      if (entry.record.state === "signed") count(entry.record, 1)
      node.entries.delete(key)
      node.entries.set(key, entry)
    }
    const drop = (node: Node, entry: Entry) => {
      const known = node.entries.get(keyOf(entry.record))
      if (known?.record.state === "signed") count(known.record, -1)
      node.entries.delete(keyOf(entry.record))
    }
    const remember = (receipt: Receipt) => {
      receipts.delete(receipt.txHash)
      receipts.set(receipt.txHash, receipt)
      for (const oldest of receipts.keys()) {
        if (receipts.size <= maxReceipts) break
        receipts.delete(oldest)
      }
    }

    const deepEnough = (receipt: { readonly blockNumber: bigint }, depth: number, head: Block | null) =>
      depth <= 1 || (head !== null && receipt.blockNumber + BigInt(depth) - 1n <= head.number)

    const settle = (node: Node, entry: Entry, receipt: Receipt, head: Block | null) =>
      Effect.gen(function* () {
        const { chain, profile, record } = entry
        if (!deepEnough(receipt, profile.confirmations, head)) return
        const final = deepEnough(receipt, profile.settledDepth, head)
        remember(receipt)
        yield* settlement.mined(chain, record, receipt, final)
        const { blockHash, blockNumber, success, txHash } = receipt
        if (final) return drop(node, entry)
        const mined = { blockHash, blockNumber, success, txHash }
        put(node, {
          ...entry,
          record: { ...record, state: "mined", mined },
          lookedAt: blockNumber,
          missed: 0
        })
      })

    const confirm = (node: Node, entry: Entry, receipt: Receipt | null, head: Block | null) =>
      Effect.gen(function* () {
        const { mined } = entry.record
        if (mined === null) return
        entry.lookedAt = head?.number ?? entry.lookedAt
        if (receipt === null || receipt.blockHash !== mined.blockHash) {
          entry.missed += 1
          if (entry.missed < missesForGone) return
          yield* settlement.vanished(entry.record)
          receipts.delete(mined.txHash)
          put(node, { ...entry, record: { ...entry.record, state: "signed", mined: null }, offerAt: 0 })
          return
        }
        entry.missed = 0
        if (!deepEnough(mined, entry.profile.settledDepth, head)) return
        yield* settlement.finalised(entry.record)
        drop(node, entry)
      })

    /** The receipt of whichever version was mined. */
    const receiptOf = ({ chain, record }: Entry): Effect.Effect<Receipt | null> => {
      const hashes =
        record.mined === null ? record.versions.map(({ txHash }) => txHash) : [record.mined.txHash]
      // One that fails is asked for again, and holds up none of the others.
      return Effect.map(
        Effect.forEach(hashes, (hash) => Effect.orElseSucceed(chain.receipt(hash), () => null), {
          concurrency: "unbounded"
        }),
        (found) => found.find((receipt) => receipt !== null) ?? null
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
            const receipt = seen[place] ?? null
            const step =
              entry.record.state === "mined"
                ? confirm(node, entry, receipt, head)
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
        if (waiting.length > 0) yield* attend(chain, waiting, watcher)
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

    const watcher: Watcher = {
      watch: ({ chain, profile, record }) =>
        Effect.gen(function* () {
          const newest = record.versions.at(-1)
          const offered =
            newest === undefined || record.state !== "signed"
              ? null
              : yield* Effect.either(chain.sendRawTransaction(newest.raw))
          const refused = offered?._tag === "Left"
          if (refused)
            yield* Effect.annotateLogs(
              Effect.logWarning(
                `the node did not take a transaction; it stays watched: ${offered.left.message}`
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
            missed: 0,
            busy: false
          })
          if (known !== undefined) return
          nodes.set(chain, node)
          yield* Effect.forkIn(Effect.interruptible(loop(chain, node)), scope)
        }).pipe(Effect.uninterruptible),
      forget: (entry) =>
        Effect.sync(() => {
          const node = nodes.get(entry.chain)
          if (node !== undefined) drop(node, entry)
        }),
      receiptOf: (chain, txHash) =>
        Effect.suspend(() => {
          const seen = receipts.get(txHash)
          if (seen !== undefined) return Effect.succeed(seen)
          return chain.receipt(txHash).pipe(
            Effect.filterOrFail(
              (receipt) => receipt !== null,
              () => "not there"
            ),
            Effect.retry(patience),
            Effect.orDieWith(() => new Error("the node does not give the receipt of a mined transaction"))
          )
        }),
      room: (lane, below) =>
        Effect.gen(function* () {
          while ((inFlight.get(laneOf(lane)) ?? 0) >= below)
            yield* releases.wait((yield* Clock.currentTimeMillis) + 1_000)
        })
    }
    return watcher
  })
