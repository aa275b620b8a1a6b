import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { getAddress, Interface } from "ethers"
import type * as EoaNonces from "../../../../src/application/chain/EoaNonces.js"
import type { Aggregate } from "../../../../src/application/lanes/worker/Aggregate.js"
import * as Simulate from "../../../../src/application/lanes/worker/Simulate.js"
import {
  type Call,
  type ChainClient,
  ChainRpcError,
  type SimulatedCall
} from "../../../../src/application/ports/chain/ChainRpc.js"
import * as EntryPoint from "../../../../src/domain/erc4337/EntryPoint.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"
import * as Ops from "../../../support/lanes/Ops.js"
import { test } from "../../../support/Test.js"

const entryPoint = EntryPoint.canonical["v0.7"]
const op =
  "(address sender, uint256 nonce, bytes initCode, bytes callData, bytes32 accountGasLimits, uint256 preVerificationGas, bytes32 gasFees, bytes paymasterAndData, bytes signature)"
const abi = new Interface([
  `function handleOps(${op}[] ops, address beneficiary)`,
  `function handleAggregatedOps((${op}[] userOps, address aggregator, bytes signature)[] perAggregator, address beneficiary)`,
  "event BeforeExecution()",
  "event UserOperationEvent(bytes32 indexed userOpHash, address indexed sender, address indexed paymaster, uint256 nonce, bool success, uint256 actualGasCost, uint256 actualGasUsed)",
  "event UserOperationRevertReason(bytes32 indexed userOpHash, address indexed sender, uint256 nonce, bytes revertReason)",
  "error FailedOp(uint256 opIndex, string reason)"
])

/** Outcome of an op, by its nonce. */
type Fate = "succeeds" | "reverts" | "leaves no event" | "is named" | "names nobody"

const dead = Hex.unsafe("0xdead")
const failedOp = (index: number) => Hex.unsafe(abi.encodeErrorResult("FailedOp", [index, "AA23 reverted"]))
const charged = 30_000n

/** The chain's answer to a transaction with ops of these fates, by what ethers reads of its calldata. */
const answerOf = (fates: ReadonlyArray<Fate>, call: Call, gasUsed: bigint): SimulatedCall => {
  const { args, name } = abi.parseTransaction({ data: call.data ?? "0x" }) ?? { args: [], name: "" }
  const nonces: ReadonlyArray<bigint> = (name === "handleOps" ? args[0] : args[0][0][0]).map(
    (each: ReadonlyArray<bigint>) => each[1]
  )
  const reverting = nonces.findIndex((nonce) => /name/.test(fates[Number(nonce)] ?? ""))
  if (reverting >= 0) {
    const named = fates[Number(nonces[reverting])] === "is named"
    return { success: false, data: named ? failedOp(reverting) : dead, gasUsed, logs: [] }
  }
  const events: Array<{ readonly topics: ReadonlyArray<string>; readonly data: string }> = [
    abi.encodeEventLog("BeforeExecution", [])
  ]
  for (const nonce of nonces) {
    const fate = fates[Number(nonce)]
    const hash = Make.word(Number(nonce))
    const sender = Ops.plain.sender
    if (fate === "leaves no event") continue
    if (fate === "reverts")
      events.push(abi.encodeEventLog("UserOperationRevertReason", [hash, sender, nonce, dead]))
    const success = fate === "succeeds"
    const { zero } = Address
    const values = [hash, sender, zero, nonce, success, 1n, charged]
    events.push(abi.encodeEventLog("UserOperationEvent", values))
  }
  const logs = events.map(({ data, topics }, logIndex) => ({
    address: entryPoint,
    topics: topics.map((topic) => Hex.unsafe32(topic)),
    data: Hex.unsafe(data),
    logIndex
  }))
  return { success: true, data: Hex.empty, gasUsed, logs }
}

/** A bundle of ops with these fates, and the number of node calls. */
const world = (
  fates: ReadonlyArray<Fate>,
  options: {
    readonly aggregate?: Aggregate
    readonly gasUsed?: bigint
    /** Failure of `eth_simulateV1`. */
    readonly fails?: ChainRpcError["reason"]
    readonly returnsNothing?: boolean
    readonly nonces?: Partial<EoaNonces.EoaNonces>
  } = {}
) => {
  const { aggregate = null, fails, gasUsed = 1_000_000n, returnsNothing = false } = options
  const asked: Array<Call> = []
  const chain = {
    origin: "http://node",
    simulate: ([call]: ReadonlyArray<Call>) => {
      if (fails !== undefined)
        return Effect.fail(new ChainRpcError({ reason: fails, origin: "http://node", message: fails }))
      if (call === undefined || returnsNothing) return Effect.succeed([])
      asked.push(call)
      return Effect.sync(() => [answerOf(fates, call, gasUsed)])
    },
    call: (call: Call) =>
      Effect.sync(() => {
        asked.push(call)
        const { data, success } = answerOf(fates, call, gasUsed)
        return { data, success }
      })
  } as unknown as ChainClient
  const trial: Simulate.Trial = {
    version: "v0.7",
    entryPoint,
    ops: fates.map((_, opId) => ({
      opId,
      op: { ...Ops.plain, nonce: BigInt(opId) },
      userOpHash: Make.word(opId)
    })),
    aggregate,
    gas: 5_000_000n
  }
  const facts = {
    balance: () => Effect.succeed(0n),
    block: () => Effect.succeed(null),
    fees: () => Effect.succeed(null)
  }
  const nonces = { latest: 3n, next: 3n, ...options.nonces }
  return {
    asked,
    run: Effect.map(
      Simulate.simulate(chain, facts as never, () => Effect.succeed(nonces), Make.lane.signer, [trial]),
      ({ results }) => results[0]
    )
  }
}

describe("the simulation of a bundle", () => {
  test("asks once for the transaction that would be sent, and returns what it uses and charges", function* () {
    const { asked, run } = world(["succeeds", "succeeds", "succeeds"])
    expect(yield* run).toEqual({ _tag: "passes", gas: { used: 1_000_000n, charged: 3n * charged } })
    expect(asked).toMatchObject([{ from: Make.lane.signer, to: entryPoint, gas: 5_000_000n }])
    const { args } = abi.parseTransaction({ data: asked[0]?.data ?? "0x" }) ?? { args: [] }
    expect(args[1]).toBe(getAddress(Make.lane.signer))
  })

  test("refuses ops whose calls revert, with their revert data, and ops without an event", function* () {
    const ops = new Map([
      [1, dead],
      [2, Hex.empty]
    ])
    expect(yield* world(["succeeds", "reverts", "leaves no event"]).run).toEqual({ _tag: "refuses", ops })
  })

  test("refuses the op that the EntryPoint names", function* () {
    const { run } = world(["succeeds", "is named", "succeeds"])
    expect(yield* run).toEqual({ _tag: "refuses", ops: new Map([[1, failedOp(1)]]) })
  })

  test("names no op when the transaction reverts without a name", function* () {
    expect(yield* world(["succeeds", "names nobody"]).run).toEqual({ _tag: "fault", data: dead })
  })

  test("names no op under an aggregated signature: the ops fail together", function* () {
    const aggregate = { aggregator: Make.address(1), signature: dead, gas: 0n }
    const { asked, run } = world(["succeeds", "is named"], { aggregate })
    expect(yield* run).toEqual({ _tag: "fault", data: failedOp(1) })
    expect(asked[0]?.data.slice(0, 10)).toBe(abi.getFunction("handleAggregatedOps")?.selector)
  })

  test("takes the calldata's own cost as gas used when the node returns less", function* () {
    const result = yield* world(["succeeds"], { gasUsed: 1n }).run
    expect(result?._tag === "passes" ? result.gas?.used : null).toBeGreaterThan(21_000n)
  })

  test("on a node without eth_simulateV1 finds reverts, and neither gas nor failures within", function* () {
    const within = world(["reverts"], { fails: "unsupported" })
    expect(yield* within.run).toEqual({ _tag: "passes", gas: null })
    const named = world(["succeeds", "is named"], { fails: "unsupported" })
    expect(yield* named.run).toEqual({ _tag: "refuses", ops: new Map([[1, failedOp(1)]]) })
  })

  test("fails when the node fails, returns nothing, or returns an impossible nonce", function* () {
    const silent = world(["succeeds"], { fails: "unreachable" })
    expect((yield* Effect.flip(silent.run)).reason).toBe("unreachable")
    expect(silent.asked).toEqual([])
    const empty = world(["succeeds"], { returnsNothing: true })
    expect((yield* Effect.flip(empty.run)).reason).toBe("notAnRpc")
    const senseless = world(["succeeds"], { nonces: { next: 2n ** 63n } })
    expect((yield* Effect.flip(senseless.run)).reason).toBe("notAnRpc")
  })
})
