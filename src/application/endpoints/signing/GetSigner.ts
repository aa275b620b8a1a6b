import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Keys from "../../keys/Keys.js"
import * as Span from "../../observe/Span.js"
import type { Caller } from "../../request/Caller.js"
import { SignerRef } from "../../request/Settings.js"

export const Request = Schema.Struct({ signer: SignerRef }).annotate({ identifier: "GetSignerRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Struct({
  address: Schema.String,
  publicKey: Schema.String.annotate({ description: "Uncompressed point, 130 hex digits without 0x." }),
  type: Schema.Literals(["HSM", "MPC", "KMS", "PRIVATE_KEY"])
}).annotate({ identifier: "GetSignerResponse" })
export type Response = typeof Response.Type

/** Address, public key and kind of a key of the account. */
export const run = (caller: Caller, request: Request) =>
  Effect.map(Keys.resolve(caller, request.signer, "signer"), ({ address, publicKey, type }) => ({
    address,
    publicKey,
    type
  })).pipe(Span.named("GetSigner"))
