import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import * as Words from "../../domain/primitives/Words.js"
import * as Deposits from "../payers/Deposits.js"
import type { TopUpTarget } from "../ports/NetworkProfile.js"

/** A balance that the treasury keeps up, and the transaction's receiver and calldata. */
export interface Target extends TopUpTarget {
  /** Unique on the chain: an address, or a deposit by its EntryPoint and paymaster. */
  readonly name: string
  readonly address: Address
  readonly data: Hex.Hex
  /** Null: the balance is that of `address`. */
  readonly deposit: Deposits.Deposit | null
}

const depositTo = Keccak.selector("depositTo(address)")

const of = (target: TopUpTarget, serviceEoa: Address): Target => {
  const { to } = target
  if (typeof to === "object") {
    const deposit = { entryPoint: to.entryPoint, paymaster: to.deposit }
    const data = Words.call(depositTo, [Words.address(to.deposit)])
    return { ...target, name: Deposits.budget(deposit), address: to.entryPoint, data, deposit }
  }
  const address = to === "serviceEoa" ? serviceEoa : to
  return { ...target, name: address, address, data: Hex.empty, deposit: null }
}

/** Position of the first name that occurs before; null: all differ. */
export const firstRepeat = (names: ReadonlyArray<string>): number | null => {
  const index = names.findIndex((name, at) => names.indexOf(name) < at)
  return index < 0 ? null : index
}

/** The targets with their addresses; a text names the reason why the treasury pays none of them. */
export const resolve = (
  targets: ReadonlyArray<TopUpTarget>,
  { serviceEoa, treasury }: { readonly serviceEoa: Address; readonly treasury: Address }
): ReadonlyArray<Target> | string => {
  const resolved = targets.map((target) => of(target, serviceEoa))
  if (resolved.some(({ name }) => name === treasury)) return "the treasury is a target"
  const twice = firstRepeat(resolved.map(({ name }) => name))
  return twice === null ? resolved : `target ${resolved[twice]?.name} is listed twice`
}
