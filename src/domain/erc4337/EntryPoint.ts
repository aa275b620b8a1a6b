import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"

/** Version of the ERC-4337 EntryPoint contract. v0.6 has its own op layout, v0.7 and v0.8 share the packed one. */
export type Version = "v0.6" | "v0.7" | "v0.8"

/** Every version, oldest first. */
export const versions: ReadonlyArray<Version> = ["v0.6", "v0.7", "v0.8"]

/** Where the reference EntryPoint of each version is, the same on every chain (eth-infinitism releases). */
export const canonical: Readonly<Record<Version, Address.Address>> = {
  "v0.6": Address.unsafe("0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789"),
  "v0.7": Address.unsafe("0x0000000071727De22E5E9d8BAf0edAc6f37da032"),
  "v0.8": Address.unsafe("0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108")
}

/** Which canonical EntryPoint this is, if any. */
export const versionOf = (entryPoint: Address.Address): Version | undefined =>
  versions.find((version) => canonical[version] === entryPoint)

/**
 * The EntryPoint's SenderCreator, which calls the factory of an op's initCode. The EntryPoint's constructor
 * creates it first, so it is the CREATE address of nonce 1: the low 20 bytes of keccak256(rlp([entryPoint, 1])).
 */
export const senderCreator = (entryPoint: Address.Address): Address.Address =>
  Address.fromWord(Keccak.hash(Hex.concat(Hex.unsafe("0xd694"), Hex.unsafe(entryPoint), Hex.unsafe("0x01"))))
