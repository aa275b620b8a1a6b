import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as TestClock from "effect/TestClock"
import { LaneClaims } from "../../../src/application/lanes/requests/LaneClaims.js"
import { Requests } from "../../../src/application/lanes/requests/Requests.js"
import { WakeUps } from "../../../src/application/lanes/requests/WakeUps.js"
import { TransactionMonitor } from "../../../src/application/lanes/TransactionMonitor.js"
import { LaneJournal } from "../../../src/application/ports/journal/LaneJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { LaneWork } from "../../../src/application/ports/journal/Transactions.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import { Lifetime } from "../../../src/application/runtime/Lifetime.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"

const lane: LaneWork = {
  lane: { chainId: 1n, signer: `0x${"11".repeat(20)}` as LaneWork["lane"]["signer"] },
  accountId: "acme" as AccountId,
  key: null,
  requests: [],
  hasTransactions: false
}

/** Yields until it holds; fails when it never does, at a clock that stands still. */
const until = (what: string, holds: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let turns = 0; turns < 1_000; turns += 1) {
      if (holds()) return
      yield* Effect.yieldNow()
    }
    return yield* Effect.dieMessage(`never: ${what}`)
  })

/** A process whose journal has this lane, and which is told by `take` whether it works there. */
const world = (
  lane: LaneWork,
  { requestJournal = {}, take }: { readonly requestJournal?: object; readonly take: Effect.Effect<boolean> }
) =>
  Effect.gen(function* () {
    const nudges = yield* Queue.sliding<void>(1)
    const counts = { looks: 0, sweeps: 0 }
    const context = Context.make(Lifetime, {
      nudges,
      scope: yield* Effect.scope,
      stopWaiting: Effect.void
    }).pipe(
      Context.add(LaneJournal, {
        work: Effect.sync(() => {
          counts.looks += 1
          return [lane]
        })
      } as unknown as LaneJournal["Type"]),
      Context.add(LaneClaims, {
        take: () =>
          Effect.suspend(() => {
            counts.sweeps += 1
            return take
          })
      } as unknown as LaneClaims),
      Context.add(Requests, {
        counted: () => Effect.void,
        underWay: () => [],
        leave: () => Effect.void
      } as unknown as Requests),
      Context.add(TransactionMonitor, { leave: () => Effect.void } as unknown as TransactionMonitor),
      Context.add(Networks, { profile: () => Effect.succeed(null), chainIds: Effect.succeed([]) }),
      Context.add(RequestJournal, requestJournal as RequestJournal["Type"]),
      Context.add(TransactionJournal, {} as TransactionJournal["Type"]),
      Context.add(WakeUps, {} as WakeUps)
    )
    yield* Effect.provide(Sweep.start as Effect.Effect<void>, context)
    return { counts, nudges }
  })

it.scoped(
  "what comes while a lane is swept is swept when that is over, not at the next look of two seconds",
  () =>
    Effect.gen(function* () {
      const mayGo = yield* Deferred.make<void>()
      const { counts, nudges } = yield* world(lane, { take: Effect.as(Deferred.await(mayGo), false) })
      yield* until("the first sweep", () => counts.sweeps === 1)
      const { looks } = counts
      yield* Queue.offer(nudges, undefined)
      yield* until("a look while it is under way", () => counts.looks === looks + 1)
      expect(counts.sweeps).toBe(1)
      yield* Deferred.succeed(mayGo, undefined)
      yield* until("a sweep of what came", () => counts.sweeps === 2)
      // Nothing has come since: the next is that of the clock.
      yield* Effect.repeatN(Effect.yieldNow(), 200)
      expect([counts.looks, counts.sweeps]).toEqual([looks + 2, 2])
    })
)

it.scoped("a request that can not be given up keeps no lane from its sweep", () =>
  Effect.gen(function* () {
    const request: LaneWork["requests"][number] = {
      requestId: "late",
      accountId: lane.accountId,
      endpoint: "/execute",
      elements: 1,
      acceptedAt: 0,
      notBefore: null
    }
    yield* TestClock.setTime(1_000_000_000)
    let cancelled = 0
    const cancel = () =>
      Effect.suspend(() => {
        cancelled += 1
        return Effect.die(new Error("the row can not be read"))
      })
    const { counts } = yield* world(
      { ...lane, requests: [request] },
      { requestJournal: { cancel }, take: Effect.succeed(false) }
    )
    yield* until("the sweep", () => counts.sweeps === 1)
    expect(cancelled).toBe(1)
  })
)
