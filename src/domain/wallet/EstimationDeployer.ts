import * as Result from "effect/Result"
import * as Secp256k1 from "../crypto/Secp256k1.js"
import type * as Address from "../primitives/Address.js"
import type * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"

/**
 * A deployer for simulations only. Its private key is public: the hash of a fixed text. So a creation can be measured
 * before the real deployer signs. An `eth_call` that puts `address` into the factory's deployer slot runs the same code
 * as the real authorisation.
 */

const key = Result.getOrThrow(Secp256k1.privateKey(Keccak.hashText("castellan.estimation.deployer")))

export const address: Address.Address = Secp256k1.addressOf(key.publicKey)

/** r || s || v, 65 bytes, low s, v 27 or 28 (RFC 6979). */
export const sign = (digest: Hex.Bytes32): Hex.Hex => Secp256k1.serialize(key.sign(digest))

/** Storage of a factory with this deployer: slot 0 holds only its address, right-aligned. */
export const factoryStorage: Readonly<Record<string, string>> = {
  [`0x${"0".repeat(64)}`]: `0x${address.slice(2).toLowerCase().padStart(64, "0")}`
}
