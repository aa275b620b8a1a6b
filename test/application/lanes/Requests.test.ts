import { describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import { expect } from "vitest"
import * as InMemoryJournal from "../../../src/adapters/sql/journal/InMemory.js"
import * as Requests from "../../../src/application/lanes/Requests.js"
import * as WakeUps from "../../../src/application/lanes/WakeUps.js"
import { Journal } from "../../../src/application/ports/journal/Journal.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import { CurrentRequest } from "../../../src/application/request/CurrentRequest.js"
import { type Failure, invalid, unprocessable } from "../../../src/application/request/Failure.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"

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

/** Accepts the request of a caller, as every work does before it does anything. */
const accept = (caller: Caller) =>
  Effect.gen(function* () {
    const journal = yield* Journal
    const current = yield* CurrentRequest
    if (current.accepted()) return
    const result = yield* Effect.orDie(
      journal.accept({
        requestId: caller.requestId,
        accountId: caller.principal.accountId,
        endpoint: kind.endpoint,
        lane: { ...Make.lane, chainId: 1n },
        body: current.body,
        idempotency: current.idempotency,
        ops: [],
        funds: [],
        deployments: [],
        failed: []
      })
    )
    if (result._tag === "known") return yield* new Requests.AnsweredElsewhere({ requestId: result.requestId })
    yield* current.accept(patienceMillis)
  })

const setup = Effect.gen(function* () {
  const journal = yield* Journal
  const wakeUps = yield* WakeUps.make
  const stopping = yield* Deferred.make<void>()
  const requests = Requests.make({ journal, stopping, wakeUps, scope: yield* Effect.scope })
  return { journal, requests, stopWaiting: Deferred.succeed(stopping, undefined) }
})

const test = (
  name: string,
  body: (parts: Effect.Effect.Success<typeof setup>) => Effect.Effect<void, unknown, Journal | Scope.Scope>
) => it.scoped(name, () => Effect.flatMap(setup, body).pipe(Effect.provide(InMemoryJournal.layer)))

const codeOf = (exit: Exit.Exit<unknown, Failure>): string | null =>
  Exit.isFailure(exit)
    ? Option.getOrNull(Option.map(Cause.failureOption(exit.cause), ({ code }) => code))
    : null

const outcomeOf = (caller: Caller) =>
  Effect.map(
    Effect.flatMap(Journal, (journal) => journal.request(caller.requestId)),
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

  test("that were accepted by a journal which then failed to say so go on to their answer", ({ requests }) =>
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
            const journal = yield* Journal
            lives.push(current.resumed)
            if (current.accepted()) return { done: 2 }
            yield* Effect.orDie(
              journal.accept({
                requestId: caller.requestId,
                accountId: caller.principal.accountId,
                endpoint: kind.endpoint,
                lane: { ...Make.lane, chainId: 1n },
                body: current.body,
                idempotency: null,
                ops: [],
                funds: [],
                deployments: [],
                failed: []
              })
            )
            return yield* Effect.dieMessage("the connection broke at the commit")
          })
        )
      )
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(answer)).toEqual({ done: 2 })
      expect(lives).toEqual([false, true])
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

  test("whose caller goes at the very moment when they begin do nothing", ({ requests }) =>
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
        yield* requests.idle(caller.requestId)
        expect(yield* outcomeOf(caller)).toBeNull()
      }
      expect(done).toBe(0)
    }))

  test("whose caller goes after acceptance go on to a stored answer", ({ requests }) =>
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
      yield* requests.idle(caller.requestId)
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

  test("are told what is known when the process stops waiting, and not before acceptance", ({
    requests,
    stopWaiting
  }) =>
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
      yield* stopWaiting
      expect(codeOf(yield* Fiber.join(waiting))).toBe("outcome_unknown")
      expect(yield* Fiber.poll(preparing)).toMatchObject({ _tag: "None" })
      yield* Deferred.succeed(goOn, undefined)
      expect(codeOf(yield* Fiber.join(preparing))).toBe("execution_failed")
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

  test("that never can be sent are given up after ten minutes, with a stored refusal", ({
    journal,
    requests
  }) =>
    Effect.gen(function* () {
      const caller = callerOf("hopeless")
      yield* Effect.fork(
        Effect.exit(
          requests.run(kind, caller, request, Effect.zipRight(accept(caller), Effect.die(new Error("a bug"))))
        )
      )
      yield* TestClock.adjust("9 minutes")
      expect(yield* outcomeOf(caller)).toBeNull()
      yield* TestClock.adjust("2 minutes")
      expect(yield* outcomeOf(caller)).toMatchObject({ failure: { code: "execution_failed" } })
      const again = yield* Effect.exit(requests.run(kind, callerOf("hopeless"), request, Effect.never))
      expect(codeOf(again)).toBe("execution_failed")
      yield* requests.idle(caller.requestId)
      // Kept as long as anybody may ask, then forgotten.
      yield* journal.forget(1_000_000_000)
      expect(yield* journal.request(caller.requestId)).toBeNull()
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
            yield* Effect.orDie(
              journal.accept({
                requestId: theirs.requestId,
                accountId: theirs.principal.accountId,
                endpoint: kind.endpoint,
                lane: { ...Make.lane, chainId: 1n },
                body: "{}",
                idempotency: theirs.idempotency ?? null,
                ops: [],
                funds: [],
                deployments: [],
                failed: []
              })
            )
            yield* accept(caller)
            return { done: 0 }
          })
        )
      )
      yield* TestClock.adjust(2_000)
      expect(yield* Fiber.poll(fiber)).toMatchObject({ _tag: "None" })
      yield* journal.finish(theirs.requestId, JSON.stringify({ answer: { done: 7 } }))
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
})
