import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as EoaNonces from "../../../chain/EoaNonces.js"
import type { JournalError } from "../../../ports/journal/JournalError.js"
import * as MonotonicTime from "../../../runtime/MonotonicTime.js"
import { type IsFresh, isFresh, pause, type State, type Work, whole } from "../LaneState.js"
import type { Context, Obstacle, SubmissionContext } from "../rules/Context.js"
import * as Queue from "../rules/Queue.js"
import * as Reconcile from "../rules/Reconcile.js"

/** A silent node delays only the ops that named it; another node may answer. */
const awaitNode = ({ state }: Work, { connection: { chain } }: Context, why: string) => {
  const own = state.queue.ops.filter(({ context }) => context?.connection.chain === chain)
  return Effect.as(pause(state, own.length === 0 ? [whole] : own, why), false)
}

/**
 * Compares the lane's nonces on the chain with the journal before anything is signed. A nonce without a recorded or read
 * transaction holds back all unexposed work. Transactions of nonces that a block has used are read. False: a nonce is unknown,
 * or was just read, which empties the queue.
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
    // A key that has sent nothing has no unknown nonces.
    if (next === 0n) state.knownTo ??= 0n
    // Blocks were undone: unknown transactions may use their nonces next.
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
      _tag: "compared",
      latest,
      pending: next,
      from,
      isKnown: (nonce) => own.has(nonce)
    })
    const readable = Reconcile.readable(state.reconcile, latest)
    // Work that lost its nonce would continue under another nonce, although it may be done already.
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
      // The queue does not reflect the read transactions.
      state.queue = Queue.empty
    }
    const isClear = Reconcile.maySign(state.reconcile)
    state.knownTo = isClear && (state.knownTo === null || next > state.knownTo) ? next : state.knownTo
    if (!isClear)
      yield* pause(state, [whole], "the journal does not know what a nonce of the EOA is used for")
    return isClear && readable.length === 0
  })

/**
 * Likewise at the start, and while a nonce is unknown. Reads the nonce at the latest block: the cached value is good enough
 * only for signing.
 */
export const compare = (work: Work, context: Context) =>
  Effect.gen(function* () {
    const { chain } = context.connection
    const { signer } = work.state.lane
    const nonces = yield* Effect.result(EoaNonces.read(chain, signer))
    if (Result.isFailure(nonces)) return yield* awaitNode(work, context, nonces.failure.message)
    if (EoaNonces.canBe(nonces.success)) return yield* isReconciled(work, context, nonces.success)
    return yield* awaitNode(work, context, "the node gives a nonce of the EOA that cannot be")
  })

const nameOf = ({ access, entryPoint }: SubmissionContext): string => `${access.accountId} ${entryPoint}`

/** See `examine`. */
export const isExamined = ({ examined }: State, context: Context | null): boolean =>
  context === null || context.kind === "direct" || examined.has(nameOf(context))

/**
 * The EOA's nonces do not show lost ops at a remote bundler: compares an account's work from before the claim, once, with its
 * wallets' ops on the chain.
 */
export const examine = ({ known, state }: Work, context: Context): Effect.Effect<void, Obstacle> =>
  context.kind === "direct"
    ? Effect.void
    : Effect.map(known.holdDone(state.lane, context, state.claimed.at), () => {
        state.examined.add(nameOf(context))
        // Held requests are no longer ready.
        state.queue = Queue.empty
      })
