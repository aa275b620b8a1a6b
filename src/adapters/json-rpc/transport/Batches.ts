import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Tracer from "effect/Tracer"
import { ChainRpcError } from "../../../application/ports/chain/ChainRpc.js"
import * as EventLoop from "../../../application/runtime/EventLoop.js"
import type * as Egress from "./Egress.js"
import type * as Http from "./Http.js"
import * as JsonRpc from "./JsonRpc.js"
import * as Refusal from "./Refusal.js"
import { RequestSize } from "./RequestSize.js"
import * as ResponseClassifier from "./ResponseClassifier.js"
import * as Retry from "./Retry.js"

/**
 * Turns a node's JSON-RPC calls into HTTP requests: simultaneous reads share requests, in sizes that the node accepts.
 * The clients of nodes, bundlers and paymasters call through it. `ResponseClassifier` names the reads to retry.
 */

export interface Limits {
  readonly batchCalls: number
  /** Bytes of one request body; a single call may be larger. */
  readonly batchBytes: number
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
  readonly retry: Retry.Retry
  readonly onExchange: (exchange: Exchange) => void
  /** Runs shared work, which no caller owns, until the adapter's scope closes. */
  readonly background: (work: Effect.Effect<void>) => Fiber.Fiber<void>
}

/** Parameters of a call; ASCII-only JSON when they are long and already encoded. */
export type Params = ReadonlyArray<unknown> | string

export interface Batches {
  /** Joins all other reads of the same tick; retries while the node is busy. */
  readonly read: (method: string, params: Params) => Effect.Effect<JsonRpc.Outcome, ChainRpcError>
  /** Sends a separate request, exactly once: another call's result cannot make this one unknown. */
  readonly once: (method: string, params: Params) => Effect.Effect<JsonRpc.Outcome, ChainRpcError>
}

type Answer = Effect.Effect<JsonRpc.Outcome, ChainRpcError>

interface Asker {
  readonly resume: (answer: Answer) => void
  /** False after an interruption. */
  waits: boolean
  readonly span: Tracer.AnySpan | undefined
}

interface Entry {
  readonly call: JsonRpc.Call
  readonly encoded: string
  readonly bytes: number
  /** Callers of the same call in the same tick, which share one result. */
  readonly askers: Array<Asker>
  /** Ignores all calls but the first. */
  readonly settle: (answer: Answer) => void
  readonly isSettled: boolean
}

/**
 * Entries that a later attempt may answer, each with its last error. `kind` is the cause: the connection was `cut`, the
 * rate is `limited`, or the node is `behind` another one.
 */
interface Again {
  readonly entries: ReadonlyMap<Entry, ChainRpcError>
  readonly kind: "cut" | "limited" | "behind"
  readonly afterMillis: number
}

interface Moment {
  readonly entries: Array<Entry>
  /** Entries by method and parameters. */
  readonly shared: Map<string, Entry>
}

/** Longest parameters that are compared, in characters: longer ones rarely match and cost more to compare. */
const longestShared = 2_048

const textOf = (params: Params): string => (typeof params === "string" ? params : JSON.stringify(params))

type Begin = (method: string, params: Params, asker: Asker) => void

/** Extra requests that one tick's calls may still cause. */
interface Room {
  /** Splits left for batches whose reply is too large. */
  splits: number
}

/** Isolates two calls of a full batch with too large results, and soon gives up on a node that always sends too much. */
const maxSplits = 16

/** Time limit of a whole tick's calls, as a multiple of a single call's. */
const patience = 3

/** Slow methods: nodes send the headers after the work. */
const slow = new Set(["eth_call", "eth_simulateV1", "eth_getLogs"])

/** Splits entries, in order, into parts within the limits' calls and bytes. */
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

/** Waits three turns of the event loop. Fibers forked by forked fibers have then made their calls or stopped. */
const endOfMoment = Effect.andThen(Effect.yieldNow, Effect.andThen(Effect.yieldNow, Effect.yieldNow))

/** Sends the calls of one node in as few HTTP requests as its limits allow. */
export const make = ({ background, http, limits, onExchange, retry, target }: Options): Batches => {
  const { origin, trust } = target
  const judge = ResponseClassifier.judge({ origin, scrub: Refusal.scrubber(target) })
  let nextId = 1
  const size = new RequestSize(limits.batchCalls)
  /** Reads of the current tick; undefined between ticks. */
  let moment: Moment | undefined

  const giveUp = (entries: ReadonlyArray<Entry>, reason: ChainRpcError["reason"], message: string): void => {
    const open = entries.filter(({ isSettled }) => !isSettled)
    if (open.length === 0) return
    const error = new ChainRpcError({ reason, origin, message: `${origin}: ${message}` })
    for (const { settle } of open) settle(Effect.fail(error))
  }

  /** Fails each open entry with its own last error, or with the first one. */
  const giveUpEach = (left: ReadonlyArray<Entry>, { afterMillis, entries }: Again): void => {
    const [first] = entries.values()
    for (const entry of left) {
      const error = entries.get(entry) ?? first
      if (error === undefined) continue
      entry.settle(
        Effect.fail(
          afterMillis === 0 ? error : new ChainRpcError({ ...error, retryAfterMillis: afterMillis })
        )
      )
    }
  }

  /** Makes one HTTP round trip; returns the entries worth another attempt. */
  const exchange = Effect.fnUntraced(function* (
    entries: ReadonlyArray<Entry>,
    room: Room
  ): Effect.fn.Return<Again | null> {
    const calls = entries.map(({ call }) => call)
    const methods = calls.map(({ method }) => method)
    onExchange({ origin, trust, methods })
    const body = JsonRpc.body(entries.map(({ encoded }) => encoded))
    const patient = methods.some((method) => slow.has(method))
    const posted = yield* Effect.withSpan(
      Effect.result(http.post(target, body, patient)),
      "ChainRpc.exchange",
      { kind: "client", attributes: { origin, methods }, captureStackTrace: false }
    )
    const now = yield* Clock.currentTimeMillis
    yield* EventLoop.breathe
    const classified = judge(posted, calls, now)
    if (classified._tag === "smaller") {
      size.tooMany(entries.length, now)
      yield* firstAlone(entries, room)
      return null
    }
    if (classified._tag === "halves") {
      // One by one: memory must not hold two such replies.
      yield* halve(new Map(entries.map((entry) => [entry, classified.error])), room, 1)
      return null
    }
    if (classified._tag === "apart") {
      const optional = entries.filter(({ call }) => Refusal.optional.has(call.method))
      const others = entries.filter((entry) => !optional.includes(entry))
      yield* deliverEach([others, ...optional.map((entry) => [entry])], room)
      return null
    }
    const later = new Map<Entry, ChainRpcError>()
    const crowded = new Map<Entry, ChainRpcError>()
    const kinds = new Set<Again["kind"]>()
    for (const entry of entries) {
      const result = classified.of(entry.call)
      if (result._tag === "again" || result._tag === "behind") {
        later.set(entry, result.error)
        const kind = result.error.reason === "rateLimited" ? "limited" : "cut"
        kinds.add(result._tag === "behind" ? "behind" : kind)
      } else if (result._tag === "crowded") crowded.set(entry, result.error)
      else
        entry.settle(result._tag === "answered" ? Effect.succeed(result.outcome) : Effect.fail(result.error))
    }
    if (crowded.size > 0) yield* halve(crowded, room, "unbounded")
    if (later.size === 0) {
      size.taken(entries.length, now)
      return null
    }
    const kind = kinds.has("cut") ? "cut" : kinds.has("limited") ? "limited" : "behind"
    if (kind !== "behind" && later.size === entries.length) size.refused(entries.length, now)
    return { entries: later, kind, afterMillis: classified.afterMillis }
  })

  /** Entries to send now: all, unless the rate is limited. */
  const nextOf = (left: ReadonlyArray<Entry>): Effect.Effect<ReadonlyArray<Entry>> =>
    size.isSlowed
      ? Effect.map(Clock.currentTimeMillis, (now) => {
          size.grow(now)
          return split(left, { ...limits, batchCalls: size.calls })[0] ?? []
        })
      : Effect.succeed(left)

  /** Returns a function that waits for the next attempt, at most until `until` (Unix milliseconds); false when none is left. */
  const rowOfFailures = (until: number) =>
    Effect.map(Schedule.toStepWithSleep(Retry.waits(retry)), (pause) => {
      const tries = { cut: 0, limited: 0, behind: 0 }
      return Effect.fnUntraced(function* (again: Again) {
        const { afterMillis, kind } = again
        tries[kind] += 1
        const isEnough =
          tries.cut > retry.unreachable || tries.limited > retry.rateLimited || tries.behind > retry.behind
        if (isEnough || afterMillis > retry.withinMillis) return false
        if ((yield* Clock.currentTimeMillis) + afterMillis > until) return false
        return yield* Effect.isSuccess(pause(again))
      })
    })

  /**
   * Retries in as few requests as the node accepts, for a bounded time. Entries without a result then fail with their last
   * error.
   */
  const persist = Effect.fnUntraced(function* (
    entries: ReadonlyArray<Entry>,
    room: Room
  ): Effect.fn.Return<void> {
    let left = entries
    let isAnswered = true
    let until: number | null = null
    let mayGoOn: (again: Again) => Effect.Effect<boolean> = () => Effect.succeed(false)
    for (;;) {
      left = left.filter(({ askers }) => askers.some(({ waits }) => waits))
      if (left.length === 0) return
      const part = yield* nextOf(left)
      const again = yield* exchange(part, room)
      if (again === null) {
        left = left.slice(part.length)
        isAnswered = true
        continue
      }
      left = [...again.entries.keys(), ...left.slice(part.length)]
      until ??= (yield* Clock.currentTimeMillis) + patience * retry.withinMillis
      // A result in between resets the count of failures.
      if (isAnswered || again.entries.size < part.length) mayGoOn = yield* rowOfFailures(until)
      isAnswered = false
      if (!(yield* mayGoOn(again))) return giveUpEach(left, again)
    }
  })

  /** Sends the first part before the others, to learn how many calls the node accepts. */
  const firstAlone = (entries: ReadonlyArray<Entry>, room: Room): Effect.Effect<void> => {
    const [first = [], ...rest] = split(entries, { ...limits, batchCalls: size.calls })
    return Effect.andThen(
      inParts(first, room),
      Effect.suspend(() => inParts(rest.flat(), room))
    )
  }

  const deliver = (entries: ReadonlyArray<Entry>, room: Room): Effect.Effect<void> =>
    size.isNarrow && entries.length > size.calls && !size.isSlowed
      ? Effect.flatMap(Clock.currentTimeMillis, (now) =>
          size.grow(now) ? firstAlone(entries, room) : inParts(entries, room)
        )
      : inParts(entries, room)

  const inParts = (entries: ReadonlyArray<Entry>, room: Room): Effect.Effect<void> =>
    Effect.forEach(
      split(entries, size.isSlowed ? limits : { ...limits, batchCalls: size.calls }),
      (part) => persist(part, room),
      { concurrency: "unbounded", discard: true }
    )

  const deliverEach = (
    groups: ReadonlyArray<ReadonlyArray<Entry>>,
    room: Room,
    concurrency: 1 | "unbounded" = "unbounded"
  ): Effect.Effect<void> =>
    Effect.forEach(groups, (entries) => deliver(entries, room), { concurrency, discard: true })

  /** Halves a batch whose reply was too large, until only an oversized call fails. */
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

  /** Ensures that the callers get a result when the work crashes. `last` always runs afterwards. */
  const start = (
    work: Effect.Effect<void>,
    entries: ReadonlyArray<Entry>,
    { span }: Asker,
    last = () => {}
  ): void => {
    const guarded = Effect.catchDefect(work, () =>
      Effect.sync(() => giveUp(entries, "notAnRpc", "its answer could not be processed"))
    )
    background(span === undefined ? guarded : Effect.withParentSpan(guarded, span)).addObserver(() => {
      last()
      giveUp(entries, "unreachable", "the connection is shut down")
    })
  }

  /** Long parameters are encoded only when the body is built. */
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

  /** Adds a call to the current tick, or starts one. Equal calls share one entry. */
  const enqueue: Begin = (method, params, asker) => {
    const present: Moment = moment ?? { entries: [], shared: new Map() }
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
    if (moment !== undefined) return
    moment = present
    const over = () => {
      if (moment === present) moment = undefined
    }
    const work = Effect.flatMap(endOfMoment, () => {
      over()
      return deliver(present.entries, { splits: maxSplits })
    })
    start(work, present.entries, asker, over)
  }

  const alone: Begin = (method, params, asker) => {
    const entry = entryOf(method, params, textOf(params), asker)
    const work = Effect.map(exchange([entry], { splits: 0 }), (again) => {
      if (again !== null) giveUpEach([entry], again)
    })
    start(work, [entry], asker)
  }

  const call = (
    method: string,
    params: Params,
    begin: Begin
  ): Effect.Effect<JsonRpc.Outcome, ChainRpcError> =>
    Effect.contextWith((context: Context.Context<never>) =>
      Effect.callback((resume) => {
        const span = Context.getOrUndefined(context, Tracer.ParentSpan)
        const asker = { resume, waits: true, span }
        begin(method, params, asker)
        return Effect.sync(() => {
          asker.waits = false
        })
      })
    )

  return {
    read: (method, params) => call(method, params, enqueue),
    once: (method, params) => call(method, params, alone)
  }
}
