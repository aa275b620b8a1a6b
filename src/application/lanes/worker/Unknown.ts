import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as EoaNonces from "../../chain/EoaNonces.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import { pause, type State, type Work, whole } from "./LaneState.js"
import type { Context, Obstacle, OpContext } from "./rules/Context.js"
import * as Queue from "./rules/Queue.js"
import * as Reconcile from "./rules/Reconcile.js"

/**
 * Holds the chain's nonces of the lane against the journal, before anything is signed: one that neither has a transaction here
 * nor was read keeps everything back that nobody has seen signed. What a block has used is read. False: a nonce is unknown.
 */
export const isReconciled = (work: Work, context: Context, { latest, next }: EoaNonces.EoaNonces) =>
  Effect.gen(function* () {
    const { known, state, transactionJournal } = work
    const { lane } = state
    // Of a key that has sent nothing there is nothing to be known.
    if (next === 0n) state.knownTo ??= 0n
    // Blocks were taken back: what uses their nonces next may be unknown.
    const isBack = next < state.latest
    if (isBack && state.knownTo !== null) state.knownTo = BigInts.min(state.knownTo, next)
    state.latest = isBack ? next : BigInts.max(state.latest, latest)
    if (state.knownTo !== null && next <= state.knownTo && Reconcile.maySign(state.reconcile)) return true
    const asked = yield* Effect.result(
      state.knownTo === null ? known.from(lane, context) : Effect.succeed(state.knownTo)
    )
    if (Result.isFailure(asked)) {
      yield* pause(state, [whole], asked.failure.why)
      return false
    }
    const from = [...state.reconcile.unknown].reduce(BigInts.min, asked.success)
    const own = new Set(
      (next > from ? yield* transactionJournal.transactionsBetween(lane, from, next) : []).map(
        ({ nonce }) => nonce
      )
    )
    state.reconcile = Reconcile.step(state.reconcile, {
      _tag: "looked",
      latest,
      pending: next,
      from,
      isKnown: (nonce) => own.has(nonce)
    })
    const readable = Reconcile.readable(state.reconcile, latest)
    if (readable.length > 0) {
      const read = yield* Effect.result(known.read(lane, context, readable))
      const now = yield* MonotonicTime.millis
      const at = yield* Clock.currentTimeMillis
      const done = Result.isSuccess(read) ? read.success : []
      for (const each of done)
        state.reconcile = Reconcile.step(state.reconcile, { _tag: "read", ...each, at, now })
      // Ready ops count as exposed from here on: they are read anew.
      if (done.some(({ isOurs }) => isOurs)) state.queue = Queue.empty
    }
    const isClear = Reconcile.maySign(state.reconcile)
    state.knownTo = isClear && (state.knownTo === null || next > state.knownTo) ? next : state.knownTo
    if (!isClear)
      yield* pause(state, [whole], "the journal does not know what a nonce of the EOA is used for")
    return isClear
  })

/**
 * The same at the beginning, and while a nonce is unknown. The nonce at the latest block is asked for: what was told of it
 * before is good for signing alone.
 */
export const look = (work: Work, context: Context) =>
  Effect.gen(function* () {
    const { state } = work
    const { chain } = context.connection
    const told = yield* Effect.result(
      Effect.all(
        [
          chain.transactionCount(state.lane.signer, "latest"),
          chain.transactionCount(state.lane.signer, "pending")
        ],
        { concurrency: "unbounded" }
      )
    )
    if (Result.isFailure(told)) {
      yield* pause(state, [whole], told.failure.message)
      return false
    }
    const [latest, pending] = told.success
    const nonces = { latest, next: BigInts.max(latest, pending) }
    if (EoaNonces.canBe(nonces)) return yield* isReconciled(work, context, nonces)
    yield* pause(state, [whole], "the node gives a nonce of the EOA that cannot be")
    return false
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
    : Effect.map(known.holdDone(state.lane, context), () => {
        state.examined.add(nameOf(context))
        // What is held is not ready any more.
        state.queue = Queue.empty
      })
