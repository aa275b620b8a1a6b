import type * as Hex from "../primitives/Hex.js"
import * as Words from "../primitives/Words.js"
import { EntryPointSpec, type Version } from "./entrypoint/EntryPointSpec.js"
import * as UserOperation from "./UserOperation.js"

/**
 * A bundler's calls of a signature aggregator (ERC-4337's IAggregator), made from the EntryPoint's address: an aggregator
 * that hashes the ops asks its caller for their hashes.
 */

/** Calldata of `validateUserOpSignature(op) returns (bytes)`: the op's signature in the bundle. */
export const validateOne = (version: Version, op: UserOperation.UserOperation): Hex.Hex =>
  Words.call(EntryPointSpec[version].functions.validateUserOpSignature, [UserOperation.part(version, op)])

/** Calldata of `aggregateSignatures(ops) returns (bytes)`: one signature instead of the ops' own. */
export const aggregate = (version: Version, ops: ReadonlyArray<UserOperation.UserOperation>): Hex.Hex =>
  Words.call(EntryPointSpec[version].functions.aggregateSignatures, [
    Words.array(ops.map((op) => UserOperation.part(version, op)))
  ])

/** Calldata of `validateSignatures(ops, signature)`, as an EntryPoint calls it. */
export const validateAll = (
  version: Version,
  ops: ReadonlyArray<UserOperation.UserOperation>,
  signature: Hex.Hex
): Hex.Hex =>
  Words.call(EntryPointSpec[version].functions.validateSignatures, [
    Words.array(ops.map((op) => UserOperation.part(version, op))),
    Words.bytes(signature)
  ])
