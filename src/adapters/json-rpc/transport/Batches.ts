import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as RuntimeFlags from "effect/RuntimeFlags"
import { ChainRpcError } from "../../../application/ports/chain/ChainRpc.js"
import type * as Background from "./Background.js"
import type * as Egress from "./Egress.js"
import type * as Http from "./Http.js"
import * as JsonRpc from "./JsonRpc.js"
import * as Refusal from "./Refusal.js"
import * as ResponseClassifier from "./ResponseClassifier.js"
import * as Retry from "./Retry.js"

export interface Limits {
  readonly batchCalls: number
  /** Bytes of one request body; a single call may be larger. */
  readonly batchBytes: number
}

/** The calls of a node in batches. Long, since what is sent, divided, retried and delivered are steps of one circle. */

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
  readonly retry: Retry.Retry
  readonly onExchange: (exchange: Exchange) => void
  readonly background: Background.Background
}

/** The parameters of a call; as JSON, of ASCII alone, where they are long and were written before. */
export type Params = ReadonlyArray<unknown> | string

/** Parameters that are written when the moment is over: they may tell of what came in it. */
export type LateParams = () => Params

export interface Batches {
  /** Asked together with all other reads of the same moment; repeated when the node has no time for it. */
  readonly read: (
    method: string,
    params: Params | LateParams
  ) => Effect.Effect<JsonRpc.Outcome, ChainRpcError>
  /** Asked in a request of its own, exactly once: no other call's answer can make its own unknown. */
  readonly once: (method: string, params: Params) => Effect.Effect<JsonRpc.Outcome, ChainRpcError>
}

type Answer = Effect.Effect<JsonRpc.Outcome, ChainRpcError>

/** Who waits for an answer. */
interface Asker {
  readonly fiber: Fiber.RuntimeFiber<unknown, unknown>
  /** An interruption ends its wait. */
  readonly interruptible: boolean
  readonly resume: (answer: Answer) => void
}

interface Entry {
  readonly call: JsonRpc.Call
  readonly encoded: string
  readonly bytes: number
  /** Those who asked the same at the same moment: all of them get one answer. */
  readonly askers: Array<Asker>
  /** Only the first word counts. */
  readonly settle: (answer: Answer) => void
  readonly isSettled: boolean
}

/** Looked for when it matters: to be told of it would cost every call more than the call itself. */
const waits = ({ fiber, interruptible }: Asker): boolean =>
  !interruptible || Cause.isEmpty(fiber.getFiberRef(FiberRef.interruptedCause))

/** Entries for which a later attempt may fare better, each with its error until then. */
class Again extends Data.TaggedError("Again")<{
  readonly entries: ReadonlyMap<Entry, ChainRpcError>
  readonly afterMillis: number
}> {}

/** What is asked before the next request. */
interface Moment {
  readonly entries: Array<Entry>
  /** Make the entries of late parameters. */
  readonly late: Array<() => Entry>
  /** By what is asked. */
  readonly shared: Map<string, Entry>
}

/** Characters of parameters; longer ones are seldom alike, and dear to compare. */
const longestShared = 2_048

const textOf = (params: Params): string => (typeof params === "string" ? params : JSON.stringify(params))

type Begin<P = Params> = (method: string, params: P, asker: Asker) => void

/** What a moment's calls may still cost beyond their own requests. */
interface Room {
  /** How often calls may be asked for again in two halves, because the answers to all of them are too much for one. */
  splits: number
}

/** Finds two calls of a full batch whose answers are too large, while a node that always says too much is left soon. */
const maxSplits = 16

/** After so long twice as many calls are tried at once where the node took fewer: it, or what is before it, may have changed. */
const wideningMillis = 600_000

/** Nodes take their time for these: the headers of the answer come when the work is done. */
const slow = new Set(["eth_call", "eth_simulateV1", "eth_getLogs"])

/** Parts of at most the limits' calls and bytes, in order. */
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

const turn = Effect.async<void>((resume) => {
  const handle = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(handle))
})

/**
 * After everything that was ready to run has run: all that was asked at one moment is known then. A scheduler of time
 * slices (runtime/EventLoop.ts) has fibers left when the event loop turns, and stops others before they ask: both are
 * ahead of whoever yields.
 */
const endOfMoment = Effect.zipRight(turn, Effect.zipRight(Effect.yieldNow(), Effect.yieldNow()))

/**
 * The calls of one node, in as few HTTP requests as its limits allow. Long, since its parts share
 * the calls of the moment and how many fit into a request, and call each other in a circle, since what an exchange
 * leaves open is delivered again, in smaller parts.
 */
export const make = ({ background, http, limits, onExchange, retry, target }: Options): Batches => {
  const { origin, trust } = target
  const judge = ResponseClassifier.judge({ origin, scrub: Refusal.scrubber(target) })
  const backoff = Retry.waits(retry)
  let nextId = 1
  let batchCalls = limits.batchCalls
  /** When that was changed last, Unix milliseconds. */
  let changedAt = 0
  /** The reads of the present moment; undefined between moments. */
  let moment: Moment | undefined

  /** Tells those that have no answer yet why they get none. */
  const giveUp = (entries: ReadonlyArray<Entry>, reason: ChainRpcError["reason"], message: string): void => {
    const open = entries.filter(({ isSettled }) => !isSettled)
    if (open.length === 0) return
    const error = new ChainRpcError({ reason, origin, message: `${origin}: ${message}` })
    for (const { settle } of open) settle(Effect.fail(error))
  }

  const giveUpEach = ({ entries }: Again) =>
    Effect.sync(() => {
      for (const [{ settle }, error] of entries) settle(Effect.fail(error))
    })

  /** Without anybody who listens to spans there is none: it would cost a stack trace. */
  const spanned = <A>(work: Effect.Effect<A>, methods: ReadonlyArray<string>): Effect.Effect<A> =>
    Effect.withFiberRuntime((fiber) =>
      fiber.getFiberRef(FiberRef.currentTracerEnabled)
        ? Effect.withSpan(work, "ChainRpc.exchange", {
            kind: "client",
            attributes: { origin, methods },
            captureStackTrace: false
          })
        : work
    )

  /** One HTTP round trip. Fails with the entries for which another attempt is worth it. */
  const exchange = (entries: ReadonlyArray<Entry>, room: Room): Effect.Effect<void, Again> =>
    Effect.gen(function* () {
      const calls = entries.map(({ call }) => call)
      const methods = calls.map(({ method }) => method)
      onExchange({ origin, trust, methods })
      const body = JsonRpc.body(entries.map(({ encoded }) => encoded))
      const patient = methods.some((method) => slow.has(method))
      const posted = yield* spanned(Effect.either(http.post(target, body, patient)), methods)
      const now = yield* Clock.currentTimeMillis
      const classified = judge(posted, calls, now)
      if (classified._tag === "smaller") {
        changedAt = now
        batchCalls = Math.min(batchCalls, Math.max(1, entries.length >> 1))
        return yield* firstAlone(entries, room)
      }
      if (classified._tag === "halves")
        // One after the other: two answers of such a length are not in memory at a time.
        return yield* halve(new Map(entries.map((entry) => [entry, classified.error])), room, 1)
      if (classified._tag === "apart") {
        const optional = entries.filter(({ call }) => Refusal.optional.has(call.method))
        const others = entries.filter((entry) => !optional.includes(entry))
        return yield* deliverEach([others, ...optional.map((entry) => [entry])], room)
      }
      const later = new Map<Entry, ChainRpcError>()
      const crowded = new Map<Entry, ChainRpcError>()
      for (const entry of entries) {
        const result = classified.of(entry.call)
        if (result._tag === "again") later.set(entry, result.error)
        else if (result._tag === "crowded") crowded.set(entry, result.error)
        else
          entry.settle(
            result._tag === "answered" ? Effect.succeed(result.outcome) : Effect.fail(result.error)
          )
      }
      if (crowded.size > 0) yield* halve(crowded, room, "unbounded")
      if (later.size > 0) return yield* new Again({ entries: later, afterMillis: classified.afterMillis })
    })

  /** Repeats what may be repeated, all of it together, and gives up in bounded time. */
  const persist = (entries: ReadonlyArray<Entry>, room: Room): Effect.Effect<void> =>
    Effect.suspend(() => {
      let pending = entries
      let cut = 0
      let limited = 0
      let behind = 0
      const attempt = Effect.suspend(() => {
        pending = pending.filter(({ askers }) => askers.some(waits))
        return pending.length === 0 ? Effect.void : exchange(pending, room)
      })
      const mayRepeat = (again: Again) => {
        pending = [...again.entries.keys()]
        const errors = [...again.entries.values()]
        if (errors.some(({ reason }) => reason === "unreachable")) cut += 1
        else if (errors.some(({ reason }) => reason === "rateLimited")) limited += 1
        else behind += 1
        return (
          again.afterMillis <= retry.withinMillis &&
          cut <= retry.unreachable &&
          limited <= retry.rateLimited &&
          behind <= retry.behind
        )
      }
      // A schedule is set up for what needs one.
      return Effect.catchAll(attempt, (failed) => {
        let first: Again | null = failed
        const next = Effect.suspend(() => {
          const again = first
          first = null
          return again === null ? attempt : Effect.fail(again)
        })
        return Effect.catchAll(Effect.retry(next, { schedule: backoff, while: mayRepeat }), giveUpEach)
      })
    })

  /** The first part finds out how many calls are few enough, so that the others need not be refused as well. */
  const firstAlone = (entries: ReadonlyArray<Entry>, room: Room): Effect.Effect<void> => {
    const [first = [], ...rest] = split(entries, { ...limits, batchCalls })
    return Effect.zipRight(
      inParts(first, room),
      Effect.suspend(() => inParts(rest.flat(), room))
    )
  }

  const deliver = (entries: ReadonlyArray<Entry>, room: Room): Effect.Effect<void> =>
    batchCalls < limits.batchCalls && entries.length > batchCalls
      ? Effect.flatMap(Clock.currentTimeMillis, (now) => {
          // Not to be remembered for longer where the clock was set back.
          if (now >= changedAt && now < changedAt + wideningMillis) return inParts(entries, room)
          changedAt = now
          batchCalls = Math.min(limits.batchCalls, 2 * batchCalls)
          return firstAlone(entries, room)
        })
      : inParts(entries, room)

  const inParts = (entries: ReadonlyArray<Entry>, room: Room): Effect.Effect<void> => {
    const parts = split(entries, { ...limits, batchCalls })
    const [only] = parts
    return parts.length === 1 && only !== undefined
      ? persist(only, room)
      : Effect.forEach(parts, (part) => persist(part, room), { concurrency: "unbounded", discard: true })
  }

  const deliverEach = (
    groups: ReadonlyArray<ReadonlyArray<Entry>>,
    room: Room,
    concurrency: 1 | "unbounded" = "unbounded"
  ): Effect.Effect<void> =>
    Effect.forEach(groups, (entries) => deliver(entries, room), { concurrency, discard: true })

  /** The answers were too much for one request: in two, so that in the end only what is too large itself fails. */
  const halve = (
    failed: ReadonlyMap<Entry, ChainRpcError>,
    room: Room,
    concurrency: 1 | "unbounded"
  ): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (room.splits === 0) {
        for (const [{ settle }, error] of failed) settle(Effect.fail(error))
        return Effect.void
      }
      room.splits -= 1
      const entries = [...failed.keys()]
      const half = entries.length >> 1
      return deliverEach([entries.slice(0, half), entries.slice(half)], room, concurrency)
    })

  /** Whatever goes wrong in the work of these entries, nobody waits for ever. */
  const guarded = (work: Effect.Effect<void>, entries: ReadonlyArray<Entry>) =>
    Effect.catchAllDefect(work, () =>
      Effect.sync(() => giveUp(entries, "notAnRpc", "its answer could not be processed"))
    )

  const shutDown = (entries: ReadonlyArray<Entry>) =>
    giveUp(entries, "unreachable", "the connection is shut down")

  /** The parameters may be long: what is made of them is not looked at before the body is put together. */
  const entryOf = (method: string, params: Params, text: string, asker: Asker): Entry => {
    const askers = [asker]
    const call = { id: nextId++, method }
    const [before, after] = JsonRpc.frame(call)
    const entry = {
      call,
      encoded: before + text + after,
      bytes:
        before.length + (typeof params === "string" ? text.length : Buffer.byteLength(text)) + after.length,
      askers,
      settle: (answer: Answer) => {
        if (entry.isSettled) return
        entry.isSettled = true
        for (const { resume } of askers) resume(answer)
      },
      isSettled: false
    }
    return entry
  }

  /** Joins the present moment, or begins one. What is asked in it already is asked once. */
  const enqueue: Begin<Params | LateParams> = (method, params, asker) => {
    const present: Moment = moment ?? { entries: [], late: [], shared: new Map() }
    if (typeof params === "function")
      present.late.push(() => {
        const written = params()
        return entryOf(method, written, textOf(written), asker)
      })
    else {
      const text = textOf(params)
      const question = text.length <= longestShared ? `${method} ${text}` : null
      const same = question === null ? undefined : present.shared.get(question)
      if (same !== undefined) {
        same.askers.push(asker)
        return
      }
      const entry = entryOf(method, params, text, asker)
      present.entries.push(entry)
      if (question !== null) present.shared.set(question, entry)
    }
    if (moment !== undefined) return
    moment = present
    const over = () => {
      if (moment === present) moment = undefined
      for (const entry of present.late.splice(0)) present.entries.push(entry())
    }
    const work = Effect.flatMap(endOfMoment, () => {
      over()
      return deliver(present.entries, { splits: maxSplits })
    })
    background.start(asker.fiber, guarded(work, present.entries), () => {
      over()
      shutDown(present.entries)
    })
  }

  const alone: Begin = (method, params, asker) => {
    const entry = entryOf(method, params, textOf(params), asker)
    const work = Effect.catchAll(exchange([entry], { splits: 0 }), giveUpEach)
    background.start(asker.fiber, guarded(work, [entry]), () => shutDown([entry]))
  }

  const call = <P>(
    method: string,
    params: P,
    begin: Begin<P>
  ): Effect.Effect<JsonRpc.Outcome, ChainRpcError> =>
    Effect.withFiberRuntime((fiber, { runtimeFlags }) => {
      const interruptible = RuntimeFlags.interruptible(runtimeFlags)
      return Effect.async((resume) => begin(method, params, { fiber, interruptible, resume }))
    })

  return {
    read: (method, params) => call(method, params, enqueue),
    once: (method, params) => call(method, params, alone)
  }
}
