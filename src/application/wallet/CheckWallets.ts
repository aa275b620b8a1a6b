import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Caller } from "../Caller.js"
import type { Failure } from "../Failure.js"
import type { AbiStore } from "../ports/AbiStore.js"
import type { ChainRpc } from "../ports/ChainRpc.js"
import type { Networks } from "../ports/Networks.js"
import * as Settings from "../Settings.js"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const Request = Schema.Struct({
  accounts: Schema.Array(
    Schema.Struct({
      salt: optional(Schema.String),
      wallet: optional(Schema.String),
      walletCustody: optional(Schema.Number).annotations({
        description: "1 to 5. Needed only when no wallet address is given."
      })
    })
  ),
  settings: Settings.ForReading
}).annotations({ identifier: "CheckRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Array(
  Schema.Struct({
    exists: Schema.Boolean,
    wallet: Schema.String,
    salt: Schema.String,
    error: Schema.NullOr(Schema.String)
  })
).annotations({ identifier: "CheckResponse" })
export type Response = typeof Response.Type

export declare const run: (
  caller: Caller,
  request: Request
) => Effect.Effect<Response, Failure, AbiStore | ChainRpc | Networks>
