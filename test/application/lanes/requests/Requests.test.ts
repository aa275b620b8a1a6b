import { join } from "node:path"
import { describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import { expect } from "vitest"
import * as Cancellations from "../../../../src/application/lanes/requests/Cancellations.js"
import * as LaneClaims from "../../../../src/application/lanes/requests/LaneClaims.js"
import * as OpenRequests from "../../../../src/application/lanes/requests/OpenRequests.js"
import * as Requests from "../../../../src/application/lanes/requests/Requests.js"
import * as ScheduledRequests from "../../../../src/application/lanes/requests/ScheduledRequests.js"
import * as WakeUps from "../../../../src/application/lanes/requests/WakeUps.js"
import { JournalError } from "../../../../src/application/ports/journal/JournalError.js"
import type { Acceptance } from "../../../../src/application/ports/journal/Requests.js"
import type { Lane } from "../../../../src/application/ports/journal/Transactions.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import type { Networks } from "../../../../src/application/ports/Networks.js"
import type { Replicas, Signal } from "../../../../src/application/ports/Replicas.js"
import type { AccountId } from "../../../../src/application/ports/Tenants.js"
import * as Answer from "../../../../src/application/request/Answer.js"
import type { Caller } from "../../../../src/application/request/Caller.js"
import { CurrentRequest } from "../../../../src/application/request/CurrentRequest.js"
import { type Failure, invalid, unprocessable } from "../../../../src/application/request/Failure.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../../support/journal/InMemory.js"
import * as Journals from "../../../support/journal/Journals.js"
import * as Layers from "../../../support/journal/Layers.js"
import * as Make from "../../../support/journal/Make.js"
import * as Log from "../../../support/Log.js"

const kind = {
  endpoint: "/work",
  Request: Schema.Struct({ name: Schema.String }),
  Response: Schema.Struct({ done: Schema.Int })
}
const request = { name: "it" }

let callers = 0
const callerOf = (key: string | null, body = "it"): Caller => {
  callers += 1
  return {
    requestId: `request-${callers}`,
    principal: {
      accountId: "a" as AccountId,
      name: "a",
      tier: "free",
      scopes: new Set(["write"]),
      paused: false
    },
    idempotency:
      key === null ? null : { key, bodyHash: Hex.unsafe32(`0x${body.length.toString(16).padStart(64, "0")}`) }
  }
}

const patienceMillis = 5_000

const lane: Lane = { chainId: 1n, signer: Address.unsafe(`0x${"51".repeat(20)}`) }

const acceptanceOf = (caller: Caller): Acceptance => ({
  requestId: caller.requestId,
  accountId: caller.principal.accountId,
  endpoint: kind.endpoint,
  lane,
  key: { clientId: "key" },
  body: "{}",
  idempotency: caller.idempotency ?? null,
  elements: 1,
  ops: [],
  funds: [],
  deployments: [],
  failed: [],
  note: null,
  metadata: {},
  schedule: null
})

/** Accepts the request of a caller, as every work does before it does anything. */
const accept = (caller: Caller) =>
  Effect.gen(function* () {
    const current = yield* CurrentRequest
    if (current.accepted()) return
    yield* current.accept(
      {
        ...acceptanceOf(caller),
        body: current.body,
        idempotency: current.idempotency
      },
      patienceMillis
    )
  })

const setupWith = (bounds: OpenRequests.Bounds) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const wakeUps = yield* WakeUps.make(journal)
    /** Of the requests' chain. */
    const profile = { current: null as NetworkProfile.NetworkProfile | null }
    const networks: Networks["Type"] = {
      profile: () => Effect.sync(() => profile.current),
      chainIds: Effect.succeed([])
    }
    const owned = { current: true }
    const told: Array<Signal> = []
    const replicas: Replicas["Type"] = {
      process: "this one",
      owns: () => owned.current,
      independent: Effect.succeed([]),
      tell: (signal) => Effect.sync(() => void told.push(signal)),
      assigned: Stream.never,
      heard: Stream.never
    }
    const claims = LaneClaims.make(journal, replicas)
    const scope = yield* Effect.scope
    /** While it is set the journal fails at the very end of an acceptance. */
    const broken = { current: false }
    /** While it is set an acceptance is lost on its way, and reaches the database when it is let go. */
    const lost = { current: null as Deferred.Deferred<void> | null }
    /** How the late acceptance ended. */
    const arrived = yield* Deferred.make<Exit.Exit<unknown, JournalError>>()
    /** While it is set the journal does not answer. */
    const away = { current: false }
    const answering = <A>(effect: Effect.Effect<A, JournalError>) =>
      Effect.suspend(() => (away.current ? Effect.fail(new JournalError({ message: "away" })) : effect))
    const breaking: Journals.Methods = {
      ...journal,
      request: (id) => answering(journal.request(id)),
      requestOf: (account, endpoint, key) => answering(journal.requestOf(account, endpoint, key)),
      decline: (id) => answering(journal.decline(id)),
      accept: (acceptance) => {
        const late = lost.current
        if (late !== null)
          return Deferred.await(late).pipe(
            Effect.zipRight(journal.accept(acceptance)),
            Effect.exit,
            Effect.flatMap((exit) => Deferred.succeed(arrived, exit)),
            Effect.forkIn(scope),
            Effect.zipRight(new JournalError({ message: "the connection broke" }))
          )
        return Effect.tap(answering(journal.accept(acceptance)), () => {
          if (!broken.current) return Effect.void
          broken.current = false
          return new JournalError({ message: "the connection broke at the commit" })
        })
      }
    }
    const requests = Requests.make({
      requestJournal: breaking,
      networks,
      claims,
      openRequests: OpenRequests.make(bounds),
      scheduledRequests: ScheduledRequests.make(bounds, breaking),
      replicas,
      wakeUps,
      scope
    })
    const idle = (requestId: string): Effect.Effect<void> =>
      Effect.suspend(() =>
        requests.isWorkedOn(requestId) ? Effect.zipRight(Effect.yieldNow(), idle(requestId)) : Effect.void
      )
    return {
      arrived,
      away,
      broken,
      idle,
      owned,
      journal,
      lost,
      profile,
      requests,
      told
    }
  })

const setup = setupWith(OpenRequests.defaults)

const test = (
  name: string,
  body: (
    parts: Effect.Effect.Success<typeof setup>
  ) => Effect.Effect<void, unknown, Journals.Ports | Scope.Scope>
) => it.scoped(name, () => Effect.flatMap(setup, body).pipe(Effect.provide(InMemory.journal)))

const codeOf = (exit: Exit.Exit<unknown, Failure>): string | null =>
  Exit.isFailure(exit)
    ? Option.getOrNull(Option.map(Cause.failureOption(exit.cause), ({ code }) => code))
    : null

const outcomeOf = (caller: Caller) =>
  Effect.map(
    Effect.flatMap(Journals.all, (journal) => journal.request(caller.requestId)),
    (record) => (record?.outcome == null ? null : JSON.parse(record.outcome))
  )

describe("writing requests", () => {
  test("with one idempotency key at the same moment are one work and equal answers", ({ requests }) =>
    Effect.gen(function* () {
      let works = 0
      const answers = yield* Effect.forEach(
        Array.from({ length: 10 }, () => callerOf("ten")),
        (caller) =>
          requests.run(
            kind,
            caller,
            request,
            Effect.gen(function* () {
              works += 1
              yield* Effect.yieldNow()
              yield* accept(caller)
              yield* Effect.yieldNow()
              return { done: works }
            })
          ),
        { concurrency: "unbounded" }
      )
      expect(works).toBe(1)
      expect(answers).toEqual(Array.from({ length: 10 }, () => ({ done: 1 })))
      const other = yield* Effect.exit(
        requests.run(kind, callerOf("ten", "another body"), request, Effect.never)
      )
      expect(codeOf(other)).toBe("idempotency_key_reused")
    }))

  test("that were accepted by a journal which then failed to say so go on to their answer", ({
    broken,
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf(null)
      const lives: Array<boolean> = []
      const answer = yield* Effect.fork(
        requests.run(
          kind,
          caller,
          request,
          Effect.gen(function* () {
            const current = yield* CurrentRequest
            lives.push(current.resumed)
            if (current.accepted()) return { done: 2 }
            broken.current = true
            yield* accept(caller)
            return { done: 1 }
          })
        )
      )
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(answer)).toEqual({ done: 2 })
      expect(lives).toEqual([false, true])
    }))

  test("whose acceptance is lost are told to come again only when it can take effect no more", ({
    arrived,
    journal,
    lost,
    requests
  }) =>
    Effect.gen(function* () {
      const late = yield* Deferred.make<void>()
      lost.current = late
      const caller = callerOf("lost")
      let done = 0
      const work = (of: Caller) =>
        Effect.zipRight(
          accept(of),
          Effect.sync(() => ({ done: ++done }))
        )
      const refusal = yield* Effect.exit(requests.run(kind, caller, request, work(caller)))
      expect(codeOf(refusal)).toBe("unavailable")
      lost.current = null
      yield* Deferred.succeed(late, undefined)
      expect(Exit.isFailure(yield* Deferred.await(arrived))).toBe(true)
      expect(yield* journal.work).toEqual([])
      const again = callerOf("lost")
      expect(yield* requests.run(kind, again, request, work(again))).toEqual({ done: 1 })
    }))

  test("whose first is interrupted before acceptance are done by the next, once", ({ requests }) =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      let accepted = 0
      const first = yield* Effect.fork(
        requests.run(
          kind,
          callerOf("given up"),
          request,
          Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never)
        )
      )
      yield* Deferred.await(begun)
      const caller = callerOf("given up")
      const second = yield* Effect.fork(
        requests.run(
          kind,
          caller,
          request,
          Effect.zipRight(
            accept(caller),
            Effect.sync(() => {
              accepted += 1
              return { done: accepted }
            })
          )
        )
      )
      yield* Fiber.interrupt(first)
      expect(yield* Fiber.join(second)).toEqual({ done: 1 })
    }))

  test("whose caller goes at the very moment when they begin do nothing", ({ idle, requests }) =>
    Effect.gen(function* () {
      let done = 0
      for (let yields = 0; yields < 4; yields += 1) {
        const caller = callerOf(yields % 2 === 0 ? null : `gone ${yields}`)
        const fiber = yield* Effect.fork(
          requests.run(
            kind,
            caller,
            request,
            Effect.gen(function* () {
              // As long as any preparation takes.
              for (let n = 0; n < 50; n += 1) yield* Effect.yieldNow()
              yield* accept(caller)
              done += 1
              return { done }
            })
          )
        )
        for (let n = 0; n < yields; n += 1) yield* Effect.yieldNow()
        yield* Fiber.interrupt(fiber)
        for (let n = 0; n < 200; n += 1) yield* Effect.yieldNow()
        yield* idle(caller.requestId)
        expect(yield* outcomeOf(caller)).toBeNull()
      }
      expect(done).toBe(0)
    }))

  test("whose caller goes after acceptance go on to a stored answer", ({ idle, requests }) =>
    Effect.gen(function* () {
      const caller = callerOf(null)
      const goOn = yield* Deferred.make<void>()
      const accepted = yield* Deferred.make<void>()
      const fiber = yield* Effect.fork(
        requests.run(
          kind,
          caller,
          request,
          Effect.gen(function* () {
            yield* accept(caller)
            yield* Deferred.succeed(accepted, undefined)
            yield* Deferred.await(goOn)
            return { done: 1 }
          })
        )
      )
      yield* Deferred.await(accepted)
      yield* Fiber.interrupt(fiber)
      yield* Deferred.succeed(goOn, undefined)
      yield* idle(caller.requestId)
      expect(yield* outcomeOf(caller)).toEqual({ answer: { done: 1 } })
    }))

  test("that take longer than their patience are outcome_unknown, and their key has the answer later", ({
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf("slow")
      const work = Effect.gen(function* () {
        yield* accept(caller)
        yield* Effect.sleep(patienceMillis + 1_000)
        return { done: 1 }
      })
      const fiber = yield* Effect.fork(Effect.exit(requests.run(kind, caller, request, work)))
      yield* TestClock.adjust(patienceMillis - 1)
      expect(yield* Fiber.poll(fiber)).toMatchObject({ _tag: "None" })
      yield* TestClock.adjust(1)
      expect(codeOf(yield* Fiber.join(fiber))).toBe("outcome_unknown")
      const again = yield* Effect.fork(requests.run(kind, callerOf("slow"), request, Effect.never))
      yield* TestClock.adjust(1_000)
      expect(yield* Fiber.join(again)).toEqual({ done: 1 })
    }))

  test("whose outcome is far off are told what is known at once, and have their answer later", ({
    requests
  }) =>
    Effect.gen(function* () {
      for (const list of ["operations", "accounts"] as const) {
        const caller = callerOf(null)
        const goOn = yield* Deferred.make<void>()
        const work = Effect.gen(function* () {
          const journal = yield* Journals.all
          const current = yield* CurrentRequest
          yield* accept(caller)
          yield* Effect.orDie(
            journal.refuse(caller.requestId, [Make.failed(2, { figures: { missing: "7" } })])
          )
          yield* current.dismiss
          yield* Deferred.await(goOn)
          return { done: 1 }
        })
        const failure = yield* Effect.flip(requests.run({ ...kind, list }, caller, request, work))
        expect(failure).toMatchObject({
          code: "outcome_unknown",
          details: [{ path: `${list}[2]`, message: "it reverts", missing: "7" }]
        })
        yield* Deferred.succeed(goOn, undefined)
        const again = { ...caller, resumed: true }
        expect(yield* requests.run({ ...kind, list }, again, request, Effect.succeed({ done: 1 }))).toEqual({
          done: 1
        })
      }
    }))

  test("are told what is known when the process stops waiting, and not before acceptance", ({ requests }) =>
    Effect.gen(function* () {
      const [caller, early] = [callerOf(null), callerOf(null)]
      const goOn = yield* Deferred.make<void>()
      const waiting = yield* Effect.fork(
        Effect.exit(requests.run(kind, caller, request, Effect.zipRight(accept(caller), Effect.never)))
      )
      const preparing = yield* Effect.fork(
        Effect.exit(
          requests.run(
            kind,
            early,
            request,
            Effect.zipRight(Deferred.await(goOn), Effect.fail(unprocessable("execution_failed")))
          )
        )
      )
      yield* TestClock.adjust(1)
      yield* requests.stopWaiting
      expect(codeOf(yield* Fiber.join(waiting))).toBe("outcome_unknown")
      expect(yield* Fiber.poll(preparing)).toMatchObject({ _tag: "None" })
      yield* Deferred.succeed(goOn, undefined)
      expect(codeOf(yield* Fiber.join(preparing))).toBe("execution_failed")
      const late = callerOf(null)
      const begun = requests.run(kind, late, request, Effect.zipRight(accept(late), Effect.never))
      expect(codeOf(yield* Effect.exit(begun))).toBe("outcome_unknown")
    }))

  test("that crash after acceptance are tried again, later each time, until they have an answer", ({
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf(null)
      let tries = 0
      const work = Effect.gen(function* () {
        const current = yield* CurrentRequest
        yield* accept(caller)
        expect(current.resumed).toBe(tries > 0)
        tries += 1
        if (tries < 4) return yield* Effect.die(new Error("a bug"))
        return { done: tries }
      })
      const fiber = yield* Effect.fork(requests.run(kind, caller, request, work))
      yield* TestClock.adjust(249)
      expect(tries).toBe(1)
      yield* TestClock.adjust(1)
      expect(tries).toBe(2)
      yield* TestClock.adjust(500)
      expect(tries).toBe(3)
      yield* TestClock.adjust(1_000)
      expect(yield* Fiber.join(fiber)).toEqual({ done: 4 })
      expect(yield* outcomeOf(caller)).toEqual({ answer: { done: 4 } })
    }))

  test("that are cancelled in the journal end here too, with the answer that is stored", ({
    idle,
    journal,
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf("cancelled")
      let ended = 0
      const work = Effect.zipRight(
        accept(caller),
        Effect.onInterrupt(Effect.never, () => Effect.sync(() => void ended++))
      )
      const first = yield* Effect.fork(Effect.exit(requests.run(kind, caller, request, work)))
      const again = yield* Effect.fork(
        Effect.exit(requests.run(kind, callerOf("cancelled"), request, Effect.never))
      )
      yield* TestClock.adjust(0)
      expect(requests.underWay()).toEqual([caller.requestId])
      yield* Cancellations.cancel(journal, caller.requestId, "request_cancelled", { onlyUnsigned: false })
      yield* requests.review(caller.requestId)
      expect(codeOf(yield* Fiber.join(first))).toBe("request_cancelled")
      expect(codeOf(yield* Fiber.join(again))).toBe("request_cancelled")
      expect(ended).toBe(1)
      yield* idle(caller.requestId)
      expect(requests.underWay()).toEqual([])
      // Kept as long as anybody may ask, then forgotten.
      yield* journal.forget(1_000_000_000)
      expect(yield* journal.request(caller.requestId)).toBeNull()
    }))

  test("that are not over go on after a review where the journal says", ({ requests }) =>
    Effect.gen(function* () {
      const caller = callerOf("reviewed")
      let tries = 0
      const work = Effect.gen(function* () {
        yield* accept(caller)
        tries += 1
        return tries === 1 ? yield* Effect.never : { done: tries }
      })
      const fiber = yield* Effect.fork(requests.run(kind, caller, request, work))
      yield* TestClock.adjust(0)
      yield* requests.review(caller.requestId)
      yield* TestClock.adjust(250)
      expect(yield* Fiber.join(fiber)).toEqual({ done: 2 })
    }))

  test("that pause before they are tried again go on at once after a review, and are left at once", ({
    idle,
    owned,
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf("pausing")
      let tries = 0
      const work = Effect.gen(function* () {
        yield* accept(caller)
        tries += 1
        return yield* Effect.die(new Error("a bug"))
      })
      yield* Effect.fork(Effect.exit(requests.run(kind, caller, request, work)))
      yield* TestClock.adjust("1 minute")
      const before = tries
      // The present pause has begun, and lasts for half a minute.
      yield* TestClock.adjust("1 second")
      expect(tries).toBe(before)
      yield* requests.review(caller.requestId)
      yield* TestClock.adjust(0)
      expect(tries).toBe(before + 1)
      owned.current = false
      yield* requests.leave(lane)
      yield* idle(caller.requestId)
      expect(tries).toBe(before + 1)
    }))

  test("refused before acceptance leave nothing, and are no 422 by force", ({ journal, requests }) =>
    Effect.gen(function* () {
      const caller = callerOf("refused")
      const refused = yield* Effect.exit(
        requests.run(kind, caller, request, Effect.fail(invalid("invalid_request")))
      )
      expect(codeOf(refused)).toBe("invalid_request")
      expect(yield* journal.request(caller.requestId)).toBeNull()
    }))

  test("that another process has accepted under their key have its answer", ({ journal, requests }) =>
    Effect.gen(function* () {
      const [theirs, caller] = [callerOf("elsewhere"), callerOf("elsewhere")]
      const fiber = yield* Effect.fork(
        requests.run(
          kind,
          caller,
          request,
          Effect.gen(function* () {
            // It was accepted elsewhere while this one prepared.
            yield* Effect.orDie(journal.accept(acceptanceOf(theirs)))
            yield* accept(caller)
            return { done: 0 }
          })
        )
      )
      yield* TestClock.adjust(2_000)
      expect(yield* Fiber.poll(fiber)).toMatchObject({ _tag: "None" })
      yield* journal.finish(theirs.requestId, JSON.stringify({ answer: { done: 7 } }), {})
      yield* TestClock.adjust(1_000)
      expect(yield* Fiber.join(fiber)).toEqual({ done: 7 })
    }))

  test("have one life at a time in a process: a second one waits for the answer of the first", ({
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf(null)
      const goOn = yield* Deferred.make<void>()
      let lives = 0
      const work = Effect.gen(function* () {
        lives += 1
        yield* accept(caller)
        yield* Deferred.await(goOn)
        return { done: lives }
      })
      const first = yield* Effect.fork(requests.run(kind, caller, request, work))
      yield* TestClock.adjust(1)
      const others = yield* Effect.forEach(Array.from({ length: 3 }), () =>
        Effect.fork(requests.run(kind, { ...caller, resumed: true }, request, work))
      )
      yield* TestClock.adjust(1)
      expect(lives).toBe(1)
      yield* Deferred.succeed(goOn, undefined)
      yield* TestClock.adjust(1_000)
      expect(yield* Fiber.join(first)).toEqual({ done: 1 })
      for (const other of others) expect(yield* Fiber.join(other)).toEqual({ done: 1 })
      expect(lives).toBe(1)
    }))

  test("whose lane is another process's are not worked on here, and have that one's answer", ({
    journal,
    owned,
    requests,
    told
  }) =>
    Effect.gen(function* () {
      owned.current = false
      const caller = callerOf(null)
      let reached = false
      const work = Effect.gen(function* () {
        yield* accept(caller)
        reached = true
        return { done: 1 }
      })
      const fiber = yield* Effect.fork(requests.run(kind, caller, request, work))
      yield* TestClock.adjust("3 seconds")
      expect(reached).toBe(false)
      expect(requests.isWorkedOn(caller.requestId)).toBe(false)
      expect(told).toEqual([{ _tag: "accepted", lane }])
      yield* journal.finish(caller.requestId, JSON.stringify({ answer: { done: 7 } }), {})
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(fiber)).toEqual({ done: 7 })
    }))

  test("that find nothing to do, or are refused, since another process did the work of their key, have its answer", ({
    journal,
    requests
  }) =>
    Effect.gen(function* () {
      const ends: ReadonlyArray<readonly [string, Effect.Effect<{ readonly done: number }, Failure>]> = [
        ["idle", Effect.succeed({ done: 0 })],
        ["refused", Effect.fail(unprocessable("wallet_busy"))]
      ]
      for (const [key, end] of ends) {
        const caller = callerOf(key)
        const elsewhere = callerOf(key)
        const meanwhile = Effect.gen(function* () {
          yield* journal.accept(acceptanceOf(elsewhere))
          yield* journal.finish(elsewhere.requestId, JSON.stringify({ answer: { done: 7 } }), {})
        })
        const work = Effect.zipRight(Effect.orDie(meanwhile), end)
        expect(yield* requests.run(kind, caller, request, work)).toEqual({ done: 7 })
      }
    }))

  test("that find nothing to do while the journal cannot tell of their key are told to come again", ({
    away,
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf("idle")
      const work = Effect.sync(() => {
        away.current = true
        return { done: 0 }
      })
      expect(codeOf(yield* Effect.exit(requests.run(kind, caller, request, work)))).toBe("unavailable")
    }))

  test("tell the other processes of their answers once these are stored", ({ requests, told }) =>
    Effect.gen(function* () {
      const caller = callerOf(null)
      yield* requests.run(kind, caller, request, Effect.as(accept(caller), { done: 1 }))
      expect(told).toEqual([{ _tag: "final", requestId: caller.requestId }])
    }))

  test("whose lane goes to another process are left to that one, whatever they are at", ({
    idle,
    journal,
    owned,
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf(null)
      const fiber = yield* Effect.fork(
        requests.run(kind, caller, request, Effect.zipRight(accept(caller), Effect.never))
      )
      yield* TestClock.adjust("1 second")
      expect(requests.isWorkedOn(caller.requestId)).toBe(true)
      owned.current = false
      yield* requests.leave(lane)
      yield* idle(caller.requestId)
      yield* journal.finish(caller.requestId, JSON.stringify({ answer: { done: 3 } }), {})
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(fiber)).toEqual({ done: 3 })
    }))

  it.scoped(
    "whose lane another process has claimed end with one line for the lane, and have that one's answers",
    () =>
      Effect.gen(function* () {
        const folder = yield* Layers.temporaryFolder
        const database = Layers.sqliteAt(join(folder, "journal.db"))
        const other = yield* Effect.flatMap(Layer.build(database), (context) =>
          Effect.provide(Journals.all, context)
        )
        const log = Log.make()
        yield* Effect.gen(function* () {
          const { idle, journal, requests } = yield* setup
          const goOn = yield* Deferred.make<void>()
          const begun = new Set<string>()
          const callers = Array.from({ length: 20 }, () => callerOf(null))
          const answers = yield* Effect.forEach(callers, (caller, n) =>
            Effect.fork(
              requests.run(
                kind,
                caller,
                request,
                Effect.gen(function* () {
                  yield* accept(caller)
                  begun.add(caller.requestId)
                  yield* Deferred.await(goOn)
                  // Some meet the other owner at a step, some at their end.
                  if (n % 2 === 0) yield* Effect.orDie(journal.refuse(caller.requestId, []))
                  return { done: 0 }
                })
              )
            )
          )
          while (begun.size < callers.length) yield* Effect.yieldNow()
          expect(yield* other.claim(lane, { process: "other", independent: [] })).toBe(true)
          yield* Deferred.succeed(goOn, undefined)
          for (const { requestId } of callers) yield* idle(requestId)
          for (const [n, { requestId }] of callers.entries())
            yield* other.finish(requestId, JSON.stringify({ answer: { done: n } }), {})
          yield* TestClock.adjust("1 second")
          expect(yield* Effect.forEach(answers, Fiber.join)).toEqual(callers.map((_, done) => ({ done })))
        }).pipe(Effect.provide(Layer.merge(database, log.layer)))
        expect(log.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
          "INFO another process works on the lane from now on"
        ])
      })
  )

  test("that the journal cannot accept are told to come again, and are not done", ({ away, requests }) =>
    Effect.gen(function* () {
      away.current = true
      let done = 0
      const caller = callerOf(null)
      const work = Effect.zipRight(
        accept(caller),
        Effect.sync(() => ({ done: ++done }))
      )
      const log = Log.make()
      const run = Effect.provide(requests.run(kind, caller, request, work), log.layer)
      const fiber = yield* Effect.fork(Effect.exit(run))
      yield* TestClock.adjust("1 second")
      away.current = false
      yield* TestClock.adjust("1 second")
      expect(codeOf(yield* Fiber.join(fiber))).toBe("unavailable")
      expect(done).toBe(0)
      expect(log.lines).toMatchObject([
        {
          level: "WARN",
          message: "the journal failed before it had accepted a request",
          annotations: { requestId: caller.requestId }
        }
      ])
    }))

  test("that the journal may have accepted are unknown to their callers while it does not answer", ({
    away,
    requests
  }) =>
    Effect.gen(function* () {
      away.current = true
      const caller = callerOf(null)
      const fiber = yield* Effect.fork(
        Effect.exit(requests.run(kind, caller, request, Effect.zipRight(accept(caller), Effect.never)))
      )
      yield* TestClock.adjust("30 seconds")
      expect(codeOf(yield* Fiber.join(fiber))).toBe("outcome_unknown")
    }))
})

describe("the bounds of accepted work", () => {
  it.scoped("count requests that have no answer, and let a repeat of one of them know of it", () =>
    Effect.gen(function* () {
      const { journal, requests } = yield* setupWith({
        ...OpenRequests.defaults,
        requestsPerAccount: 2
      })
      const goOn = yield* Deferred.make<void>()
      const run = (caller: Caller) =>
        Effect.exit(
          requests.run(
            kind,
            caller,
            request,
            accept(caller).pipe(Effect.zipRight(Deferred.await(goOn)), Effect.as({ done: 1 }))
          )
        )
      const [first, second] = [callerOf("first"), callerOf(null)]
      const open: Array<Fiber.RuntimeFiber<unknown>> = []
      for (const caller of [first, second]) {
        open.push(yield* Effect.fork(run(caller)))
        while ((yield* journal.request(caller.requestId)) === null) yield* Effect.yieldNow()
      }
      expect(codeOf(yield* run(callerOf(null)))).toBe("rate_limited")
      expect(codeOf(yield* run(callerOf("another")))).toBe("rate_limited")
      const { principal } = first
      const room = (key: string | null) => requests.room(principal.accountId, kind.endpoint, key)
      expect(codeOf(yield* Effect.exit(room(null)))).toBe("rate_limited")
      expect(codeOf(yield* Effect.exit(room("another")))).toBe("rate_limited")
      yield* room("first")
      const repeated = yield* Effect.fork(run(callerOf("first")))
      yield* TestClock.adjust("1 minute")
      expect(codeOf(yield* Fiber.join(repeated))).toBe("outcome_unknown")
      // A refused one was never begun, and an unaccepted one counts no more.
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.joinAll(open)
      const refused = unprocessable("insufficient_funds")
      for (const caller of [callerOf(null), callerOf(null), callerOf(null)])
        expect(codeOf(yield* Effect.exit(requests.run(kind, caller, request, Effect.fail(refused))))).toBe(
          "insufficient_funds"
        )
      expect(yield* run(callerOf(null))).toEqual(Exit.succeed({ done: 1 }))
      yield* room(null)
    }).pipe(Effect.provide(InMemory.journal))
  )

  it.scoped("refuse where the journal can not say whether it is a repeat", () =>
    Effect.gen(function* () {
      const { away, journal, requests } = yield* setupWith({ ...OpenRequests.defaults, requests: 1 })
      const [first, second] = [callerOf("first"), callerOf(null)]
      yield* requests.run(kind, first, request, Effect.as(accept(first), { done: 1 }))
      yield* Effect.fork(requests.run(kind, second, request, Effect.zipRight(accept(second), Effect.never)))
      while ((yield* journal.request(second.requestId)) === null) yield* Effect.yieldNow()
      const room = Effect.exit(requests.room(first.principal.accountId, kind.endpoint, "first"))
      expect(codeOf(yield* room)).toBeNull()
      away.current = true
      expect(codeOf(yield* room)).toBe("overloaded")
    }).pipe(Effect.provide(InMemory.journal))
  )
})

describe("the caller of a request that something else works on", () => {
  /** A request of the key that another process has accepted; how it ends there. */
  const elsewhere = (key: string) =>
    Effect.gen(function* () {
      const journal = yield* Journals.all
      const other = callerOf(key)
      yield* journal.accept(acceptanceOf(other))
      const answer = (done: number) =>
        Effect.flatMap(Answer.encode(kind.Response, Either.right({ done })), (outcome) =>
          journal.finish(other.requestId, outcome, {})
        )
      return { answer, other }
    })

  test("is told of it, and waits as long as its chain says", ({ profile, requests }) =>
    Effect.gen(function* () {
      const { other } = yield* elsewhere("known")
      profile.current = NetworkProfile.make({ chainId: 1n, receiptTimeoutMillis: 2_000 })
      const accepted: Array<string> = []
      const caller = { ...callerOf("known"), onAccepted: (id: string) => void accepted.push(id) }
      const fiber = yield* Effect.fork(Effect.exit(requests.run(kind, caller, request, Effect.never)))
      yield* TestClock.adjust("1 second")
      expect(new Set(accepted)).toEqual(new Set([other.requestId]))
      expect(yield* Fiber.poll(fiber)).toEqual(Option.none())
      yield* TestClock.adjust("2 seconds")
      expect(codeOf(yield* Fiber.join(fiber))).toBe("outcome_unknown")
    }))

  test("has its answer though the journal was away meanwhile", ({ away, requests }) =>
    Effect.gen(function* () {
      const { answer } = yield* elsewhere("away")
      const fiber = yield* Effect.fork(requests.run(kind, callerOf("away"), request, Effect.never))
      yield* TestClock.adjust("1 second")
      away.current = true
      yield* TestClock.adjust("40 seconds")
      away.current = false
      yield* answer(7)
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(fiber)).toEqual({ done: 7 })
    }))

  test("has that one's answer where both were about to be accepted, and its own work goes no further", ({
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf("race")
      let went = false
      const fiber = yield* Effect.fork(
        requests.run(
          kind,
          caller,
          request,
          Effect.gen(function* () {
            const { answer } = yield* elsewhere("race")
            yield* answer(8)
            yield* accept(caller)
            went = true
            return { done: 1 }
          }).pipe(Effect.catchTag("JournalError", Effect.die))
        )
      )
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(fiber)).toEqual({ done: 8 })
      expect(went).toBe(false)
    }))

  for (const [code, failure, told] of [
    ["insufficient_funds", unprocessable("insufficient_funds"), "done"],
    ["outcome_unknown", unprocessable("outcome_unknown"), "outcome_unknown"],
    ["invalid_request", invalid("invalid_request", []), "invalid_request"]
  ] as const)
    test(`has ${told === "done" ? "that one's answer" : "its own"} where its own is ${code}, not accepted`, ({
      requests
    }) =>
      Effect.gen(function* () {
        const { answer } = yield* Effect.succeed({ answer: elsewhere(`late ${code}`) })
        const fiber = yield* Effect.fork(
          Effect.exit(
            requests.run(
              kind,
              callerOf(`late ${code}`),
              request,
              Effect.gen(function* () {
                yield* Effect.flatMap(answer, (there) => there.answer(9))
                return yield* failure
              }).pipe(Effect.catchTag("JournalError", Effect.die))
            )
          )
        )
        yield* TestClock.adjust("1 second")
        const exit = yield* Fiber.join(fiber)
        if (told === "done") expect(exit).toEqual(Exit.succeed({ done: 9 }))
        else expect(codeOf(exit)).toBe(told)
      }))
})

describe("the caller of a request that is worked on here", () => {
  test("waits longer when the work says so, and hears what was sent when that is over", ({
    journal,
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf(null)
      const fiber = yield* Effect.fork(
        Effect.either(
          requests.run(
            kind,
            caller,
            request,
            Effect.gen(function* () {
              const current = yield* CurrentRequest
              yield* accept(caller)
              const direct = { ...lane, direct: caller.requestId }
              yield* Effect.orDie(journal.allocate(Make.allocation(caller.requestId, direct)))
              yield* Effect.orDie(journal.recordSigned(Make.signed(0n, lane)))
              yield* current.sent([Make.word(0x5e)])
              yield* Effect.sleep("4 seconds")
              yield* current.extend(10_000)
              return yield* Effect.never
            })
          )
        )
      )
      yield* TestClock.adjust("13 seconds")
      expect(yield* Fiber.poll(fiber)).toEqual(Option.none())
      yield* TestClock.adjust("2 seconds")
      expect(yield* Fiber.join(fiber)).toMatchObject(
        Either.left({
          code: "outcome_unknown",
          extra: { txHashes: [Make.signed(0n, lane).txHash, Make.word(0x5e)], requestId: caller.requestId }
        })
      )
    }))

  test("waits no longer because the request is accepted once more", ({ requests }) =>
    Effect.gen(function* () {
      const caller = callerOf(null)
      const fiber = yield* Effect.fork(
        Effect.exit(
          requests.run(
            kind,
            caller,
            request,
            Effect.gen(function* () {
              const current = yield* CurrentRequest
              yield* accept(caller)
              yield* Effect.sleep("4 seconds")
              yield* current.accept({ ...acceptanceOf(caller), body: current.body }, patienceMillis)
              return yield* Effect.never
            })
          )
        )
      )
      yield* TestClock.adjust("6 seconds")
      expect(codeOf(yield* Fiber.join(fiber))).toBe("outcome_unknown")
    }))

  test("hears what the journal says of a request that was cancelled while its work came to an end", ({
    journal,
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf(null)
      const fiber = yield* Effect.fork(
        Effect.exit(
          requests.run(
            kind,
            caller,
            request,
            Effect.gen(function* () {
              yield* accept(caller)
              const cancelled = Answer.asUnprocessable(unprocessable("request_cancelled"))
              const outcome = yield* Answer.encode(kind.Response, Either.left(cancelled))
              const code = "request_cancelled" as const
              yield* journal.cancel(caller.requestId, { code, outcome, onlyUnsigned: false })
              return { done: 1 }
            }).pipe(Effect.catchTag("JournalError", Effect.die))
          )
        )
      )
      yield* TestClock.adjust("1 minute")
      expect(codeOf(yield* Fiber.join(fiber))).toBe("request_cancelled")
    }))
})

describe("the requests of this process", () => {
  /** One that is accepted, or waits to be, and goes on when it is told. */
  const begun = (requests: Requests.Requests, isAccepted: boolean, caller = callerOf(null)) =>
    Effect.gen(function* () {
      const goOn = yield* Deferred.make<void>()
      const waiting = yield* Deferred.make<void>()
      const wait = Effect.zipRight(Deferred.succeed(waiting, undefined), Deferred.await(goOn))
      const work = isAccepted ? Effect.zipRight(accept(caller), wait) : Effect.zipRight(wait, accept(caller))
      const fiber = yield* Effect.fork(requests.run(kind, caller, request, Effect.as(work, { done: 1 })))
      yield* Deferred.await(waiting)
      return { caller, fiber, goOn: Deferred.succeed(goOn, undefined) }
    })

  test("are under way once they are accepted", ({ requests }) =>
    Effect.gen(function* () {
      yield* begun(requests, false)
      const { caller } = yield* begun(requests, true)
      expect(requests.underWay()).toEqual([caller.requestId])
    }))

  test("are left when their lane is another's, and no others are", ({ idle, requests }) =>
    Effect.gen(function* () {
      const { caller } = yield* begun(requests, true)
      const other = Address.unsafe(`0x${"52".repeat(20)}`)
      yield* requests.leave({ ...lane, chainId: 2n })
      yield* requests.leave({ ...lane, signer: other })
      for (let n = 0; n < 100; n += 1) yield* Effect.yieldNow()
      expect(requests.isWorkedOn(caller.requestId)).toBe(true)
      yield* requests.leave(lane)
      yield* idle(caller.requestId)
    }))

  test("go on when something looks after one that is not accepted yet", ({ requests }) =>
    Effect.gen(function* () {
      const { caller, fiber, goOn } = yield* begun(requests, false)
      yield* requests.review(caller.requestId)
      for (let n = 0; n < 100; n += 1) yield* Effect.yieldNow()
      yield* goOn
      expect(yield* Fiber.join(fiber)).toEqual({ done: 1 })
    }))

  const bounded = (bounds: Partial<OpenRequests.Bounds>) => setupWith({ ...OpenRequests.defaults, ...bounds })

  it.scoped("count until their answer, also those that another process goes on with", () =>
    Effect.gen(function* () {
      const { idle, requests } = yield* bounded({ requestsPerAccount: 1 })
      const { caller } = yield* begun(requests, true)
      yield* requests.leave(lane)
      yield* idle(caller.requestId)
      const second = yield* Effect.exit(requests.run(kind, callerOf(null), request, Effect.never))
      expect(codeOf(second)).toBe("rate_limited")
    }).pipe(Effect.provide(InMemory.journal))
  )

  it.scoped("count with all of their elements", () =>
    Effect.gen(function* () {
      const { requests } = yield* bounded({ elementsPerAccount: 3 })
      const caller = callerOf(null)
      const many = { ...kind, elements: () => 3 }
      const waiting = yield* Deferred.make<void>()
      const work = accept(caller).pipe(
        Effect.zipRight(Deferred.succeed(waiting, undefined)),
        Effect.zipRight(Effect.never)
      )
      yield* Effect.fork(requests.run(many, caller, request, work))
      yield* Deferred.await(waiting)
      const second = yield* Effect.exit(requests.run(kind, callerOf(null), request, Effect.never))
      expect(codeOf(second)).toBe("rate_limited")
    }).pipe(Effect.provide(InMemory.journal))
  )

  it.scoped(
    "that are taken up again are neither refused for what is open nor held for repeats of themselves",
    () =>
      Effect.gen(function* () {
        const { journal, requests } = yield* bounded({ requestsPerAccount: 1 })
        const caller = callerOf("its own")
        yield* journal.accept(acceptanceOf(caller))
        yield* begun(requests, true)
        const resumed = requests.run(kind, { ...caller, resumed: true }, request, Effect.succeed({ done: 3 }))
        expect(yield* resumed).toEqual({ done: 3 })
      }).pipe(Effect.provide(InMemory.journal))
  )
})
