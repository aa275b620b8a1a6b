import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import type * as GasLens from "../../../domain/erc4337/gas/GasLens.js"
import * as PaymasterCalls from "../../../domain/erc4337/paymaster/PaymasterCalls.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import type { ChainClient, ChainRpcError } from "../../ports/chain/ChainRpc.js"

/** Charging the paymaster's deposit, which the EntryPoint does within the paymaster's limit. */
const charging = 8_000n

/** A paymaster's part in one op, as far as plain calls show. `stage` ok: it pays. */
type Approval = Pick<
  GasLens.Measure,
  "paymasterGas" | "postOpGas" | "paymasterLimit" | "postOpLimit" | "paymasterData" | "shortfall" | "data"
> & { readonly stage: "ok" | "paymaster" | "postOp" }

export const nothing = {
  paymasterGas: 0n,
  postOpGas: 0n,
  paymasterLimit: 0n,
  postOpLimit: 0n,
  paymasterData: 0n,
  data: Hex.empty
}

/** An estimate without the transaction's intrinsic gas. */
export const frameOf = (gas: bigint, data: Hex.Hex): bigint => BigInts.max(0n, gas - Gas.intrinsic(data))

/**
 * Measures the paymaster's part of an op in the name of the EntryPoint, as the wallet's part: its validation, and its
 * postOp as if the op had cost the whole prefund. `deposit` is the paymaster's at the EntryPoint, wei.
 */
export const measure = (
  chain: ChainClient,
  entryPoint: Address,
  probe: GasLens.Probe,
  paymaster: GasLens.PaymasterProbe,
  deposit: bigint
): Effect.Effect<Approval, ChainRpcError> =>
  Effect.gen(function* () {
    const inName = { from: entryPoint, to: paymaster.address }
    const shortfall = BigInts.max(0n, probe.requiredPrefund - deposit)
    const approve = PaymasterCalls.approve(probe.validateCall, probe.requiredPrefund)
    const [estimated, answered] = yield* Effect.all(
      [chain.estimateGas({ ...inName, data: approve }), chain.call({ ...inName, data: approve })],
      { concurrency: "unbounded" }
    )
    const approval = answered.success ? PaymasterCalls.readApproval(answered.data) : null
    if (!estimated.success || approval === null)
      return {
        ...nothing,
        shortfall,
        stage: "paymaster",
        data: answered.success ? Hex.empty : answered.data
      }
    const validated = frameOf(estimated.gas, approve)
    const found = {
      ...nothing,
      shortfall,
      paymasterGas: validated + charging,
      paymasterLimit: Gas.unverifiedLimit(validated) + charging,
      paymasterData: approval.validationData
    }
    if (approval.context === Hex.empty) return { ...found, stage: "ok" }
    const postOp = PaymasterCalls.postOp(
      probe.validateCall,
      approval.context,
      probe.requiredPrefund,
      paymaster.feePerGas
    )
    const settled = yield* chain.estimateGas({ ...inName, data: postOp })
    const postOpGas = frameOf(settled.gas, postOp)
    return settled.success
      ? { ...found, stage: "ok", postOpGas, postOpLimit: Gas.unverifiedLimit(postOpGas) }
      : { ...found, stage: "postOp", data: settled.data }
  })
