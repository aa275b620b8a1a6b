import type { FeePrices } from "../../../domain/erc4337/gas/Fees.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import type * as FirstLook from "../estimate/FirstLook.js"

/**
 * An op before it is measured: everything but its limits, with a proof of the real shape by nobody. Its payer's part is
 * still to be added.
 */
export const make = (options: {
  readonly index: number
  readonly wallet: Address
  readonly nonce: bigint
  readonly callData: Hex.Hex
  /** Wei that its call sends. */
  readonly value: bigint
  readonly prices: FeePrices
  readonly conditions: Conditions.Conditions
  readonly dummy: Hex.Hex
}): FirstLook.Draft => ({
  index: options.index,
  value: options.value,
  op: {
    sender: options.wallet,
    nonce: options.nonce,
    initCode: Hex.empty,
    callData: options.callData,
    callGasLimit: 0n,
    verificationGasLimit: 0n,
    preVerificationGas: 0n,
    maxFeePerGas: options.prices.maxFeePerGas,
    maxPriorityFeePerGas: options.prices.maxPriorityFeePerGas,
    paymasterAndData: Hex.empty,
    signature: Conditions.encodeSignature(options.conditions, options.dummy)
  }
})
