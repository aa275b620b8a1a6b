import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Schedule from "effect/Schedule"
import { ChainRpcError } from "../../application/ports/ChainRpc.js"
import type * as Background from "./Background.js"
import type * as Egress from "./Egress.js"
import type * as Http from "./Http.js"
import * as JsonRpc from "./JsonRpc.js"
import * as Refusal from "./Refusal.js"

export interface Limits {
  readonly batchCalls: number
  /** Bytes of one request body; a single call may be larger. */
  readonly batchBytes: number
}

/** How often reads are repeated. The first wait is `baseMillis`, then each is longer, up to `maxMillis`, jittered. */
export interface Retry {
  readonly baseMillis: number
  readonly maxMillis: number
  /** No further attempt begins later than this after the first. */
  readonly withinMillis: number
  /** Attempts beyond the first while the node limits the rate. */
  readonly rateLimited: number
  /** Attempts beyond the first when the connection was refused or cut, or a gateway stood in for the node. */
  readonly unreachable: number
}

/** One HTTP round trip and the JSON-RPC methods in it. */
export interface Exchange {
  readonly origin: string
  readonly trust: Egress.Trust
  readonly methods: ReadonlyArray<string>
}

export interface Options {
  readonly target: Egress.Target
  readonly http: Http.Http
  readonly limits: Limits
  readonly retry: Retry
  readonly onExchange: (exchange: Exchange) => void
  readonly background: Background.Background
}

export interface Batches {
  /** Asked together with all other reads of the same moment; repeated when the node has no time for it. */
  readonly read: (
    method: string,
    params: ReadonlyArray<unknown>
  ) => Effect.Effect<JsonRpc.Outcome, ChainRpcError>
  /** Asked in a request of its own, exactly once: no other call's answer can make its own unknown. */
  readonly once: (
    method: string,
    params: ReadonlyArray<unknown>
  ) => Effect.Effect<JsonRpc.Outcome, ChainRpcError>
}

interface Entry {
  readonly call: JsonRpc.Call
  readonly bytes: number
  readonly done: Deferred.Deferred<JsonRpc.Outcome, ChainRpcError>
  /** Nobody waits for it any more. */
  abandoned: boolean
}

/** Some entries had no answer that is worth repeating the call for. */
class Again extends Data.TaggedError("Again")<{
  readonly entries: ReadonlyArray<Entry>
  readonly error: ChainRpcError
  /** What the node asks to wait at least. */
  readonly afterMillis: number
}> {}

/** Nodes take their time for these: the headers of the answer come when the work is done. */
const slow = new Set(["eth_call", "eth_simulateV1", "eth_getLogs"])

/** Gateways that stand in for a node which may be back soon. */
const gateway = new Set([502, 503, 504])

/** Parts of at most the limit's calls and bytes, in order. */
const split = (entries: ReadonlyArray<Entry>, limits: Limits): ReadonlyArray<ReadonlyArray<Entry>> => {
  const parts: Array<Array<Entry>> = []
  let bytes = 0
  for (const entry of entries) {
    const part = parts.at(-1)
    if (part === undefined || part.length >= limits.batchCalls || bytes + entry.bytes > limits.batchBytes) {
      parts.push([entry])
      bytes = entry.bytes
    } else {
      part.push(entry)
      bytes += entry.bytes
    }
  }
  return parts
}

/** After everything that was ready to run has run: all that was asked at one moment is in the queue then. */
const endOfMoment = Effect.async<void>((resume) => {
  const handle = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(handle))
})

/** Milliseconds, from either form of the header (RFC 9110, 10.2.3); 0 when it is absent or senseless. */
const retryAfterMillis = (header: string | undefined, now: number): number => {
  if (header === undefined) return 0
  const seconds = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now
  return Number.isFinite(seconds) ? Math.max(0, seconds) : 0
}

/** The calls of one node, in as few HTTP requests as its limits allow. */
export const make = ({ background, http, limits, onExchange, retry, target }: Options): Batches => {
  const { origin, trust } = target
  const scrub = Refusal.scrubber(target)
  let nextId = 1
  let batchCalls = limits.batchCalls
  let moment: Array<Entry> | undefined

  const failed = (reason: ChainRpcError["reason"], message: string) =>
    new ChainRpcError({ reason, origin, message: `${origin}: ${message}` })
  const shutDown = failed("unreachable", "the connection is shut down")

  const settle = (entry: Entry, outcome: Effect.Effect<JsonRpc.Outcome, ChainRpcError>) =>
    Effect.sync(() => Deferred.unsafeDone(entry.done, outcome))

  const all = (entries: ReadonlyArray<Entry>, error: ChainRpcError) =>
    Effect.forEach(entries, (entry) => settle(entry, Effect.fail(error)), { discard: true })

  /** What one answer of the node means for the entries; fails for those that shall be asked again. */
  const exchange = (entries: ReadonlyArray<Entry>): Effect.Effect<void, Again> =>
    Effect.gen(function* () {
      const calls = entries.map(({ call }) => call)
      const methods = calls.map(({ method }) => method)
      onExchange({ origin, trust, methods })
      const again = (error: ChainRpcError, afterMillis = 0, some = entries) =>
        Effect.fail(new Again({ entries: some, error, afterMillis }))

      const posted = yield* Effect.either(
        http.post(
          target,
          JsonRpc.encode(calls),
          methods.some((method) => slow.has(method))
        )
      )
      if (posted._tag === "Left") {
        const { message, passing, reason } = posted.left
        const error = failed(reason === "garbled" ? "notAnRpc" : reason, message)
        return yield* passing ? again(error) : all(entries, error)
      }
      const { body, retryAfter, status } = posted.right
      const afterMillis = retryAfterMillis(retryAfter, yield* Clock.currentTimeMillis)
      if (status === 429) return yield* again(failed("rateLimited", "HTTP status 429"), afterMillis)
      if (status >= 300 && status < 400)
        return yield* all(entries, failed("unreachable", `HTTP status ${status}: redirects are not followed`))
      if (gateway.has(status))
        return yield* again(failed("unreachable", `HTTP status ${status}`), afterMillis)

      const decoded = JsonRpc.decode(body, calls)
      const tooMany = entries.length > 1 && status === 413
      if (decoded._tag === "Left" && !tooMany)
        return yield* all(
          entries,
          status >= 200 && status < 300
            ? failed("notAnRpc", decoded.left)
            : failed("unreachable", `HTTP status ${status}`)
        )
      if (decoded._tag === "Left" || decoded.right._tag === "refused") {
        const error =
          decoded._tag === "Right" && decoded.right._tag === "refused" ? decoded.right.error : null
        if (entries.length > 1 && (error === null || Refusal.isOfBatches(error))) {
          batchCalls = Math.min(batchCalls, Math.max(1, entries.length >> 1))
          return yield* deliver(entries)
        }
        if (error === null) return yield* all(entries, failed("unreachable", `HTTP status ${status}`))
        if (Refusal.isRateLimit(error))
          return yield* again(failed("rateLimited", scrub(error.message)), afterMillis)
        return yield* all(
          entries,
          new ChainRpcError({
            reason: "rejected",
            origin,
            message: scrub(error.message),
            rpcCode: error.code
          })
        )
      }

      const limited: Array<Entry> = []
      let words = ""
      for (const entry of entries) {
        const outcome = decoded.right.byId.get(entry.call.id)
        if (outcome === undefined)
          yield* settle(
            entry,
            Effect.fail(failed("notAnRpc", `it left out the answer to ${entry.call.method}`))
          )
        else if (outcome._tag === "error" && Refusal.isRateLimit(outcome.error)) {
          limited.push(entry)
          words = outcome.error.message
        } else if (outcome._tag === "error") {
          const { code, data, message } = outcome.error
          yield* settle(
            entry,
            Effect.succeed({ _tag: "error", error: { code, message: scrub(message), data } })
          )
        } else yield* settle(entry, Effect.succeed(outcome))
      }
      if (limited.length > 0) yield* again(failed("rateLimited", scrub(words)), afterMillis, limited)
    }).pipe(
      Effect.withSpan("ChainRpc.exchange", {
        kind: "client",
        attributes: { origin, methods: entries.map(({ call }) => call.method) }
      })
    )

  /** Repeats what may be repeated, all of it together, and gives up in bounded time. */
  const persist = (entries: ReadonlyArray<Entry>): Effect.Effect<void> =>
    Effect.suspend(() => {
      let pending = entries
      let cuts = 0
      let limitations = 0
      const attempt = Effect.suspend(() => {
        pending = pending.filter(({ abandoned }) => !abandoned)
        return pending.length === 0 ? Effect.void : exchange(pending)
      }).pipe(
        Effect.tapError((again) =>
          Effect.sync(() => {
            pending = again.entries
            if (again.error.reason === "rateLimited") limitations += 1
            else cuts += 1
          })
        )
      )
      const mayRepeat = (again: Again) =>
        again.afterMillis <= retry.withinMillis &&
        cuts <= retry.unreachable &&
        limitations <= retry.rateLimited
      const waits = Schedule.exponential(retry.baseMillis, 1.6).pipe(
        Schedule.either(Schedule.spaced(retry.maxMillis)),
        Schedule.jitteredWith({ min: 0.5, max: 1.5 }),
        Schedule.intersect(Schedule.identity<Again>()),
        Schedule.modifyDelay(([, again], wait) => Duration.max(wait, Duration.millis(again.afterMillis))),
        Schedule.upTo(retry.withinMillis)
      )
      return attempt.pipe(
        Effect.retry({ schedule: waits, while: mayRepeat }),
        Effect.catchAll((again) => all(again.entries, again.error))
      )
    })

  const deliver = (entries: ReadonlyArray<Entry>): Effect.Effect<void> =>
    Effect.forEach(split(entries, { ...limits, batchCalls }), persist, {
      concurrency: "unbounded",
      discard: true
    })

  /** Whatever ends the work, nobody waits for ever. */
  const start = (work: Effect.Effect<void>, entries: ReadonlyArray<Entry>) =>
    Effect.flatMap(
      background.fork(
        Effect.catchAllDefect(work, () =>
          all(entries, failed("notAnRpc", "its answer could not be processed"))
        ),
        all(entries, shutDown)
      ),
      (started) => (started ? Effect.void : all(entries, shutDown))
    )

  const entryOf = (method: string, params: ReadonlyArray<unknown>): Entry => {
    const call = { id: nextId++, method, params }
    return {
      call,
      bytes: Buffer.byteLength(JsonRpc.encode([call])),
      done: Deferred.unsafeMake(FiberId.none),
      abandoned: false
    }
  }

  const wait = (entry: Entry) =>
    Effect.onInterrupt(Deferred.await(entry.done), () =>
      Effect.sync(() => {
        entry.abandoned = true
      })
    )

  return {
    read: (method, params) =>
      Effect.suspend(() => {
        const entry = entryOf(method, params)
        if (moment !== undefined) {
          moment.push(entry)
          return wait(entry)
        }
        const entries = [entry]
        moment = entries
        const close = Effect.sync(() => {
          if (moment === entries) moment = undefined
        })
        const work = Effect.zipRight(
          Effect.ensuring(endOfMoment, close),
          Effect.suspend(() => deliver(entries))
        )
        return Effect.zipRight(start(work, entries), wait(entry))
      }),
    once: (method, params) =>
      Effect.suspend(() => {
        const entry = entryOf(method, params)
        const work = Effect.catchAll(exchange([entry]), (again) => all(again.entries, again.error))
        return Effect.zipRight(start(work, [entry]), wait(entry))
      })
  }
}
