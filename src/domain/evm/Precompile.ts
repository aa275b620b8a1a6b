import type { Address } from "../primitives/Address.js"

/** Addresses at which a chain itself answers, without any code there. */

const highest = 0x1ffn

/** Whether an address is of those that Ethereum and the chains that follow it keep for precompiles: 0x1 to 0x1ff. */
export const isReserved = (address: Address): boolean => {
  const number = BigInt(address)
  return number > 0n && number <= highest
}
