import { keccak256 } from "ethers/crypto"
import { toUtf8Bytes } from "ethers/utils"
import * as Hex from "../evm/Hex.js"

/** The event topic: keccak256 of the canonical text `Name(type,type)`. */
export const topic = (canonical: string): Hex.Bytes32 => Hex.unsafe32(keccak256(toUtf8Bytes(canonical)))

/** The first 4 bytes of that hash: what function calls and custom errors begin with. */
export const selector = (canonical: string): Hex.Hex => Hex.unsafe(topic(canonical).slice(0, 10))
