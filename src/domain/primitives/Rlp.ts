import * as Hex from "./Hex.js"

/** RLP of flat lists, which is all that a transaction is: byte strings, and the empty list. */
export type Item = Hex.Hex | readonly []

const lengthDigits = (length: number): string => {
  const digits = length.toString(16)
  return digits.length % 2 === 0 ? digits : `0${digits}`
}

/** Prefix of `size` bytes: `base` distinguishes strings (0x80) from lists (0xc0). */
const prefix = (base: number, size: number): string => {
  if (size < 56) return (base + size).toString(16)
  const length = lengthDigits(size)
  return (base + 55 + length.length / 2).toString(16) + length
}

const digitsOf = (item: Item): string => {
  if (typeof item !== "string") return "c0"
  const digits = item.slice(2)
  if (digits.length === 2 && digits < "80") return digits
  return prefix(0x80, digits.length / 2) + digits
}

/** The encoding of a list of these items. */
export const encode = (items: ReadonlyArray<Item>): Hex.Hex => {
  const parts = items.map(digitsOf)
  const size = parts.reduce((sum, part) => sum + part.length, 0) / 2
  return Hex.unsafe(`0x${prefix(0xc0, size)}${parts.join("")}`)
}
