import type { BlockTag, Call, LogFilter, StateOverride } from "../../../application/ports/chain/ChainRpc.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Uint from "../../../domain/primitives/Uint.js"

/** Parameters in the encoding of the Ethereum JSON-RPC. */

export const toTag = (tag: BlockTag): string => (typeof tag === "bigint" ? Uint.toQuantity(tag) : tag)

export const toCall = ({ data, from, gas, to, value }: Call) => ({
  ...(from !== undefined && { from }),
  ...(to !== undefined && { to }),
  data,
  ...(value !== undefined && { value: Uint.toQuantity(value) }),
  ...(gas !== undefined && { gas: Uint.toQuantity(gas) })
})

/** Overrides for `eth_call` and for bundlers' estimates. */
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

/** Overrides as JSON, cached by identity: they are long and reused by many calls. */
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
