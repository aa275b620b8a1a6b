import * as Accelerated from "./Accelerated.js"
import * as Hex from "./Hex.js"
import { permute } from "./KeccakPermutation.js"

/** Bytes that one permutation absorbs, and the same in words: 1600 - 2 * 256 bits. */
const rate = 136
const rateWords = rate / 4

const utf8 = new TextEncoder()

/** Used by one hash at a time, from its first byte to its last. */
const state = new Int32Array(50)
const block = new Uint8Array(rate)
const blockWords = new DataView(block.buffer)
const digest = new Uint8Array(32)
const digestWords = new DataView(digest.buffer)

const absorbBlock = (): void => {
  for (let i = 0; i < rateWords; i++) state[i] = (state[i] as number) ^ blockWords.getInt32(4 * i, true)
  permute(state)
}

/** The digest, once the whole blocks are absorbed. The array is the caller's only until the next hash. */
const squeeze = (rest: Uint8Array): Uint8Array => {
  block.fill(0)
  block.set(rest)
  // Keccak's own padding: SHA-3 has 0x06 in place of this 0x01.
  block[rest.length] = 0x01
  block[rate - 1] = (block[rate - 1] as number) | 0x80
  absorbBlock()
  for (let i = 0; i < 8; i++) digestWords.setInt32(4 * i, state[i] as number, true)
  return digest
}

/** keccak256. The array is the caller's only until the next hash. */
export const digestOf = (bytes: Uint8Array): Uint8Array => {
  const { keccak } = Accelerated.implementations()
  if (keccak !== null) return keccak.digest(bytes)
  state.fill(0)
  let at = 0
  for (; at + rate <= bytes.length; at += rate) {
    block.set(bytes.subarray(at, at + rate))
    absorbBlock()
  }
  return squeeze(bytes.subarray(at))
}

/** keccak256 of bytes. */
export const hash = (bytes: Hex.Hex): Hex.Bytes32 =>
  Hex.fromBytes(digestOf(Hex.toBytes(bytes))) as Hex.Bytes32

/** keccak256 of the UTF-8 bytes of well-formed text. */
export const hashText = (text: string): Hex.Bytes32 =>
  Hex.fromBytes(digestOf(utf8.encode(text))) as Hex.Bytes32

/** The first 4 bytes of the hash of a canonical function or error signature. */
export const selector = (signature: string): Hex.Hex => Hex.unsafe(hashText(signature).slice(0, 10))

const ascii = new TextDecoder("latin1")
const lower = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0))
const addressDigits = new Uint8Array(40)
const addressText = new Uint8Array(42)
addressText.set([0x30, 0x78])

/** EIP-55: a letter is upper case where the digit at its place in the hash of the lower-case digits is above 7. */
const checksumOfDigits = (): string => {
  const hashed = digestOf(addressDigits)
  for (let i = 0; i < 40; i++) {
    const unit = addressDigits[i] as number
    const nibble = (hashed[i >> 1] as number) >> (i % 2 === 0 ? 7 : 3)
    addressText[2 + i] = unit >= 0x61 && (nibble & 1) === 1 ? unit - 0x20 : unit
  }
  return ascii.decode(addressText)
}

/** The EIP-55 form of an address in lower-case digits. */
export const checksum = (lowerDigits: string): string => {
  for (let i = 0; i < 40; i++) addressDigits[i] = lowerDigits.charCodeAt(i)
  return checksumOfDigits()
}

/** The EIP-55 form of 20 bytes. */
export const checksumOfBytes = (bytes: Uint8Array): string => {
  for (let i = 0; i < 20; i++) {
    const byte = bytes[i] as number
    addressDigits[2 * i] = lower[byte >> 4] as number
    addressDigits[2 * i + 1] = lower[byte & 15] as number
  }
  return checksumOfDigits()
}
