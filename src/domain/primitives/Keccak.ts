import { keccak256 } from "ethers/crypto"
import * as Accelerated from "./Accelerated.js"
import * as Hex from "./Hex.js"

const utf8 = new TextEncoder()

const hashBytes = (bytes: Uint8Array): Hex.Bytes32 => {
  const { keccak } = Accelerated.implementations()
  return (keccak === null ? keccak256(bytes) : `0x${keccak(bytes)}`) as Hex.Bytes32
}

/** keccak256 of bytes. */
export const hash = (bytes: Hex.Hex): Hex.Bytes32 => hashBytes(Hex.toBytes(bytes))

/** keccak256 of the UTF-8 bytes of well-formed text. */
export const hashText = (text: string): Hex.Bytes32 => hashBytes(utf8.encode(text))

/** The first 4 bytes of the hash of a canonical function or error signature. */
export const selector = (signature: string): Hex.Hex => Hex.slice(hashText(signature), 0, 4)

/** The EIP-55 form of an address in lower-case digits: a letter is upper case where the hash of them has a digit above 7. */
export const checksum = (digits: string): string => {
  const hashed = hashText(digits)
  const units: Array<number> = []
  for (let at = 0; at < 40; at++) {
    const unit = digits.charCodeAt(at)
    units.push(unit >= 0x61 && hashed.charCodeAt(2 + at) > 0x37 ? unit - 0x20 : unit)
  }
  return `0x${String.fromCharCode(...units)}`
}
