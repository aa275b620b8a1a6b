import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Keys from "../../keys/Keys.js"
import * as Span from "../../observe/Span.js"
import { Networks } from "../../ports/Networks.js"
import { SystemSigners } from "../../ports/Signers.js"
import type { Caller } from "../../request/Caller.js"
import { type Failure, invalid } from "../../request/Failure.js"
import { optional } from "../../request/Fields.js"

export const Request = Schema.Struct({
  chainId: optional(Schema.Union(Schema.String, Schema.Int))
}).annotations({ identifier: "GetBundlerAddressRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Struct({ address: Schema.String }).annotations({
  identifier: "GetBundlerAddressResponse"
})
export type Response = typeof Response.Type

const decimal = /^(?:0|[1-9][0-9]{0,19})$/

/** The service's own submitting EOA, the same on every chain. */
export const run = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure, Networks | SystemSigners> =>
  Effect.gen(function* () {
    if (request.chainId !== undefined) {
      const text = String(request.chainId)
      const networks = yield* Networks
      const known =
        decimal.test(text) && (yield* networks.profile(caller.principal.accountId, BigInt(text))) !== null
      if (!known)
        return yield* Effect.fail(
          invalid(
            "unsupported_chain",
            [{ path: "chainId", message: "the operator has no network profile for it" }],
            `unsupported chain id ${text.slice(0, 20)}`
          )
        )
    }
    const system = yield* SystemSigners
    const { address } = yield* Effect.mapError(system.serviceEoa, Keys.refusal("signer"))
    return { address }
  }).pipe(Span.named("GetBundlerAddress"))
