import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { AwaitedOp, Held } from "../../../../src/application/lanes/remote/RemoteInclusions.js"
import type { Remote } from "../../../../src/application/lanes/worker/LaneState.js"
import { type BundlerClient, BundlerRpcError } from "../../../../src/application/ports/chain/BundlerRpc.js"
import type { Handover } from "../../../../src/application/ports/journal/RemoteSubmissions.js"
import * as UserOperation from "../../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"
import * as Rows from "../../../support/worker/Rows.js"
import * as World from "../../../support/worker/World.js"

type Answer = Parameters<Remote["ops"]["give"]>[1]
type Refusal = BundlerRpcError["reason"]

const refusal = (reason: Refusal, message = "AA00") =>
  new BundlerRpcError({ reason, origin: "http://bundler", message })

/** A lane whose ops go to a remote bundler, which answers when the test says so. */
const make = (options: { readonly aggregator?: true } = {}) =>
  Effect.gen(function* () {
    /** In order: recorded, given and taken-back ops. */
    const log: Array<string> = []
    const given: Array<{ readonly held: Held; readonly answered: Answer; isAnswered: boolean }> = []
    const served: { error: BundlerRpcError | null; chainId: bigint } = { error: null, chainId: Make.chainId }
    const bundler = {
      origin: "http://bundler",
      chainId: Effect.suspend(() =>
        served.error === null ? Effect.succeed(served.chainId) : Effect.fail(served.error)
      ),
      entryPoints: Effect.succeed([World.entryPoint])
    } as unknown as BundlerClient
    const doubtful: Array<string> = []
    const remoteOf = (rows: Rows.Rows): Remote => ({
      ops: {
        forget: ({ submission }) => Effect.sync(() => void log.push(`forgotten ${submission.requestId}`)),
        give: (held, answered) =>
          Effect.sync(() => {
            log.push(`given ${held.submission.requestId}`)
            given.push({ held, answered, isAnswered: false })
          })
      },
      journal: {
        handOver: (_: unknown, { ops }: Handover) =>
          Effect.gen(function* () {
            const { after, before } = rows.faults
            rows.faults.before = null
            rows.faults.after = null
            if (before !== null) return yield* before
            const own = ops.flatMap(({ opId, userOpHash }) => {
              const op = rows.ops.get(opId)
              return op !== undefined && (op.userOpHash ?? userOpHash) === userOpHash ? [op] : []
            })
            const fresh = own.filter(({ state }) => state === "accepted")
            for (const op of fresh) rows.put({ ...op, state: "sent", exposed: true })
            if (fresh.length > 0) log.push(`recorded ${fresh.map(({ requestId }) => requestId)}`)
            if (after !== null) return yield* after
            return own.filter(({ state }) => state === "accepted" || state === "sent").map(({ opId }) => opId)
          }),
        takeBack: (_: unknown, hashes, isDead) =>
          Effect.sync(() => {
            for (const op of rows
              .all("sent")
              .filter(({ userOpHash }) => hashes.some((it) => it === userOpHash))) {
              const { index, requestId } = op
              log.push(`taken back ${requestId}${isDead ? ", dead" : ""}`)
              const isOver = isDead && rows.failed.get(requestId)?.some((each) => each.index === index)
              rows.put({
                ...op,
                state: isOver === true ? "abandoned" : "accepted",
                exposed: !isDead,
                prepared: null
              })
            }
          })
      },
      bundlers: { connect: () => Effect.succeed(bundler) },
      refused: (requestIds) => Effect.sync(() => void doubtful.push(...requestIds))
    })
    const world = yield* World.make({
      profile: { remoteBundler: Redacted.make("http://bundler") },
      remote: remoteOf,
      ...(options.aggregator === true && { aggregator: Make.address(0xa6) })
    })
    const { rows } = world
    /** The bundler answers for the request's first unanswered op. */
    const answer = (requestId: string, error: BundlerRpcError | null = null) =>
      Effect.gen(function* () {
        const open = given.find(
          ({ held, isAnswered }) => held.submission.requestId === requestId && !isAnswered
        )
        if (open === undefined) return yield* Effect.die(new Error(`no op of ${requestId} was given`))
        open.isAnswered = true
        yield* open.answered(open.held as unknown as AwaitedOp, error)
        yield* Time.settle
      })
    const settle = (opId: number, success = true) =>
      Effect.suspend(() => {
        const op = rows.ops.get(opId)
        if (op !== undefined) {
          rows.put({ ...op, state: "settled", success })
          world.sequences.set(`${op.space.wallet} ${op.nonceKey}`, op.sequence + 1n)
        }
        return Effect.andThen(world.wake, Time.settle)
      })
    const begin = Effect.andThen(world.wake, Time.settle)
    /** Ops given to the bundler, by request, with their nonces. */
    const gave = () =>
      given.map(({ held: { offer, submission } }) => [submission.requestId, offer?.op.nonce ?? null])
    const failures = () =>
      [...rows.failed].flatMap(([requestId, all]) =>
        all.map(({ code, index, message }) => `${requestId} ${index} ${code}: ${message}`)
      )
    return { ...world, answer, begin, doubtful, failures, gave, given, log, served, settle }
  })

const wallet = Make.address(0x77)
const chained = (requestId: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({
    opId: index + 1,
    over: {
      prepared: { requestId, index, dependsOn: index === 0 ? [] : [index - 1] }
    }
  }))

describe("a lane at a remote bundler", () => {
  test("records ops as handed over and exposed before it gives any of them", function* () {
    const world = yield* make()
    for (const opId of [1, 2, 3]) world.accept(opId)
    yield* world.begin
    expect(world.log).toEqual(["recorded r1,r2,r3", "given r1", "given r2", "given r3"])
    expect(world.rows.all("sent").map(({ exposed }) => exposed)).toEqual([true, true, true])
    expect(world.rows.transactions.size).toBe(0)
    const [first] = world.given
    const signed = UserOperation.decode("v0.7", first?.held.submission.signed ?? Hex.empty)
    expect(signed).toMatchObject({ success: first?.held.offer?.op })
    expect(first?.held.submission.userOpHash).toBe(world.rows.ops.get(1)?.userOpHash)
  })

  test("gives the next op of a nonce key once the bundler has answered for the previous one", function* () {
    const world = yield* make()
    for (const sequence of [0n, 1n, 2n]) world.accept(Number(sequence) + 1, { wallet, sequence })
    yield* world.begin
    expect(world.gave()).toEqual([["r1", 0n]])
    yield* world.answer("r1")
    yield* world.answer("r2")
    expect(world.gave()).toEqual([
      ["r1", 0n],
      ["r2", 1n],
      ["r3", 2n]
    ])
    expect(world.failures()).toEqual([])
  })

  test("records a refusal immediately, reports it, and gives later ops other nonces", function* () {
    const world = yield* make()
    const window = { validAfter: 0, validUntil: 9_999 }
    for (const sequence of [0n, 1n])
      world.accept(Number(sequence) + 1, { wallet, sequence, prepared: { window } })
    yield* world.begin
    yield* world.answer("r1", refusal("validation", "AA23 reverted"))
    expect(world.failures()).toEqual([
      "r1 0 bundler_refused: the bundler refused the operation: AA23 reverted"
    ])
    expect(world.rows.ops.get(1)).toMatchObject({ state: "sent", exposed: true })
    expect([world.doubtful, world.told]).toEqual([["r1"], ["r1"]])
    expect(world.gave()).toEqual([
      ["r1", 0n],
      ["r2", 2n << 64n]
    ])
  })

  test("immediately abandons a refused op that was signed without an end", function* () {
    const world = yield* make()
    world.accept(1)
    yield* world.begin
    yield* world.answer("r1", refusal("validation"))
    expect(world.rows.ops.get(1)).toMatchObject({ state: "abandoned", exposed: false })
    expect(world.log.slice(-2)).toEqual(["taken back r1, dead", "forgotten r1"])
  })

  test("reprices an op refused for its price under its nonce, and counts a second refusal", function* () {
    const world = yield* make()
    world.accept(1)
    yield* world.begin
    world.node.offered = 4n * 10n ** 9n
    yield* world.answer("r1", refusal("invalid", "maxFeePerGas is too low"))
    expect(world.failures()).toEqual([])
    expect(world.given.map(({ held }) => held.offer?.op.maxFeePerGas)).toEqual([
      3n * 10n ** 9n,
      4n * 10n ** 9n
    ])
    expect(world.gave().map(([, nonce]) => nonce)).toEqual([0n, 0n])
    // Its first bytes may still land: they remain a version of it.
    expect(world.rows.ops.get(1)?.state).toBe("abandoned")
    yield* world.answer("r1", refusal("invalid", "maxFeePerGas is too low"))
    expect(world.failures()).toHaveLength(1)
    expect(world.given).toHaveLength(2)
  })

  test("gives a dependent op once the op before it has landed", function* () {
    const world = yield* make()
    for (const { opId, over } of chained("chain", 3)) world.accept(opId, over)
    yield* world.begin
    yield* world.answer("chain")
    yield* Time.adjust("1 minute")
    expect(world.given).toHaveLength(1)
    yield* world.settle(1)
    expect(world.given).toHaveLength(2)
    yield* world.answer("chain")
    yield* world.settle(2)
    expect(world.given).toHaveLength(3)
  })

  test("gives no op that depends on a failed or refused op", function* () {
    for (const ends of ["reverts", "refused"] as const) {
      const world = yield* make()
      for (const { opId, over } of chained("chain", 3)) world.accept(opId, over)
      yield* world.begin
      if (ends === "refused") yield* world.answer("chain", refusal("validation"))
      else yield* Effect.andThen(world.answer("chain"), world.settle(1, false))
      expect(world.failures().map((each) => each.split(":")[0])).toEqual([
        ...(ends === "refused" ? ["chain 0 bundler_refused"] : []),
        "chain 1 dependency_failed",
        "chain 2 dependency_failed"
      ])
      expect(world.given).toHaveLength(1)
    }
  })

  test("waits for an unusable bundler at growing intervals, and records nothing", function* () {
    for (const spoil of [
      (world: { served: { error: BundlerRpcError | null } }) => {
        world.served.error = refusal("unreachable")
      },
      (world: { served: { chainId: bigint } }) => {
        world.served.chainId += 1n
      }
    ]) {
      const world = yield* make()
      spoil(world)
      world.accept(1)
      yield* world.begin
      for (let second = 0; second < 600; second += 10) yield* Time.adjust("10 seconds")
      expect([world.log, world.failures()]).toEqual([[], []])
      expect(world.node.asked).toBeLessThan(60)
      Object.assign(world.served, { error: null, chainId: Make.chainId })
      yield* Time.adjust("31 seconds")
      expect(world.log).toEqual(["recorded r1", "given r1"])
    }
  })

  test("gives a recorded op once, even if the reply of the record is lost", function* () {
    for (const moment of ["before", "after"] as const) {
      const world = yield* make()
      world.accept(1)
      world.rows.faults[moment] = Rows.away
      yield* world.begin
      yield* Time.adjust("1 second")
      expect(world.log).toEqual(["recorded r1", "given r1"])
    }
  })

  test("gives no ops once another process has the lane", function* () {
    const world = yield* make()
    world.accept(1)
    world.rows.faults.before = Rows.lost
    yield* world.begin
    yield* Time.adjust("1 minute")
    expect(world.log).toEqual([])
  })

  test("skips an op abandoned meanwhile, and gives the others", function* () {
    const world = yield* make()
    for (const opId of [1, 2]) world.accept(opId)
    const { sign } = world.signer
    world.signer.sign = (opId) =>
      Effect.tap(sign(opId), () =>
        Effect.sync(() => {
          const op = world.rows.ops.get(2)
          if (op !== undefined) world.rows.put({ ...op, state: "abandoned" })
        })
      )
    yield* world.begin
    expect(world.log).toEqual(["recorded r1", "given r1"])
  })

  test("prepares a returned op again, and hands it over under its nonce", function* () {
    const world = yield* make()
    world.accept(1)
    yield* world.begin
    yield* world.answer("r1")
    const op = world.rows.ops.get(1)
    if (op !== undefined) world.rows.put({ ...op, state: "accepted", exposed: false, prepared: null })
    yield* world.begin
    expect(world.gave()).toEqual([
      ["r1", 0n],
      ["r1", 0n]
    ])
  })

  test("keeps ops from before its claim under their nonces for the life of a signature", function* () {
    const world = yield* make()
    yield* Time.setTime(1_000_000)
    world.accept(1, { wallet, sequence: 3n })
    yield* world.begin
    for (let second = 0; second < 590; second += 10) yield* Time.adjust("10 seconds")
    expect(world.given).toEqual([])
    for (let second = 0; second < 60; second += 10) yield* Time.adjust("10 seconds")
    expect(world.gave()).toEqual([["r1", 0n]])
  })

  test("gives no op from before its claim until the chain was compared with the journal", function* () {
    const world = yield* make()
    yield* Time.setTime(1_000_000)
    world.accept(1)
    world.rows.put({ ...world.accept(2), acceptedAt: 1_000_000 })
    world.past.look = Effect.fail({ _tag: "Obstacle" as const, why: "the node does not answer" })
    yield* world.begin
    yield* Time.adjust("10 minutes")
    expect(world.log).toEqual(["recorded r2", "given r2"])
    world.past.look = Effect.sync(() => void world.log.push("looked"))
    yield* Time.adjust("1 minute")
    expect(world.log.slice(2)).toEqual(["looked", "recorded r1", "given r1"])
  })

  test("immediately moves younger ops up to the chain's sequence", function* () {
    const world = yield* make()
    world.accept(1, { wallet, sequence: 3n })
    yield* world.begin
    expect(world.gave()).toEqual([["r1", 0n]])
  })

  test("looks up an op whose nonce the chain has used, and does not give it", function* () {
    const world = yield* make()
    world.accept(1, { wallet })
    world.sequences.set(`${wallet} 0`, 1n)
    yield* world.begin
    yield* Time.adjust("1 minute")
    expect(world.log).toEqual([])
  })

  test("takes no ops of aggregators", function* () {
    const world = yield* make({ aggregator: true })
    world.accept(1)
    yield* world.begin
    expect(world.failures()).toEqual([
      "r1 0 bundler_refused: the bundler refused the operation: it takes no ops of aggregators"
    ])
    expect(world.log).toEqual([])
  })

  test("gives 600 simultaneous ops in bundles of 256", function* () {
    const world = yield* make()
    for (let opId = 1; opId <= 600; opId += 1) world.accept(opId)
    yield* world.begin
    yield* Time.settle
    const recorded = world.log.filter((line) => line.startsWith("recorded"))
    expect(recorded.map((line) => line.split(",").length)).toEqual([256, 256, 88])
    expect(new Set(world.given.map(({ held }): Hex.Bytes32 => held.submission.userOpHash)).size).toBe(600)
  })
})
