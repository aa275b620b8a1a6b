import * as Hex from "../primitives/Hex.js"
import * as Words from "../primitives/Words.js"
import { EntryPointSpec, type Version } from "./entrypoint/EntryPointSpec.js"
import type { UserOperation } from "./entrypoint/Op.js"

/** Ops that may be read in one transaction: offsets that point at each other would multiply hostile data. */
const most = 4_096

const opAt = (version: Version, tuple: Words.Cursor): UserOperation => ({
  sender: Words.readAddress(tuple, 0),
  nonce: Words.readUint(tuple, 32),
  initCode: Words.readBytes(tuple, 64),
  callData: Words.readBytes(tuple, 96),
  ...EntryPointSpec[version].layout.readRest(tuple)
})

/** The members of an array of structs, as many as the data has room for. */
const members = (cursor: Words.Cursor, at: number): ReadonlyArray<Words.Cursor> => {
  const { count, elements } = Words.readArray(cursor, at)
  return Array.from({ length: Math.min(count, most) }, (_, index) => Words.readTail(elements, index * 32))
}

/** Data behind each selector, at any byte: bundlers call the EntryPoint through their own contracts. */
const placesOf = (data: Hex.Hex, selector: Hex.Hex): ReadonlyArray<Hex.Hex> => {
  const places: Array<Hex.Hex> = []
  const digits = selector.slice(2)
  for (let at = data.indexOf(digits, 2); at >= 0 && places.length < 16; at = data.indexOf(digits, at + 2))
    if (at % 2 === 0) places.push(Hex.unsafe(`0x${data.slice(at + digits.length)}`))
  return places
}

/**
 * The ops of the bundles in a transaction's data: of `handleOps` and `handleAggregatedOps` of that version's EntryPoint,
 * called by the transaction itself or within the data that it gives to another contract. Other data may read as ops that
 * do not exist: an op counts only if the EntryPoint's event has its hash.
 */
export const read = (version: Version, data: Hex.Hex): ReadonlyArray<UserOperation> => {
  const { handleAggregatedOps, handleOps } = EntryPointSpec[version].functions
  const plain = placesOf(data, handleOps).flatMap((place) => members(Words.read(place), 0))
  const aggregated = placesOf(data, handleAggregatedOps).flatMap((place) =>
    members(Words.read(place), 0).flatMap((group) => members(group, 0))
  )
  return [...plain, ...aggregated].slice(0, most).map((tuple) => opAt(version, tuple))
}
