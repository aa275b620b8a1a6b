import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Troubles from "../observe/Troubles.js"
import type { ChainClient, Receipt } from "../ports/chain/ChainRpc.js"
import { isFenced } from "../ports/journal/JournalError.js"
import type { Lane, LaneAccess, TransactionRecord } from "../ports/journal/Transactions.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import * as InFlights from "./InFlight.js"
import type { AccessNodes } from "./monitor/AccessNodes.js"
import * as Asking from "./monitor/Asking.js"
import * as Entry from "./monitor/Entry.js"
import type * as LaneNodes from "./monitor/LaneNodes.js"
import * as Pace from "./monitor/Pace.js"
import * as ReceiptSearch from "./monitor/ReceiptSearch.js"
import * as TransactionState from "./monitor/TransactionState.js"
import * as WatchedLane from "./monitor/WatchedLane.js"
import type { Settlement } from "./Settlement.js"

/** Waiting transactions of one lane, and the nodes that answered when they were last asked. */
export interface Waiting {
  /** In nonce order. */
  readonly entries: ReadonlyArray<Entry.Entry>
  /** Those that serve an entry at present, best first. */
  readonly nodesOf: (entry: Entry.Entry) => ReadonlyArray<Entry.LaneNode>
}

/** Cares for what is not mined: see `StuckTransactions`. */
export type Attend = (waiting: Waiting, monitor: TransactionMonitor) => Effect.Effect<void>

export interface TransactionMonitor {
  /**
   * Gives the newest bytes to the node, and watches the transaction until it is settled, however long that takes. A
   * node that refuses or does not answer is no failure: unknown means perhaps sent. Of a nonce that is watched
   * already the record is renewed.
   */
  readonly watch: (watched: Entry.Watched) => Effect.Effect<void>
  /** Lets the lane's waiting transactions of the account go through a node of its present request, too. */
  readonly useNode: (lane: Lane, access: LaneAccess, chain: ChainClient) => Effect.Effect<void>
  /** Forgets a nonce that somebody else used, or that is settled. */
  readonly forget: (watched: Pick<Entry.Watched, "record">) => Effect.Effect<void>
  /** Whether the transaction's nonce is watched, or about to be. */
  readonly isWatched: (record: TransactionRecord) => boolean
  /** How many transactions are signed and not seen in a block. */
  readonly underWay: () => number
  /** Forgets the lane's transactions: another process works on the lane. */
  readonly leave: (lane: Lane) => Effect.Effect<void>
  /**
   * The receipt of a transaction that the journal knows as mined: as it was seen, else by this node or by another one
   * whose word its reader may be told.
   */
  readonly receiptOf: (chain: ChainClient, txHash: Hex.Bytes32) => Effect.Effect<Receipt>
}

/** The operator's present node is looked up that often. */
const operatorMillis = 1_000

/**
 * Watches transactions: one loop per lane serves all that wait for it, and asks each node for everything in one batch.
 * The receipts themselves are polled, never only new heads: a chain that mines on demand may not make another block.
 * Nodes are transports of the lane: a transaction is driven by every node that serves it, see `LaneNodes`.
 */
export const make = (options: {
  readonly settlement: Settlement
  readonly inFlight: InFlights.InFlight
  readonly attend: Attend
  readonly accessNodes: AccessNodes
}): Effect.Effect<TransactionMonitor, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const { accessNodes, attend, inFlight, settlement } = options
    const lanes = new Map<string, WatchedLane.WatchedLane>()
    const search = ReceiptSearch.make(accessNodes)
    const pace = Pace.make()
    const troubles = Troubles.make()
    /** Clients of the operator, whose answers are never those of an account's node. */
    const operators = new WeakSet<ChainClient>()

    const presentOf = ({ access, chainId }: TransactionRecord) =>
      Effect.tap(accessNodes.ofOperator(access, chainId), (chain) =>
        Effect.sync(() => {
          if (chain !== null) operators.add(chain)
        })
      )

    const execute = (
      lane: WatchedLane.WatchedLane,
      entry: Entry.Entry,
      { action, state }: TransactionState.Step,
      witness: Entry.LaneNode | undefined,
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
            return final ? lane.drop(record) : lane.put(Entry.mined(entry, witness, receipt))
          }
          case "finalise":
            yield* settlement.finalised(record, profile.settledDepth)
            return lane.drop(record)
          case "withdraw":
            yield* settlement.vanished(record)
            if (record.mined !== null) search.undone(record.access.accountId, record.mined.txHash)
            return lane.put(Entry.withdrawn(entry, yield* MonotonicTime.millis))
        }
      })

    /** Draws the conclusion from what the nodes told of an entry since the last round. */
    const conclude = (
      lane: WatchedLane.WatchedLane,
      entry: Entry.Entry,
      looks: ReadonlyArray<Asking.Told>,
      waiting: Array<Entry.Entry>,
      { began, now }: { readonly began: number; readonly now: number }
    ) => {
      // Mined, or replaced, while the nodes were asked.
      if (!lane.isCurrent(entry)) return Effect.void
      const { profile, record } = entry
      const told = looks.flatMap(({ answers, node }) => {
        const answer = answers.get(entry)
        return answer === undefined ? [] : [{ node, answer }]
      })
      const answers = told.map(({ answer }) => answer)
      const event = TransactionState.eventOf(record, answers, profile)
      // Its home answers, and not to this question.
      if (event._tag === "silent" && record.state === "signed") entry.doubtAt = Math.min(entry.doubtAt, now)
      const next = lane.entries.get(record.nonce + 1n)
      if (record.state === "signed" && event._tag === "shown" && next?.isTaken === false) {
        Entry.follow(next, now)
        waiting.push(next)
      }
      const step = TransactionState.step(TransactionState.from(record, entry.missedSince), event, now)
      if (record.state === "mined")
        for (const { head } of answers) entry.lookedAt = head?.number ?? entry.lookedAt
      if (step.action._tag === "care") {
        pace.missed(entry, began)
        waiting.push(entry)
        return Effect.void
      }
      const witness = told.find(({ answer }) => event._tag === "shown" && answer.receipt === event.receipt)
      const trouble = {
        what: "a mined transaction could not be settled and is tried again",
        place: InFlights.nameOf(record),
        subject: record.nonce.toString()
      }
      return execute(lane, entry, step, witness?.node, began).pipe(
        Effect.andThen(troubles.passed(trouble)),
        Effect.catchCause((cause) =>
          isFenced(cause)
            ? Effect.logDebug("the lane of a transaction is another process's by now")
            : troubles.failed(trouble, cause)
        ),
        Effect.annotateLogs(WatchedLane.describe(record))
      )
    }

    /** The operator's present nodes take the place of those before. */
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
          what: "transactions wait, and no node serves them: the operator has none for the chain at present",
          place: InFlights.nameOf(first.record),
          isDelay: true
        }
        yield* unserved === undefined
          ? troubles.passed(trouble)
          : Effect.annotateLogs(troubles.failed(trouble), WatchedLane.describe(unserved.record))
      })

    /**
     * Tells of what nodes have taken and no receipt shows, all of a round at once. Of what was mined as soon, the settlement
     * tells both. What cannot be told is told in the next round.
     */
    const tellTaken = (lane: WatchedLane.WatchedLane, turn: ReadonlyArray<Entry.Entry>) => {
      const taken = turn.filter((entry) => lane.isCurrent(entry) && Entry.isUntold(entry))
      const [first] = taken
      if (first === undefined) return Effect.void
      const records = taken.map(({ record }) => record)
      return Effect.matchCauseEffect(settlement.submitted(first.record, records), {
        onFailure: (cause) => Effect.logDebug("what nodes have taken is told later", cause),
        onSuccess: () =>
          Effect.sync(() => {
            for (const entry of taken) entry.isTold = true
          })
      })
    }

    const crash = ({ entries }: WatchedLane.WatchedLane) => {
      const [first] = entries.values()
      const place = first === undefined ? "" : InFlights.nameOf(first.record)
      return { what: "a look at watched transactions crashed", place }
    }

    const round = (lane: WatchedLane.WatchedLane) =>
      Effect.gen(function* () {
        const began = yield* MonotonicTime.millis
        yield* setOperators(lane, began)
        const turn = pace.turnOf(lane, began)
        const told = yield* Asking.ask(lane.nodes, turn, { now: began, scope })
        const now = yield* MonotonicTime.millis
        const concerned = new Set([...turn, ...told.flatMap(({ answers }) => [...answers.keys()])])
        const waiting: Array<Entry.Entry> = []
        yield* Effect.forEach(concerned, (entry) => conclude(lane, entry, told, waiting, { began, now }), {
          concurrency: "unbounded"
        })
        yield* tellTaken(
          lane,
          turn.filter((entry) => !pace.isYoung(entry, now))
        )
        const left = [...new Set(waiting)].filter((entry) => lane.isCurrent(entry))
        // To the end of the queue: transactions that never are mined shall not keep others from their turn.
        for (const entry of left) {
          lane.entries.delete(entry.record.nonce)
          lane.entries.set(entry.record.nonce, entry)
        }
        if (left.length === 0) return
        const entries = left.sort((a, b) => (a.record.nonce < b.record.nonce ? -1 : 1))
        const nodesOf = (entry: Entry.Entry) =>
          lane.nodes.of(entry).filter(({ isKnown, isSilent }) => isKnown && !isSilent)
        yield* attend({ entries, nodesOf }, monitor)
      }).pipe(
        Effect.andThen(troubles.passed(crash(lane))),
        // The loop serves everybody who waits for the lane: it ends with the process alone, not with an interrupted part.
        Effect.catchCause((cause) => troubles.failed(crash(lane), cause))
      )

    const loop = (name: string, lane: WatchedLane.WatchedLane): Effect.Effect<void> =>
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

    /** A node of an account that reads by it and whose transactions may go through it; null: it is none of those. */
    const ofCaller = (nodes: LaneNodes.LaneNodes, lane: Lane, access: LaneAccess, chain: ChainClient) => {
      if (access.trust === "operator" || operators.has(chain)) return null
      search.readBy(chain, lane.chainId, access)
      return nodes.ofCaller(chain, access.accountId)
    }

    /** The node that a transaction is given to first. */
    const homeOf = ({ nodes }: WatchedLane.WatchedLane, { chain, record }: Entry.Watched) =>
      Effect.gen(function* () {
        const { access } = record
        const named = chain ?? (yield* accessNodes.ofCaller(access))
        const own = named === null ? null : ofCaller(nodes, record, access, named)
        if (own !== null) return own
        const present = yield* presentOf(record)
        return present === null ? null : nodes.ofOperator(present)
      })

    const laneOf = (name: string): WatchedLane.WatchedLane => {
      const known = lanes.get(name)
      if (known !== undefined) return known
      const lane = WatchedLane.make(inFlight)
      lanes.set(name, lane)
      return lane
    }

    const arrive = (lane: WatchedLane.WatchedLane, watched: Entry.Watched) =>
      Effect.gen(function* () {
        const { profile, record } = watched
        const home = yield* homeOf(lane, watched)
        const known = lane.entries.get(record.nonce)
        if (known !== undefined && WatchedLane.isSame(known.record, record))
          return lane.put({ ...known, profile, home: known.home ?? home })
        const newest = record.versions.at(-1)
        // Of what was found on the chain the bytes are not known: nodes have it.
        const isOffered = newest !== undefined && record.state === "signed" && newest.raw !== Hex.empty
        const taken = !isOffered || (home !== null && (yield* Asking.offer(home, newest, scope)))
        const now = yield* MonotonicTime.millis
        const waited = (yield* Clock.currentTimeMillis) - record.signedAt
        const entry = Entry.make(watched, home, { now, taken, waited })
        lane.put({ ...entry, isTold: lane.entries.get(record.nonce)?.isTold === true })
      })

    const watch = (watched: Entry.Watched) =>
      Effect.gen(function* () {
        const name = InFlights.nameOf(watched.record)
        const lane = laneOf(name)
        const { nonce } = watched.record
        lane.arriving.push(nonce)
        yield* Effect.ensuring(
          arrive(lane, watched),
          Effect.sync(() => lane.arriving.splice(lane.arriving.indexOf(nonce), 1))
        )
        if (lane.isRunning) return yield* pace.wake(lane, nonce)
        lane.isRunning = true
        yield* Asking.detach(loop(name, lane), scope)
      })

    const monitor: TransactionMonitor = {
      watch: (watched) => Effect.uninterruptible(watch(watched)),
      useNode: (lane, access, chain) =>
        Effect.sync(() => {
          const known = lanes.get(InFlights.nameOf(lane))
          if (known !== undefined) ofCaller(known.nodes, lane, access, chain)
        }),
      forget: ({ record }) => Effect.sync(() => lanes.get(InFlights.nameOf(record))?.drop(record)),
      isWatched: (record) => {
        const lane = lanes.get(InFlights.nameOf(record))
        return lane !== undefined && (lane.entries.has(record.nonce) || lane.arriving.includes(record.nonce))
      },
      underWay: inFlight.total,
      leave: (lane) =>
        Effect.sync(() => {
          const left = lanes.get(InFlights.nameOf(lane))
          if (left !== undefined) for (const { record } of [...left.entries.values()]) left.drop(record)
        }),
      receiptOf: search.find
    }
    return monitor
  })
