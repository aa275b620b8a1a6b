import * as Result from "effect/Result"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"

/** EIP-191 version 0x45, what wallets call `personal_sign`. */

const loneSurrogate = /\p{Surrogate}/u

/** The bytes of a message: those of 0x and an even number of hex digits, otherwise its UTF-8. */
export const bytes = (message: string): Result.Result<Hex.Hex, string> => {
  if (Hex.is(message)) return Result.succeed(Hex.unsafe(message))
  return loneSurrogate.test(message)
    ? Result.fail("expected well-formed text")
    : Result.succeed(Hex.fromText(message))
}

/** keccak256("\x19Ethereum Signed Message:\n" ++ number of bytes in decimal ++ bytes). */
export const digest = (message: Hex.Hex): Hex.Bytes32 =>
  Keccak.hash(Hex.concat(Hex.fromText(`\x19Ethereum Signed Message:\n${Hex.size(message)}`), message))
