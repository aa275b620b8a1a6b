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

/** Column of hex or JSON in few bytes. */
export const write =
  (isBinary: boolean) =>
  (text: string): Column => {
    const bytes = deflated(text, isBinary)
    if (bytes === null) return text
    const column = columnOf(isBinary ? shared : alone, bytes, isBinary)
    return column.length < text.length ? column : text
  }

/** Reads also what stands there as it is. */
export const read = (column: Column): string => {
  if (typeof column === "string" && !column.startsWith(alone) && !column.startsWith(shared)) return column
  const { bytes, prefix } = partsOf(column)
  return prefix === alone ? inflatedAlone(bytes) : inflated(bytes)
}
