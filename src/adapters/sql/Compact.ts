import { deflateRawSync, inflateRawSync } from "node:zlib"
import * as Dictionary from "./CompactDictionary.js"

/** A text column: SQLite keeps bytes in it as they are, PostgreSQL only text. */
export type Column = string | Uint8Array

/** Bytes that are deflated at once, for a millisecond or two: more would keep the event loop from others. */
const most = 262_144

/** Less than that gains nothing: with the dictionary, and without. */
const least = { shared: 32, alone: 128 }

const dictionary = Dictionary.bytes

/**
 * The text's bytes, deflated; null: they would not be fewer. `isShared`: with the dictionary. Processes of the version before
 * read none of that, and may be beside this one on PostgreSQL: there nothing is written so.
 */
export const deflated = (text: string, isShared: boolean): Buffer | null => {
  if (text.length < (isShared ? least.shared : least.alone) || text.length > most) return null
  const bytes = Buffer.from(text, "utf8")
  const short = deflateRawSync(bytes, isShared ? { dictionary } : {})
  return short.length < bytes.length ? short : null
}

export const inflated = (bytes: Uint8Array): string => inflateRawSync(bytes, { dictionary }).toString("utf8")

/** What was deflated without the dictionary. */
export const inflatedAlone = (bytes: Uint8Array): string => inflateRawSync(bytes).toString("utf8")

/** Neither hex, which begins with `0x`, nor JSON begins so. */
const alone = "z1:"
const shared = "z2:"
/** The count of hashes, these with 32 bytes each, and as in `shared` the text without them. */
const hashed = "z3:"

/** Of any column of bytes: its prefix, and what is in base64 after it where a column has to be text. */
export const prefixLength = 3

/** A column of that prefix and those bytes. */
export const columnOf = (prefix: string, bytes: Buffer, isBinary: boolean): Column =>
  isBinary ? Buffer.concat([Buffer.from(prefix, "latin1"), bytes]) : prefix + bytes.toString("base64")

/** Its prefix, and the bytes after it. */
export const partsOf = (column: Column): { readonly prefix: string; readonly bytes: Buffer } =>
  typeof column === "string"
    ? { prefix: column.slice(0, prefixLength), bytes: Buffer.from(column.slice(prefixLength), "base64") }
    : {
        prefix: Buffer.from(column.subarray(0, prefixLength)).toString("latin1"),
        bytes: Buffer.from(column.subarray(prefixLength))
      }

/** The same as text: what another database takes. */
export const asText = (column: Uint8Array): string => {
  const { bytes, prefix } = partsOf(column)
  return prefix + bytes.toString("base64")
}

export const isSame = (one: Column, other: Column): boolean =>
  typeof one === "string" || typeof other === "string" ? one === other : Buffer.from(one).equals(other)

/** In a text as short as that zlib writes each digit of a hash in a byte. */
const mostHashed = 512
const hash = /0x[0-9a-f]{64}(?![0-9a-fA-F])/g
/** In the place of its digits a hash has a letter, by its number in the text: no digit is one. */
const letters = "ghijklmn"
const mark = /0x([g-n])/g

/**
 * The hashes of a short text, and what is left of it. Null: it has none, or more than there are letters, or one with many
 * zeros, which zlib writes in less.
 */
const withoutHashes = (text: string): Buffer | null => {
  if (text.length > mostHashed || text.search(mark) >= 0) return null
  const found = [...new Set(text.match(hash) ?? [])]
  if (found.length === 0 || found.length > letters.length) return null
  if (found.some((each) => each.includes("00000000"))) return null
  const rest = text.replaceAll(hash, (each) => `0x${letters.charAt(found.indexOf(each))}`)
  const hashes = found.map((each) => Buffer.from(each.slice(2), "hex"))
  return Buffer.concat([Buffer.of(found.length), ...hashes, deflateRawSync(rest, { dictionary })])
}

const withHashes = (bytes: Buffer): string => {
  const hashAt = (place: number) => bytes.subarray(1 + 32 * place, 33 + 32 * place)
  const rest = inflated(bytes.subarray(1 + 32 * (bytes[0] ?? 0)))
  return rest.replaceAll(mark, (_, letter) => `0x${hashAt(letters.indexOf(letter)).toString("hex")}`)
}

/** Column of hex or JSON in few bytes. */
export const write =
  (isBinary: boolean) =>
  (text: string): Column => {
    const parts = isBinary ? withoutHashes(text) : null
    if (parts !== null && parts.length + prefixLength < text.length) return columnOf(hashed, parts, true)
    const bytes = deflated(text, isBinary)
    if (bytes === null) return text
    const column = columnOf(isBinary ? shared : alone, bytes, isBinary)
    return column.length < text.length ? column : text
  }

/** Reads also what stands there as it is. */
export const read = (column: Column): string => {
  if (typeof column === "string" && ![alone, shared, hashed].includes(column.slice(0, prefixLength)))
    return column
  const { bytes, prefix } = partsOf(column)
  return prefix === alone ? inflatedAlone(bytes) : prefix === hashed ? withHashes(bytes) : inflated(bytes)
}
