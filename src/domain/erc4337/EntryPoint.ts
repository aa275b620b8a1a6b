import * as Record from "effect/Record"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import { EntryPointSpec, type Version } from "./entrypoint/EntryPointSpec.js"

export type { Version }

/** Every version, oldest first. */
export const versions = Object.keys(EntryPointSpec) as ReadonlyArray<Version>

/** Address of each version's reference EntryPoint. */
export const canonical = Record.map(EntryPointSpec, ({ address }) => address)

/** Every version, for messages: `v0.6, v0.7 or v0.8`. */
export const anyVersion = `${versions.slice(0, -1).join(", ")} or ${versions.at(-1)}`

/**
 * Which canonical EntryPoint this is, if any.
 *
 * @example EntryPoint.versionOf(Address.unsafe("0x0000000071727De22E5E9d8BAf0edAc6f37da032"))
 * // "v0.7"
 */
export const versionOf = (entryPoint: Address.Address): Version | undefined =>
  versions.find((version) => canonical[version] === entryPoint)

/**
 * The EntryPoint's SenderCreator, which calls the factory of an op's initCode. The constructor of every version creates it
 * first, so it is the CREATE address of nonce 1: the low 20 bytes of keccak256(rlp([entryPoint, 1])).
 *
 * @example EntryPoint.senderCreator(EntryPoint.canonical["v0.7"])
 * // "0xEFC2c1444eBCC4Db75e7613d20C6a62fF67A167C"
 */
export const senderCreator = (entryPoint: Address.Address): Address.Address =>
  Address.fromWord(Keccak.hash(Hex.concat(Hex.unsafe("0xd694"), Hex.unsafe(entryPoint), Hex.unsafe("0x01"))))
