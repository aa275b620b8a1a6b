import type { Address } from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"

/** `hashStruct` of EIP-712: `members` are the words of the members, in order, dynamic ones hashed already. */
export const hashStruct = (typeHash: Hex.Bytes32, members: ReadonlyArray<string>): Hex.Bytes32 =>
  Keccak.hash(Words.encode([Words.bytes32(typeHash), ...members]))

const domainTypeHash = Keccak.hashText(
  "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)

/** The separators of the domains (name, version, chain, contract). */
export const domain = (name: string, version: string) => {
  const words = [name, version].map((text) => Words.bytes32(Keccak.hashText(text)))
  return (chainId: bigint, contract: Address): Hex.Bytes32 =>
    hashStruct(domainTypeHash, [...words, Words.uint(chainId), Words.address(contract)])
}

/** Signing digest: keccak256(0x1901 ++ domain separator ++ hashStruct(message)). */
export const digest = (domainSeparator: Hex.Bytes32, message: Hex.Bytes32): Hex.Bytes32 =>
  Keccak.hash(Hex.concat(Hex.unsafe("0x1901"), domainSeparator, message))
