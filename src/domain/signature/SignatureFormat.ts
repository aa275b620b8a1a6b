import type * as Hex from "../primitives/Hex.js"

/** How a signature of 65 bytes, r || s || v with s in the lower half and v 27 or 28, is written. */
export type Format = "rsv" | "hex" | "compact" | "der"

/** r and s are 0x and 64 digits. */
export interface Rsv {
  readonly r: string
  readonly s: string
  readonly v: number
}

/** ASN.1 INTEGER of 32 bytes in the shortest form that is positive. */
const integer = (digits: string): string => {
  const short = digits.replace(/^(?:00)+(?=..)/, "")
  const body = Number.parseInt(short.slice(0, 2), 16) >= 0x80 ? `00${short}` : short
  return `02${(body.length / 2).toString(16).padStart(2, "0")}${body}`
}

/** EIP-2098: r, and s with the parity of v in its highest bit. */
const compact = (r: string, s: string, odd: boolean): string => {
  const top = Number.parseInt(s.slice(0, 1), 16) + (odd ? 8 : 0)
  return `0x${r}${top.toString(16)}${s.slice(1)}`
}

export const write = (signature: Hex.Hex, format: Format): Rsv | string => {
  const [r, s, v] = [signature.slice(2, 66), signature.slice(66, 130), signature.slice(130)]
  switch (format) {
    case "rsv":
      return { r: `0x${r}`, s: `0x${s}`, v: Number.parseInt(v, 16) }
    case "hex":
      return signature
    case "compact":
      return compact(r, s, v === "1c")
    case "der": {
      const body = integer(r) + integer(s)
      return `0x30${(body.length / 2).toString(16).padStart(2, "0")}${body}`
    }
  }
}
