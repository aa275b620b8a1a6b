import type * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"
import type { Version } from "./EntryPoint.js"
import * as UserOperation from "./UserOperation.js"

/**
 * What a bundler asks of a signature aggregator (ERC-4337's IAggregator). One that hashes the ops asks its caller for their
 * hashes: these are calls from the EntryPoint's address.
 */

const selectorsOf = (version: Version) => {
  const struct = UserOperation.structOf(version)
  return {
    validateOne: Keccak.selector(`validateUserOpSignature(${struct})`),
    aggregate: Keccak.selector(`aggregateSignatures(${struct}[])`),
    validateAll: Keccak.selector(`validateSignatures(${struct}[],bytes)`)
  }
}
const selectors = { "v0.6": selectorsOf("v0.6"), "v0.7": selectorsOf("v0.7"), "v0.8": selectorsOf("v0.8") }

/** Calldata of `validateUserOpSignature(op) returns (bytes)`: what the op carries as its signature in the bundle. */
export const validateOne = (version: Version, op: UserOperation.UserOperation): Hex.Hex =>
  Words.call(selectors[version].validateOne, [UserOperation.part(version, op)])

/** Calldata of `aggregateSignatures(ops) returns (bytes)`: the one signature in the place of the ops' own. */
export const aggregate = (version: Version, ops: ReadonlyArray<UserOperation.UserOperation>): Hex.Hex =>
  Words.call(selectors[version].aggregate, [Words.array(ops.map((op) => UserOperation.part(version, op)))])

/** Calldata of `validateSignatures(ops, signature)`, as an EntryPoint calls it. */
export const validateAll = (
  version: Version,
  ops: ReadonlyArray<UserOperation.UserOperation>,
  signature: Hex.Hex
): Hex.Hex =>
  Words.call(selectors[version].validateAll, [
    Words.array(ops.map((op) => UserOperation.part(version, op))),
    Words.bytes(signature)
  ])
