import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Secp256k1 from "../../domain/crypto/Secp256k1.js"
import type { Bytes32, Hex } from "../../domain/primitives/Hex.js"
import type { ProviderKey, RawSignature } from "../ports/KeyProvider.js"
import * as EventLoop from "../runtime/EventLoop.js"
import * as Wait from "../runtime/Wait.js"
import * as Call from "./RingKeyCall.js"

interface Job {
  readonly digest: Bytes32
  readonly done: Deferred.Deferred<Hex, Call.RingKeyError>
  awaited: boolean
}

const stopped = new Call.RingKeyError({ reason: "unavailable", message: "the service stops" })
const late = new Call.RingKeyError({ reason: "unavailable", message: "no signature in time" })

const wrong = (message: string) => new Call.RingKeyError({ reason: "wrongSignature", message })

const foreign = () => wrong("the provider returned a signature that is not this key's")

/** Signs with a key in this process: nothing waits for another process. Every signature is verified. */
export const now =
  (sign: (digest: Bytes32) => RawSignature, publicKey: string) =>
  (digest: Bytes32): Effect.Effect<Hex, Call.RingKeyError> =>
    Effect.andThen(
      // Signing and verification take a tenth of a millisecond, and callers sign many digests.
      EventLoop.breathe,
      Effect.suspend(() => {
        try {
          const proven = Secp256k1.prove(publicKey, digest, sign(digest))
          return proven === null ? foreign() : Effect.succeed(proven)
        } catch (defect) {
          return Call.ofRing(Call.crash(defect))
        }
      })
    )

/**
 * Signs digests with this key of a provider. Digests that arrive at the same moment, or while all calls are under way,
 * travel together, up to `maxBatch` per call. Every signature is verified to be this key's before a caller gets it.
 */
export const make = Effect.fnUntraced(function* (
  key: ProviderKey,
  publicKey: string,
  limits: Call.RingKeyLimits
) {
  const scope = yield* Effect.scope
  const waiting: Array<Job> = []
  const maxBatch = Math.max(1, key.maxBatch || 1)
  let calls = 0
  /** Calls among them that have not taken their digests yet. */
  let starting = 0
  let open = true
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      open = false
      for (const { done } of waiting.splice(0)) Deferred.doneUnsafe(done, Effect.fail(stopped))
    })
  )

  const answer = ({ digest, done }: Job, signature: { readonly r: bigint; readonly s: bigint }) =>
    Effect.suspend(() => {
      const proven = Secp256k1.prove(publicKey, digest, signature)
      return proven === null ? Deferred.fail(done, foreign()) : Deferred.succeed(done, proven)
    })

  const refuse = (jobs: ReadonlyArray<Job>, error: Call.RingKeyError) =>
    Effect.sync(() => {
      for (const { done } of jobs) Deferred.doneUnsafe(done, Effect.fail(error))
    })

  /** Skips callers that have stopped waiting, also when the call is repeated. */
  const call = (jobs: ReadonlyArray<Job>) => {
    const asked = jobs.filter(({ awaited }) => awaited)
    return asked.length === 0
      ? Effect.succeed({ asked, signatures: [] })
      : Effect.map(key.sign(asked.map(({ digest }) => digest)), (signatures) => ({ asked, signatures }))
  }

  const serve = (jobs: ReadonlyArray<Job>) =>
    Effect.gen(function* () {
      const { asked, signatures } = yield* Effect.mapError(
        Call.withPatience(() => call(jobs), limits),
        Call.ofRing
      )
      if (signatures.length !== asked.length)
        return yield* wrong(
          `the provider returned ${signatures.length} signatures for ${asked.length} digests`
        )
      for (const [index, job] of asked.entries()) {
        const signature = signatures[index]
        // Verification takes milliseconds.
        yield* EventLoop.breathe
        if (signature !== undefined) yield* answer(job, signature)
      }
    }).pipe(
      Effect.catchDefect(() => wrong("the provider returned no signatures")),
      Effect.catch((error) => refuse(jobs, error)),
      Effect.ensuring(refuse(jobs, stopped))
    )

  const drain: Effect.Effect<void> = Effect.suspend(() => {
    const jobs = waiting.splice(0, maxBatch)
    // A provider may sign in this process, and many calls are under way.
    if (jobs.length > 0) return serve(jobs).pipe(Effect.andThen(EventLoop.breathe), Effect.andThen(drain))
    // Synchronously: later digests must start a new call.
    calls -= 1
    return Effect.void
  })

  const start = Effect.suspend(() => {
    if (calls >= limits.inFlight || starting * maxBatch >= waiting.length) return Effect.void
    calls += 1
    starting += 1
    return Effect.yieldNow.pipe(
      Effect.andThen(EventLoop.breathe),
      Effect.andThen(
        Effect.suspend(() => {
          starting -= 1
          return drain
        })
      ),
      Effect.interruptible,
      Effect.forkIn(scope)
    )
  }).pipe(Effect.uninterruptible)

  return (digest: Bytes32) =>
    Effect.suspend(() => {
      if (!open) return Effect.fail(stopped)
      const job: Job = { digest, done: Deferred.makeUnsafe<Hex, Call.RingKeyError>(), awaited: true }
      waiting.push(job)
      const signed = start.pipe(
        Effect.andThen(Deferred.await(job.done)),
        Effect.ensuring(
          Effect.sync(() => {
            job.awaited = false
          })
        )
      )
      return Wait.within(signed, limits.totalMillis, () => late)
    })
})
