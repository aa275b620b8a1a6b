import * as Effect from "effect/Effect"
import { SigningKey } from "ethers"
import type { Signer } from "../../src/application/ports/Signers.js"
import type { Caller } from "../../src/application/request/Caller.js"
import * as Secp256k1 from "../../src/domain/crypto/Secp256k1.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import * as Make from "./journal/Make.js"

/** A caller with every scope. */
export const caller = (requestId = "r", accountId = Make.alice): Caller => ({
  requestId,
  principal: {
    accountId,
    name: accountId,
    tier: "pro",
    scopes: new Set(["read", "write", "sign"]),
    paused: false,
    keyId: null
  }
})

/** The signer with key number `n`. */
export const signer = (n: number): Signer => {
  const key = new SigningKey(Make.word(n))
  const publicKey = key.publicKey.slice(2)
  return {
    address: Secp256k1.addressOf(publicKey),
    publicKey,
    type: "PRIVATE_KEY",
    sign: (digest) => Effect.sync(() => Hex.unsafe(key.sign(digest).serialized))
  }
}

/** The signer of the lane in journal tests; it never signs. */
export const unasked: Signer = {
  address: Make.lane.signer,
  publicKey: "04",
  type: "PRIVATE_KEY",
  sign: () => Effect.die(new Error("nothing is signed here"))
}
