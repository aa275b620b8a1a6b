import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Caller } from "../Caller.js"
import type { Failure } from "../Failure.js"
import type { SystemSigners } from "../ports/Signers.js"

export const Request = Schema.Struct({
  chainId: Schema.optionalWith(Schema.Union(Schema.String, Schema.Int), { exact: true })
}).annotations({ identifier: "GetBundlerAddressRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Struct({ address: Schema.String }).annotations({
  identifier: "GetBundlerAddressResponse"
})
export type Response = typeof Response.Type

export declare const run: (
  caller: Caller,
  request: Request
) => Effect.Effect<Response, Failure, SystemSigners>
