import type * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"

/** The event topic: keccak256 of the canonical text `Name(type,type)`. */
export const topic: (canonical: string) => Hex.Bytes32 = Keccak.hashText

/** The first 4 bytes of that hash: what function calls and custom errors begin with. */
export const selector: (canonical: string) => Hex.Hex = Keccak.selector
