import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"

/** `hashStruct` of EIP-712: `members` are the words of the members, in order, dynamic ones hashed already. */
export const hashStruct = (typeHash: Hex.Bytes32, members: ReadonlyArray<string>): Hex.Bytes32 =>
  Keccak.hash(Words.encode([Words.bytes32(typeHash), ...members]))

/** What is signed: keccak256(0x1901 ++ domain separator ++ hashStruct(message)). */
export const digest = (domainSeparator: Hex.Bytes32, message: Hex.Bytes32): Hex.Bytes32 =>
  Keccak.hash(Hex.concat(Hex.unsafe("0x1901"), domainSeparator, message))
