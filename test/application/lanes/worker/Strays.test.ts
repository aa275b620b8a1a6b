import { describe, expect } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { Context } from "../../../../src/application/lanes/worker/rules/Context.js"
import { obstacle } from "../../../../src/application/lanes/worker/rules/Context.js"
import * as Strays from "../../../../src/application/lanes/worker/Strays.js"
import { ChainRpcError } from "../../../../src/application/ports/chain/ChainRpc.js"
import type { OpCall } from "../../../../src/application/prepare/Call.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"
import * as Landings from "../../../support/lanes/Landings.js"
import { test } from "../../../support/Test.js"

/** A lane of which the journal knows nonce 0 alone; its EOA has used nonce 1 since, in a block that the node shows or not. */
const world = () => {
  const state = {
    refusal: null as ChainRpcError["reason"] | null,
    unopened: new Map<string, ReadonlyArray<OpCall> | null>(),
    isSilent: false
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
  const context = {
    access: Make.access(),
    connection: { chain, profile: { ledger: null } }
  } as unknown as Context
  const known = Strays.make({
    opJournal: {
      ready: () => Effect.succeed([]),
      publish: (_, opIds) => tell(`published: ${opIds.length}`)
    },
    recoveryJournal: {
      knownTo: () => Effect.succeed(1n),
      provenAt: () => Effect.succeed(null),
      known: () => Effect.succeed(new Set()),
      openIn: () =>
        Effect.succeed([...state.unopened.keys()].map((requestId) => ({ requestId, isReleased: false }))),
      keepUnread: () => tell("kept unread"),
      explain: (_, below) => tell(`explained to ${below}`),
      hold: (_, requestId, why) => Effect.as(tell(`held: ${requestId}, ${why}`), true)
    },
    requestJournal: { request: () => Effect.succeed(null) },
    transactionJournal: { adopt: () => tell("adopted") },
    watch: () => tell("watched"),
    unopened: () =>
      state.isSilent ? Effect.fail(obstacle("its node is silent")) : Effect.succeed(state.unopened)
  })
  return { read: Effect.result(known.read(Make.lane, context, [1n])), state, told }
}

describe("nonces of a lane that the journal does not know", () => {
  test("are read, and known from then on", function* () {
    const { read, told } = world()
    expect(yield* read).toEqual(Result.succeed([{ nonce: 1n, isOurs: false }]))
    expect(told).toEqual(["kept unread", "explained to 2"])
  })

  test("stay unknown as long as the node is away, however often it is asked", function* () {
    const { read, state, told } = world()
    state.refusal = "unreachable"
    for (let times = 0; times < 9; times += 1) expect(Result.isFailure(yield* read)).toBe(true)
    expect(new Set(told)).toEqual(new Set(["kept unread"]))
  })

  test("have all work held that they may have done when a node refuses to show them three times in a row", function* () {
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
      "held: later, what its key has done since the journal's last entry cannot be read: pruned",
      "published: 0",
      "explained to 2"
    ])
  })
})
