import type { BlockTag, Call, LogFilter, StateOverride } from "../../../application/ports/chain/ChainRpc.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Uint from "../../../domain/primitives/Uint.js"

/** Questions as the Ethereum JSON-RPC has them. */

export const toTag = (tag: BlockTag): string => (typeof tag === "bigint" ? Uint.toQuantity(tag) : tag)

export const toCall = ({ data, from, gas, to, value }: Call) => ({
  ...(from !== undefined && { from }),
  ...(to !== undefined && { to }),
  data,
  ...(value !== undefined && { value: Uint.toQuantity(value) }),
  ...(gas !== undefined && { gas: Uint.toQuantity(gas) })
})

/** Overrides as `eth_call` and the bundlers' estimates take them. */
export const toOverrides = (overrides: ReadonlyMap<Address, StateOverride>) =>
  Object.fromEntries(
    [...overrides].map(([address, { balance, code, stateDiff }]) => [
      address,
      {
        ...(balance !== undefined && { balance: Uint.toQuantity(balance) }),
        ...(code !== undefined && { code }),
        ...(stateDiff !== undefined && { stateDiff })
      }
    ])
  )

/** The overrides as JSON. Those that are asked with again and again are long: each is written once. */
const overridesText = (() => {
  const written = new WeakMap<ReadonlyMap<Address, StateOverride>, string>()
  return (overrides: ReadonlyMap<Address, StateOverride>): string => {
    const known = written.get(overrides)
    if (known !== undefined) return known
    const text = JSON.stringify(toOverrides(overrides))
    written.set(overrides, text)
    return text
  }
})()

export const toParams = (
  call: Call,
  overrides: ReadonlyMap<Address, StateOverride> | undefined,
  at: BlockTag
): ReadonlyArray<unknown> | string =>
  overrides === undefined || overrides.size === 0
    ? [toCall(call), toTag(at)]
    : `[${JSON.stringify(toCall(call))},"${toTag(at)}",${overridesText(overrides)}]`

export const toFilter = ({ address, fromBlock, toBlock, topics }: LogFilter) => ({
  fromBlock: toTag(fromBlock),
  toBlock: toTag(toBlock),
  topics,
  ...(address !== undefined && { address })
})
