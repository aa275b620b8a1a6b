import type * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import * as EntryPoint from "../EntryPoint.js"
import { gasLensRuntime } from "./GasLens.generated.js"
import { spare } from "./GasLens.js"

/** EIP-1167: a contract of 45 bytes that runs the code of `target`. */
const delegateTo = (target: Address.Address): Hex.Hex =>
  Hex.unsafe(`0x363d3d373d3d3d363d73${target.slice(2)}5af43d82803e903d91602b57fd5bf3`)

/** One account in the third parameter of `eth_call`. */
export interface AccountOverride {
  /** 0x quantity, wei. */
  readonly balance?: string
  readonly code?: Hex.Hex
  /** 32-byte slot to 32-byte word, both 0x hex. */
  readonly stateDiff?: Readonly<Record<string, string>>
}

/**
 * The third parameter of the `eth_call`. `entryPointCode` is the EntryPoint's real runtime code (`eth_getCode`);
 * `extra` is merged per address of any case (a balance for the estimate, the slot of a factory's deployer) and
 * cannot replace the code of the lens.
 */
export const overrides = (options: {
  readonly entryPoint: Address.Address
  readonly entryPointCode: Hex.Hex
  readonly extra?: Readonly<Record<string, AccountOverride>>
}): Readonly<Record<string, AccountOverride>> => {
  const accounts = new Map<string, AccountOverride>([
    [options.entryPoint.toLowerCase(), { code: Hex.unsafe(gasLensRuntime) }],
    [EntryPoint.senderCreator(options.entryPoint).toLowerCase(), { code: delegateTo(options.entryPoint) }],
    [spare.toLowerCase(), { code: options.entryPointCode }]
  ])
  for (const [address, { balance, code, stateDiff }] of Object.entries(options.extra ?? {})) {
    const known = accounts.get(address.toLowerCase())
    accounts.set(address.toLowerCase(), {
      ...(code !== undefined && { code }),
      ...known,
      ...(balance !== undefined && { balance }),
      ...(stateDiff !== undefined && { stateDiff: { ...known?.stateDiff, ...stateDiff } })
    })
  }
  return Object.fromEntries(accounts)
}
