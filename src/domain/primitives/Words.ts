import * as Address from "./Address.js"
import * as Hex from "./Hex.js"
import * as Uint from "./Uint.js"

/**
 * The ABI encoding of the project's own fixed layouts (Solidity ABI specification, "Formal Specification of the
 * Encoding"): words in, text out. `domain/abi` handles types that only a caller knows.
 *
 * Encoding never fails: an integer is reduced to the width of its type, so it cannot spill into its neighbours.
 * Reading never fails either: past the end it finds zeros, as calldata does. To check for the canonical encoding, encode
 * the result and compare.
 */

/** Hex digits without 0x: one part of a tuple, a whole number of words in place or, when dynamic, behind the head. */
export type Part = string | { readonly tail: string }

/** An unsigned integer of at most `bits` bits, as a word. */
export const uint = (value: bigint, bits = 256): string => Uint.toWord(BigInt.asUintN(bits, value))

export const bool = (value: boolean): string => uint(value ? 1n : 0n)

export const address = (value: Address.Address): string => value.slice(2).toLowerCase().padStart(64, "0")

export const bytes32 = (value: Hex.Bytes32): string => value.slice(2)

/** `bytes`: its length, then its bytes, padded with zeros to a whole word. */
export const bytes = (value: Hex.Hex): Part => {
  const digits = value.slice(2)
  return { tail: uint(BigInt(digits.length / 2)) + digits.padEnd(Math.ceil(digits.length / 64) * 64, "0") }
}

/** Heads in order, then the tails of the dynamic parts; an offset counts bytes from the start of this tuple. */
export const tuple = (parts: ReadonlyArray<Part>): string => {
  let head = ""
  let tails = ""
  let offset = parts.reduce((sum, part) => sum + (typeof part === "string" ? part.length / 2 : 32), 0)
  for (const part of parts) {
    if (typeof part === "string") head += part
    else {
      head += uint(BigInt(offset))
      tails += part.tail
      offset += part.tail.length / 2
    }
  }
  return head + tails
}

/** A tuple that has a dynamic part, inside another tuple. */
export const dynamic = (parts: ReadonlyArray<Part>): Part => ({ tail: tuple(parts) })

/** `T[]`: the number of elements, then the elements as a tuple. */
export const array = (elements: ReadonlyArray<Part>): Part => ({
  tail: uint(BigInt(elements.length)) + tuple(elements)
})

/** `abi.encode` of the parts, whose digits are lower case already: a simulation has a hundred thousand. */
export const encode = (parts: ReadonlyArray<Part>): Hex.Hex => `0x${tuple(parts)}` as Hex.Hex

/** A function call: selector and arguments. */
export const call = (selector: Hex.Hex, parts: ReadonlyArray<Part>): Hex.Hex =>
  (selector + tuple(parts)) as Hex.Hex

/** A tuple inside encoded data: the data's hex digits without 0x, and where the tuple starts, in bytes. */
export interface Cursor {
  readonly digits: string
  readonly start: number
}

export const read = (data: Hex.Hex): Cursor => ({ digits: data.slice(2), start: 0 })

const wordAt = (cursor: Cursor, at: number): string => {
  const from = (cursor.start + at) * 2
  return cursor.digits.slice(from, from + 64).padEnd(64, "0")
}

/** The word at byte `at` of the tuple's head. */
export const readUint = (cursor: Cursor, at: number): bigint => BigInt(`0x${wordAt(cursor, at)}`)

export const readBytes32 = (cursor: Cursor, at: number): Hex.Bytes32 =>
  Hex.unsafe32(`0x${wordAt(cursor, at)}`)

/** The low 20 bytes of the word. */
export const readAddress = (cursor: Cursor, at: number): Address.Address =>
  Address.fromWord(wordAt(cursor, at))

/** An offset, length or count; a value past the end of the data becomes the end of the data. */
const readSize = (cursor: Cursor, at: number): number =>
  Math.min(Number(readUint(cursor, at)), cursor.digits.length / 2)

/** Follows the offset at `at` to a dynamic part. */
export const readTail = (cursor: Cursor, at: number): Cursor => ({
  digits: cursor.digits,
  start: cursor.start + readSize(cursor, at)
})

/** Follows the offset at `at` to `bytes`. */
export const readBytes = (cursor: Cursor, at: number): Hex.Hex => {
  const tail = readTail(cursor, at)
  const from = (tail.start + 32) * 2
  return Hex.unsafe(`0x${tail.digits.slice(from, from + readSize(tail, 0) * 2)}`)
}

/**
 * Follows the offset at `at` to an array whose elements take at least a word each: their number, at most as many as
 * the data has room for, and their tuple.
 */
export const readArray = (
  cursor: Cursor,
  at: number
): { readonly count: number; readonly elements: Cursor } => {
  const tail = readTail(cursor, at)
  const elements = { digits: tail.digits, start: tail.start + 32 }
  const room = Math.max(0, Math.floor((tail.digits.length / 2 - elements.start) / 32))
  return { count: Math.min(readSize(tail, 0), room), elements }
}
