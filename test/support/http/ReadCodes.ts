import type { JsonRpcProvider } from "ethers"

/** Tiny contracts for read tests, each with one oddity. */

const addressOf = (index: number): string => `0x${"c0de".repeat(9)}${index.toString(16).padStart(4, "0")}`

const codes = {
  /** Returns its calldata behind the selector. */
  echo: "0x36600490038060046000376000f3",
  /** Returns msg.sender. */
  sender: "0x3360005260206000f3",
  /** Returns block.number. */
  height: "0x4360005260206000f3",
  /** Counts down from 40,000, which uses a million gas, and returns 1. */
  heavy: "0x619c405b6001900380600357600160005260206000f3",
  /** Returns whether it has more than 900,000 gas, and never fails. */
  proud: "0x620dbba05a1160005260206000f3",
  /** Burns all gas. The sixth contract. */
  burner: "0x5b600056",
  /** Calls a burner with all forwardable gas, and returns no data. */
  arsonist: `0x6000600060006000600073${addressOf(5).slice(2)}5af100`,
  /** Returns the number of zero bytes in its first argument. */
  large: "0x6004356000f3"
} as const

export type ReadCode = keyof typeof codes

/** Deploys them and returns their addresses. */
export const putReadCodes = async (
  provider: JsonRpcProvider
): Promise<Readonly<Record<ReadCode, string>>> => {
  const names = Object.keys(codes) as ReadonlyArray<ReadCode>
  for (const [index, name] of names.entries())
    await provider.send("anvil_setCode", [addressOf(index), codes[name]])
  return Object.fromEntries(names.map((name, index) => [name, addressOf(index)])) as Record<ReadCode, string>
}
