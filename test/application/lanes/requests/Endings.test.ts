import { describe, expect } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Schema, Scope } from "effect"
import type * as LaneClaims from "../../../../src/application/lanes/requests/LaneClaims.js"
import * as OpenRequests from "../../../../src/application/lanes/requests/OpenRequests.js"
import type { Dependencies, Task } from "../../../../src/application/lanes/requests/RequestActions.js"
import * as RequestWork from "../../../../src/application/lanes/requests/RequestWork.js"
import * as ScheduledRequests from "../../../../src/application/lanes/requests/ScheduledRequests.js"
import * as Turns from "../../../../src/application/lanes/requests/Turns.js"
import * as WakeUps from "../../../../src/application/lanes/requests/WakeUps.js"
import * as Troubles from "../../../../src/application/observe/Troubles.js"
import * as Holding from "../../../../src/application/ports/journal/Holding.js"
import type { Acceptance } from "../../../../src/application/ports/journal/Requests.js"
import { CurrentRequest } from "../../../../src/application/request/CurrentRequest.js"
import { unprocessable } from "../../../../src/application/request/Failure.js"
import type * as Journals from "../../../support/journal/Journals.js"
import * as Make from "../../../support/journal/Make.js"
import * as Parties from "../../../support/Parties.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

type Journal = Pick<Journals.Methods, "acceptOps" | "decline" | "durable" | "finish" | "request">

/** An engine over a journal that accepts everything; `epoch`: of the claim of each lane. */
const world = Effect.gen(function* () {
  const scope = yield* Scope.make()
  const state = { epoch: 1 }
  const journal: Journal = {
    acceptOps: () => Effect.succeed({ _tag: "accepted" }),
    decline: () => Effect.succeed(null),
    durable: Effect.void,
    finish: (_, outcome) => Effect.succeed(outcome),
    request: () => Effect.succeed(null)
  }
  const requestJournal = journal as Journals.Methods
  const claims: LaneClaims.LaneClaims = {
    take: () => Effect.succeed(true),
    takeWithoutKey: () => Effect.succeed(true),
    keyed: () => {},
    lose: () => Effect.void,
    holds: () => true,
    holding: (lane) => ({ ...lane, epoch: state.epoch }),
    isAlone: Effect.succeed(true)
  }
  const dependencies: Dependencies = {
    requestJournal,
    claims,
    scope,
    wakeUps: yield* WakeUps.make({
      finalAmong: () => Effect.succeed([]),
      newestEvents: () => Effect.succeed(new Map())
    }),
    openRequests: OpenRequests.make({
      requests: 10,
      elements: 10,
      requestsPerAccount: 10,
      elementsPerAccount: 10
    }),
    scheduledRequests: ScheduledRequests.make(
      ScheduledRequests.ScheduledRequestBounds.defaultValue(),
      requestJournal
    ),
    replicas: {
      process: "p",
      independent: Effect.succeed([]),
      owns: () => true,
      tell: () => Effect.void
    } as unknown as Dependencies["replicas"],
    turns: Turns.make(),
    troubles: Troubles.make()
  }
  return { dependencies, journal, scope, state }
})

type Run<R> = Task<number, number, R>["run"]

/** The work of a request, and what is told of its end. */
const begin = <R>(dependencies: Dependencies, run: Run<R>, onAccepted?: () => void) =>
  Effect.gen(function* () {
    const ends: Array<boolean> = []
    const work = yield* RequestWork.begin(dependencies, {
      caller: { ...Parties.caller(), ...(onAccepted !== undefined && { onAccepted }) },
      endpoint: "/work",
      Response: Schema.Int,
      body: "{}",
      elements: 1,
      run,
      onEnd: (isAccepted) => Effect.sync(() => void ends.push(isAccepted))
    })
    return { ends, work }
  })

const acceptance: Omit<Acceptance, "elements" | "metadata"> = {
  requestId: "r",
  accountId: Make.alice,
  endpoint: "/work",
  lane: Make.lane,
  key: { clientId: "key" },
  body: "{}",
  idempotency: null,
  ops: [],
  funds: [],
  deployments: [],
  failed: [],
  note: null,
  schedule: null
}

const accepted = Effect.flatMap(CurrentRequest, (current) => current.accept(acceptance, 60_000))

/** Whether those who wait hear of the end, without any time. */
const heard = ({
  ends,
  work
}: {
  readonly ends: ReadonlyArray<boolean>
  readonly work: RequestWork.RequestWork<number>
}) =>
  Effect.gen(function* () {
    const waiting = [yield* Effect.forkChild(work.decided), yield* Effect.forkChild(work.result)]
    yield* Time.settle
    return { ends, told: waiting.map((fiber) => fiber.pollUnsafe() !== undefined) }
  })

describe("the work of a request", () => {
  test("whose engine has stopped tells those who wait, and does nothing", function* () {
    const { dependencies, scope } = yield* world
    yield* Scope.close(scope, Exit.void)
    let runs = 0
    const begun = yield* begin(
      dependencies,
      Effect.sync(() => ++runs)
    )
    expect([yield* heard(begun), runs]).toEqual([{ ends: [false], told: [true, true] }, 0])
  })

  test("whose engine stops before it has begun tells those who wait", function* () {
    const { dependencies, scope } = yield* world
    const begun = yield* begin(dependencies, Effect.succeed(1))
    yield* Scope.close(scope, Exit.void)
    expect(yield* heard(begun)).toEqual({ ends: [false], told: [true, true] })
  })

  test("is over when its caller hears of it, who may ask for more at once", function* () {
    const { dependencies } = yield* world
    const refused = Effect.fail(unprocessable("execution_failed"))
    const { ends, work } = yield* begin(dependencies, refused)
    const seen: Array<number> = []
    const note = Effect.sync(() => void seen.push(ends.length))
    yield* Effect.forkChild(Effect.ensuring(work.result, note))
    yield* Effect.forkChild(Effect.ensuring(work.decided, note))
    yield* Time.settle
    expect(seen).toEqual([1, 1])
  })

  test("is accepted whole, also where its engine stops meanwhile", function* () {
    const { dependencies, journal, scope } = yield* world
    const [asked, answers] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    Object.assign(journal, {
      acceptOps: () =>
        Deferred.succeed(asked, undefined).pipe(
          Effect.andThen(Deferred.await(answers)),
          Effect.as({ _tag: "accepted" })
        )
    })
    const begun = yield* begin(dependencies, Effect.as(accepted, 1))
    yield* Deferred.await(asked)
    const stopping = yield* Effect.forkChild(Scope.close(scope, Exit.void))
    yield* Time.settle
    expect(stopping.pollUnsafe()).toBeUndefined()
    yield* Deferred.succeed(answers, undefined)
    yield* Fiber.join(stopping)
    expect(begun.work.lane()).toEqual(Make.lane)
  })

  test("has the claim under which its attempt began, which none of an earlier one's has", function* () {
    const { dependencies, state } = yield* world
    const seen: Array<number | undefined> = []
    const note = Effect.flatMap(Holding.begun, ({ holding }) =>
      Effect.sync(() => void seen.push(holding?.epoch))
    )
    const later = yield* Deferred.make<void>()
    let runs = 0
    const run = Effect.gen(function* () {
      runs += 1
      yield* note
      if (runs === 2) {
        yield* note
        yield* Deferred.succeed(later, undefined)
        return 2
      }
      yield* accepted
      yield* note
      // What an attempt leaves behind.
      yield* Effect.forkDetach(Effect.andThen(Deferred.await(later), note))
      state.epoch = 2
      return yield* Effect.interrupt
    })
    const { work } = yield* begin(dependencies, run)
    const result = yield* Effect.forkChild(work.result)
    yield* Time.adjust("1 minute")
    expect(yield* Fiber.join(result)).toBe(2)
    expect(seen).toEqual([undefined, 1, 2, 2, 1])
  })

  test("is accepted also where its caller crashes when it is told so", function* () {
    const { dependencies } = yield* world
    const { work } = yield* begin(dependencies, Effect.as(accepted, 1), () => {
      throw new Error("the caller crashed")
    })
    const result = yield* Effect.forkChild(work.result)
    yield* Time.settle
    expect(result.pollUnsafe()).toEqual(Exit.succeed(1))
  })

  test("that is interrupted has no answer in what a part of it failed with meanwhile", function* () {
    const { dependencies } = yield* world
    let runs = 0
    const failing = Effect.andThen(
      Effect.uninterruptible(Effect.sleep("1 second")),
      Effect.fail(unprocessable("execution_failed"))
    )
    const run = Effect.gen(function* () {
      runs += 1
      yield* accepted
      yield* (yield* CurrentRequest).conclude
      if (runs === 1)
        yield* Effect.all([Effect.uninterruptible(failing), Effect.never], { concurrency: "unbounded" })
      return runs
    })
    const { work } = yield* begin(dependencies, run)
    const result = yield* Effect.forkChild(work.result)
    yield* Time.settle
    yield* work.review
    yield* Time.adjust("1 minute")
    expect(yield* Fiber.join(result)).toBe(2)
  })
})
