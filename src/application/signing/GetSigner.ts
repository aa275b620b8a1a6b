import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Caller } from "../Caller.js"
import * as Keys from "../engine/Keys.js"
import type { Failure } from "../Failure.js"
import type { Signers } from "../ports/Signers.js"
import { SignerRef } from "../Settings.js"

export const Request = Schema.Struct({ signer: SignerRef }).annotations({ identifier: "GetSignerRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Struct({
  address: Schema.String,
  publicKey: Schema.String.annotations({ description: "Uncompressed point, 130 hex digits without 0x." }),
  type: Schema.Literal("HSM", "MPC", "KMS", "PRIVATE_KEY")
}).annotations({ identifier: "GetSignerResponse" })
export type Response = typeof Response.Type

/** Address, public key and kind of a key of the account. */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Signers> =>
  Effect.map(Keys.resolve(caller, request.signer, "signer"), ({ address, publicKey, type }) => ({
    address,
    publicKey,
    type
  })).pipe(Effect.withSpan("GetSigner"))
