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
  /** Runs work that serves several askers and so belongs to none of them, until the scope of the adapter closes. */
  readonly background: (work: Effect.Effect<void>) => Fiber.Fiber<void>
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
  readonly resume: (answer: Answer) => void
  /** False once it was interrupted. */
  waits: boolean
  readonly span: Tracer.AnySpan | undefined
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

/**
 * Entries for which a later attempt may fare better, each with its error until then, and why it may: the node was `cut` off,
 * limits the rate, or is `behind` another one.
 */
interface Again {
  readonly entries: ReadonlyMap<Entry, ChainRpcError>
  readonly kind: "cut" | "limited" | "behind"
  readonly afterMillis: number
}

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

/** All that is left of a moment is given up that many times later than a single call that is repeated in vain. */
const patience = 3

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

/**
 * After everything that was ready to run has run, in three turns of the event loop: all that was asked at one moment is known
 * then, also by fibers that were forked by forked ones, or stopped before they asked.
 */
const endOfMoment = Effect.andThen(Effect.yieldNow, Effect.andThen(Effect.yieldNow, Effect.yieldNow))

/** The calls of one node, in as few HTTP requests as its limits allow. */
export const make = ({ background, http, limits, onExchange, retry, target }: Options): Batches => {
  const { origin, trust } = target
  const judge = ResponseClassifier.judge({ origin, scrub: Refusal.scrubber(target) })
  let nextId = 1
  const size = new RequestSize(limits.batchCalls)
  /** The reads of the present moment; undefined between moments. */
  let moment: Moment | undefined

  /** Tells those that have no answer yet why they get none. */
  const giveUp = (entries: ReadonlyArray<Entry>, reason: ChainRpcError["reason"], message: string): void => {
    const open = entries.filter(({ isSettled }) => !isSettled)
    if (open.length === 0) return
    const error = new ChainRpcError({ reason, origin, message: `${origin}: ${message}` })
    for (const { settle } of open) settle(Effect.fail(error))
  }

  /** The same of those that were to be asked again, or after others that were. */
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

  /** One HTTP round trip; the entries for which another attempt is worth it. */
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
      // One after the other: two answers of such a length are not in memory at a time.
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

  /** What goes now of what is left: all of it, unless the rate is limited. */
  const nextOf = (left: ReadonlyArray<Entry>): Effect.Effect<ReadonlyArray<Entry>> =>
    size.isSlowed
      ? Effect.map(Clock.currentTimeMillis, (now) => {
          size.grow(now)
          return split(left, { ...limits, batchCalls: size.calls })[0] ?? []
        })
      : Effect.succeed(left)

  /** A row of failures: waits for the next attempt, until that moment, Unix milliseconds; false: there is none. */
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
   * Repeats what may be repeated, all of it together as long as the node takes it, and gives up in bounded time: what is not
   * answered by then fails with what is in its way.
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
      // Failures before something was answered count no more.
      if (isAnswered || again.entries.size < part.length) mayGoOn = yield* rowOfFailures(until)
      isAnswered = false
      if (!(yield* mayGoOn(again))) return giveUpEach(left, again)
    }
  })

  /** The first part finds out how many calls are few enough, so that the others need not be refused as well. */
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

  /** Whatever goes wrong in the work of these entries, nobody waits for ever. `last` runs after it in any case. */
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
    start(work, present.entries, asker, over)
  }

  const alone: Begin = (method, params, asker) => {
    const entry = entryOf(method, params, textOf(params), asker)
    const work = Effect.map(exchange([entry], { splits: 0 }), (again) => {
      if (again !== null) giveUpEach([entry], again)
    })
    start(work, [entry], asker)
  }

  const call = <P>(
    method: string,
    params: P,
    begin: Begin<P>
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
