import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Troubles from "../observe/Troubles.js"
import type { ChainClient, Receipt } from "../ports/chain/ChainRpc.js"
import { isFenced } from "../ports/journal/JournalError.js"
import {
  type Lane,
  type LaneAccess,
  type LaneKey,
  laneKey,
  type TransactionRecord
} from "../ports/journal/Transactions.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import type * as InFlights from "./InFlight.js"
import type { AccessNodes } from "./monitor/AccessNodes.js"
import * as FollowedTransaction from "./monitor/FollowedTransaction.js"
import type * as LaneNodes from "./monitor/LaneNodes.js"
import * as NodePolls from "./monitor/NodePolls.js"
import * as Pace from "./monitor/Pace.js"
import * as ReceiptSearch from "./monitor/ReceiptSearch.js"
import * as TransactionState from "./monitor/TransactionState.js"
import * as WatchedLane from "./monitor/WatchedLane.js"
import type { Settlement } from "./Settlement.js"

/**
 * Follows the lanes' transactions from the first broadcast to settled depth, for all workers of the process.
 * `Settlement` records what nodes show; `StuckTransactions` attends to transactions that are not mined.
 */

/** A lane's waiting transactions, and the nodes that replied to the last poll. */
export interface Waiting {
  /** In nonce order. */
  readonly entries: ReadonlyArray<FollowedTransaction.FollowedTransaction>
  /** Nodes that currently serve the entry, best first. */
  readonly nodesOf: (
    entry: FollowedTransaction.FollowedTransaction
  ) => ReadonlyArray<FollowedTransaction.LaneNode>
}

export type Attend = (waiting: Waiting, monitor: TransactionMonitor) => Effect.Effect<void>

export interface TransactionMonitor {
  /**
   * Broadcasts the newest bytes to the node and watches the transaction until it is settled. A refusal or a timeout is not a
   * failure: the node may have the bytes. For a nonce already watched, updates the record.
   */
  readonly watch: (watched: FollowedTransaction.Watched) => Effect.Effect<void>
  /** Adds a node of the account's current request for its waiting transactions of the lane. */
  readonly useNode: (lane: Lane, access: LaneAccess, chain: ChainClient) => Effect.Effect<void>
  readonly forget: (watched: Pick<FollowedTransaction.Watched, "record">) => Effect.Effect<void>
  /** Whether the transaction's nonce is watched or about to be. */
  readonly isWatched: (record: TransactionRecord) => boolean
  readonly underWay: () => number
  /** Forgets the lane's transactions: another process works on the lane. */
  readonly leave: (lane: Lane) => Effect.Effect<void>
  /**
   * Receipt of a transaction that the journal has as mined: the cached receipt, or that of this node or of another node whose
   * answers the reader may see.
   */
  readonly receiptOf: (chain: ChainClient, txHash: Hex.Bytes32) => Effect.Effect<Receipt>
}

/** Interval at which the operator's current node is resolved, milliseconds. */
const operatorMillis = 1_000

/**
 * Watches transactions: one loop per lane serves all of its transactions and polls each node in one batch. It polls receipts,
 * not only new heads, because a chain that mines on demand may not make another block. Every node that serves a transaction
 * drives it; see `LaneNodes`.
 */
export const make = (options: {
  readonly settlement: Settlement
  readonly inFlight: InFlights.InFlight
  readonly attend: Attend
  readonly accessNodes: AccessNodes
}): Effect.Effect<TransactionMonitor, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const { accessNodes, attend, inFlight, settlement } = options
    const lanes = new Map<LaneKey, WatchedLane.WatchedLane>()
    const search = ReceiptSearch.make(accessNodes)
    const pace = Pace.make()
    const troubles = Troubles.make()
    /** The operator's clients; their answers never count as those of an account's node. */
    const operators = new WeakSet<ChainClient>()

    const presentOf = ({ access, chainId }: TransactionRecord) =>
      Effect.tap(accessNodes.ofOperator(access, chainId), (chain) =>
        Effect.sync(() => {
          if (chain !== null) operators.add(chain)
        })
      )

    const execute = (
      lane: WatchedLane.WatchedLane,
      entry: FollowedTransaction.FollowedTransaction,
      { action, state }: TransactionState.Step,
      witness: FollowedTransaction.LaneNode | undefined,
      began: number
    ) =>
      Effect.gen(function* () {
        const { profile, record } = entry
        entry.missedSince = state._tag === "mined" ? state.missedSince : null
        switch (action._tag) {
          case "record": {
            if (witness === undefined) return
            const { final, receipt } = action
            search.seen(witness, receipt)
            pace.seen(entry, began)
            const confirmations = final ? profile.settledDepth : profile.confirmations
            yield* settlement.mined(witness.chain, record, receipt, { confirmations, final })
            return final ? lane.drop(record) : lane.put(FollowedTransaction.mine(entry, witness, receipt))
          }
          case "finalise":
            yield* settlement.finalised(record, profile.settledDepth)
            return lane.drop(record)
          case "withdraw":
            yield* settlement.vanished(record)
            if (record.mined !== null) search.undone(record.access.accountId, record.mined.txHash)
            return lane.put(FollowedTransaction.withdraw(entry, yield* MonotonicTime.millis))
        }
      })

    const conclude = (
      lane: WatchedLane.WatchedLane,
      entry: FollowedTransaction.FollowedTransaction,
      nodeReplies: ReadonlyArray<NodePolls.NodeReply>,
      waiting: Array<FollowedTransaction.FollowedTransaction>,
      { began, now }: { readonly began: number; readonly now: number }
    ) => {
      // Mined or replaced while the nodes were polled.
      if (!lane.isCurrent(entry)) return Effect.void
      const { profile, record } = entry
      const answered = nodeReplies.flatMap(({ answers, node }) => {
        const answer = answers.get(entry)
        return answer === undefined ? [] : [{ node, answer }]
      })
      const answers = answered.map(({ answer }) => answer)
      const event = TransactionState.eventOf(record, answers, profile)
      // The home node did not answer this question: doubt it from now on.
      if (event._tag === "silent" && record.state === "signed") entry.doubtAt = Math.min(entry.doubtAt, now)
      const next = lane.entries.get(record.nonce + 1n)
      if (record.state === "signed" && event._tag === "shown" && next?.isAccepted === false) {
        FollowedTransaction.follow(next, now)
        waiting.push(next)
      }
      const step = TransactionState.step(TransactionState.from(record, entry.missedSince), event, now)
      if (record.state === "mined")
        for (const { head } of answers) entry.checkedBlock = head?.number ?? entry.checkedBlock
      if (step.action._tag === "care") {
        pace.missed(entry, began)
        waiting.push(entry)
        return Effect.void
      }
      const witness = answered.find(
        ({ answer }) => event._tag === "shown" && answer.receipt === event.receipt
      )
      const trouble = {
        what: "a mined transaction could not be settled and is tried again",
        place: laneKey(record),
        subject: record.nonce.toString()
      }
      return execute(lane, entry, step, witness?.node, began).pipe(
        Effect.andThen(troubles.passed(trouble)),
        Effect.catchCause((cause) =>
          isFenced(cause)
            ? Effect.logDebug("lane of a transaction moved to another process")
            : troubles.failed(trouble, cause)
        ),
        Effect.annotateLogs(WatchedLane.describe(record))
      )
    }

    const setOperators = (lane: WatchedLane.WatchedLane, now: number) =>
      Effect.gen(function* () {
        if (now < lane.operatorsAt) return
        lane.operatorsAt = now + operatorMillis
        const accesses = new Map<string, TransactionRecord>()
        for (const { record } of lane.entries.values())
          accesses.set(`${record.access.trust} ${record.access.accountId}`, record)
        const found = yield* Effect.forEach(accesses.values(), presentOf)
        lane.nodes.setOperators(found.filter((chain) => chain !== null))
        const [unserved] = [...lane.entries.values()].filter((entry) => lane.nodes.of(entry).length === 0)
        const [first] = lane.entries.values()
        if (first === undefined) return
        const trouble = {
          what: "no node for pending transactions; set networks[].rpc",
          place: laneKey(first.record),
          isDelay: true
        }
        yield* unserved === undefined
          ? troubles.passed(trouble)
          : Effect.annotateLogs(troubles.failed(trouble), WatchedLane.describe(unserved.record))
      })

    /**
     * Records the round's transactions that nodes accepted and no receipt shows, in one write; settlement covers mined
     * transactions. A failed write is repeated in the next round.
     */
    const recordSubmitted = (
      lane: WatchedLane.WatchedLane,
      turn: ReadonlyArray<FollowedTransaction.FollowedTransaction>
    ) => {
      const taken = turn.filter((entry) => lane.isCurrent(entry) && FollowedTransaction.isUnrecorded(entry))
      const [first] = taken
      if (first === undefined) return Effect.void
      const records = taken.map(({ record }) => record)
      return Effect.matchCauseEffect(settlement.submitted(first.record, records), {
        onFailure: (cause) => Effect.logDebug("submitted events deferred", cause),
        onSuccess: () =>
          Effect.sync(() => {
            for (const entry of taken) entry.isRecorded = true
          })
      })
    }

    const crash = ({ entries }: WatchedLane.WatchedLane) => {
      const [first] = entries.values()
      const place = first === undefined ? "" : laneKey(first.record)
      return { what: "poll of watched transactions crashed", place }
    }

    const round = (lane: WatchedLane.WatchedLane) =>
      Effect.gen(function* () {
        const began = yield* MonotonicTime.millis
        yield* setOperators(lane, began)
        const turn = pace.turnOf(lane, began)
        const replies = yield* NodePolls.ask(lane.nodes, turn, { now: began, scope })
        const now = yield* MonotonicTime.millis
        const concerned = new Set([...turn, ...replies.flatMap(({ answers }) => [...answers.keys()])])
        const waiting: Array<FollowedTransaction.FollowedTransaction> = []
        yield* Effect.forEach(concerned, (entry) => conclude(lane, entry, replies, waiting, { began, now }), {
          concurrency: "unbounded"
        })
        yield* recordSubmitted(
          lane,
          turn.filter((entry) => !pace.isYoung(entry, now))
        )
        const left = [...new Set(waiting)].filter((entry) => lane.isCurrent(entry))
        // Move to the end of the queue: transactions that are never mined must not starve others.
        for (const entry of left) {
          lane.entries.delete(entry.record.nonce)
          lane.entries.set(entry.record.nonce, entry)
        }
        if (left.length === 0) return
        const entries = left.sort((a, b) => (a.record.nonce < b.record.nonce ? -1 : 1))
        const nodesOf = (entry: FollowedTransaction.FollowedTransaction) =>
          lane.nodes.of(entry).filter(({ isKnown, isSilent }) => isKnown && !isSilent)
        yield* attend({ entries, nodesOf }, monitor)
      }).pipe(
        Effect.andThen(troubles.passed(crash(lane))),
        // The loop serves all waiters of the lane: an interrupted part must not end it.
        Effect.catchCause((cause) => troubles.failed(crash(lane), cause))
      )

    const loop = (name: LaneKey, lane: WatchedLane.WatchedLane): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (lane.entries.size === 0) {
          lane.isRunning = false
          if (lane.arriving.length === 0) lanes.delete(name)
          return Effect.void
        }
        return round(lane).pipe(
          Effect.andThen(pace.rest(lane)),
          Effect.andThen(Effect.suspend(() => loop(name, lane)))
        )
      })

    /** The account's node, registered for reads and sends; null: the operator's node. */
    const ofCaller = (nodes: LaneNodes.LaneNodes, lane: Lane, access: LaneAccess, chain: ChainClient) => {
      if (access.trust === "operator" || operators.has(chain)) return null
      search.readBy(chain, lane.chainId, access)
      return nodes.ofCaller(chain, access.accountId)
    }

    /** The node that gets the transaction first. */
    const homeOf = ({ nodes }: WatchedLane.WatchedLane, { chain, record }: FollowedTransaction.Watched) =>
      Effect.gen(function* () {
        const { access } = record
        const named = chain ?? (yield* accessNodes.ofCaller(access))
        const own = named === null ? null : ofCaller(nodes, record, access, named)
        if (own !== null) return own
        const present = yield* presentOf(record)
        return present === null ? null : nodes.ofOperator(present)
      })

    const laneOf = (name: LaneKey): WatchedLane.WatchedLane => {
      const known = lanes.get(name)
      if (known !== undefined) return known
      const lane = WatchedLane.make(inFlight)
      lanes.set(name, lane)
      return lane
    }

    const arrive = (lane: WatchedLane.WatchedLane, watched: FollowedTransaction.Watched) =>
      Effect.gen(function* () {
        const { profile, record } = watched
        const home = yield* homeOf(lane, watched)
        const known = lane.entries.get(record.nonce)
        if (known !== undefined && WatchedLane.isSame(known.record, record))
          return lane.put({ ...known, profile, home: known.home ?? home })
        const newest = record.versions.at(-1)
        // An adopted transaction has no bytes; nodes have it.
        const isBroadcast = newest !== undefined && record.state === "signed" && newest.raw !== Hex.empty
        const taken = !isBroadcast || (home !== null && (yield* NodePolls.broadcast(home, newest, scope)))
        const now = yield* MonotonicTime.millis
        const waited = (yield* Clock.currentTimeMillis) - record.signedAt
        const entry = FollowedTransaction.make(watched, home, { now, taken, waited })
        lane.put({ ...entry, isRecorded: lane.entries.get(record.nonce)?.isRecorded === true })
      })

    const watch = (watched: FollowedTransaction.Watched) =>
      Effect.gen(function* () {
        const name = laneKey(watched.record)
        const lane = laneOf(name)
        const { nonce } = watched.record
        lane.arriving.push(nonce)
        yield* Effect.ensuring(
          arrive(lane, watched),
          Effect.sync(() => lane.arriving.splice(lane.arriving.indexOf(nonce), 1))
        )
        if (lane.isRunning) return yield* pace.wake(lane, nonce)
        lane.isRunning = true
        yield* NodePolls.detach(loop(name, lane), scope)
      })

    const monitor: TransactionMonitor = {
      watch: (watched) => Effect.uninterruptible(watch(watched)),
      useNode: (lane, access, chain) =>
        Effect.sync(() => {
          const known = lanes.get(laneKey(lane))
          if (known !== undefined) ofCaller(known.nodes, lane, access, chain)
        }),
      forget: ({ record }) => Effect.sync(() => lanes.get(laneKey(record))?.drop(record)),
      isWatched: (record) => {
        const lane = lanes.get(laneKey(record))
        return lane !== undefined && (lane.entries.has(record.nonce) || lane.arriving.includes(record.nonce))
      },
      underWay: inFlight.total,
      leave: (lane) =>
        Effect.sync(() => {
          const left = lanes.get(laneKey(lane))
          if (left !== undefined) for (const { record } of [...left.entries.values()]) left.drop(record)
        }),
      receiptOf: search.find
    }
    return monitor
  })
