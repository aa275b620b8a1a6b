import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import type { ElementFailure } from "../../failures/Elements.js"
import type { SignerOf } from "../../keys/LaneSigners.js"
import type { BundlerRpc, BundlerRpcError } from "../../ports/chain/BundlerRpc.js"
import type { Block } from "../../ports/chain/ChainRpc.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
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
import type { AwaitedOp } from "../remote/RemoteInclusions.js"
import type { RemoteOps } from "../remote/RemoteOps.js"
import type { TransactionMonitor } from "../TransactionMonitor.js"
import * as Bundle from "./rules/Bundle.js"
import {
  type Context,
  isRemote,
  type Obstacle,
  type Preparer,
  type SubmissionContext
} from "./rules/Context.js"
import * as Pauses from "./rules/Pauses.js"
import * as Queue from "./rules/Queue.js"
import * as Reconcile from "./rules/Reconcile.js"
import * as Rejection from "./rules/Rejection.js"
import type * as Sign from "./Sign.js"

/** A worker's dependencies, and its memory of its lane. */

/** Cause, on the chain, of an op's failure by its wallet or nonce. */
export type FailureCause =
  /** The op landed, and the journal has it. */
  | { readonly _tag: "landed" }
  /** The chain's sequence of its nonce key. */
  | { readonly _tag: "sequence"; readonly sequence: bigint }
  /** The op must be prepared again for the chain's new state. */
  | { readonly _tag: "stale" }
  /** No version of the op landed or can land: it needs another nonce. `why`: failure of bytes whose nonce cannot change. */
  | { readonly _tag: "dead"; readonly why: ElementFailure }
  /** As `dead`, but in blocks that may be undone. */
  | { readonly _tag: "waits" }
  /** Neither explains the failure: the op itself is the cause. */
  | { readonly _tag: "nothing" }

/** See `isFresh`. */
export type IsFresh = (request: Pick<Op, "acceptedAt" | "requestId">) => boolean

/** Reads nonces that have no transaction in the journal. */
export interface NonceRecovery {
  /** Time of the last read of an own transaction that the journal had lost, Unix milliseconds; null: never. */
  readonly provenAt: RecoveryJournal["Service"]["provenAt"]
  /** All lower nonces of the lane are known, or were used before its oldest open request that is not fresh was accepted. */
  readonly from: (lane: Lane, context: Context, isFresh: IsFresh) => Effect.Effect<bigint, Obstacle>
  /**
   * Reads the transactions that used these nonces, and records their effect on accepted work that is not fresh. Nonces missing
   * in the result could not be read.
   */
  readonly read: (
    lane: Lane,
    context: Context,
    nonces: ReadonlyArray<bigint>,
    isFresh: IsFresh
  ) => Effect.Effect<ReadonlyArray<{ readonly nonce: bigint; readonly isOurs: boolean }>, Obstacle>
  /**
   * Holds requests accepted before that time, Unix milliseconds, whose wallets have ops on the chain that the journal lacks and
   * that may have done the same work.
   */
  readonly holdDone: (lane: Lane, context: SubmissionContext, before: number) => Effect.Effect<void, Obstacle>
}

/** Decides from journal and clock whether a request has expired. */
export interface Expiry {
  /** Whether the clock is trusted: it was not set recently. */
  readonly mayExpire: Effect.Effect<boolean>
  readonly overdue: RequestJournal["Service"]["overdue"]
  /** Expiry of the account's requests; the default one where the chain is not configured. */
  readonly profileOf: (
    accountId: AccountId,
    lane: Lane
  ) => Effect.Effect<Pick<NetworkProfile, "remoteBundler" | "requestExpiryMillis">>
  /** Cancels its elements that were not exposed; see `RequestJournal.cancel`. `delay`: cause of its delay, see `delayOf`. */
  readonly cancel: (
    overdue: Overdue,
    delay: string | null
  ) => Effect.Effect<"final" | "kept" | null, JournalError>
}

export interface Remote {
  readonly ops: Pick<RemoteOps, "forget" | "give">
  readonly journal: Pick<RemoteOpJournal["Service"], "handOver" | "takeBack">
  readonly bundlers: BundlerRpc["Service"]
  /** Elements of these requests were refused, but may still land. */
  readonly refused: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
}

export interface Dependencies {
  readonly opJournal: Pick<OpJournal["Service"], "fail" | "ready" | "renew" | "renumber">
  readonly transactionJournal: Pick<
    TransactionJournal["Service"],
    "nextNonce" | "openOf" | "record" | "replace" | "transactionsBetween"
  >
  readonly known: NonceRecovery
  readonly expiry: Expiry
  readonly facts: Pick<ChainFacts, "balance" | "block" | "fees">
  readonly watch: (lane: Lane) => Effect.Effect<void, JournalError>
  readonly requestJournal: Pick<
    RequestJournal["Service"],
    "nextDue" | "note" | "openElements" | "requests" | "unopened"
  >
  readonly claims: Pick<Claims, "holding" | "take">
  readonly inFlight: InFlight
  readonly monitor: Pick<TransactionMonitor, "leave" | "useNode" | "watch">
  readonly signerOf: SignerOf
  readonly preparing: Preparer
  readonly remote: Remote
  /** Looks up the op's nonce and wallet. `mayBeLost`: the journal may have lost versions of it. */
  readonly lookUp: (
    op: Bundle.Held,
    context: SubmissionContext,
    mayBeLost: boolean
  ) => Effect.Effect<FailureCause, Obstacle>
  /** A third party did the element's work: abandons its row. */
  readonly foundDone: (op: Op) => Effect.Effect<void, JournalError>
  /** Runs while no other transaction of the lane is signed. */
  readonly exclusive: <A, E, R>(lane: Lane, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly affected: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
  readonly scope: Scope.Scope
}

/** Key of a pause of the whole lane. */
export const whole = "lane"

/** Key of a pause of a request's opening. */
export const requestKey = (requestId: string): `request ${string}` => `request ${requestId}`

/** Can pause: the lane, a request's opening, or an op. */
export type PauseKey = OpId | typeof whole | ReturnType<typeof requestKey>

export interface Handed {
  /** Nonce keys with an op that the bundler has not answered. */
  readonly sending: Set<string>
  /** Sequence of a refused op by nonce key: it blocks later ops until it can no longer land. */
  readonly closed: Map<string, bigint>
  /** Refusals not yet processed. */
  readonly refusals: Array<{
    readonly op: Bundle.Held
    readonly entry: AwaitedOp
    readonly error: BundlerRpcError
  }>
  /** Elements repriced after a refusal of their price; a second such refusal fails them. */
  readonly repriced: Set<string>
}

/** A worker's memory of its lane; not needed after a restart. */
export interface State {
  readonly lane: Lane
  epoch: number | null
  /** A turn failed: this state may be outdated. */
  isDoubtful: boolean
  queue: Queue.Queue<Bundle.Held>
  pauses: Pauses.Pauses<PauseKey>
  standings: Map<string, Rejection.State>
  /** Maximum components of the next bundle. */
  most: number
  /** The chain's sequence by nonce key, where known. */
  readonly sequences: Map<string, bigint>
  readonly servedAt: Map<AccountId, number>
  /** Transactions mined at settled depth since the last journal read; an op of theirs that is ready again counts as `lacked`. */
  readonly mined: Array<{ readonly opIds: ReadonlyArray<OpId>; readonly isReverted: boolean }>
  turns: number
  newest: Block | null
  readonly signatures: Sign.Signatures
  reconcile: Reconcile.State
  /** Time of the next expiry check, by `MonotonicTime`. */
  expiresAt: number
  /** Time of the next read for elements to open, by `MonotonicTime`; null: on a signal. */
  opensAt: number | null
  /** Requests accepted here before the process had the lane; see `isFresh`. */
  readonly fresh: Set<string>
  /** The EOA's last known nonce at the latest block. */
  latest: bigint
  /** Repricing requests for its waiting transactions; `mayReprice`: the journal may have others. */
  readonly repricings: Set<string>
  mayReprice: boolean
  /** All lower nonces are known; null: not yet read. */
  knownTo: bigint | null
  /** Time of this process's claim: Unix milliseconds, and by `MonotonicTime`. */
  claimed: { readonly at: number; readonly since: number }
  readonly handed: Handed
  /** Accounts and EntryPoints of remote lanes whose older work was compared with the chain; see `Unknown.examine`. */
  readonly examined: Set<string>
  readonly resume: Effect.Effect<void>
  isRunning: boolean
  isAskedAgain: boolean
}

/** Result of a turn: run again immediately, leave the lane, or wait until `at` (by `MonotonicTime`) or a wake-up. */
export type Next = "again" | "leave" | { readonly at: number | null }

export interface Work extends Dependencies {
  readonly state: State
}

export const requestKeys = ({ pauses }: State): ReadonlyArray<PauseKey> =>
  [...pauses.keys()].filter((key) => typeof key === "string" && key !== whole)

type Named = Pick<Bundle.Held, "opId">

const idOf = <K extends OpId | string>(key: K | Named): K | OpId => (typeof key === "object" ? key.opId : key)

export const pause = (state: State, keys: ReadonlyArray<PauseKey | Named>, why: string) =>
  Effect.map(MonotonicTime.millis, (now) => {
    state.pauses = Pauses.pause(state.pauses, keys.map(idOf), why, now)
  })

const endpoints = /https?:\/\/(?:\[[^\]]*\]|[\w.-]+)(?::\d+)?/g

/**
 * Cause of the delay of a request's ops, in words for its caller; null: they wait for their turn, or none are here.
 *
 * Gotchas: a shared EOA's reason may concern other accounts, and a node may be the operator's.
 */
export const delayOf = ({ pauses, queue }: State, requestId: string): string | null => {
  const own = queue.ops.filter((op) => op.requestId === requestId)
  const keys: ReadonlyArray<PauseKey> = [requestKey(requestId), ...own.map(({ opId }) => opId)]
  const all = [...keys, ...(own.length === 0 ? [] : ([whole] as const))].flatMap((key) => {
    const pause = pauses.get(key)
    return pause === undefined ? [] : [{ key, ...pause }]
  })
  // The latest reason; older ones may be over.
  const [last] = all.toSorted((one, other) => other.until - one.until)
  if (last?.key === whole && own[0]?.op.key === "serviceEoa")
    return "the service's EOA sends nothing at the moment"
  return last?.why.replaceAll(endpoints, "the RPC endpoint") ?? null
}

/**
 * Whether the request was accepted in this process or since its claim: the journal lost none of its work. The key may have done
 * the same work for others.
 */
export const isFresh = (
  { claimed, fresh }: Pick<State, "claimed" | "fresh">,
  { acceptedAt, requestId }: Pick<Op, "acceptedAt" | "requestId">
): boolean => fresh.has(requestId) || acceptedAt >= claimed.at

/**
 * Whether the op may fail or get another nonce: no lost version of it can land. The EOA's nonces do not show lost ops at a
 * remote bundler; these land within `Reconcile.lostMillis`, or never.
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
  state.pauses = Pauses.end(state.pauses, opIds)
  state.signatures.forget(opIds)
}

/** Applies the event; returns whether the component is rejected. */
export const stepOf = (state: State, component: string, event: Rejection.Event): boolean => {
  const before = state.standings.get(component) ?? Rejection.clean
  const { isRejected, state: next } = Rejection.step(before, event)
  if (next.standing === "clean" && next.lacked === 0) state.standings.delete(component)
  else state.standings.set(component, next)
  return isRejected
}

/** Replaces a held op by its new row or nonce; null: removes it. */
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
