import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Queue from "effect/Queue"
import * as TestClock from "effect/TestClock"
import { SignerOf } from "../../../src/application/keys/LaneSigners.js"
import { RemoteOps } from "../../../src/application/lanes/remote/RemoteOps.js"
import { LaneClaims } from "../../../src/application/lanes/requests/LaneClaims.js"
import { Requests } from "../../../src/application/lanes/requests/Requests.js"
import { WakeUps } from "../../../src/application/lanes/requests/WakeUps.js"
import { TransactionMonitor } from "../../../src/application/lanes/TransactionMonitor.js"
import * as Metrics from "../../../src/application/observe/Metrics.js"
import { Sponsorships } from "../../../src/application/pay/Sponsorships.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { BundlerRpc } from "../../../src/application/ports/chain/BundlerRpc.js"
import { ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import * as ClockTrust from "../../../src/application/ports/clock/ClockTrust.js"
import { LaneJournal } from "../../../src/application/ports/journal/LaneJournal.js"
import { RecoveryJournal } from "../../../src/application/ports/journal/RecoveryJournal.js"
import { RemoteOpJournal } from "../../../src/application/ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import type { Cancellation } from "../../../src/application/ports/journal/Requests.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { Lane, LaneWork } from "../../../src/application/ports/journal/Transactions.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import { type Signer, SignerError } from "../../../src/application/ports/Signers.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import { Lifetime } from "../../../src/application/runtime/Lifetime.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as Unstuck from "../../../src/application/usecases/operations/Unstuck.js"
import type * as Address from "../../../src/domain/primitives/Address.js"
import * as Make from "../../support/journal/Make.js"
import * as Log from "../../support/Log.js"
import * as Landings from "../../support/lanes/Landings.js"
import * as Monitor from "../../support/lanes/Monitor.js"

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
  {
    isAway = () => false,
    requestJournal = {},
    take
  }: {
    readonly isAway?: () => boolean
    readonly requestJournal?: object
    readonly take: Effect.Effect<boolean>
  }
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
        work: Effect.suspend(() => {
          counts.looks += 1
          return isAway() ? Effect.die(new Error(`look ${counts.looks}: away`)) : Effect.succeed([lane])
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
      Context.add(WakeUps, {} as WakeUps),
      Context.add(RemoteOpJournal, {
        remoteSubmissions: Effect.suspend(() =>
          isAway() ? Effect.die(new Error(`look ${counts.looks}: away`)) : Effect.succeed([])
        )
      } as unknown as RemoteOpJournal["Type"]),
      Context.add(Budgets, {} as Budgets["Type"]),
      Context.add(Sponsorships, {} as Sponsorships),
      Context.add(ChainRpc, {} as ChainRpc["Type"])
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

it.scoped("a journal that is away for an hour is told of seven times", () => {
  const log = Log.make()
  let isAway = true
  return Effect.gen(function* () {
    yield* world(lane, {
      isAway: () => isAway,
      requestJournal: { forget: () => Effect.void },
      take: Effect.succeed(false)
    })
    yield* TestClock.adjust("1 hour")
    isAway = false
    yield* TestClock.adjust("10 seconds")
    expect(Log.told(log.lines, "a sweep of the journal failed")).toEqual(Log.ofAnHour("WARN"))
  }).pipe(Effect.provide(log.layer))
})

it.scoped("a lane that can not be looked after for an hour is told of seven times", () => {
  const log = Log.make()
  let isAway = true
  return Effect.gen(function* () {
    const take = Effect.suspend(() => (isAway ? Effect.die(new Error("away")) : Effect.succeed(false)))
    yield* world(lane, { take })
    yield* TestClock.adjust("1 hour")
    isAway = false
    yield* TestClock.adjust("10 seconds")
    expect(Log.told(log.lines, "a lane could not be looked after")).toEqual(Log.ofAnHour("WARN"))
  }).pipe(Effect.provide(log.layer))
})

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

const now = 10_000_000_000

/** An accepted request of the lane. */
const requestOf = (
  requestId: string,
  over: Partial<LaneWork["requests"][number]> = {}
): LaneWork["requests"][number] => ({
  requestId,
  accountId: lane.accountId,
  endpoint: "/execute",
  elements: 1,
  acceptedAt: now,
  notBefore: null,
  ...over
})

const ownKey = { clientId: "key 1" }

/** What sweeps do, one after the other, of a lane with the work that is given and a transaction that may be on its way. */
const swept = (
  work: Partial<LaneWork>,
  process: {
    readonly isOurs?: boolean
    readonly isAlone?: boolean
    /** Why the lane's key can not be had; null: it can. */
    readonly keyless?: SignerError["reason"] | null
    /** The address of the key that the lane's is called here. */
    readonly address?: Address.Address
    readonly times?: number
    /** What the journal makes of a cancellation. */
    readonly became?: "final" | "kept"
    /** The requests that this process works on; the journal has the answer of those that begin with "answered". */
    readonly underWay?: ReadonlyArray<string>
    /** Whether the chain of the lane is configured. */
    readonly isConfigured?: boolean
    /** How long the journal has the lane's work, milliseconds. */
    readonly lasts?: number
    /** What is known of its clock. */
    readonly clock?: ClockTrust.Standing
  } = {}
) =>
  Effect.gen(function* () {
    const { became = "final", isAlone = true, isOurs = true, keyless = null, times = 1 } = process
    const { address = lane.lane.signer, clock = "trusted", isConfigured = true } = process
    const trust = ClockTrust.make()
    yield* trust.become(clock)
    const { lasts = Number.POSITIVE_INFINITY, underWay = [] } = process
    yield* TestClock.setTime(now)
    const told: Array<string> = []
    const tell = (text: string) => Effect.sync(() => void told.push(text))
    const submission = (chainId: bigint) => ({
      userOpHash: `op on ${chainId}`,
      accountId: lane.accountId,
      space: { ...Make.space(1), chainId, authority: lane.lane.signer, entryPoint: Landings.entryPoint },
      node: Make.node(),
      signed: null
    })
    const context = Context.make(Lifetime, {
      nudges: yield* Queue.sliding<void>(1),
      scope: yield* Effect.scope,
      stopWaiting: Effect.void
    }).pipe(
      Context.add(ClockTrust.ClockTrust, trust),
      Context.add(LaneJournal, {
        work: Effect.map(Clock.currentTimeMillis, (millis) =>
          millis < now + lasts ? [{ ...lane, key: ownKey, hasTransactions: true, ...work }] : []
        )
      } as unknown as LaneJournal["Type"]),
      Context.add(LaneClaims, {
        take: () => Effect.as(tell("taken"), isOurs),
        takeWithoutKey: () => Effect.as(tell("taken without its key"), isOurs),
        lose: () => tell("left to another service"),
        holds: ({ chainId }: { readonly chainId: bigint }) => chainId === lane.lane.chainId,
        isAlone: Effect.succeed(isAlone)
      } as unknown as LaneClaims),
      Context.add(SignerOf, () =>
        keyless === null
          ? Effect.succeed({ address } as Signer)
          : Effect.fail(new SignerError({ reason: keyless, message: "none" }))
      ),
      Context.add(Requests, {
        counted: () => Effect.void,
        underWay: () => underWay,
        isWorkedOn: (requestId: string) => requestId === "worked on",
        review: (requestId: string) => tell(`reviewed: ${requestId}`),
        leave: () => tell("its requests are left")
      } as unknown as Requests),
      Context.add(TransactionMonitor, {
        isWatched: () => false,
        watch: ({ record }: { readonly record: { readonly nonce: bigint } }) =>
          tell(`watched: ${record.nonce}`),
        leave: () => tell("its transactions are left")
      } as unknown as TransactionMonitor),
      Context.add(Networks, {
        profile: (_, chainId) => Effect.succeed(isConfigured ? NetworkProfile.make({ chainId }) : null),
        chainIds: Effect.succeed([])
      }),
      Context.add(RequestJournal, {
        cancel: (requestId: string, { onlyUnnoted, onlyUnsigned }: Cancellation) =>
          Effect.as(
            tell(
              `given up${onlyUnsigned ? " unless signed" : ""}${onlyUnnoted ? " or noted" : ""}: ${requestId}`
            ),
            became
          ),
        finalAmong: (requestIds: ReadonlyArray<string>) =>
          Effect.as(
            tell(`asked for answers of ${requestIds.length}`),
            requestIds.filter((requestId) => requestId.startsWith("answered"))
          ),
        request: (requestId: string) => Effect.as(tell(`resumed: ${requestId}`), null),
        forget: (before: number) => tell(`forgotten: what is older than ${now - before} ms`)
      } as unknown as RequestJournal["Type"]),
      Context.add(TransactionJournal, {
        openOf: () => Effect.succeed([Monitor.recordOf(7, Monitor.callers)])
      } as unknown as TransactionJournal["Type"]),
      Context.add(RecoveryJournal, {} as RecoveryJournal["Type"]),
      Context.add(RemoteOpJournal, {
        remoteSubmissions: Effect.succeed([submission(1n), submission(2n)])
      } as unknown as RemoteOpJournal["Type"]),
      Context.add(RemoteOps, {
        isWatched: () => true,
        renew: ({ submission }: { readonly submission: { readonly userOpHash: string } }) =>
          tell(`looked for: ${submission.userOpHash}`)
      } as unknown as RemoteOps),
      Context.add(BundlerRpc, {} as BundlerRpc["Type"]),
      Context.add(ChainRpc, { connect: () => Effect.succeed({} as never) }),
      Context.add(Budgets, {} as Budgets["Type"]),
      Context.add(Sponsorships, {} as Sponsorships),
      Context.add(WakeUps, {
        signal: ({ signer }: Lane) =>
          tell(signer === lane.lane.signer ? "its lane is woken" : "another lane is woken")
      } as unknown as WakeUps)
    )
    yield* Effect.provide(Sweep.start as Effect.Effect<void>, context)
    yield* TestClock.adjust(times * 2_000 - 1_000)
    return told
  })

describe("a lane that is swept", () => {
  const everything = ["watched: 7", "resumed: r"]
  const requests = [requestOf("r"), requestOf("worked on")]

  it.scoped("has its transactions watched and its requests resumed, but for those that are worked on", () =>
    Effect.gen(function* () {
      const told = yield* swept({ requests })
      expect(told).toEqual(expect.arrayContaining(["taken", ...everything]))
      expect(told).not.toContain("resumed: worked on")
    })
  )

  it.scoped("and is another process's has nothing of it begun here, and what was begun is left", () =>
    Effect.gen(function* () {
      const told = yield* swept({ requests }, { isOurs: false })
      expect(told).toEqual(
        expect.arrayContaining(["taken", "its transactions are left", "its requests are left"])
      )
      for (const begun of everything) expect(told).not.toContain(begun)
    })
  )

  it.scoped("without its key has its transactions watched, and its requests wait", () =>
    Effect.gen(function* () {
      const reasons = ["clientIdIncorrect", "versionNotFound", "assetNotSupported", "notConfigured"] as const
      for (const keyless of reasons) {
        const told = yield* swept({ requests }, { keyless })
        expect(told).toEqual(expect.arrayContaining(["taken without its key", "watched: 7"]))
        expect(told).not.toContain("resumed: r")
      }
    })
  )

  it.scoped("without its key is left to the other service that works with the journal", () =>
    Effect.gen(function* () {
      const told = yield* swept({ requests }, { isAlone: false, keyless: "versionNotFound" })
      expect(told).toContain("left to another service")
      for (const begun of ["taken", "taken without its key", ...everything]) expect(told).not.toContain(begun)
    })
  )

  it.scoped("whose key's name is another key's here is left to the service that has its key", () =>
    Effect.gen(function* () {
      const address = Make.address(0xbb)
      const told = yield* swept({ requests }, { isAlone: false, address })
      expect(told).toContain("left to another service")
      for (const begun of ["taken", ...everything]) expect(told).not.toContain(begun)
      const alone = yield* swept({ requests }, { address })
      expect(alone).toEqual(expect.arrayContaining(["taken without its key", "watched: 7"]))
      expect(alone).not.toContain("resumed: r")
    })
  )

  it.scoped("and whose key is silent for the moment is no lane without a key", () =>
    Effect.gen(function* () {
      for (const keyless of ["unavailable", "refused"] as const)
        expect(yield* swept({ requests }, { isAlone: false, keyless })).toEqual(
          expect.arrayContaining(["taken", ...everything])
        )
    })
  )

  it.scoped(
    "has its ops at a remote bundler looked for, and those of lanes that are not held here are not",
    () =>
      Effect.gen(function* () {
        const told = yield* swept({})
        expect(told.filter((each) => each.startsWith("looked for"))).toEqual(["looked for: op on 1"])
      })
  )
})

describe("a request of which nothing was signed", () => {
  const givenUp = (work: LaneWork["requests"], process: Parameters<typeof swept>[1] = {}) =>
    Effect.map(swept({ requests: work }, { isOurs: false, ...process }), (told) =>
      told.filter((each) => /^given up|^reviewed|woken$/.test(each))
    )
  const expiry = NetworkProfile.defaults.requestExpiryMillis
  // Of a lane that another process works on it is given up later, which that one has looked at by then.
  const late = now - 2 * expiry - 1

  it.scoped(
    "is given up when its time is over, unless it was signed by then, whoever works on its lane",
    () =>
      Effect.gen(function* () {
        expect(yield* givenUp([requestOf("late", { acceptedAt: late })])).toEqual([
          "given up unless signed: late",
          "reviewed: late",
          "its lane is woken"
        ])
        expect(yield* givenUp([requestOf("soon", { acceptedAt: late + 1 })])).toEqual([])
      })
  )

  it.scoped("is not given up by a clock that is in doubt", () =>
    Effect.gen(function* () {
      const requests = [requestOf("late", { acceptedAt: late })]
      for (const clock of ["asking", "doubted"] as const)
        expect(yield* givenUp(requests, { clock })).toEqual([])
      expect(yield* givenUp(requests, { clock: "unheard" })).toHaveLength(3)
    })
  )

  it.scoped("has its whole time from when its window begins", () =>
    Effect.gen(function* () {
      const scheduled = (notBefore: number) => [requestOf("scheduled", { acceptedAt: 0, notBefore })]
      expect(yield* givenUp(scheduled(Math.ceil(late / 1_000)))).toEqual([])
      expect(yield* givenUp(scheduled(Math.floor(late / 1_000)))).toHaveLength(3)
    })
  )

  it.scoped("is not given up once it has noted which transactions of others it replaces", () =>
    Effect.gen(function* () {
      const unstuck = requestOf("unstuck", { acceptedAt: 0, endpoint: Unstuck.kind.endpoint })
      expect((yield* givenUp([unstuck]))[0]).toBe("given up unless signed or noted: unstuck")
    })
  )

  it.scoped("and that turns out to be signed goes on, and is not asked about again", () =>
    Effect.gen(function* () {
      const work = [requestOf("late", { acceptedAt: late })]
      expect(yield* givenUp(work, { became: "kept", times: 3 })).toEqual(["given up unless signed: late"])
    })
  )
})

it.scoped("work on requests to which another process has given their answer ends", () =>
  Effect.gen(function* () {
    const told = yield* swept({}, { underWay: ["answered", "open"] })
    expect(told).toEqual(expect.arrayContaining(["asked for answers of 2", "reviewed: answered"]))
    expect(told).not.toContain("reviewed: open")
    expect((yield* swept({})).filter((each) => each.startsWith("asked"))).toEqual([])
  })
)

it.scoped("what can not be taken up is counted until the journal has had it no more for a minute", () =>
  Effect.gen(function* () {
    const stranded = Effect.map(Metric.value(Metrics.workStranded), ({ value }) => value)
    // A transaction, and an op at a remote bundler, which stays in the journal.
    yield* Effect.scoped(swept({}, { isConfigured: false }))
    expect(yield* stranded).toBe(2)
    yield* Effect.scoped(swept({}, { isConfigured: false, lasts: 1_000, times: 40 }))
    expect(yield* stranded).toBe(1)
  })
)

it.scoped("bodies, answers and idempotency keys are kept for 30 days", () =>
  Effect.gen(function* () {
    expect(yield* swept({})).toContain(`forgotten: what is older than ${30 * 24 * 60 * 60 * 1_000} ms`)
    for (const clock of ["asking", "unheard", "doubted"] as const)
      expect((yield* swept({}, { clock, times: 10 })).filter((each) => each.startsWith("forgotten"))).toEqual(
        []
      )
  })
)
