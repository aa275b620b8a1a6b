import { keccak256 } from "ethers/crypto"
import { toUtf8Bytes } from "ethers/utils"
import * as Hex from "./Hex.js"

/** keccak256 of bytes. */
export const hash = (bytes: Hex.Hex): Hex.Bytes32 => Hex.unsafe32(keccak256(bytes))

/** keccak256 of the UTF-8 bytes of well-formed text. */
export const hashText = (text: string): Hex.Bytes32 => Hex.unsafe32(keccak256(toUtf8Bytes(text)))

/** The first 4 bytes of the hash of a canonical function or error signature. */
export const selector = (signature: string): Hex.Hex => Hex.unsafe(hashText(signature).slice(0, 10))
