import { Effect, Exit, Schema, Scope, Stream } from "effect"
import { describe, expect } from "vitest"
import * as LaneClaims from "../../../../src/application/lanes/requests/LaneClaims.js"
import * as OpenRequests from "../../../../src/application/lanes/requests/OpenRequests.js"
import * as Requests from "../../../../src/application/lanes/requests/Requests.js"
import * as ScheduledRequests from "../../../../src/application/lanes/requests/ScheduledRequests.js"
import * as WakeUps from "../../../../src/application/lanes/requests/WakeUps.js"
import type { Replicas } from "../../../../src/application/ports/Replicas.js"
import type { Caller } from "../../../../src/application/request/Caller.js"
import { CurrentRequest } from "../../../../src/application/request/CurrentRequest.js"
import * as InterruptedAt from "../../../support/InterruptedAt.js"
import * as InMemory from "../../../support/journal/InMemory.js"
import * as Journals from "../../../support/journal/Journals.js"
import * as Make from "../../../support/journal/Make.js"
import * as Parties from "../../../support/Parties.js"
import * as StoppedAt from "../../../support/StoppedAt.js"
import { testOver } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

const kind = { endpoint: "/work", Request: Schema.Struct({}), Response: Schema.Int }

const replicas: Replicas["Service"] = {
  process: "this one",
  owns: () => true,
  independent: Effect.succeed([]),
  tell: () => Effect.void,
  assigned: Stream.never,
  heard: Stream.never
}

let callers = 0
/** Somebody who asks under this key. */
const callerOf = (key: string): Caller => ({
  ...Parties.caller(`request ${++callers}`),
  idempotency: { key, bodyHash: Make.word(1) }
})

/** An engine over the journal; one request of the account may be open at a time. */
const engine = Effect.gen(function* () {
  const journal = yield* Journals.all
  const scope = yield* Scope.fork(yield* Effect.scope)
  const bounds = { ...OpenRequests.defaults, requestsPerAccount: 1 }
  const openRequests = OpenRequests.make(bounds)
  const requests = Requests.make({
    requestJournal: journal,
    networks: { profile: () => Effect.succeed(null), chainIds: Effect.succeed([]) },
    claims: LaneClaims.make(journal, replicas),
    openRequests,
    scheduledRequests: ScheduledRequests.make(bounds, journal),
    replicas,
    wakeUps: yield* Scope.provide(WakeUps.make(journal), scope),
    scope
  })
  /** The work is accepted, and then done: how often, says its answer. */
  const counted = () => {
    let times = 0
    return (caller: Caller) =>
      requests.run(
        kind,
        caller,
        {},
        Effect.gen(function* () {
          const current = yield* CurrentRequest
          if (!current.accepted())
            yield* current.accept(
              {
                requestId: caller.requestId,
                accountId: caller.principal.accountId,
                endpoint: kind.endpoint,
                lane: Make.lane,
                key: { clientId: "key" },
                body: current.body,
                idempotency: current.idempotency,
                ops: [],
                funds: [],
                deployments: [],
                failed: [],
                note: null,
                schedule: null
              },
              60_000
            )
          yield* Effect.yieldNow
          return ++times
        })
      )
  }
  return { counted, journal, requests, scope }
})

const test = testOver(InMemory.journal)
const steps = Array.from({ length: 210 }, (_, step) => step + 1)

describe("a request", () => {
  test("whose caller goes away at any moment is done once, as who repeats its key is told", function* () {
    const { counted, requests } = yield* engine
    for (const step of steps) {
      const ask = counted()
      const first = callerOf(`step ${step}`)
      yield* InterruptedAt.step(step, ask(first))
      yield* Time.settle
      expect([step, requests.isWorkedOn(first.requestId)]).toEqual([step, false])
      const again = yield* Effect.exit(ask(callerOf(`step ${step}`)))
      expect([step, again]).toEqual([step, Exit.succeed(1)])
    }
  })

  test("whose engine stops at any moment leaves nobody waiting, and goes on in the next one", function* () {
    for (const step of steps) {
      const { counted, journal, requests, scope } = yield* engine
      const caller = callerOf(`stop ${step}`)
      const stopped = yield* StoppedAt.step(step, counted()(caller), scope)
      expect([step, stopped, requests.isWorkedOn(caller.requestId)]).toEqual([step, true, false])
      const next = yield* engine
      const record = yield* journal.request(caller.requestId)
      const left = record === null ? caller : { ...caller, resumed: true }
      const answer = yield* Effect.exit(next.counted()(record?.outcome == null ? left : caller))
      expect([step, answer]).toEqual([step, Exit.succeed(1)])
      yield* Scope.close(next.scope, Exit.void)
    }
  })
})
