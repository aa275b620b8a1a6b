import { describe, expect } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as Strays from "../../../../src/application/lanes/worker/recovery/Strays.js"
import type { SubmissionContext } from "../../../../src/application/lanes/worker/rules/Context.js"
import { obstacle } from "../../../../src/application/lanes/worker/rules/Context.js"
import { ChainRpcError } from "../../../../src/application/ports/chain/ChainRpc.js"
import type { Op } from "../../../../src/application/ports/journal/Records.js"
import type { OpCall } from "../../../../src/application/prepare/Call.js"
import type * as UserOperation from "../../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"
import * as Landings from "../../../support/lanes/Landings.js"
import * as Ops from "../../../support/lanes/Ops.js"
import { test } from "../../../support/Test.js"

/** A lane whose journal knows only nonce 0; its EOA has used nonce 1 since, in a block that the node may not show. */
const world = () => {
  const state = {
    refusal: null as ChainRpcError["reason"] | null,
    unopened: new Map<string, ReadonlyArray<OpCall> | null>(),
    fresh: new Set<string>(),
    knownTo: 1n as bigint | null,
    isSilent: false,
    ready: [] as ReadonlyArray<Op>,
    acceptedAt: 0
  }
  const told: Array<string> = []
  const tell = (text: string) => Effect.sync(() => void told.push(text))
  const refused = Effect.suspend(() =>
    state.refusal === null
      ? Effect.void
      : Effect.fail(new ChainRpcError({ reason: state.refusal, origin: "http://node", message: "pruned" }))
  )
  const transaction = {
    from: Make.lane.signer,
    nonce: 1n,
    to: Landings.entryPoint,
    data: Hex.empty,
    value: 0n,
    txHash: Make.word(1),
    maxFeePerGas: 1n,
    maxPriorityFeePerGas: 1n
  }
  const chain = {
    origin: "http://node",
    block: () => Effect.succeed({ number: 3n, hash: Make.word(3), timestamp: 3_600 }),
    transactionCount: (_: unknown, block: unknown) =>
      Effect.as(refused, typeof block === "bigint" && block < 2n ? 1n : 2n),
    transactionsIn: (block: bigint) => Effect.as(refused, block === 2n ? [transaction] : [])
  }
  /** Its logs show the wallets' past. */
  const landings = Landings.makeChain()
  landings.mine(9)
  const context = {
    kind: "ops",
    version: "v0.7",
    entryPoint: Landings.entryPoint,
    access: Make.access(),
    connection: { chain, profile: { ledger: null } }
  } as unknown as SubmissionContext
  const known = Strays.make({
    opJournal: {
      ready: () => Effect.succeed(state.ready.map((op) => ({ ...op, acceptedAt: state.acceptedAt }))),
      publish: (_, opIds) => tell(`published: ${opIds.length}`)
    },
    recoveryJournal: {
      knownTo: () => Effect.succeed(state.knownTo),
      provenAt: () => Effect.succeed(null),
      known: () => Effect.succeed(new Set()),
      openIn: () =>
        Effect.succeed(
          [...state.unopened.keys()].map((requestId) => ({
            requestId,
            acceptedAt: state.acceptedAt
          }))
        ),
      keepUnread: () => tell("kept unread"),
      explain: (_, below) => tell(`explained to ${below}`),
      hold: (_, requestId, why) => Effect.as(tell(`held: ${requestId}, ${why}`), true)
    },
    transactionJournal: { adopt: () => tell("adopted") },
    watch: () => tell("watched"),
    unopened: (requestIds) =>
      state.isSilent
        ? Effect.fail(obstacle("its node is silent"))
        : Effect.succeed(new Map([...state.unopened].filter(([requestId]) => requestIds.includes(requestId))))
  })
  const isFresh = ({ requestId }: { readonly requestId: string }) => state.fresh.has(requestId)
  return {
    from: Effect.result(known.from(Make.lane, context, isFresh)),
    read: Effect.result(known.read(Make.lane, context, [1n], isFresh)),
    holdDone: Effect.result(
      known.holdDone(
        Make.lane,
        { ...context, connection: { ...context.connection, chain: landings.client } },
        1_000
      )
    ),
    landings,
    state,
    told
  }
}

describe("nonces of a lane that the journal lacks", () => {
  test("are read, and known from then on", function* () {
    const { read, told } = world()
    expect(yield* read).toEqual(Result.succeed([{ nonce: 1n, isOurs: false }]))
    expect(told).toEqual(["kept unread", "explained to 2"])
  })

  test("stay unknown while the node is away, however many requests fail", function* () {
    const { read, state, told } = world()
    state.refusal = "unreachable"
    for (let times = 0; times < 9; times += 1) expect(Result.isFailure(yield* read)).toBe(true)
    expect(new Set(told)).toEqual(new Set(["kept unread"]))
  })

  test("hold all work that they may have done when a node refuses three times in a row to show them", function* () {
    const { read, state, told } = world()
    state.unopened.set("later", [])
    for (const refusal of ["rejected", "unsupported", null, "rejected", "rejected"] as const) {
      state.refusal = refusal
      expect(Result.isFailure(yield* read)).toBe(refusal !== null)
    }
    expect(told.filter((text) => text.startsWith("held"))).toEqual([])
    told.length = 0
    expect(yield* read).toEqual(Result.succeed([{ nonce: 1n, isOurs: true }]))
    expect(told).toEqual([
      "kept unread",
      "held: later, transactions of its key since the journal's last entry cannot be read: pruned",
      "published: 0",
      "explained to 2"
    ])
  })

  test("do not matter if other users of the key used them and all work was accepted since", function* () {
    const { from, read, state, told } = world()
    state.knownTo = null
    state.unopened.set("fresh", [])
    expect(yield* from).toEqual(Result.succeed(1n))
    expect(told).toEqual([])
    state.fresh.add("fresh")
    expect(yield* from).toEqual(Result.succeed(2n))
    // A restart may follow before the first signature, when that work is no longer fresh.
    expect(told).toEqual(["explained to 2"])
    state.refusal = "rejected"
    for (let times = 0; times < 3; times += 1) yield* read
    expect(told.filter((text) => text.startsWith("held"))).toEqual([])
  })
})

describe("wallets' ops that the journal lacks", () => {
  const wallet = Make.address(0x77)
  const call = Hex.unsafe("0x1234")
  const unsigned = (nonce: bigint, callData = call): UserOperation.UserOperation => ({
    ...Ops.plain,
    sender: wallet,
    nonce,
    callData
  })
  const ready = (opId: number, nonce: bigint): Op =>
    ({
      opId,
      requestId: `r${opId}`,
      index: 0,
      accountId: Make.access().accountId,
      exposed: false,
      nonceKey: 0n,
      sequence: nonce,
      space: { ...Make.space(1), wallet, entryPoint: Landings.entryPoint },
      prepared: { kind: "op", unsigned: unsigned(nonce) }
    }) as unknown as Op
  test("hold only requests for the same call under another nonce", function* () {
    for (const [op, held] of [
      // The second request's own op.
      [unsigned(5n), []],
      [unsigned(6n), ["held: r1", "held: r2"]],
      [unsigned(6n, Hex.unsafe("0x99")), []]
    ] as const) {
      const { holdDone, landings, state, told } = world()
      state.ready = [ready(1, 0n), ready(2, 5n)]
      landings.landOp(op, Make.chainId)
      expect(yield* holdDone).toEqual(Result.succeed(undefined))
      expect(told.map((text) => text.split(",")[0])).toEqual(held)
    }
  })

  test("hold requests whose wallets have ops that the node does not show, unless accepted after the claim", function* () {
    const { holdDone, landings, state, told } = world()
    state.ready = [ready(1, 0n)]
    landings.landOp(unsigned(6n), Make.chainId, 5n, false)
    yield* holdDone
    expect(told).toEqual([expect.stringContaining("an op that the node does not show")])
    told.length = 0
    state.acceptedAt = 1_000
    yield* holdDone
    expect(told).toEqual([])
  })

  test("hold all work that they may have done when a node refuses three times in a row", function* () {
    const { holdDone, landings, state, told } = world()
    state.ready = [ready(1, 0n)]
    landings.refuseLogs(true)
    for (let times = 0; times < 2; times += 1) expect(Result.isFailure(yield* holdDone)).toBe(true)
    expect(told).toEqual([])
    expect(yield* holdDone).toEqual(Result.succeed(undefined))
    expect(told).toEqual([
      "held: r1, ops of its wallets since its acceptance cannot be read: method not found"
    ])
  })
})
