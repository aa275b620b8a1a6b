import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as EoaNonces from "../../chain/EoaNonces.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import { type IsFresh, isFresh, pause, type State, type Work, whole } from "./LaneState.js"
import type { Context, Obstacle, OpContext } from "./rules/Context.js"
import * as Queue from "./rules/Queue.js"
import * as Reconcile from "./rules/Reconcile.js"

/** A node that is silent keeps the ops back that named it: another one may tell. */
const awaitNode = ({ state }: Work, { connection: { chain } }: Context, why: string) => {
  const own = state.queue.ops.filter(({ context }) => context?.connection.chain === chain)
  return Effect.as(pause(state, own.length === 0 ? [whole] : own, why), false)
}

/**
 * Holds the chain's nonces of the lane against the journal, before anything is signed: one that neither has a transaction here
 * nor was read keeps everything back that nobody has seen signed. What a block has used is read. False: a nonce is unknown, or
 * was read just now, and the queue is empty then.
 */
export const isReconciled = (
  work: Work,
  context: Context,
  { latest, next }: EoaNonces.EoaNonces
): Effect.Effect<boolean, JournalError> =>
  Effect.gen(function* () {
    const { inFlight, known, state, transactionJournal } = work
    const { lane } = state
    const isNew: IsFresh = (request) => isFresh(state, request)
    // Of a key that has sent nothing there is nothing to be known.
    if (next === 0n) state.knownTo ??= 0n
    // Blocks were taken back: what uses their nonces next may be unknown.
    const isBack = next < state.latest
    if (isBack && state.knownTo !== null) state.knownTo = BigInts.min(state.knownTo, next)
    state.latest = isBack ? next : BigInts.max(state.latest, latest)
    if (state.knownTo !== null && next <= state.knownTo && Reconcile.maySign(state.reconcile)) return true
    const asked = yield* Effect.result(
      state.knownTo === null ? known.from(lane, context, isNew) : Effect.succeed(state.knownTo)
    )
    if (Result.isFailure(asked)) return yield* awaitNode(work, context, asked.failure.why)
    const from = [...state.reconcile.unknown].reduce(BigInts.min, asked.success)
    const recorded = next > from ? yield* transactionJournal.transactionsBetween(lane, from, next) : []
    const own = new Set(recorded.map(({ nonce }) => nonce))
    state.reconcile = Reconcile.step(state.reconcile, {
      _tag: "looked",
      latest,
      pending: next,
      from,
      isKnown: (nonce) => own.has(nonce)
    })
    const readable = Reconcile.readable(state.reconcile, latest)
    // What lost its nonce would go on under another one, under which it may have been done already.
    if (readable.length > 0 && inFlight.signed(lane).some(({ nonce }) => nonce < latest)) {
      yield* pause(state, [whole], "it is not known by what the nonces of signed transactions were used")
      return false
    }
    if (readable.length > 0) {
      const read = yield* Effect.result(known.read(lane, context, readable, isNew))
      if (Result.isFailure(read)) return yield* awaitNode(work, context, read.failure.why)
      const now = yield* MonotonicTime.millis
      const at = yield* Clock.currentTimeMillis
      for (const each of read.success)
        state.reconcile = Reconcile.step(state.reconcile, { _tag: "read", ...each, at, now })
      // What is held here does not show what was found.
      state.queue = Queue.empty
    }
    const isClear = Reconcile.maySign(state.reconcile)
    state.knownTo = isClear && (state.knownTo === null || next > state.knownTo) ? next : state.knownTo
    if (!isClear)
      yield* pause(state, [whole], "the journal does not know what a nonce of the EOA is used for")
    return isClear && readable.length === 0
  })

/**
 * The same at the beginning, and while a nonce is unknown. The nonce at the latest block is asked for: what was told of it
 * before is good for signing alone.
 */
export const look = (work: Work, context: Context) =>
  Effect.gen(function* () {
    const { chain } = context.connection
    const { signer } = work.state.lane
    const told = yield* Effect.result(
      Effect.all([chain.transactionCount(signer, "latest"), chain.transactionCount(signer, "pending")], {
        concurrency: "unbounded"
      })
    )
    if (Result.isFailure(told)) return yield* awaitNode(work, context, told.failure.message)
    const [latest, pending] = told.success
    const nonces = { latest, next: BigInts.max(latest, pending) }
    if (EoaNonces.canBe(nonces)) return yield* isReconciled(work, context, nonces)
    return yield* awaitNode(work, context, "the node gives a nonce of the EOA that cannot be")
  })

const nameOf = ({ access, entryPoint }: OpContext): string => `${access.accountId} ${entryPoint}`

/** See `examine`. */
export const isExamined = ({ examined }: State, context: Context | null): boolean =>
  context === null || context.kind === "direct" || examined.has(nameOf(context))

/**
 * Of ops at somebody else's bundler no nonce of the EOA tells what a restored journal has lost: what an account has from before
 * the claim is held against what its wallets have done on the chain, once.
 */
export const examine = ({ known, state }: Work, context: Context): Effect.Effect<void, Obstacle> =>
  context.kind === "direct"
    ? Effect.void
    : Effect.map(known.holdDone(state.lane, context, state.claimed.at), () => {
        state.examined.add(nameOf(context))
        // What is held is not ready any more.
        state.queue = Queue.empty
      })
