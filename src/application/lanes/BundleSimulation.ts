import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import * as FailedOp from "../../domain/erc4337/FailedOp.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import type * as SubmitterReimbursement from "../../domain/erc4337/gas/SubmitterReimbursement.js"
import * as Outcome from "../../domain/erc4337/Outcome.js"
import * as UserOperation from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import type { Aggregate, SignedOp } from "../ports/chain/Bundler.js"
import {
  type Call,
  type CallResult,
  type ChainClient,
  ChainRpcError,
  type SimulatedCall
} from "../ports/chain/ChainRpc.js"

/** A bundle's transaction as it would be sent now. */
export interface Simulation {
  readonly chain: ChainClient
  readonly version: Version
  readonly entryPoint: Address
  /** The submitting EOA, also the beneficiary. */
  readonly submitter: Address
  readonly ops: ReadonlyArray<SignedOp>
  /** Null: each op has its own signature. */
  readonly aggregate: Aggregate | null
  /** Gas limit of the transaction. */
  readonly gas: bigint
}

/** Calldata of the transaction: `handleOps`, or `handleAggregatedOps` with the ops as its one group. */
export const dataOf = (
  { aggregate, submitter, version }: Pick<Simulation, "aggregate" | "submitter" | "version">,
  signed: Simulation["ops"]
): Hex.Hex => {
  const ops = signed.map(({ op }) => op)
  return aggregate === null
    ? UserOperation.handleOps(version, ops, submitter)
    : UserOperation.handleAggregatedOps(version, [{ ...aggregate, ops }], submitter)
}

const callOf = (simulation: Simulation, ops: Simulation["ops"]): Call => ({
  from: simulation.submitter,
  to: simulation.entryPoint,
  data: dataOf(simulation, ops),
  gas: simulation.gas
})

/** What a simulation says of a bundle. */
export interface SimulatedBundle {
  /** The ops that would not succeed, with their revert data; none: the bundle may go. */
  readonly refused: ReadonlyMap<Hex.Bytes32, Hex.Hex>
  /**
   * Gas of the transaction, and gas for which the EntryPoint charged the ops together; null when it would not go through, or
   * the node tells no logs.
   */
  readonly gas: SubmitterReimbursement.BundleGas | null
}

/** Which ops would not succeed, with their revert data, as far as this simulation says. */
const refusedIn = (
  { entryPoint }: Simulation,
  ops: Simulation["ops"],
  simulated: SimulatedCall | CallResult
): Map<Hex.Bytes32, Hex.Hex> => {
  const refused = new Map<Hex.Bytes32, Hex.Hex>()
  if (!simulated.success) {
    const index = FailedOp.opIndex(simulated.data)
    const named = index === null ? undefined : ops[index]
    if (named !== undefined) refused.set(named.userOpHash, simulated.data)
    return refused
  }
  if (!("logs" in simulated)) return refused
  const outcomes = Outcome.parse(entryPoint, simulated.logs)
  for (const { userOpHash } of ops) {
    const outcome = outcomes.get(userOpHash)
    if (outcome?.success !== true) refused.set(userOpHash, outcome?.revertData ?? Hex.empty)
  }
  return refused
}

/** One transaction on top of the latest block. A node without `eth_simulateV1` tells reverts only, and no logs. */
const simulateCall = (
  chain: ChainClient,
  call: Call
): Effect.Effect<SimulatedCall | CallResult, ChainRpcError> =>
  Effect.flatMap(chain.simulate([call]), ([result]) =>
    result === undefined
      ? Effect.fail(
          new ChainRpcError({ reason: "notAnRpc", origin: chain.origin, message: "nothing was simulated" })
        )
      : Effect.succeed(result)
  ).pipe(
    Effect.catchIf(
      (error) => error.reason === "unsupported",
      () => chain.call(call)
    )
  )

/** What the bundle takes and is charged for. Its calldata costs what it costs, whatever the node has counted of it. */
const gasOf = (
  { entryPoint }: Simulation,
  call: Call,
  simulated: SimulatedCall | CallResult
): SimulatedBundle["gas"] => {
  if (!simulated.success || !("logs" in simulated)) return null
  const charged = [...Outcome.parse(entryPoint, simulated.logs).values()].map((one) => one.actualGasUsed)
  const used = BigInts.max(simulated.gasUsed, Gas.leastOf(call.data ?? Hex.empty))
  return { used, charged: charged.reduce((sum, gas) => sum + gas, 0n) }
}

/**
 * Tries the bundle on top of the latest block. When a revert names no op, it is the last one of the shortest beginning
 * of the bundle that reverts.
 */
export const run = (simulation: Simulation): Effect.Effect<SimulatedBundle, ChainRpcError> =>
  Effect.gen(function* () {
    const { chain, ops } = simulation
    const call = callOf(simulation, ops)
    const whole = yield* simulateCall(chain, call)
    const refused = refusedIn(simulation, ops, whole)
    if (whole.success || refused.size > 0) return { refused, gas: gasOf(simulation, call, whole) }
    if (simulation.aggregate !== null) {
      // One signature is that of all of them: it proves no part.
      for (const { userOpHash } of ops) refused.set(userOpHash, whole.data)
      return { refused, gas: null }
    }
    let [passing, reverting, data] = [0, ops.length, whole.data]
    while (reverting - passing > 1) {
      const middle = (passing + reverting) >> 1
      const part = yield* simulateCall(chain, callOf(simulation, ops.slice(0, middle)))
      if (part.success) passing = middle
      else [reverting, data] = [middle, part.data]
    }
    const blamed = ops[reverting - 1]
    if (blamed !== undefined) refused.set(blamed.userOpHash, data)
    return { refused, gas: null }
  })
