import * as Result from "effect/Result"
import type * as Address from "../primitives/Address.js"
import type * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"
import * as WalletCalls from "./WalletCalls.js"

/**
 * A program that reads many addresses in one call: the hash of the code, and the answer to `configuration()`. It is on no
 * chain: an `eth_call` runs it at an address whose code is overridden. A failed call fails no other, except that a call
 * that takes all gas makes those behind it fail.
 */

/** State of one address. */
export interface Sight {
  readonly codeHash: Hex.Bytes32
  readonly success: boolean
  /** Return data, or revert data. */
  readonly data: Hex.Hex
}

/** Calldata is a word per address; the result is three words and the data per address, in whole words. */
export const program = `0x${[
  // mstore(0, the selector); at = 32; place = 0
  ["63", WalletCalls.configuration.slice(2), "60e0", "1b", "6000", "52", "6020", "6000"],
  // again: if (place >= calldatasize) goto end
  ["5b", "36", "81", "10", "15", "6050", "57"],
  // wallet = calldataload(place); mstore(at, extcodehash(wallet))
  ["80", "35", "80", "3f", "83", "52"],
  // mstore(at + 32, staticcall(gas, wallet, 0, 4, 0, 0))
  ["6000", "6000", "6004", "6000", "84", "5a", "fa", "83", "6020", "01", "52", "50"],
  // mstore(at + 64, returndatasize)
  ["3d", "82", "6040", "01", "52"],
  // returndatacopy(at + 96, 0, returndatasize)
  ["3d", "6000", "83", "6060", "01", "3e"],
  // place += 32; at += 96 + the size in whole words; goto again
  ["6020", "01", "90", "3d", "601f", "01", "601f", "19", "16", "01", "6060", "01", "90", "600f", "56"],
  // end: return(32, at - 32)
  ["5b", "50", "6020", "80", "91", "03", "90", "f3"]
]
  .flat()
  .join("")}` as Hex.Hex

export const encode = (wallets: ReadonlyArray<Address.Address>): Hex.Hex =>
  Words.encode(wallets.map(Words.address))

/** The program's result for `count` addresses. `Failure` for anything else: nodes without overrides return nothing. */
export const decode = (returned: Hex.Hex, count: number): Result.Result<ReadonlyArray<Sight>, string> => {
  const cursor = Words.read(returned)
  const size = (returned.length - 2) / 2
  const sights: Array<Sight> = []
  let at = 0
  while (sights.length < count && at + 96 <= size) {
    const length = Number(Words.readUint(cursor, at + 64))
    const from = 2 + 2 * (at + 96)
    sights.push({
      codeHash: Words.readBytes32(cursor, at),
      success: Words.readUint(cursor, at + 32) === 1n,
      data: `0x${returned.slice(from, from + 2 * length)}` as Hex.Hex
    })
    at += 96 + 32 * Math.ceil(length / 32)
  }
  return sights.length === count && at === size
    ? Result.succeed(sights)
    : Result.fail(`expected what stands at ${count} addresses`)
}

const none: ReadonlySet<string> = new Set([Keccak.hash("0x" as Hex.Hex), `0x${"0".repeat(64)}`])

/** Whether there is no code; an address that was never used has no hash either. */
export const isAbsent = ({ codeHash }: Sight): boolean => none.has(codeHash)
