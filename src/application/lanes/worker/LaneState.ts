import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import type { ElementFailure } from "../../failures/Elements.js"
import type { SignerOf } from "../../keys/LaneSigners.js"
import type { BundlerRpc, BundlerRpcError } from "../../ports/chain/BundlerRpc.js"
import type { Block } from "../../ports/chain/ChainRpc.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import type { LaneJournal } from "../../ports/journal/LaneJournal.js"
import type { OpJournal } from "../../ports/journal/OpJournal.js"
import type { Op, OpId, Overdue, PreparedOp } from "../../ports/journal/Records.js"
import type { RecoveryJournal } from "../../ports/journal/RecoveryJournal.js"
import type { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"
import type { AccountId } from "../../ports/Tenants.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import type { Claims } from "../Claims.js"
import type { InFlight } from "../InFlight.js"
import type { Entry } from "../remote/RemoteInclusions.js"
import type { RemoteOps } from "../remote/RemoteOps.js"
import type { TransactionMonitor } from "../TransactionMonitor.js"
import * as Bundle from "./rules/Bundle.js"
import { type Context, isRemote, type Obstacle, type OpContext, type Preparing } from "./rules/Context.js"
import * as Pauses from "./rules/Pauses.js"
import * as Queue from "./rules/Queue.js"
import * as Reconcile from "./rules/Reconcile.js"
import * as Rejection from "./rules/Rejection.js"
import type * as Sign from "./Sign.js"

/** What a worker has in hand: what it asks, and what it remembers of its lane. */

/** What the chain says of an op that fails for what has become of its wallet or its nonce. */
export type Found =
  /** It has landed, and the journal has it. */
  | { readonly _tag: "landed" }
  /** The chain's sequence of its nonce key. */
  | { readonly _tag: "sequence"; readonly sequence: bigint }
  /** It is to be prepared again for what the chain has become. */
  | { readonly _tag: "stale" }
  /** None of its versions can land any more, and none has: it needs another nonce. `why`: what fails bytes that have no other. */
  | { readonly _tag: "dead"; readonly why: ElementFailure }
  /** The same, in blocks that may be taken back. */
  | { readonly _tag: "waits" }
  /** Nothing of it explains the failure: it is the op's own. */
  | { readonly _tag: "nothing" }

/** See `isFresh`. */
export type IsFresh = (request: Pick<Op, "acceptedAt" | "requestId">) => boolean

/** What the journal and the chain know of nonces that have no transaction here. */
export interface Known {
  /** When a transaction of ours was read last that the journal had lost, Unix milliseconds; null: never. */
  readonly provenAt: RecoveryJournal["Service"]["provenAt"]
  /** All nonces of the lane below this one are known, or were used before its oldest open request that is not fresh was accepted. */
  readonly from: (lane: Lane, context: Context, isFresh: IsFresh) => Effect.Effect<bigint, Obstacle>
  /**
   * Reads the transactions that have used these nonces, and records what they did of accepted work that is not fresh. Those that
   * are missing in the answer could not be read.
   */
  readonly read: (
    lane: Lane,
    context: Context,
    nonces: ReadonlyArray<bigint>,
    isFresh: IsFresh
  ) => Effect.Effect<ReadonlyArray<{ readonly nonce: bigint; readonly isOurs: boolean }>, Obstacle>
  /**
   * Holds requests from before that time, Unix milliseconds, whose wallets have ops on the chain that the journal does not know of
   * and that may have done what they ask for.
   */
  readonly holdDone: (lane: Lane, context: OpContext, before: number) => Effect.Effect<void, Obstacle>
}

/** What of the journal and the clock decides that the time of a request is over. */
export interface Expiry {
  /** The clock is not one that somebody has just set. */
  readonly mayExpire: Effect.Effect<boolean>
  readonly overdue: RequestJournal["Service"]["overdue"]
  /** How long the account's requests have; that of any account where the chain is not configured. */
  readonly profileOf: (
    accountId: AccountId,
    lane: Lane
  ) => Effect.Effect<Pick<NetworkProfile, "remoteBundler" | "requestExpiryMillis">>
  /** Cancels what of it was not exposed; see `RequestJournal.cancel`. `delay`: what kept it from going, see `delayOf`. */
  readonly cancel: (
    overdue: Overdue,
    delay: string | null
  ) => Effect.Effect<"final" | "kept" | null, JournalError>
}

/** Somebody else's bundlers, and what they were handed. */
export interface Remote {
  readonly ops: Pick<RemoteOps, "forget" | "give">
  readonly journal: Pick<RemoteOpJournal["Service"], "handOver" | "takeBack">
  readonly bundlers: BundlerRpc["Service"]
  /** Elements of these requests were refused, and may land all the same. */
  readonly refused: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
}

export interface Dependencies {
  readonly opJournal: Pick<OpJournal["Service"], "fail" | "ready" | "renew" | "renumber">
  readonly transactionJournal: Pick<
    TransactionJournal["Service"],
    "nextNonce" | "openOf" | "record" | "replace" | "transactionsBetween"
  >
  readonly known: Known
  readonly expiry: Expiry
  readonly facts: Pick<ChainFacts, "balance" | "block" | "fees">
  readonly laneJournal: Pick<LaneJournal["Service"], "takeOver">
  readonly requestJournal: Pick<
    RequestJournal["Service"],
    "nextDue" | "note" | "openElements" | "requests" | "unopened"
  >
  readonly claims: Pick<Claims, "holding" | "take">
  readonly inFlight: InFlight
  readonly monitor: Pick<TransactionMonitor, "leave" | "useNode" | "watch">
  readonly signerOf: SignerOf
  readonly preparing: Preparing
  readonly remote: Remote
  /** Looks up what has become of the op's nonce and wallet. `mayBeLost`: the journal may have lost versions of it. */
  readonly lookUp: (op: Bundle.Held, context: OpContext, mayBeLost: boolean) => Effect.Effect<Found, Obstacle>
  /** Somebody else has done what the element asks for: its row is abandoned. */
  readonly foundDone: (op: Op) => Effect.Effect<void, JournalError>
  /** Runs while no other transaction of the lane is signed. */
  readonly exclusive: <A, E, R>(lane: Lane, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Something has become of these requests. */
  readonly affected: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
  readonly scope: Scope.Scope
}

/** Names the lane among what pauses. */
export const whole = "lane"

/** Names a request of which nothing can be opened now. */
export const requestKey = (requestId: string): `request ${string}` => `request ${requestId}`

/** What pauses: the lane, one of its requests, or an op. */
export type PauseKey = OpId | typeof whole | ReturnType<typeof requestKey>

/** What was handed to somebody else's bundler. */
export interface Handed {
  /** Nonce keys of which the bundler was given an op and has not answered. */
  readonly sending: Set<string>
  /** By nonce key, the sequence of an op that was refused: it stands in the way of those behind it until it can land no more. */
  readonly closed: Map<string, bigint>
  /** Refusals that nobody has looked at. */
  readonly refusals: Array<{
    readonly op: Bundle.Held
    readonly entry: Entry
    readonly error: BundlerRpcError
  }>
  /** Elements that were refused for what they pay, and priced anew: another such refusal counts. */
  readonly repriced: Set<string>
}

/** What a worker remembers of its lane. Nothing of it is needed after a restart. */
export interface State {
  readonly lane: Lane
  epoch: number | null
  /** A turn has failed: what is held may be out of date. */
  isDoubtful: boolean
  queue: Queue.Queue<Bundle.Held>
  pauses: Pauses.Pauses<PauseKey>
  standings: Map<string, Rejection.State>
  /** Components of the next bundle at most. */
  most: number
  /** By nonce key, the chain's sequence as far as it is known. */
  readonly sequences: Map<string, bigint>
  readonly servedAt: Map<AccountId, number>
  /** Transactions that were mined for good since the journal was read last: ops of theirs that are ready again were lacked. */
  readonly mined: Array<{ readonly opIds: ReadonlyArray<OpId>; readonly isReverted: boolean }>
  turns: number
  /** The newest block that was seen. */
  newest: Block | null
  readonly signatures: Sign.Signatures
  reconcile: Reconcile.State
  /** When its requests are held against the time again, by `MonotonicTime`. */
  expiresAt: number
  /** When the journal is asked for elements that are to be opened, by `MonotonicTime`; null: when it is said that there are some. */
  opensAt: number | null
  /** Requests that were accepted here before it had the lane, see `isFresh`. */
  readonly fresh: Set<string>
  /** The EOA's nonce at the latest block, as far as it was told. */
  latest: bigint
  /** Requests that price its waiting transactions anew, and whether the journal may have others. */
  readonly repricings: Set<string>
  mayReprice: boolean
  /** All nonces below are known; null: that was not asked yet. */
  knownTo: bigint | null
  /** Since when this process has the lane: Unix milliseconds, and by `MonotonicTime`. */
  claimed: { readonly at: number; readonly since: number }
  readonly handed: Handed
  /** Accounts and EntryPoints of remote lanes whose work from before the claim was held against the chain, see `Unknown.examine`. */
  readonly examined: Set<string>
  /** Another turn is due. */
  readonly rouse: Effect.Effect<void>
  isRunning: boolean
  isAskedAgain: boolean
}

/** What a turn came to: another one at once, or at that time (`MonotonicTime`), or when something wakes the lane. */
export type Next = "again" | "leave" | { readonly at: number | null }

/** A worker's lane with what it works with. */
export interface Work extends Dependencies {
  readonly state: State
}

export const requestKeys = ({ pauses }: State): ReadonlyArray<PauseKey> =>
  [...pauses.keys()].filter((key) => typeof key === "string" && key !== whole)

type Named = Pick<Bundle.Held, "opId">

const idOf = <K extends OpId | string>(key: K | Named): K | OpId => (typeof key === "object" ? key.opId : key)

export const pause = (state: State, keys: ReadonlyArray<PauseKey | Named>, why: string) =>
  Effect.map(MonotonicTime.millis, (now) => {
    state.pauses = Pauses.paused(state.pauses, keys.map(idOf), why, now)
  })

const endpoints = /https?:\/\/(?:\[[^\]]*\]|[\w.-]+)(?::\d+)?/g

/**
 * What keeps ops of the request from going, in words for its caller; null: their turn has not come, or nothing waits here.
 *
 * Gotchas: what is said of an EOA that accounts share may be of others, and a node may be the operator's.
 */
export const delayOf = ({ pauses, queue }: State, requestId: string): string | null => {
  const own = queue.ops.filter((op) => op.requestId === requestId)
  const keys: ReadonlyArray<PauseKey> = [requestKey(requestId), ...own.map(({ opId }) => opId)]
  const all = [...keys, ...(own.length === 0 ? [] : ([whole] as const))].flatMap((key) => {
    const pause = pauses.get(key)
    return pause === undefined ? [] : [{ key, ...pause }]
  })
  // What came last; of others it may be over.
  const [last] = all.toSorted((one, other) => other.until - one.until)
  if (last?.key === whole && own[0]?.op.key === "serviceEoa")
    return "the service's EOA sends nothing at the moment"
  return last?.why.replaceAll(endpoints, "the RPC endpoint") ?? null
}

/**
 * It was accepted here, or since this process has the lane: whatever the journal has lost before, it is nothing of it. The key
 * may have done the same for somebody else.
 */
export const isFresh = (
  { claimed, fresh }: Pick<State, "claimed" | "fresh">,
  { acceptedAt, requestId }: Pick<Op, "acceptedAt" | "requestId">
): boolean => fresh.has(requestId) || acceptedAt >= claimed.at

/**
 * Nothing of the op can land that the journal has lost: the op may come to nothing, or have another nonce. What a restored
 * journal has lost of ops at somebody else's bundler no nonce of the EOA tells: it lands in time, or never.
 */
export const mayGiveUp = (
  state: Pick<State, "claimed" | "fresh" | "reconcile">,
  { context, op }: { readonly context: Context | null; readonly op: Pick<Op, "acceptedAt" | "requestId"> },
  now: number
): boolean => {
  const { claimed, reconcile } = state
  if (context !== null && isRemote(context))
    return isFresh(state, op) || now >= claimed.since + Reconcile.lostMillis
  return isFresh(state, op)
    ? Reconcile.maySign(reconcile)
    : Reconcile.mayGiveUp(reconcile, now, op.acceptedAt)
}

export const forget = (state: State, ops: ReadonlyArray<OpId | Named>): void => {
  const opIds = new Set(ops.map(idOf))
  state.queue = Queue.without(state.queue, opIds)
  state.pauses = Pauses.ended(state.pauses, opIds)
  state.signatures.forget(opIds)
}

/** Whether the component is rejected. */
export const stepOf = (state: State, component: string, event: Rejection.Event): boolean => {
  const before = state.standings.get(component) ?? Rejection.clean
  const { isRejected, state: next } = Rejection.step(before, event)
  if (next.standing === "clean" && next.lacked === 0) state.standings.delete(component)
  else state.standings.set(component, next)
  return isRejected
}

/** Another row, or another nonce, of an op that is held. */
export const replaceHeld = (
  state: State,
  before: Bundle.Held,
  opId: OpId | null,
  prepared: PreparedOp
): void => {
  state.signatures.forget([before.opId])
  state.queue = {
    ...state.queue,
    ops: state.queue.ops.flatMap((op) => {
      if (op.opId !== before.opId) return [op]
      if (opId === null) return []
      const { nonceKey, sequence, userOpHash } = prepared
      return [Bundle.held({ ...op.op, opId, nonceKey, sequence, userOpHash, prepared }, op.context)]
    })
  }
}
