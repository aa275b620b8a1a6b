import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Replacement from "../../domain/erc4337/gas/Replacement.js"
import * as Transaction from "../../domain/evm/Transaction.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as EoaNonces from "../chain/EoaNonces.js"
import * as EoaTransactions from "../chain/EoaTransactions.js"
import * as Troubles from "../observe/Troubles.js"
import type { ChainRpcError, KnownTransaction } from "../ports/chain/ChainRpc.js"
import * as Holding from "../ports/journal/Holding.js"
import { isFenced } from "../ports/journal/JournalError.js"
import type { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import { laneKey, type TransactionRecord } from "../ports/journal/Transactions.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import * as FollowedTransaction from "./monitor/FollowedTransaction.js"
import { serves } from "./monitor/LaneNodes.js"
import * as TransactionState from "./monitor/TransactionState.js"
import * as OpenNonces from "./OpenNonces.js"
import type { Settlement } from "./Settlement.js"
import type { Attend, TransactionMonitor, Waiting } from "./TransactionMonitor.js"
import * as Record from "./worker/Record.js"

/**
 * Attends to a lane's waiting transactions after each poll of `TransactionMonitor`. `Lanes` connects the two.
 *
 * Gotchas: another process or a request may have changed a transaction: each step reads it again under the lane's lock
 * before it signs or frees anything.
 */

const isPayloadOf = ({ versions }: TransactionRecord, { data, to, value }: KnownTransaction): boolean =>
  // An adopted version has no bytes; all versions have the same payload.
  versions.some(({ raw }) => {
    const parsed = Transaction.parse(raw)
    if (Result.isFailure(parsed)) return false
    const { transaction } = parsed.success
    return transaction.to === to && transaction.data === data && transaction.value === value
  })

/** Timeout of a pass over a lane, milliseconds. */
const attendMillis = 5_000

export interface Dependencies extends Omit<OpenNonces.Dependencies, "troubles"> {
  readonly transactionJournal: Pick<TransactionJournal["Service"], "adopt" | "transactionsBetween">
  readonly settlement: Settlement
  readonly scope: Scope.Scope
}

/**
 * Handles transactions that are not mined: broadcasts lost bytes again, reprices the lowest nonce when blocks pass without
 * it, closes open nonces below it, and frees work whose nonce an external transaction used.
 */
export const make = (dependencies: Dependencies): Attend => {
  const { lanes, scope, settlement, signerOf, transactionJournal } = dependencies
  const troubles = Troubles.make()
  const closeBelow = OpenNonces.make({ ...dependencies, troubles })
  const busy = new Set<string>()

  const troubleOf = (what: string, record: TransactionRecord, subject: string): Troubles.Trouble => ({
    what,
    place: laneKey(record),
    subject,
    isDelay: true
  })

  /** Runs work in parallel to the rounds, at most once per name: a signature or a node may take long. */
  const beside = (name: string, record: TransactionRecord, work: Effect.Effect<void, unknown>) =>
    Effect.suspend(() => {
      if (busy.has(name)) return Effect.void
      busy.add(name)
      const { nonce, signer } = record
      const trouble = troubleOf("replacement skipped", record, name)
      return Effect.asVoid(
        Effect.forkIn(
          Effect.catchCauseIf(Holding.outlive(work), isFenced, () =>
            Effect.logDebug("lane of a transaction moved to another process")
          ).pipe(
            (unfenced) => troubles.tolerate(trouble, unfenced),
            Effect.ensuring(Effect.sync(() => busy.delete(name))),
            Effect.annotateLogs({ nonce: nonce.toString(), signer })
          ),
          scope
        )
      )
    })

  const besideNonce = (record: TransactionRecord, work: Effect.Effect<void, unknown>) =>
    beside(`${laneKey(record)}:${record.nonce}`, record, work)

  const broadcast = (
    entry: FollowedTransaction.FollowedTransaction,
    node: FollowedTransaction.LaneNode,
    now: number
  ): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      const newest = entry.record.versions.at(-1)
      if (newest === undefined || newest.raw === Hex.empty) return Effect.succeed(true)
      return Effect.matchEffect(node.chain.sendRawTransaction(newest.raw), {
        onSuccess: () =>
          Effect.as(
            Effect.sync(() => FollowedTransaction.accept(entry, node, now)),
            true
          ),
        onFailure: (error) =>
          Effect.sync(() => FollowedTransaction.delayBroadcast(entry, node, now)).pipe(
            Effect.andThen(Effect.logDebug(`transaction refused by the node again: ${error.message}`)),
            Effect.as(false)
          )
      })
    })

  /** `toMarket`: skips the raise if the market price is above the caps, since a smaller raise is useless. */
  const bump = (
    { profile, record: waiting }: FollowedTransaction.FollowedTransaction,
    { chain }: FollowedTransaction.LaneNode,
    monitor: TransactionMonitor,
    toMarket = false
  ) =>
    Effect.gen(function* () {
      const signer = yield* signerOf(waiting.access)
      const now = yield* OpenNonces.quote(chain, profile)
      if (toMarket && now === null) return
      yield* lanes.exclusive(
        waiting,
        Effect.gen(function* () {
          // Another process or a request may have repriced it, or seen it mined.
          const record = yield* lanes.current(waiting)
          if (record?.state !== "signed" || record.versions.length > waiting.versions.length) return
          const prices = Replacement.prices({
            ...Record.highestOf(record.versions),
            quote: now,
            caps: profile.caps
          })
          const capped = troubleOf(
            "replacement blocked by fee cap; raise networks[].maxFeePerGas",
            record,
            record.nonce.toString()
          )
          if (Result.isFailure(prices)) return yield* troubles.failed(capped)
          yield* troubles.passed(capped)
          const renewed = yield* lanes.replace(record, signer, prices.success)
          yield* monitor.watch({ chain, profile, record: renewed })
          yield* Effect.logInfo("transaction replaced at a higher price")
        })
      )
    })

  /** The chain's price exceeds the newest version's: no node accepts it and no block includes it. */
  const pricedOut = (
    { record }: FollowedTransaction.FollowedTransaction,
    { chain }: FollowedTransaction.LaneNode
  ): Effect.Effect<boolean, ChainRpcError> =>
    Effect.map(chain.fees, ({ nextBaseFee, tip }) => {
      const newest = record.versions.at(-1)
      return newest !== undefined && newest.maxFeePerGas < (nextBaseFee ?? tip)
    })

  /** Frees the work if an external transaction used the nonce at settled depth. */
  const usedElsewhere = (
    entry: FollowedTransaction.FollowedTransaction,
    { chain }: FollowedTransaction.LaneNode,
    monitor: TransactionMonitor
  ) =>
    Effect.gen(function* () {
      const { profile, record: waiting } = entry
      const user = yield* EoaTransactions.userOf(chain, waiting.signer, waiting.nonce)
      if (user === null || user.blockNumber === null) return
      const { blockNumber, txHash } = user
      if (waiting.versions.some((version) => version.txHash === txHash)) return
      const head = yield* chain.block("latest")
      const depth = TransactionState.depthOf(blockNumber, head, profile)
      const event = { _tag: "nonceUsed", depth } as const
      yield* lanes.exclusive(
        waiting,
        Effect.gen(function* () {
          const record = yield* lanes.current(waiting)
          if (record === null) return yield* monitor.forget(entry)
          // Another process signed this version, or it was signed a moment ago.
          if (record.versions.some((version) => version.txHash === txHash))
            return yield* monitor.watch({ chain, profile, record })
          const now = yield* MonotonicTime.millis
          const { action } = TransactionState.step(TransactionState.from(record), event, now)
          if (action._tag !== "recordExternalUse") return
          if (record.direct !== null && isPayloadOf(record, user)) {
            // A version that a restored journal lacks: it was signed after the backup.
            const { access, chainId, direct: requestId, nonce, signer } = record
            yield* transactionJournal.adopt({ chainId, signer, nonce, requestId, access, transaction: user })
            const adopted = yield* lanes.current(record)
            if (adopted !== null) yield* monitor.watch({ chain, profile, record: adopted })
            return yield* Effect.annotateLogs(
              Effect.logWarning("transaction adopted: unknown transaction has its nonce and payload"),
              { txHash }
            )
          }
          const { settledDepth: confirmations } = profile
          const settledTo = BigInts.max((head?.number ?? 0n) - BigInt(confirmations) + 1n, blockNumber)
          if (!(yield* settlement.stranded(chain, record, { blockNumber, settledTo, confirmations }))) return
          yield* monitor.forget(entry)
          yield* Effect.annotateLogs(
            Effect.logWarning("nonce used by a foreign transaction; its work moves to another nonce"),
            { externalTxHash: txHash }
          )
        })
      )
    })

  /** Broadcasts to a node the transactions it lacks, in nonce order: many nodes refuse a nonce ahead of the one they expect. */
  const broadcastAll = (
    entries: ReadonlyArray<FollowedTransaction.FollowedTransaction>,
    node: FollowedTransaction.LaneNode,
    now: number
  ) =>
    Effect.gen(function* () {
      const known = yield* Effect.forEach(
        entries,
        ({ record: { versions } }) => {
          const newest = versions.at(-1)
          return newest === undefined ? Effect.succeed(null) : node.chain.transaction(newest.txHash)
        },
        { concurrency: "unbounded" }
      )
      const refused = new Set<FollowedTransaction.FollowedTransaction>()
      for (const [place, entry] of entries.entries())
        if (known[place] !== null) FollowedTransaction.accept(entry, node, now)
        else if (!(yield* broadcast(entry, node, now))) refused.add(entry)
      return refused
    })

  const attendLane = ({ entries, nodesOf }: Waiting, monitor: TransactionMonitor, now: number) =>
    Effect.gen(function* () {
      const [lowest] = entries
      const lead = lowest === undefined ? undefined : leadOf(entries, nodesOf(lowest), now)
      if (lowest === undefined || lead === undefined) return
      const { signer } = lowest.record
      const mine = entries.filter(({ record }) => serves(lead, record.access))
      const wantsHeight = mine.some((entry) => FollowedTransaction.wantsHeight(entry, lead, now))
      const [{ latest, next: from }, head] = yield* Effect.all(
        [
          EoaNonces.read(lead.chain, signer),
          lead.head !== null || !wantsHeight ? Effect.succeed(lead.head) : lead.chain.block("latest")
        ],
        { concurrency: "unbounded" }
      )
      const open = mine.filter(({ record }) => record.nonce >= latest)
      for (const entry of mine)
        if (entry.record.nonce < latest) {
          FollowedTransaction.delayBroadcast(entry, lead, now)
          FollowedTransaction.scheduleCheck(entry, now)
          yield* besideNonce(entry.record, usedElsewhere(entry, lead, monitor))
        }
      const [next] = open
      if (next === undefined) return
      const isStuck = now >= next.checkAt
      const hasNewBlocks = head !== null && FollowedTransaction.hasNewBlocks(next, lead, head.number)
      for (const entry of open) {
        if (head !== null || wantsHeight)
          FollowedTransaction.noteHeight(entry, lead, head?.number ?? null, now)
        FollowedTransaction.scheduleCheck(entry, now)
      }
      if (isStuck && hasNewBlocks && next.record.nonce === latest)
        yield* besideNonce(next.record, bump(next, lead, monitor))
      if (next.record.nonce > from)
        yield* beside(
          `${laneKey(next.record)} below`,
          next.record,
          closeBelow(next, new Set([lead, ...nodesOf(next)]), { from, isStuck }, monitor)
        )
      const others = new Set(
        open.flatMap((entry) =>
          nodesOf(entry).filter((node) => FollowedTransaction.isBroadcastDue(entry, node, now))
        )
      )
      others.delete(lead)
      yield* Effect.forEach(
        others,
        (node) =>
          Effect.ignore(
            broadcastAll(
              open.filter((entry) => serves(node, entry.record.access)),
              node,
              now
            )
          ),
        { concurrency: "unbounded" }
      )
      const refused = yield* broadcastAll(open, lead, now)
      if (refused.has(next) && !isStuck && next.record.nonce === latest && (yield* pricedOut(next, lead)))
        yield* besideNonce(next.record, bump(next, lead, monitor, true))
    }).pipe(
      Effect.catchTag("ChainRpcError", (error) => Effect.logDebug(error.message)),
      Effect.timeoutOption(attendMillis),
      Effect.map(Option.getOrUndefined)
    )

  return (waiting, monitor) =>
    Effect.gen(function* () {
      const [lowest] = waiting.entries
      if (lowest === undefined) return
      const now = yield* MonotonicTime.millis
      const lead = leadOf(waiting.entries, waiting.nodesOf(lowest), now)
      for (const entry of waiting.entries) {
        // Heights of two alternating nodes would not show whether blocks have passed.
        const [own] = waiting.nodesOf(entry)
        const node = lead !== undefined && serves(lead, entry.record.access) ? lead : own
        if (node?.head != null) FollowedTransaction.noteHeight(entry, node, node.head.number, now)
      }
      const isDue = waiting.entries.some((entry) =>
        FollowedTransaction.isDue(entry, waiting.nodesOf(entry), now)
      )
      if (!isDue) return
      yield* beside(laneKey(lowest.record), lowest.record, attendLane(waiting, monitor, now))
    })
}

/**
 * The node that judges a lane: a node that serves all waiting transactions (the operator's if the lowest is in doubt),
 * otherwise the best node of the lowest.
 */
const leadOf = (
  entries: ReadonlyArray<FollowedTransaction.FollowedTransaction>,
  nodes: ReadonlyArray<FollowedTransaction.LaneNode>,
  now: number
): FollowedTransaction.LaneNode | undefined => {
  const able = nodes.filter((node) => entries.every(({ record }) => serves(node, record.access)))
  const isDoubtful = entries[0] !== undefined && FollowedTransaction.isDoubtful(entries[0], now)
  return (isDoubtful ? able.find(({ account }) => account === null) : undefined) ?? able[0] ?? nodes[0]
}
