import type { Address } from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"

/** Verification of wallets' signatures: ERC-1271, and ERC-6492 for wallets that are not deployed. */

const magic = Hex.unsafe(`0x${"6492".repeat(16)}`)

/** A call that deploys a wallet. */
export interface Deploy {
  readonly factory: Address
  readonly data: Hex.Hex
}

/** The ERC-6492 signature: abi.encode(address factory, bytes calldata, bytes signature) ++ 0x6492...6492. */
export const wrap = ({ data, factory }: Deploy, signature: Hex.Hex): Hex.Hex =>
  Hex.concat(Words.encode([Words.address(factory), Words.bytes(data), Words.bytes(signature)]), magic)

const isValidSignature = Keccak.selector("isValidSignature(bytes32,bytes)")

/** Calldata of `isValidSignature(bytes32 hash, bytes signature)`. */
export const check = (hash: Hex.Bytes32, signature: Hex.Hex): Hex.Hex =>
  Words.call(isValidSignature, [Words.bytes32(hash), Words.bytes(signature)])

/** Whether the return data is ERC-1271's magic value. */
export const isValid = (returnData: Hex.Hex): boolean => returnData === isValidSignature.padEnd(66, "0")

const push3 = (value: number): string => `62${value.toString(16).padStart(6, "0")}`
const push20 = (address: Address): string => `73${address.slice(2)}`

/**
 * Creation code that deploys the wallet, then asks it, and returns its answer as runtime code; zero where the wallet did
 * not answer. For `eth_call` without `to`: no node needs state overrides for it, and nothing stays.
 */
export const deployAndCheck = (deploy: Deploy, wallet: Address, checkData: Hex.Hex): Hex.Hex => {
  const made = Hex.size(deploy.data)
  const asked = Hex.size(checkData)
  const codeOf = (codeSize: number): Hex.Hex =>
    Hex.unsafe(
      [
        // CODECOPY(0, codeSize, made + asked)
        `0x${push3(made + asked)}${push3(codeSize)}600039`,
        // POP(CALL(GAS, factory, 0, 0, made, 0, 0))
        `60006000${push3(made)}60006000${push20(deploy.factory)}5af150`,
        // MSTORE(0, 0): a wallet that answers less than a word says nothing
        "60006000526020",
        // STATICCALL(GAS, wallet, made, asked, 0, 32)
        `6000${push3(asked)}${push3(made)}${push20(wallet)}5afa`,
        // MSTORE(0, MUL(success, MLOAD(0))); RETURN(0, 32)
        "6000510260005260206000f3"
      ].join("")
    )
  return Hex.concat(codeOf(Hex.size(codeOf(0))), deploy.data, checkData)
}
