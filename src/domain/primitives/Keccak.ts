import * as Accelerated from "./Accelerated.js"
import * as Hex from "./Hex.js"
import { permute } from "./KeccakPermutation.js"
import type { Steps } from "./Steps.js"

/** Bytes that one permutation absorbs, and the same in words: 1600 - 2 * 256 bits. */
const rate = 136
const rateWords = rate / 4

const utf8 = new TextEncoder()

/** Used by one hash at a time, from its first byte to its last: those that stop in between have a state of their own. */
const shared = new Int32Array(50)
const block = new Uint8Array(rate)
const blockWords = new DataView(block.buffer)
const digest = new Uint8Array(32)
const digestWords = new DataView(digest.buffer)

const absorbBlock = (state: Int32Array): void => {
  for (let i = 0; i < rateWords; i++) state[i] = (state[i] as number) ^ blockWords.getInt32(4 * i, true)
  permute(state)
}

/** Absorbs all whole blocks from `at` on, at most up to `end`; where the next one begins. */
const absorb = (state: Int32Array, bytes: Uint8Array, from: number, end: number): number => {
  let at = from
  for (; at + rate <= end; at += rate) {
    block.set(bytes.subarray(at, at + rate))
    absorbBlock(state)
  }
  return at
}

/** The digest, once the whole blocks are absorbed. The array is the caller's only until the next hash. */
const squeeze = (state: Int32Array, rest: Uint8Array): Uint8Array => {
  block.fill(0)
  block.set(rest)
  // Keccak's own padding: SHA-3 has 0x06 in place of this 0x01.
  block[rest.length] = 0x01
  block[rate - 1] = (block[rate - 1] as number) | 0x80
  absorbBlock(state)
  for (let i = 0; i < 8; i++) digestWords.setInt32(4 * i, state[i] as number, true)
  return digest
}

/** keccak256. The array is the caller's only until the next hash. */
export const digestOf = (bytes: Uint8Array): Uint8Array => {
  const { keccak } = Accelerated.implementations()
  if (keccak !== null) return keccak.digest(bytes)
  shared.fill(0)
  return squeeze(shared, bytes.subarray(absorb(shared, bytes, 0, bytes.length)))
}

/** Bytes that are hashed before `hashSteps` stops: some milliseconds of work. */
const stride = 512 * rate

/** keccak256 of bytes, of which there may be millions. */
export const hashSteps = (bytes: Hex.Hex): Steps<Hex.Bytes32> => bytesSteps(Hex.toBytes(bytes))

/** keccak256 of the UTF-8 bytes of well-formed text, which may be as long as a body. */
export const hashTextSteps = (text: string): Steps<Hex.Bytes32> => bytesSteps(utf8.encode(text))

function* bytesSteps(all: Uint8Array): Steps<Hex.Bytes32> {
  if (all.length <= stride) return Hex.fromBytes(digestOf(all)) as Hex.Bytes32
  const { keccak } = Accelerated.implementations()
  if (keccak !== null) return yield* acceleratedSteps(keccak, all)
  const state = new Int32Array(50)
  let at = 0
  while (at + rate <= all.length) {
    at = absorb(state, all, at, Math.min(all.length, at + stride))
    yield
  }
  return Hex.fromBytes(squeeze(state, all.subarray(at))) as Hex.Bytes32
}

function* acceleratedSteps(keccak: Accelerated.Keccak, all: Uint8Array): Steps<Hex.Bytes32> {
  let state = keccak.initial()
  let at = 0
  for (; at + stride < all.length; at += stride) {
    state = keccak.absorbed(state, all.subarray(at, at + stride))
    yield
  }
  return Hex.fromBytes(keccak.finished(state, all.subarray(at))) as Hex.Bytes32
}

/** keccak256 of bytes. */
export const hash = (bytes: Hex.Hex): Hex.Bytes32 =>
  Hex.fromBytes(digestOf(Hex.toBytes(bytes))) as Hex.Bytes32

/** keccak256 of the UTF-8 bytes of well-formed text. */
export const hashText = (text: string): Hex.Bytes32 =>
  Hex.fromBytes(digestOf(utf8.encode(text))) as Hex.Bytes32

/** The first 4 bytes of the hash of a canonical function or error signature. */
export const selector = (signature: string): Hex.Hex => Hex.unsafe(hashText(signature).slice(0, 10))

const addressDigits = new Uint8Array(40)

/** EIP-55: a letter is upper case where the digit at its place in the hash of the lower-case digits is above 7. */
export const checksum = (lowerDigits: string): string => {
  for (let i = 0; i < 40; i++) addressDigits[i] = lowerDigits.charCodeAt(i)
  const hashed = digestOf(addressDigits)
  let text = "0x"
  for (let i = 0; i < 40; i++) {
    const unit = addressDigits[i] as number
    const nibble = (hashed[i >> 1] as number) >> (i % 2 === 0 ? 7 : 3)
    text += String.fromCharCode(unit > 0x60 && (nibble & 1) === 1 ? unit - 0x20 : unit)
  }
  return text
}
