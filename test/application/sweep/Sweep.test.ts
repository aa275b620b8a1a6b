import { describe, expect } from "@effect/vitest"
import { Clock, Context, Effect, Metric, Queue } from "effect"
import { SignerOf } from "../../../src/application/keys/LaneSigners.js"
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
import { Submissions } from "../../../src/application/usecases/operations/Submissions.js"
import * as Unstuck from "../../../src/application/usecases/operations/Unstuck.js"
import type * as Address from "../../../src/domain/primitives/Address.js"
import * as Make from "../../support/journal/Make.js"
import * as Log from "../../support/Log.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const lane: LaneWork = {
  lane: { chainId: 1n, signer: `0x${"11".repeat(20)}` as LaneWork["lane"]["signer"] },
  accountId: "acme" as AccountId,
  key: null,
  requests: [],
  hasTransactions: false
}

const now = 10_000_000_000
const hour = 3_600_000

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
    readonly became?: "final" | "kept" | "dies"
    /** The requests that this process works on; the journal has the answer of those that begin with "answered". */
    readonly underWay?: ReadonlyArray<string>
    /** Whether the chain of the lane is configured. */
    readonly isConfigured?: boolean
    /** How long the journal has the lane's work, milliseconds. */
    readonly lasts?: number
    /** What fails for an hour. */
    readonly away?: "journal" | "lane"
    /** What is known of its clock. */
    readonly clock?: ClockTrust.Standing
  } = {}
) =>
  Effect.gen(function* () {
    const { away, became = "final", isAlone = true, isOurs = true, keyless = null, times = 1 } = process
    const { address = lane.lane.signer, clock = "trusted", isConfigured = true } = process
    const trust = ClockTrust.make()
    yield* trust.become(clock)
    const { lasts = Number.POSITIVE_INFINITY, underWay = [] } = process
    yield* Time.setTime(now)
    const told: Array<string> = []
    const tell = (text: string) => Effect.sync(() => void told.push(text))
    const context = Context.make(Lifetime, {
      nudges: yield* Queue.sliding<void>(1),
      scope: yield* Effect.scope,
      stopWaiting: Effect.void
    }).pipe(
      Context.add(ClockTrust.ClockTrust, trust),
      Context.add(LaneJournal, {
        work: Effect.flatMap(Clock.currentTimeMillis, (millis) =>
          away === "journal" && millis < now + hour
            ? Effect.die(new Error(`at ${millis}: away`))
            : Effect.succeed(
                millis < now + lasts ? [{ ...lane, key: ownKey, hasTransactions: true, ...work }] : []
              )
        )
      } as unknown as LaneJournal["Service"]),
      Context.add(LaneClaims, {
        take: () =>
          Effect.flatMap(Clock.currentTimeMillis, (millis) =>
            away === "lane" && millis < now + hour
              ? Effect.die(new Error("away"))
              : Effect.as(tell("taken"), isOurs)
          ),
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
          became === "dies"
            ? Effect.die(new Error("the row can not be read"))
            : Effect.as(
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
      } as unknown as RequestJournal["Service"]),
      Context.add(TransactionJournal, {
        inFlight: () => Effect.succeed([{ ...Monitor.recordOf(7, Monitor.callers), ops: [] }])
      } as unknown as TransactionJournal["Service"]),
      Context.add(Submissions, {
        among: (requestIds: ReadonlyArray<string>) =>
          Effect.succeed(new Set(requestIds.filter((requestId) => requestId.startsWith("submitted")))),
        start: Effect.void
      } as unknown as Submissions),
      Context.add(RecoveryJournal, {} as RecoveryJournal["Service"]),
      Context.add(BundlerRpc, {} as BundlerRpc["Service"]),
      Context.add(ChainRpc, { connect: () => Effect.succeed({} as never) }),
      Context.add(Budgets, {} as Budgets["Service"]),
      Context.add(Sponsorships, {} as Sponsorships),
      Context.add(WakeUps, {
        signal: ({ signer }: Lane) =>
          tell(signer === lane.lane.signer ? "its lane is woken" : "another lane is woken")
      } as unknown as WakeUps)
    )
    yield* Effect.provide(Sweep.start as Effect.Effect<void>, context)
    yield* Time.adjust(times * 2_000 - 1_000)
    return told
  })

describe("a lane that is swept", () => {
  const requests = [requestOf("r"), requestOf("worked on")]
  const [taken, watched, resumed] = ["taken", "watched: 7", "resumed: r"]
  const left = ["its requests are left", "its transactions are left"]
  const keyless = ["clientIdIncorrect", "versionNotFound", "assetNotSupported", "notConfigured"] as const
  const address = Make.address(0xbb)
  test("has nothing resumed that its worker brings onto the chain", function* () {
    const told = yield* swept({ requests: [requestOf("submitted"), requestOf("r")] })
    expect(told).toContain(resumed)
    expect(told).not.toContain("resumed: submitted")
  })

  for (const [name, process, done] of [
    [
      "has its transactions watched, and its requests resumed, but for what is worked on",
      [{}],
      [resumed, taken, watched]
    ],
    [
      "and is another process's has nothing begun, and what was begun left",
      [{ isOurs: false }],
      [...left, taken]
    ],
    [
      "without its key, or with another one of its name, has its transactions watched, and its requests wait",
      [{ address }, ...keyless.map((reason) => ({ keyless: reason }))],
      ["taken without its key", watched]
    ],
    [
      "without its key, or with another one of its name, is left to another service that there is",
      [{ address, isAlone: false }, ...keyless.map((reason) => ({ keyless: reason, isAlone: false }))],
      [...left, "left to another service"]
    ],
    [
      "whose key is silent for the moment is no lane without a key",
      (["unavailable", "refused"] as const).map((reason) => ({ keyless: reason, isAlone: false })),
      [resumed, taken, watched]
    ]
  ] as const)
    test(name, function* () {
      for (const each of process) {
        const told = new Set(yield* swept({ requests }, each))
        for (const other of told) if (/forgotten/.test(other)) told.delete(other)
        expect([...told].sort(), JSON.stringify(each)).toEqual(done)
      }
    })
})

describe("a request of which nothing was signed", () => {
  const givenUp = (work: LaneWork["requests"], process: Parameters<typeof swept>[1] = {}) =>
    Effect.map(swept({ requests: work }, { isOurs: false, ...process }), (told) =>
      told.filter((each) => /^given up|^reviewed|woken$/.test(each))
    )
  const expiry = NetworkProfile.defaults.requestExpiryMillis
  // Of a lane that another process works on it is given up later, which that one has looked at by then.
  const late = now - 2 * expiry - 1

  test("is given up when its time is over, unless it was signed by then, whoever works on its lane", function* () {
    expect(yield* givenUp([requestOf("late", { acceptedAt: late })])).toEqual([
      "given up unless signed: late",
      "reviewed: late",
      "its lane is woken"
    ])
    expect(yield* givenUp([requestOf("soon", { acceptedAt: late + 1 })])).toEqual([])
  })

  test("is not given up by a clock that is in doubt", function* () {
    const requests = [requestOf("late", { acceptedAt: late })]
    for (const clock of ["asking", "doubted"] as const)
      expect(yield* givenUp(requests, { clock })).toEqual([])
    expect(yield* givenUp(requests, { clock: "unheard" })).toHaveLength(3)
  })

  test("has its whole time from when its window begins", function* () {
    const scheduled = (notBefore: number) => [requestOf("scheduled", { acceptedAt: 0, notBefore })]
    expect(yield* givenUp(scheduled(Math.ceil(late / 1_000)))).toEqual([])
    expect(yield* givenUp(scheduled(Math.floor(late / 1_000)))).toHaveLength(3)
  })

  test("is not given up once it has noted which transactions of others it replaces", function* () {
    const unstuck = requestOf("unstuck", { acceptedAt: 0, endpoint: Unstuck.kind.endpoint })
    expect((yield* givenUp([unstuck]))[0]).toBe("given up unless signed or noted: unstuck")
  })

  test("and that can not be given up keeps no lane from its sweep", function* () {
    const requests = [requestOf("late", { acceptedAt: late }), requestOf("r")]
    expect(yield* swept({ requests }, { became: "dies" })).toEqual(
      expect.arrayContaining(["taken", "resumed: r"])
    )
  })

  test("and that turns out to be signed goes on, and is not asked about again", function* () {
    const work = [requestOf("late", { acceptedAt: late })]
    expect(yield* givenUp(work, { became: "kept", times: 3 })).toEqual(["given up unless signed: late"])
  })
})

test("work on requests to which another process has given their answer ends", function* () {
  const told = yield* swept({}, { underWay: ["answered", "open"] })
  expect(told).toEqual(expect.arrayContaining(["asked for answers of 2", "reviewed: answered"]))
  expect(told).not.toContain("reviewed: open")
  expect((yield* swept({})).filter((each) => each.startsWith("asked"))).toEqual([])
})

test("what can not be taken up is counted until the journal has had it no more for a minute", function* () {
  const stranded = Effect.map(Metric.value(Metrics.workStranded), ({ value }) => value)
  yield* Effect.scoped(swept({}, { isConfigured: false }))
  expect(yield* stranded).toBe(1)
  yield* Effect.scoped(swept({}, { isConfigured: false, lasts: 1_000, times: 40 }))
  expect(yield* stranded).toBe(0)
})

for (const [away, what] of [
  ["journal", "a sweep of the journal failed"],
  ["lane", "a lane could not be looked after"]
] as const)
  test(`an hour in which ${what} is told of seven times`, function* () {
    const lines = yield* Log.listen
    yield* swept({}, { away, times: 1_805 })
    expect(Log.told(lines, what)).toEqual(Log.ofAnHour("WARN"))
  })

test("bodies, answers and idempotency keys are kept for 30 days", function* () {
  expect(yield* swept({})).toContain(`forgotten: what is older than ${30 * 24 * 60 * 60 * 1_000} ms`)
  for (const clock of ["asking", "unheard", "doubted"] as const)
    expect((yield* swept({}, { clock, times: 10 })).filter((each) => each.startsWith("forgotten"))).toEqual(
      []
    )
})
