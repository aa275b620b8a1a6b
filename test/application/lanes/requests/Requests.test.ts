import { join } from "node:path"
import { Deferred, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { describe, expect } from "vitest"
import * as Cancellations from "../../../../src/application/lanes/requests/Cancellations.js"
import * as LaneClaims from "../../../../src/application/lanes/requests/LaneClaims.js"
import * as OpenRequests from "../../../../src/application/lanes/requests/OpenRequests.js"
import * as Requests from "../../../../src/application/lanes/requests/Requests.js"
import * as ScheduledRequests from "../../../../src/application/lanes/requests/ScheduledRequests.js"
import * as WakeUps from "../../../../src/application/lanes/requests/WakeUps.js"
import { isFenced, JournalError } from "../../../../src/application/ports/journal/JournalError.js"
import type { Acceptance } from "../../../../src/application/ports/journal/Requests.js"
import type { Lane } from "../../../../src/application/ports/journal/Transactions.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import type { Replicas, Signal } from "../../../../src/application/ports/Replicas.js"
import type { AccountId } from "../../../../src/application/ports/Tenants.js"
import type { Caller } from "../../../../src/application/request/Caller.js"
import { type AnsweredElsewhere, CurrentRequest } from "../../../../src/application/request/CurrentRequest.js"
import { type Failure, invalid, unprocessable } from "../../../../src/application/request/Failure.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../../support/journal/InMemory.js"
import * as Journals from "../../../support/journal/Journals.js"
import * as Layers from "../../../support/journal/Layers.js"
import * as Make from "../../../support/journal/Make.js"
import * as Log from "../../../support/Log.js"
import * as Parties from "../../../support/Parties.js"
import { test as bare, testOver } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

const kind = {
  endpoint: "/work",
  Request: Schema.Struct({ name: Schema.String }),
  Response: Schema.Struct({ done: Schema.Int })
}
const request = { name: "it" }

const patienceMillis = 5_000
const lane: Lane = { chainId: 1n, signer: Address.unsafe(`0x${"51".repeat(20)}`) }

let callers = 0
const callerOf = (key: string | null = null, body = "it", account = "a"): Caller => {
  callers += 1
  return {
    ...Parties.caller(`request-${callers}`, account as AccountId),
    idempotency:
      key === null ? null : { key, bodyHash: Hex.unsafe32(`0x${body.length.toString(16).padStart(64, "0")}`) }
  }
}

const acceptanceOf = ({ idempotency, principal, requestId }: Caller, body = "{}"): Acceptance => ({
  requestId,
  accountId: principal.accountId,
  endpoint: kind.endpoint,
  lane,
  key: { clientId: "key" },
  body,
  idempotency: idempotency ?? null,
  elements: 1,
  ops: [],
  funds: [],
  deployments: [],
  failed: [],
  note: null,
  metadata: {},
  schedule: null
})

/** Accepts the request of a caller, as every work does before it does anything, and goes on then. */
const accepting = <A, E, R>(caller: Caller, then: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const current = yield* CurrentRequest
    if (!current.accepted())
      yield* current.accept(
        { ...acceptanceOf(caller, current.body), idempotency: current.idempotency },
        patienceMillis
      )
    return yield* then
  })

const done = (n: number) => Effect.succeed({ done: n })
const yields = (count: number) => Effect.repeat(Effect.yieldNow, { times: count })

const setup = (bounds: Partial<OpenRequests.Bounds> = {}) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const scope = yield* Effect.scope
    const wakeUps = yield* WakeUps.make(journal)
    const told: Array<Signal> = []
    const state = {
      /** Of the requests' chain. */
      profile: null as NetworkProfile.NetworkProfile | null,
      owns: true,
      /** The journal does not answer. */
      isAway: false,
      /** How long the disk takes. */
      diskMillis: 0,
      /** The journal fails at the very end of the next acceptance. */
      breaks: false,
      /** An acceptance is lost on its way, and reaches the database when this is done. */
      lost: null as Deferred.Deferred<void> | null
    }
    /** How the late acceptance ended. */
    const arrived = yield* Deferred.make<Exit.Exit<unknown, JournalError>>()
    const answering = <A>(effect: Effect.Effect<A, JournalError>) =>
      Effect.suspend(() => (state.isAway ? Effect.fail(new JournalError({ message: "away" })) : effect))
    const requestJournal: Journals.Methods = {
      ...journal,
      request: (id) => answering(journal.request(id)),
      requestOf: (account, endpoint, key) => answering(journal.requestOf(account, endpoint, key)),
      decline: (id) => answering(journal.decline(id)),
      durable: Effect.suspend(() => Effect.sleep(state.diskMillis)),
      acceptOps: (acceptance) => {
        if (state.lost !== null)
          return Deferred.await(state.lost).pipe(
            Effect.andThen(journal.acceptOps(acceptance)),
            Effect.exit,
            Effect.flatMap((exit) => Deferred.succeed(arrived, exit)),
            Effect.forkIn(scope),
            Effect.andThen(new JournalError({ message: "the connection broke" }))
          )
        return Effect.tap(answering(journal.acceptOps(acceptance)), () => {
          if (!state.breaks) return Effect.void
          state.breaks = false
          return new JournalError({ message: "the connection broke at the commit" })
        })
      }
    }
    const replicas: Replicas["Service"] = {
      process: "this one",
      owns: () => state.owns,
      independent: Effect.succeed([]),
      tell: (signal) => Effect.sync(() => void told.push(signal)),
      assigned: Stream.never,
      heard: Stream.never
    }
    const most = { ...OpenRequests.defaults, ...bounds }
    const requests = Requests.make({
      requestJournal,
      networks: { profile: () => Effect.sync(() => state.profile), chainIds: Effect.succeed([]) },
      claims: LaneClaims.make(journal, replicas),
      openRequests: OpenRequests.make(most),
      scheduledRequests: ScheduledRequests.make(most, requestJournal),
      replicas,
      wakeUps,
      scope
    })
    /** The answer of a request of this work, or the code of its failure. */
    const ask = <R>(
      caller: Caller,
      work: Effect.Effect<{ readonly done: number }, Failure | AnsweredElsewhere, R>,
      of: typeof kind & { readonly list?: "operations" | "accounts"; readonly elements?: () => number } = kind
    ) =>
      Effect.match(requests.run(of, caller, request, work), {
        onFailure: ({ code }) => code,
        onSuccess: (answer) => answer
      })
    /** The same, begun. */
    const begin = (...of: Parameters<typeof ask<CurrentRequest | Journals.Ports>>) =>
      Effect.tap(Effect.forkChild(ask(...of)), () => Time.adjust(0))
    const idle = (requestId: string): Effect.Effect<void> =>
      Effect.suspend(() =>
        requests.isWorkedOn(requestId) ? Effect.andThen(Effect.yieldNow, idle(requestId)) : Effect.void
      )
    /** The request has this answer, of whomever. */
    const finish = ({ requestId }: Caller, n: number) =>
      journal.finish(requestId, JSON.stringify({ answer: { done: n } }), {})
    /** A request of the key that another process has accepted and answered. */
    const elsewhere = (key: string, n: number) => {
      const other = callerOf(key)
      return Effect.orDie(Effect.andThen(journal.acceptOps(acceptanceOf(other)), finish(other, n)))
    }
    const outcomeOf = ({ requestId }: Caller) =>
      Effect.map(journal.request(requestId), (record) => JSON.parse(record?.outcome ?? "null"))
    return {
      arrived,
      ask,
      begin,
      elsewhere,
      finish,
      idle,
      journal,
      outcomeOf,
      requests,
      state,
      told
    }
  })

const test = testOver(InMemory.journal)

describe("writing requests", () => {
  test("with one idempotency key at the same moment are one work and equal answers", function* () {
    const { ask } = yield* setup()
    let works = 0
    const answers = yield* Effect.forEach(
      Array.from({ length: 10 }, () => callerOf("ten")),
      (caller) =>
        ask(
          caller,
          Effect.suspend(() => {
            works += 1
            return accepting(caller, Effect.andThen(Effect.yieldNow, done(works)))
          })
        ),
      { concurrency: "unbounded" }
    )
    expect(works).toBe(1)
    expect(answers).toEqual(Array(10).fill({ done: 1 }))
    expect(yield* ask(callerOf("ten", "another body"), Effect.never)).toBe("idempotency_key_reused")
    const another = callerOf("ten", "another body", "b")
    expect(yield* ask(another, accepting(another, done(2)))).toEqual({ done: 2 })
  })

  test("that were accepted by a journal which then failed to say so go on to their answer", function* () {
    const { begin, state } = yield* setup()
    const caller = callerOf()
    const lives: Array<boolean> = []
    const work = Effect.gen(function* () {
      const current = yield* CurrentRequest
      lives.push(current.resumed)
      if (current.accepted()) return { done: 2 }
      state.breaks = true
      return yield* accepting(caller, done(1))
    })
    const answer = yield* begin(caller, work)
    yield* Time.adjust("1 second")
    expect(yield* Fiber.join(answer)).toEqual({ done: 2 })
    expect(lives).toEqual([false, true])
  })

  test("whose acceptance is lost are told to come again only when it can take effect no more", function* () {
    const { arrived, ask, journal, state } = yield* setup()
    const late = yield* Deferred.make<void>()
    state.lost = late
    const [caller, again] = [callerOf("lost"), callerOf("lost")]
    expect(yield* ask(caller, accepting(caller, done(1)))).toBe("unavailable")
    state.lost = null
    yield* Deferred.succeed(late, undefined)
    expect(Exit.isFailure(yield* Deferred.await(arrived))).toBe(true)
    expect(yield* journal.work).toEqual([])
    expect(yield* ask(again, accepting(again, done(2)))).toEqual({ done: 2 })
  })

  test("whose first is interrupted before acceptance are done by the next, once", function* () {
    const { begin } = yield* setup()
    let works = 0
    const first = yield* begin(callerOf("given up"), Effect.never)
    const caller = callerOf("given up")
    const second = yield* begin(
      caller,
      accepting(
        caller,
        Effect.suspend(() => done(++works))
      )
    )
    yield* Fiber.interrupt(first)
    expect(yield* Fiber.join(second)).toEqual({ done: 1 })
  })

  test("whose caller goes at the very moment when they begin do nothing", function* () {
    const { ask, idle, outcomeOf } = yield* setup()
    let works = 0
    for (let steps = 0; steps < 4; steps += 1) {
      const caller = callerOf(steps % 2 === 0 ? null : `gone ${steps}`)
      const work = accepting(
        caller,
        Effect.suspend(() => done(++works))
      )
      // As long as any preparation takes.
      const fiber = yield* Effect.forkChild(ask(caller, Effect.andThen(yields(50), work)))
      for (let n = 0; n < steps; n += 1) yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      yield* yields(200)
      yield* idle(caller.requestId)
      expect(yield* outcomeOf(caller)).toBeNull()
    }
    expect(works).toBe(0)
  })

  test("whose caller goes after acceptance go on to a stored answer", function* () {
    const { begin, idle, outcomeOf } = yield* setup()
    const caller = callerOf()
    const goOn = yield* Deferred.make<void>()
    const fiber = yield* begin(caller, accepting(caller, Effect.andThen(Deferred.await(goOn), done(1))))
    yield* Fiber.interrupt(fiber)
    yield* Deferred.succeed(goOn, undefined)
    yield* idle(caller.requestId)
    expect(yield* outcomeOf(caller)).toEqual({ answer: { done: 1 } })
  })

  test("that take longer than their patience are unknown, and their key has the answer later", function* () {
    const { begin } = yield* setup()
    const caller = callerOf("slow")
    const fiber = yield* begin(caller, accepting(caller, Effect.delay(done(1), patienceMillis + 1_000)))
    yield* Time.adjust(patienceMillis - 1)
    expect(fiber.pollUnsafe()).toBeUndefined()
    yield* Time.adjust(1)
    expect(yield* Fiber.join(fiber)).toBe("outcome_unknown")
    const again = yield* begin(callerOf("slow"), Effect.never)
    yield* Time.adjust(1_000)
    expect(yield* Fiber.join(again)).toEqual({ done: 1 })
  })

  test("whose outcome is far off are told what is known at once, and have their answer later", function* () {
    const { ask, journal, requests } = yield* setup()
    for (const list of ["operations", "accounts"] as const) {
      const caller = callerOf()
      const goOn = yield* Deferred.make<void>()
      const work = Effect.gen(function* () {
        yield* Effect.orDie(journal.refuse(caller.requestId, [Make.failed(2, { figures: { missing: "7" } })]))
        yield* (yield* CurrentRequest).dismiss
        yield* Deferred.await(goOn)
        return { done: 1 }
      })
      expect(
        yield* Effect.flip(requests.run({ ...kind, list }, caller, request, accepting(caller, work)))
      ).toMatchObject({
        code: "outcome_unknown",
        details: [{ path: `${list}[2]`, message: "it reverts", missing: "7" }]
      })
      yield* Deferred.succeed(goOn, undefined)
      expect(yield* ask({ ...caller, resumed: true }, done(1), { ...kind, list })).toEqual({ done: 1 })
    }
  })

  test("are told what is known when the process stops waiting, and not before acceptance", function* () {
    const { ask, begin, requests } = yield* setup()
    const [caller, early, late] = [callerOf(), callerOf(), callerOf()]
    const goOn = yield* Deferred.make<void>()
    const waiting = yield* begin(caller, accepting(caller, Effect.never))
    const failing = Effect.andThen(Deferred.await(goOn), Effect.fail(unprocessable("execution_failed")))
    const preparing = yield* begin(early, failing)
    yield* requests.stopWaiting
    expect(yield* Fiber.join(waiting)).toBe("outcome_unknown")
    expect(preparing.pollUnsafe()).toBeUndefined()
    yield* Deferred.succeed(goOn, undefined)
    expect(yield* Fiber.join(preparing)).toBe("execution_failed")
    expect(yield* ask(late, accepting(late, Effect.never))).toBe("outcome_unknown")
  })

  test("that crash after acceptance are tried again, later each time, until they have an answer", function* () {
    const { begin, outcomeOf } = yield* setup()
    const caller = callerOf()
    let tries = 0
    const work = Effect.suspend(() => (++tries < 4 ? Effect.die(new Error("a bug")) : done(tries)))
    const fiber = yield* begin(caller, accepting(caller, work))
    for (const [millis, made] of [
      [249, 1],
      [1, 2],
      [500, 3],
      [1_000, 4]
    ] as const) {
      yield* Time.adjust(millis)
      expect(tries).toBe(made)
    }
    expect(yield* Fiber.join(fiber)).toEqual({ done: 4 })
    expect(yield* outcomeOf(caller)).toEqual({ answer: { done: 4 } })
  })

  test("that are cancelled in the journal end here too, with the answer that is stored", function* () {
    const { begin, idle, journal, requests } = yield* setup()
    const caller = callerOf("cancelled")
    let ended = 0
    const work = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void ended++))
    const first = yield* begin(caller, accepting(caller, work))
    const again = yield* begin(callerOf("cancelled"), Effect.never)
    expect(requests.underWay()).toEqual([caller.requestId])
    yield* Cancellations.cancel(journal, caller.requestId, "request_cancelled", { onlyUnsigned: false })
    yield* requests.review(caller.requestId)
    expect([yield* Fiber.join(first), yield* Fiber.join(again)]).toEqual(Array(2).fill("request_cancelled"))
    yield* idle(caller.requestId)
    expect([ended, requests.underWay()]).toEqual([1, []])
    // Kept as long as anybody may ask, then forgotten.
    yield* journal.forget(1_000_000_000)
    expect(yield* journal.request(caller.requestId)).toBeNull()
  })

  test("go on at once after a review, whether they are at work or pause, and are left at once", function* () {
    const { begin, idle, requests, state } = yield* setup()
    const caller = callerOf()
    let tries = 0
    const work = Effect.suspend(() => (++tries === 1 ? Effect.never : Effect.die(new Error("a bug"))))
    yield* begin(caller, accepting(caller, work))
    yield* requests.review(caller.requestId)
    yield* Time.adjust("1 minute")
    const before = tries
    expect(before).toBeGreaterThan(1)
    // The present pause has begun, and lasts for half a minute.
    yield* Time.adjust("1 second")
    expect(tries).toBe(before)
    yield* requests.review(caller.requestId)
    yield* Time.adjust(0)
    expect(tries).toBe(before + 1)
    state.owns = false
    yield* requests.leave(lane)
    yield* idle(caller.requestId)
    expect(tries).toBe(before + 1)
  })

  test("refused before acceptance leave nothing, and are no 422 by force", function* () {
    const { ask, journal } = yield* setup()
    const caller = callerOf("refused")
    expect(yield* ask(caller, Effect.fail(invalid("invalid_request")))).toBe("invalid_request")
    expect(yield* journal.request(caller.requestId)).toBeNull()
  })

  test("have one life at a time in a process: a second one waits for the answer of the first", function* () {
    const { begin } = yield* setup()
    const caller = callerOf()
    const goOn = yield* Deferred.make<void>()
    let lives = 0
    const work = Effect.suspend(() => {
      lives += 1
      return accepting(caller, Effect.andThen(Deferred.await(goOn), done(lives)))
    })
    const first = yield* begin(caller, work)
    const others = yield* Effect.forEach([1, 2, 3], () => begin({ ...caller, resumed: true }, work))
    yield* Deferred.succeed(goOn, undefined)
    yield* Time.adjust(1_000)
    for (const life of [first, ...others]) expect(yield* Fiber.join(life)).toEqual({ done: 1 })
    expect(lives).toBe(1)
  })

  test("whose lane is another process's are not worked on here, and have that one's answer", function* () {
    const { begin, finish, requests, state, told } = yield* setup()
    state.owns = false
    const caller = callerOf()
    const fiber = yield* begin(caller, accepting(caller, Effect.die(new Error("it is not worked on"))))
    yield* Time.adjust("3 seconds")
    expect(requests.isWorkedOn(caller.requestId)).toBe(false)
    expect(told).toEqual([{ _tag: "accepted", lane }])
    yield* finish(caller, 7)
    yield* Time.adjust("1 second")
    expect(yield* Fiber.join(fiber)).toEqual({ done: 7 })
  })

  test("are left when their lane goes to another process, and no others are", function* () {
    const { begin, finish, idle, requests, state } = yield* setup()
    const caller = callerOf()
    const fiber = yield* begin(caller, accepting(caller, Effect.never))
    yield* requests.leave({ ...lane, chainId: 2n })
    yield* requests.leave({ ...lane, signer: Make.address(0x52) })
    yield* yields(100)
    expect(requests.isWorkedOn(caller.requestId)).toBe(true)
    state.owns = false
    yield* requests.leave(lane)
    yield* idle(caller.requestId)
    yield* finish(caller, 3)
    yield* Time.adjust("1 second")
    expect(yield* Fiber.join(fiber)).toEqual({ done: 3 })
  })

  test("that find nothing to do, or are refused, since another process did the work of their key, have its answer", function* () {
    const { ask, elsewhere } = yield* setup()
    for (const [key, end] of [
      ["idle", done(0)],
      ["refused", Effect.fail(unprocessable("wallet_busy"))]
    ] as const)
      expect(yield* ask(callerOf(key), Effect.andThen(elsewhere(key, 7), end))).toEqual({ done: 7 })
  })

  test("that find nothing to do while the journal cannot tell of their key are told to come again", function* () {
    const { ask, state } = yield* setup()
    const work = Effect.suspend(() => {
      state.isAway = true
      return done(0)
    })
    expect(yield* ask(callerOf("idle"), work)).toBe("unavailable")
  })

  test("tell the other processes of their answers once these are stored", function* () {
    const { ask, told } = yield* setup()
    const caller = callerOf()
    yield* ask(caller, accepting(caller, done(1)))
    expect(told).toEqual([{ _tag: "final", requestId: caller.requestId }])
  })

  bare(
    "whose lane another process has claimed end with one line for the lane, and have that one's answers",
    function* () {
      const folder = yield* Layers.temporaryFolder
      const database = Layers.sqliteAt(join(folder, "journal.db"))
      const other = yield* Effect.flatMap(Layer.build(database), (context) =>
        Effect.provide(Journals.all, context)
      )
      const log = Log.make()
      yield* Effect.gen(function* () {
        const { begin, idle, journal } = yield* setup()
        const goOn = yield* Deferred.make<void>()
        const all = Array.from({ length: 20 }, () => callerOf())
        const answers = yield* Effect.forEach(all, (caller, n) => {
          // Some meet the other owner at a step, some at their end.
          const step = n % 2 === 0 ? Effect.orDie(journal.refuse(caller.requestId, [])) : Effect.void
          return begin(
            caller,
            accepting(caller, Effect.andThen(Deferred.await(goOn), Effect.andThen(step, done(0))))
          )
        })
        expect(yield* other.claim(lane, { process: "other", independent: [] })).not.toBe(null)
        yield* Deferred.succeed(goOn, undefined)
        for (const { requestId } of all) yield* idle(requestId)
        for (const [n, { requestId }] of all.entries())
          yield* other.finish(requestId, JSON.stringify({ answer: { done: n } }), {})
        yield* Time.adjust("1 second")
        expect(yield* Effect.forEach(answers, Fiber.join)).toEqual(all.map((_, n) => ({ done: n })))
      }).pipe(Effect.provide(Layer.merge(database, log.layer)))
      expect(log.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
        "INFO another process works on the lane from now on"
      ])
    }
  )

  test("whose lane was another process's in between change nothing, though it has come back", function* () {
    const folder = yield* Layers.temporaryFolder
    const database = Layers.sqliteAt(join(folder, "journal.db"))
    const other = yield* Effect.flatMap(Layer.build(database), (context) =>
      Effect.provide(Journals.all, context)
    )
    yield* Effect.gen(function* () {
      const { begin, idle, journal, outcomeOf } = yield* setup()
      const goOn = yield* Deferred.make<void>()
      const late = yield* Deferred.make<Exit.Exit<void, JournalError>>()
      // One meets it at a step, one at its end.
      const [stepping, ending] = [callerOf(), callerOf()]
      const step = Effect.flatMap(Effect.exit(journal.abandonUnsigned(stepping.requestId, [0])), (exit) =>
        Effect.andThen(Deferred.succeed(late, exit), Effect.never)
      )
      const waiting = yield* begin(stepping, accepting(stepping, Effect.andThen(Deferred.await(goOn), step)))
      yield* begin(ending, accepting(ending, Effect.andThen(Deferred.await(goOn), done(0))))
      expect(yield* other.claim(lane, { process: "other", independent: [] })).not.toBe(null)
      expect(yield* journal.claim(lane, { process: "this one", independent: [] })).not.toBe(null)
      yield* Deferred.succeed(goOn, undefined)
      const exit = yield* Deferred.await(late)
      expect(Exit.isFailure(exit) && isFenced(exit.cause)).toBe(true)
      yield* idle(ending.requestId)
      expect(yield* outcomeOf(ending)).toBe(null)
      yield* Fiber.interrupt(waiting)
    }).pipe(Effect.provide(Layer.merge(database, Log.make().layer)))
  })

  test("that the journal cannot accept are told to come again, and are not done", function* () {
    const { ask, state } = yield* setup()
    state.isAway = true
    const caller = callerOf()
    const log = Log.make()
    const asking = ask(caller, accepting(caller, Effect.die(new Error("it is not accepted"))))
    const fiber = yield* Effect.forkChild(Effect.provide(asking, log.layer))
    yield* Time.adjust("1 second")
    state.isAway = false
    yield* Time.adjust("1 second")
    expect(yield* Fiber.join(fiber)).toBe("unavailable")
    expect(log.lines).toMatchObject([
      {
        level: "WARN",
        message: "the journal failed before it had accepted a request",
        annotations: { requestId: caller.requestId }
      }
    ])
  })

  test("that the journal may have accepted are unknown to their callers while it does not answer", function* () {
    const { begin, state } = yield* setup()
    state.isAway = true
    const caller = callerOf()
    const fiber = yield* begin(caller, accepting(caller, Effect.never))
    yield* Time.adjust("30 seconds")
    expect(yield* Fiber.join(fiber)).toBe("outcome_unknown")
  })
})

describe("the bounds of accepted work", () => {
  test("count requests that have no answer, and let a repeat of one of them know of it", function* () {
    const { ask, begin, requests } = yield* setup({ requestsPerAccount: 2 })
    const goOn = yield* Deferred.make<void>()
    const work = (caller: Caller) => accepting(caller, Effect.andThen(Deferred.await(goOn), done(1)))
    const room = (key: string | null) =>
      Effect.match(requests.room("a" as AccountId, kind.endpoint, key), {
        onFailure: ({ code }) => code,
        onSuccess: () => "room"
      })
    const open = yield* Effect.forEach([callerOf("first"), callerOf()], (caller) =>
      begin(caller, work(caller))
    )
    for (const key of [null, "another"]) {
      expect(yield* ask(callerOf(key), Effect.never)).toBe("rate_limited")
      expect(yield* room(key)).toBe("rate_limited")
    }
    expect(yield* room("first")).toBe("room")
    const repeated = yield* begin(callerOf("first"), Effect.never)
    yield* Time.adjust("1 minute")
    expect(yield* Fiber.join(repeated)).toBe("outcome_unknown")
    // A refused one was never begun, and an unaccepted one counts no more.
    yield* Deferred.succeed(goOn, undefined)
    yield* Fiber.joinAll(open)
    for (let n = 0; n < 3; n += 1)
      expect(yield* ask(callerOf(), Effect.fail(unprocessable("insufficient_funds")))).toBe(
        "insufficient_funds"
      )
    const last = callerOf()
    expect(yield* ask(last, work(last))).toEqual({ done: 1 })
    expect(yield* room(null)).toBe("room")
  })

  test("refuse where the journal can not say whether it is a repeat", function* () {
    const { ask, begin, requests, state } = yield* setup({ requests: 1 })
    const [first, second] = [callerOf("first"), callerOf()]
    yield* ask(first, accepting(first, done(1)))
    yield* begin(second, accepting(second, Effect.never))
    const room = Effect.result(requests.room(first.principal.accountId, kind.endpoint, "first"))
    expect((yield* room)._tag).toBe("Success")
    state.isAway = true
    expect(yield* room).toMatchObject({ failure: { code: "overloaded" } })
  })

  test("count all elements, and requests until their answer, also those that another process goes on with", function* () {
    const many = yield* setup({ elementsPerAccount: 3 })
    const caller = callerOf()
    yield* many.begin(caller, accepting(caller, Effect.never), { ...kind, elements: () => 3 })
    expect(yield* many.ask(callerOf(), Effect.never)).toBe("rate_limited")
    const { ask, begin, idle, requests } = yield* setup({ requestsPerAccount: 1 })
    const left = callerOf()
    yield* begin(left, accepting(left, Effect.never))
    yield* requests.leave(lane)
    yield* idle(left.requestId)
    expect(yield* ask(callerOf(), Effect.never)).toBe("rate_limited")
  })

  test("neither refuse what is taken up again nor hold it for a repeat of itself", function* () {
    const { ask, begin, journal } = yield* setup({ requestsPerAccount: 1 })
    const [caller, other] = [callerOf("its own"), callerOf()]
    yield* journal.acceptOps(acceptanceOf(caller))
    yield* begin(other, accepting(other, Effect.never))
    expect(yield* ask({ ...caller, resumed: true }, done(3))).toEqual({ done: 3 })
  })
})

describe("the caller of a request that something else works on", () => {
  test("is told of it, waits as long as its chain says, and has its answer though the journal was away", function* () {
    const { begin, finish, journal, state } = yield* setup()
    const other = callerOf("known")
    yield* journal.acceptOps(acceptanceOf(other))
    const patient = yield* begin(callerOf("known"), Effect.never)
    state.profile = NetworkProfile.make({ chainId: 1n, receiptTimeoutMillis: 2_000 })
    const accepted: Array<string> = []
    const caller = { ...callerOf("known"), onAccepted: (id: string) => void accepted.push(id) }
    const fiber = yield* begin(caller, Effect.never)
    yield* Time.adjust("1 second")
    expect([new Set(accepted), fiber.pollUnsafe()]).toEqual([new Set([other.requestId]), undefined])
    yield* Time.adjust("2 seconds")
    expect(yield* Fiber.join(fiber)).toBe("outcome_unknown")
    state.isAway = true
    yield* Time.adjust("40 seconds")
    state.isAway = false
    yield* finish(other, 7)
    yield* Time.adjust("1 minute")
    expect(yield* Fiber.join(patient)).toEqual({ done: 7 })
  })

  test("that is due later is told of its acceptance, however slow the disk is", function* () {
    const { begin, state } = yield* setup()
    state.diskMillis = 1_000
    const accepted: Array<string> = []
    const caller = { ...callerOf(), onAccepted: (id: string) => void accepted.push(id) }
    const work = Effect.flatMap(CurrentRequest, ({ schedule }) =>
      schedule(acceptanceOf(caller), { notBefore: 3_600, dueAt: 3_600_000 })
    )
    const fiber = yield* begin(caller, work)
    yield* Time.adjust("999 millis")
    expect([accepted, fiber.pollUnsafe() === undefined]).toEqual([[], true])
    yield* Time.adjust("1 millis")
    expect(new Set(accepted)).toEqual(new Set([caller.requestId]))
  })

  test("has that one's answer where both were about to be accepted, and its own work goes no further", function* () {
    const { begin, elsewhere } = yield* setup()
    const caller = callerOf("race")
    const work = accepting(caller, Effect.die(new Error("it is not accepted")))
    const fiber = yield* begin(caller, Effect.andThen(elsewhere("race", 8), work))
    yield* Time.adjust("1 second")
    expect(yield* Fiber.join(fiber)).toEqual({ done: 8 })
  })

  test("has its own failure, not accepted, where that one's answer would not be the same", function* () {
    const { begin, elsewhere } = yield* setup()
    for (const [failure, told] of [
      [unprocessable("insufficient_funds"), { done: 9 }],
      [unprocessable("outcome_unknown"), "outcome_unknown"],
      [invalid("invalid_request", []), "invalid_request"]
    ] as const) {
      const key = `late ${failure.code}`
      const fiber = yield* begin(callerOf(key), Effect.andThen(elsewhere(key, 9), Effect.fail(failure)))
      yield* Time.adjust("1 second")
      expect(yield* Fiber.join(fiber)).toEqual(told)
    }
  })
})

describe("the caller of a request that is worked on here", () => {
  test("waits longer when the work says so, and hears what was sent when that is over", function* () {
    const { journal, requests } = yield* setup()
    const caller = callerOf()
    const work = Effect.gen(function* () {
      const current = yield* CurrentRequest
      const direct = { ...lane, direct: caller.requestId }
      yield* Effect.orDie(journal.allocate(Make.allocation(caller.requestId, direct)))
      yield* Effect.orDie(journal.recordSigned(Make.signed(0n, lane)))
      yield* current.sent([Make.word(0x5e)])
      yield* Effect.sleep("4 seconds")
      yield* current.extend(10_000)
      return yield* Effect.never
    })
    const fiber = yield* Effect.forkChild(
      Effect.result(requests.run(kind, caller, request, accepting(caller, work)))
    )
    yield* Time.adjust("13 seconds")
    expect(fiber.pollUnsafe()).toBeUndefined()
    yield* Time.adjust("2 seconds")
    expect(yield* Fiber.join(fiber)).toMatchObject({
      failure: {
        code: "outcome_unknown",
        extra: { txHashes: [Make.signed(0n, lane).txHash, Make.word(0x5e)], requestId: caller.requestId }
      }
    })
  })

  test("waits no longer because the request is accepted once more", function* () {
    const { begin } = yield* setup()
    const caller = callerOf()
    const work = Effect.gen(function* () {
      const current = yield* CurrentRequest
      yield* Effect.sleep("4 seconds")
      yield* current.accept(acceptanceOf(caller, current.body), patienceMillis)
      return yield* Effect.never
    })
    const fiber = yield* begin(caller, accepting(caller, work))
    yield* Time.adjust("6 seconds")
    expect(yield* Fiber.join(fiber)).toBe("outcome_unknown")
  })

  test("hears what the journal says of a request that was cancelled while its work came to an end", function* () {
    const { begin, journal } = yield* setup()
    const caller = callerOf()
    const cancel = Cancellations.cancel(journal, caller.requestId, "request_cancelled", {
      onlyUnsigned: false
    })
    const fiber = yield* begin(caller, accepting(caller, Effect.andThen(Effect.orDie(cancel), done(1))))
    yield* Time.adjust("1 minute")
    expect(yield* Fiber.join(fiber)).toBe("request_cancelled")
  })

  test("has its answer though something looked after the request before it was accepted", function* () {
    const { begin, requests } = yield* setup()
    const caller = callerOf()
    const goOn = yield* Deferred.make<void>()
    const fiber = yield* begin(caller, Effect.andThen(Deferred.await(goOn), accepting(caller, done(1))))
    expect(requests.underWay()).toEqual([])
    yield* requests.review(caller.requestId)
    yield* yields(100)
    yield* Deferred.succeed(goOn, undefined)
    expect(yield* Fiber.join(fiber)).toEqual({ done: 1 })
  })
})
