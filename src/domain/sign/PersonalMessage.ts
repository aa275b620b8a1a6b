import * as Either from "effect/Either"
import { toUtf8Bytes } from "ethers/utils"
import * as Hex from "../evm/Hex.js"
import * as Keccak from "../evm/Keccak.js"

/** EIP-191 version 0x45, what wallets call `personal_sign`. */

const hexOf = (text: string): Hex.Hex =>
  Hex.unsafe(`0x${Array.from(toUtf8Bytes(text), (byte) => byte.toString(16).padStart(2, "0")).join("")}`)

const loneSurrogate = /\p{Surrogate}/u

/** The bytes that a message means: those of 0x and an even number of hex digits, else its UTF-8 ones. */
export const bytes = (message: string): Either.Either<Hex.Hex, string> => {
  if (Hex.is(message)) return Either.right(Hex.unsafe(message))
  return loneSurrogate.test(message) ? Either.left("expected well-formed text") : Either.right(hexOf(message))
}

/** keccak256("\x19Ethereum Signed Message:\n" ++ number of bytes in decimal ++ bytes). */
export const digest = (message: Hex.Hex): Hex.Bytes32 =>
  Keccak.hash(Hex.concat(hexOf(`\x19Ethereum Signed Message:\n${Hex.size(message)}`), message))
