import { deflateRawSync, inflateRawSync } from "node:zlib"

/** Bytes that are deflated at once: more would keep the event loop from others. */
const most = 65_536

/** Less than that gains nothing. */
const least = 128

/** The text's bytes, deflated; null: they would not be fewer. */
export const deflated = (text: string): Buffer | null => {
  if (text.length < least || text.length > most) return null
  const bytes = Buffer.from(text, "utf8")
  const short = deflateRawSync(bytes)
  return short.length < bytes.length ? short : null
}

export const inflated = (bytes: Uint8Array): string => inflateRawSync(bytes).toString("utf8")

/** Neither hex, which begins with `0x`, nor JSON begins so. */
const prefix = "z1:"

/** Column of hex or JSON in few bytes. */
export const write = (text: string): string => {
  const short = deflated(text)
  const column = short === null ? text : prefix + short.toString("base64")
  return column.length < text.length ? column : text
}

/** Reads also what stands there as it is. */
export const read = (column: string): string =>
  column.startsWith(prefix) ? inflated(Buffer.from(column.slice(prefix.length), "base64")) : column
