import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import * as RemoteBundler from "../../../../src/application/lanes/remote/RemoteBundler.js"
import * as RemoteInclusions from "../../../../src/application/lanes/remote/RemoteInclusions.js"
import type { RemoteOps } from "../../../../src/application/lanes/remote/RemoteOps.js"
import type { Bundle } from "../../../../src/application/ports/chain/Bundler.js"
import { type BundlerClient, BundlerRpcError } from "../../../../src/application/ports/chain/BundlerRpc.js"
import type { RemoteSubmissionIntent } from "../../../../src/application/ports/journal/RemoteSubmissions.js"
import * as EntryPoint from "../../../../src/domain/erc4337/EntryPoint.js"
import * as Percent from "../../../../src/domain/erc4337/Percent.js"
import * as Sponsorship from "../../../../src/domain/erc4337/paymaster/Sponsorship.js"
import type { UserOperation } from "../../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../../src/domain/signature/Conditions.js"
import * as InterruptedAt from "../../../support/InterruptedAt.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import * as Ops from "../../../support/lanes/Ops.js"
import * as Parties from "../../../support/Parties.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

const entryPoint = EntryPoint.canonical["v0.7"]
const profile = { ...Monitor.profile, remoteBundler: Redacted.make("http://bundler") }

/** Ops that may land until then, and one that may for ever. */
const validUntil = 77
const bounded = (each: UserOperation): UserOperation => ({
  ...each,
  signature: Conditions.encodeSignature({ ...Conditions.none, validUntil }, Hex.unsafe("0x01"))
})
const op = (nonce: bigint, sender = Make.address(0xa1)): UserOperation => ({ ...Ops.plain, sender, nonce })

type Refused = BundlerRpcError["reason"]

/** A bundler that answers so, and what of the ops it, the journal and the watch were told. */
const world = (
  says: {
    readonly chainId?: bigint
    readonly entryPoints?: ReadonlyArray<typeof entryPoint>
    /** By the index of the op; none: it takes it. */
    readonly refuses?: Readonly<Record<number, Refused>>
    /** The words of its refusals. */
    readonly message?: string
    /** It never answers when it is given an op. */
    readonly hangs?: boolean
    /** The node has no block. */
    readonly empty?: boolean
    /** The chain shows the ops already. */
    readonly landed?: boolean
  } = {}
) =>
  Effect.gen(function* () {
    const node = yield* Monitor.node("caller")
    const told: Array<string> = []
    /** Until when the ops may land that are watched. */
    const ends: Array<number> = []
    const error = (reason: Refused) =>
      new BundlerRpcError({
        reason,
        origin: "http://bundler",
        message: says.message ?? `${reason}: AA00`
      })
    const client: BundlerClient = {
      origin: "http://bundler",
      chainId: Effect.succeed(says.chainId ?? Make.chainId),
      entryPoints: Effect.sync(() => says.entryPoints ?? [entryPoint]),
      preVerificationGas: () => Effect.die(new Error("not asked for")),
      find: () => Effect.succeed(null),
      send: (_, userOpHash) =>
        Effect.suspend(() => {
          const index = Number(BigInt(userOpHash))
          told.push(`sent ${index}`)
          if (says.hangs === true) return Effect.never
          const reason = says.refuses?.[index]
          return reason === undefined ? Effect.void : Effect.fail(error(reason))
        })
    }
    const remoteOps: RemoteOps = {
      watch: (held) =>
        Effect.sync((): RemoteInclusions.Entry => {
          told.push(`watched ${held.submission.index}`)
          ends.push(held.validUntil)
          const landed = says.landed === true ? { txHash: Make.word(1), block: null } : null
          return {
            ...held,
            next: 0n,
            hint: null,
            landed,
            lookedAt: 0n,
            missedSince: null,
            givenAt: 0,
            offerAt: 0,
            offerDelay: 0,
            busy: true,
            isTaken: false,
            isTold: false,
            isRefused: false
          }
        }),
      offered: ({ submission }, answer) =>
        Effect.sync(
          () => void told.push(`${answer === "unknown" ? "perhaps taken" : answer} ${submission.index}`)
        ),
      give: () => Effect.die(new Error("no worker hands over")),
      isWatched: () => false,
      resume: () => Effect.void,
      forget: ({ submission }) => Effect.sync(() => void told.push(`forgotten ${submission.index}`))
    }
    const remoteOpJournal = {
      submitRemotely: ({ ops }: RemoteSubmissionIntent) =>
        Effect.sync(() => void told.push(`stored ${ops.map(({ index }) => index)}`)),
      revokeRemote: (_: string, indexes: ReadonlyArray<number>) =>
        Effect.sync(() => void told.push(`revoked ${indexes}`))
    } as unknown as Parameters<typeof RemoteBundler.make>[0]["remoteOpJournal"]
    const bundler = RemoteBundler.make({
      bundlers: { connect: () => Effect.succeed(client) },
      remoteOpJournal,
      remoteOps
    })
    const bundle = (ops: ReadonlyArray<UserOperation>, change: Partial<Bundle> = {}): Bundle => ({
      requestId: "r",
      chain: says.empty === true ? { ...node.chain, block: () => Effect.succeed(null) } : node.chain,
      profile,
      access: Monitor.callers,
      version: "v0.7",
      entryPoint,
      ops: ops.map((each, index) => ({ index, op: each, userOpHash: Make.word(index) })),
      aggregate: null,
      alone: false,
      submitter: Parties.unasked,
      prices: { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n, legacy: false },
      l1Fee: 0n,
      gasBound: 30_000_000n,
      gasOvershoot: Percent.zero,
      ...change
    })
    /** What is told of the ops that are refused, or why none of them goes. */
    const submit = (ops: ReadonlyArray<UserOperation>, change: Partial<Bundle> = {}) =>
      Effect.match(bundler.submit(bundle(ops, change)), {
        onFailure: ({ message, reason }) => ({ message, reason }),
        onSuccess: (refusals) =>
          [...refusals].map(([hash, refusal]) => ({ op: Number(BigInt(hash)), ...refusal }))
      })
    return { ends, submit, told }
  })

describe("a remote bundler", () => {
  const perhaps = ["stored 0", "watched 0", "sent 0", "perhaps taken 0"]

  test("is given no op that it does not serve, that an aggregator signs, or that nobody could look for", function* () {
    const aggregate = { aggregator: Make.address(1), signature: Hex.empty, gas: 0n }
    for (const [says, change, failure] of [
      [
        { chainId: Make.chainId + 1n },
        {},
        { reason: "bundlerUnavailable", message: `it serves chain ${Make.chainId + 1n}` }
      ],
      [
        { entryPoints: [EntryPoint.canonical["v0.6"]] },
        {},
        { reason: "bundlerUnavailable", message: `it does not serve EntryPoint ${entryPoint}` }
      ],
      [{}, { aggregate }, { reason: "refusedByBundler" }],
      [{}, { profile: Monitor.profile }, { reason: "bundlerUnavailable" }],
      [{ empty: true }, {}, { reason: "nodeFailed", message: "the node knows no latest block" }]
    ] as const) {
      const { submit, told } = yield* world(says)
      expect(yield* submit([op(0n)], change)).toMatchObject(failure)
      expect(told).toEqual([])
    }
  })

  test("is given each op after it is stored and watched, as long as its signature says that it may land", function* () {
    const { ends, submit, told } = yield* world()
    expect(yield* submit([bounded(op(0n)), op(1n)])).toEqual([])
    expect(told).toEqual([
      ...["stored 0", "watched 0", "sent 0", "taken 0"],
      ...["stored 1", "watched 1", "sent 1", "taken 1"]
    ])
    expect(ends).toEqual([validUntil, 0])
  })

  test("that refuses an op without an end gives it back, and the later ones of its nonce key are not sent", function* () {
    const { submit, told } = yield* world({ refuses: { 0: "validation" } })
    const earlier = "an earlier operation of the same wallet was refused"
    expect(yield* submit([op(0n), op(1n), op(1n, Make.address(0xa2))])).toEqual([
      { op: 0, message: "validation: AA00", passing: false, mayLand: false },
      { op: 1, message: earlier, passing: true, mayLand: false }
    ])
    expect(told).toEqual([
      ...["stored 0", "watched 0", "sent 0", "revoked 0", "forgotten 0"],
      ...["stored 2", "watched 2", "sent 2", "taken 2"]
    ])
  })

  test("that refuses an op which may land later has it: nothing is given back", function* () {
    const { submit, told } = yield* world({ refuses: { 0: "validation" } })
    expect(yield* submit([bounded(op(0n)), bounded(op(1n))])).toMatchObject([
      { op: 0, message: "validation: AA00", passing: false, mayLand: true },
      { op: 1, passing: true, mayLand: false }
    ])
    expect(told).toEqual(["stored 0", "watched 0", "sent 0", "refused 0"])
  })

  test("that perhaps took an op, or has refused one that the chain shows, keeps it: nothing is given back", function* () {
    for (const says of [
      ...(["unreachable", "notAnRpc", "other"] as const).map((reason) => ({ refuses: { 0: reason } })),
      { refuses: { 0: "validation" as const }, landed: true }
    ]) {
      const { submit, told } = yield* world(says)
      expect(yield* submit([op(0n)])).toEqual([])
      expect(told).toEqual(perhaps)
    }
  })

  test("that has too much to do, or says that the chain has moved on, refuses for now, and has what may land", function* () {
    for (const [reason, message, passing] of [
      ["throttled", "paymaster throttled", true],
      ["rateLimited", "too many requests", true],
      ["validation", "AA25 invalid account nonce", true],
      ["validation", "AA10 sender already constructed", true],
      ["validation", "AA24 signature error", false],
      ["validation", "AA100", false]
    ] as const) {
      const free = yield* world({ refuses: { 0: reason }, message })
      expect(yield* free.submit([op(0n)])).toEqual([{ op: 0, message, passing, mayLand: false }])
      const { submit, told } = yield* world({ refuses: { 0: reason }, message })
      const refusals = yield* submit([bounded(op(0n))])
      // What passes is offered again as it is.
      expect([refusals, told]).toEqual(
        passing
          ? [[], perhaps]
          : [[{ op: 0, message, passing, mayLand: true }], [...perhaps.slice(0, 3), "refused 0"]]
      )
    }
  })

  test("is asked again what it serves, and holds nobody who goes: the op is perhaps taken, and stays watched", function* () {
    const says = { entryPoints: [EntryPoint.canonical["v0.6"]], hangs: true }
    const { submit, told } = yield* world(says)
    expect(yield* submit([op(0n)])).toMatchObject({ reason: "bundlerUnavailable" })
    says.entryPoints = [entryPoint]
    const submitted = yield* Effect.forkChild(submit([op(0n)]))
    yield* Time.adjust("1 minute")
    yield* Fiber.interrupt(submitted)
    expect(told).toEqual(perhaps)
  })

  test("has, or perhaps has, each op that is watched, whenever its submission is interrupted", function* () {
    const ways = new Set<string>()
    for (let step = 1; step <= 150; step++) {
      const { submit, told } = yield* world({ refuses: { 1: "validation" } })
      yield* InterruptedAt.step(step, submit([op(0n), op(1n)]))
      ways.add(told.join(", "))
    }
    const whole = ["stored 0", "watched 0", "sent 0", "taken 0"]
    const refused = ["stored 1", "watched 1", "sent 1", "revoked 1", "forgotten 1"]
    expect([...ways].sort()).toEqual(
      [
        [],
        ["stored 0", "watched 0", "perhaps taken 0"],
        perhaps,
        whole,
        [...whole, "stored 1", "watched 1", "perhaps taken 1"],
        [...whole, "stored 1", "watched 1", "sent 1", "perhaps taken 1"],
        [...whole, ...refused]
      ]
        .map((way) => way.join(", "))
        .sort()
    )
  })
})

it("the last second at which an op may land is the earlier one of its signature's and its sponsor's, and no bound is later than any", () => {
  for (const version of EntryPoint.versions)
    for (const [own, sponsors, last] of [
      [70, 80, 70],
      [80, 70, 70],
      [0, 70, 70],
      [70, 0, 70],
      [0, 0, 0]
    ] as const) {
      const signature = Conditions.encodeSignature(
        { ...Conditions.none, validUntil: own },
        Hex.unsafe("0x01")
      )
      const sponsored = {
        ...op(0n),
        signature: Sponsorship.append(signature, Sponsorship.dummy),
        paymasterAndData: Sponsorship.paymasterData(version, {
          paymaster: Make.address(0x5a),
          validUntil: sponsors,
          validAfter: 0,
          limits: { verificationGasLimit: 1n, postOpGasLimit: 1n },
          unbound: true
        })
      }
      expect(RemoteInclusions.validUntilOf(version, sponsored), `${version} ${own} ${sponsors}`).toBe(last)
      expect(RemoteInclusions.validUntilOf(version, { ...op(0n), signature })).toBe(own)
    }
})
