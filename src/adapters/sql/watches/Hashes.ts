import * as Hex from "../../../domain/primitives/Hex.js"

/** Column of hashes: base64 of their bytes, one after another. */
export const write = (hashes: ReadonlyArray<Hex.Bytes32>): string =>
  Buffer.from(hashes.map((hash) => hash.slice(2)).join(""), "hex").toString("base64")

export const read = (column: string): ReadonlyArray<Hex.Bytes32> =>
  (Buffer.from(column, "base64").toString("hex").match(/.{64}/g) ?? []).map((digits) =>
    Hex.unsafe32(`0x${digits}`)
  )
