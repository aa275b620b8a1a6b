import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import type * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import * as Reasons from "../../failures/Reasons.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"

/** Checks that calls with data target contracts: at an address without code they do nothing, and succeed. */

/** The last address of those that Ethereum and the chains that follow it keep for precompiles, from 0x1. */
const lastPrecompile = 0x1ffn

const isReserved = (address: Address): boolean => {
  const number = BigInt(address)
  return number > 0n && number <= lastPrecompile
}

/** Whether a call needs a contract. Value without data is a transfer. */
export const needsOne = (
  { data, target }: Pick<WalletCalls.Call, "data" | "target">,
  { precompiles }: NetworkProfile
): boolean => data !== Hex.empty && !isReserved(target) && !precompiles.includes(target)

export const of = (
  calls: ReadonlyArray<WalletCalls.Call>,
  profile: NetworkProfile
): ReadonlyArray<Address> => [
  ...new Set(calls.filter((call) => needsOne(call, profile)).map(({ target }) => target))
]

export const failureAt = (target: Address, { chainId }: NetworkProfile): ElementFailure =>
  elementFailure("no_contract", Reasons.text("noContract", { address: target, chain: chainId }))
