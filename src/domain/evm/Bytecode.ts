import * as Hex from "../primitives/Hex.js"

/** Facts about a contract's functions, from its runtime code. */

const push1 = 0x60
const push32 = 0x7f
/** CALLCODE, DELEGATECALL: they run other code in this context. */
const delegating = new Set([0xf2, 0xf4])

/** Cuts the metadata that Solidity writes behind the code: a map in CBOR, and its length. It is never run. */
const withoutMetadata = (bytes: Uint8Array): Uint8Array => {
  const length = 256 * (bytes.at(-2) ?? 0) + (bytes.at(-1) ?? 0)
  const start = bytes.length - 2 - length
  const first = bytes[start] ?? 0
  return start > 0 && first >= 0xa1 && first <= 0xa4 ? bytes.subarray(0, start) : bytes
}

const delegates = (bytes: Uint8Array): boolean => {
  for (let at = 0; at < bytes.length; at++) {
    const opcode = bytes[at] ?? 0
    if (delegating.has(opcode)) return true
    if (opcode >= push1 && opcode <= push32) at += opcode - push1 + 1
  }
  return false
}

/**
 * Whether no function of the code can have this selector: its bytes are nowhere in the code, and the code runs no other
 * one in its place. Compilers leave out the zero bytes that a selector begins with.
 */
export const lacks = (code: Hex.Hex, selector: string): boolean => {
  // The designation of an EOA (EIP-7702) is a separate kind of code.
  if (code.startsWith("0xef")) return false
  const digits = selector.slice(2).replace(/^(?:00)+/, "")
  for (let at = code.indexOf(digits, 2); at >= 0; at = code.indexOf(digits, at + 1))
    if (at % 2 === 0) return false
  return digits.length > 2 && !delegates(withoutMetadata(Hex.toBytes(code)))
}
