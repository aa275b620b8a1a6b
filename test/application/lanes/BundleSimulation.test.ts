import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { getAddress, Interface, keccak256 } from "ethers"
import * as BundleSimulation from "../../../src/application/lanes/BundleSimulation.js"
import type { Aggregate } from "../../../src/application/ports/chain/Bundler.js"
import {
  type Call,
  type ChainClient,
  ChainRpcError,
  type SimulatedCall
} from "../../../src/application/ports/chain/ChainRpc.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"
import * as Ops from "../../support/lanes/Ops.js"
import { test } from "../../support/Test.js"

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

/** What becomes of an op, by its nonce. */
type Fate = "succeeds" | "reverts" | "leaves no event" | "is named" | "names nobody" | "is not"

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

/** A bundle of ops with these fates, and how often the node was asked. */
const world = (
  fates: ReadonlyArray<Fate>,
  options: {
    readonly aggregate?: Aggregate
    readonly gasUsed?: bigint
    /** What `eth_simulateV1` fails with. */
    readonly fails?: ChainRpcError["reason"]
    readonly tellsNothing?: boolean
  } = {}
) => {
  const { aggregate = null, fails, gasUsed = 1_000_000n, tellsNothing = false } = options
  const asked: Array<Call> = []
  const chain = {
    origin: "http://node",
    simulate: ([call]: ReadonlyArray<Call>) => {
      if (fails !== undefined)
        return Effect.fail(new ChainRpcError({ reason: fails, origin: "http://node", message: fails }))
      if (call === undefined || tellsNothing) return Effect.succeed([])
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
  const simulation: BundleSimulation.Simulation = {
    chain,
    version: "v0.7",
    entryPoint,
    submitter: Make.lane.signer,
    ops: fates.map((_, index) => ({
      index,
      op: { ...Ops.plain, nonce: BigInt(index) },
      userOpHash: Make.word(index)
    })),
    aggregate,
    gas: 5_000_000n
  }
  return { asked, run: BundleSimulation.run(simulation) }
}

const refusedOf = ({ refused }: BundleSimulation.SimulatedBundle) => [...refused]

describe("the simulation of a bundle", () => {
  test("asks once for the transaction that would be sent, and tells what it takes and charges", function* () {
    const { asked, run } = world(["succeeds", "succeeds", "succeeds"])
    const simulated = yield* run
    expect(refusedOf(simulated)).toEqual([])
    expect(simulated.gas).toEqual({ used: 1_000_000n, charged: 3n * charged })
    expect(asked).toHaveLength(1)
    expect(asked[0]).toMatchObject({ from: Make.lane.signer, to: entryPoint, gas: 5_000_000n })
    const { args } = abi.parseTransaction({ data: asked[0]?.data ?? "0x" }) ?? { args: [] }
    expect(args[1]).toBe(getAddress(Make.lane.signer))
  })

  test("refuses the ops whose calls revert, with their revert data, and those that leave no event", function* () {
    const { run } = world(["succeeds", "reverts", "leaves no event"])
    expect(refusedOf(yield* run)).toEqual([
      [Make.word(1), dead],
      [Make.word(2), Hex.empty]
    ])
  })

  test("refuses the op that the EntryPoint names, and asks nothing more", function* () {
    const { asked, run } = world(["succeeds", "is named", "succeeds"])
    const simulated = yield* run
    expect(refusedOf(simulated)).toEqual([[Make.word(1), failedOp(1)]])
    expect(simulated.gas).toBeNull()
    expect(asked).toHaveLength(1)
  })

  test("finds the op that makes the bundle revert without a name, whichever it is, by halving", function* () {
    for (const count of [1, 2, 3, 4, 5, 8, 13])
      for (let at = 0; at < count; at += 1) {
        const fates = Array.from({ length: count }, (_, index) =>
          index === at ? ("names nobody" as const) : ("succeeds" as const)
        )
        const { asked, run } = world(fates)
        const simulated = yield* run
        expect(refusedOf(simulated), `${at} of ${count}`).toEqual([[Make.word(at), dead]])
        expect(simulated.gas).toBeNull()
        expect(asked.length).toBeLessThanOrEqual(1 + Math.ceil(Math.log2(count)))
      }
  })

  test("refuses all ops under one aggregated signature when their transaction reverts without a name", function* () {
    const aggregate = { aggregator: Make.address(1), signature: dead, gas: 0n }
    const { asked, run } = world(["succeeds", "names nobody"], { aggregate })
    const simulated = yield* run
    expect(refusedOf(simulated)).toEqual([
      [Make.word(0), dead],
      [Make.word(1), dead]
    ])
    expect(simulated.gas).toBeNull()
    expect(asked).toHaveLength(1)
    expect(keccak256(asked[0]?.data.slice(0, 10) ?? "0x")).toBe(
      keccak256(abi.getFunction("handleAggregatedOps")?.selector ?? "0x")
    )
  })

  test("takes the calldata's own cost for the gas where the node tells less", function* () {
    const { run } = world(["succeeds"], { gasUsed: 1n })
    const { gas } = yield* run
    expect(gas?.used).toBeGreaterThan(21_000n)
  })

  test("on a node without eth_simulateV1 tells reverts, and neither gas nor what reverts within", function* () {
    const within = world(["reverts"], { fails: "unsupported" })
    expect(yield* within.run).toEqual({ refused: new Map(), gas: null })
    const named = world(["succeeds", "is named"], { fails: "unsupported" })
    expect(refusedOf(yield* named.run)).toEqual([[Make.word(1), failedOp(1)]])
  })

  test("fails with what the node fails with, and when the node tells nothing", function* () {
    const silent = world(["succeeds"], { fails: "unreachable" })
    expect((yield* Effect.flip(silent.run)).reason).toBe("unreachable")
    expect(silent.asked).toEqual([])
    const empty = world(["succeeds"], { tellsNothing: true })
    expect((yield* Effect.flip(empty.run)).reason).toBe("notAnRpc")
  })
})
