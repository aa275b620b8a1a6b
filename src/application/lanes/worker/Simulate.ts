import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import * as FailedOp from "../../../domain/erc4337/FailedOp.js"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import type * as SubmitterReimbursement from "../../../domain/erc4337/gas/SubmitterReimbursement.js"
import * as Outcome from "../../../domain/erc4337/Outcome.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import * as EoaNonces from "../../chain/EoaNonces.js"
import {
  type Block,
  type Call,
  type CallResult,
  type ChainClient,
  ChainRpcError,
  type NetworkFees,
  type SimulatedCall
} from "../../ports/chain/ChainRpc.js"
import type { OpId, SignedOp } from "../../ports/journal/Records.js"
import type { Aggregate } from "./Aggregate.js"

/** Simulates a lane's next transaction on the node just before it is signed; `Send` decides by the results. */

/** A transaction as it would be sent now. */
export interface Trial {
  readonly version: Version
  readonly entryPoint: Address
  readonly ops: ReadonlyArray<SignedOp>
  readonly aggregate: Aggregate | null
  readonly gas: bigint
}

export type Result =
  /** `gas`: null if the node returns no logs. */
  | { readonly _tag: "passes"; readonly gas: SubmitterReimbursement.BundleGas | null }
  /** These ops would fail, with their revert data. */
  | { readonly _tag: "refuses"; readonly ops: ReadonlyMap<OpId, Hex.Hex> }
  /** It would revert without naming an op. */
  | { readonly _tag: "fault"; readonly data: Hex.Hex }

/** Data read for one transaction, in one batch. */
export interface Simulation {
  readonly block: Block | null
  readonly fees: NetworkFees
  readonly nonces: EoaNonces.EoaNonces
  readonly balance: bigint
  /** In the order of the trials. */
  readonly results: ReadonlyArray<Result>
}

/** Calldata of the transaction: `handleOps`, or `handleAggregatedOps` with the ops as its one group. */
const dataOf = ({ aggregate, ops: signed, version }: Trial, submitter: Address): Hex.Hex => {
  const ops = signed.map(({ op }) => op)
  return aggregate === null
    ? UserOperation.handleOps(version, ops, submitter)
    : UserOperation.handleAggregatedOps(version, [{ ...aggregate, ops }], submitter)
}

export const callOf = (submitter: Address, trial: Trial): Call => ({
  from: submitter,
  to: trial.entryPoint,
  data: dataOf(trial, submitter),
  gas: trial.gas
})

/** A node without `eth_simulateV1` returns only reverts, no logs. */
const attempt = (chain: ChainClient, call: Call): Effect.Effect<SimulatedCall | CallResult, ChainRpcError> =>
  Effect.flatMap(chain.simulate([call]), ([result]) =>
    result === undefined
      ? new ChainRpcError({ reason: "notAnRpc", origin: chain.origin, message: "nothing was simulated" })
      : Effect.succeed(result)
  ).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "unsupported",
      () => chain.call(call)
    )
  )

const resultOf = (trial: Trial, call: Call, simulated: SimulatedCall | CallResult): Result => {
  if (!simulated.success) {
    const at = FailedOp.opIndex(simulated.data)
    const named = at === null ? undefined : trial.ops[at]
    return named === undefined || trial.aggregate !== null
      ? { _tag: "fault", data: simulated.data }
      : { _tag: "refuses", ops: new Map([[named.opId, simulated.data]]) }
  }
  if (!("logs" in simulated)) return { _tag: "passes", gas: null }
  const outcomes = Outcome.parse(trial.entryPoint, simulated.logs)
  const refused = new Map<OpId, Hex.Hex>()
  for (const { opId, userOpHash } of trial.ops) {
    const outcome = outcomes.get(userOpHash)
    if (outcome?.success !== true) refused.set(opId, outcome?.revertData ?? Hex.empty)
  }
  if (refused.size > 0) return { _tag: "refuses", ops: refused }
  const charged = [...outcomes.values()].reduce((sum, { actualGasUsed }) => sum + actualGasUsed, 0n)
  // Its calldata has a minimum cost, whatever gas the node reports.
  return { _tag: "passes", gas: { used: BigInts.max(simulated.gasUsed, Gas.leastOf(call.data)), charged } }
}

export const simulate = (
  chain: ChainClient,
  facts: Pick<ChainFacts, "balance" | "block" | "fees">,
  readNonces: EoaNonces.ReadNonces,
  submitter: Address,
  trials: ReadonlyArray<Trial>
): Effect.Effect<Simulation, ChainRpcError> =>
  Effect.flatMap(
    Effect.all(
      [
        facts.block(chain, "now"),
        // Direct transactions were not priced before.
        facts.fees(chain, trials.length === 0 ? undefined : "recent"),
        readNonces(chain, submitter),
        facts.balance(chain, submitter),
        Effect.forEach(
          trials,
          (trial) => {
            const call = callOf(submitter, trial)
            return Effect.map(attempt(chain, call), (simulated) => resultOf(trial, call, simulated))
          },
          { concurrency: "unbounded" }
        )
      ],
      { concurrency: "unbounded" }
    ),
    ([block, fees, nonces, balance, results]) =>
      EoaNonces.canBe(nonces)
        ? Effect.succeed({ block, fees, nonces, balance, results })
        : new ChainRpcError({
            reason: "notAnRpc",
            origin: chain.origin,
            message: "it gives a nonce of the EOA that cannot be"
          })
  )
