import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Uint from "../../../domain/primitives/Uint.js"
import { invalid, invalidAt } from "../../failures/Failure.js"
import * as Keys from "../../keys/Keys.js"
import * as Span from "../../observe/Span.js"
import { Networks } from "../../ports/Networks.js"
import { SystemSigners } from "../../ports/Signers.js"
import type { Caller } from "../../request/Caller.js"
import { optional } from "../../request/Fields.js"

export const Request = Schema.Struct({
  chainId: optional(Schema.Union([Schema.String, Schema.Int])).annotateKey({
    description: "Refused where the operator does not serve the chain. A number, or text: decimal or 0x hex."
  })
}).annotate({ identifier: "GetBundlerAddressRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Struct({ address: Schema.String }).annotate({
  identifier: "GetBundlerAddressResponse"
})
export type Response = typeof Response.Type

/** The service's submitting EOA, the same on every chain. */
export const run = Effect.fnUntraced(function* (caller: Caller, request: Request) {
  if (request.chainId !== undefined) {
    const chainId = yield* Effect.fromResult(
      Result.mapError(Uint.from(String(request.chainId)), () =>
        invalidAt("chainId", "expected a chain id: an integer, or text that is decimal or 0x hex")
      )
    )
    const networks = yield* Networks
    if ((yield* networks.profile(caller.principal.accountId, chainId)) === null)
      return yield* invalid(
        "unsupported_chain",
        [{ path: "chainId", message: "the operator has no network profile for it" }],
        `unsupported chain id ${chainId}`
      )
  }
  const system = yield* SystemSigners
  const { address } = yield* Effect.mapError(system.serviceEoa, Keys.refusal("signer"))
  return { address }
}, Span.named("GetBundlerAddress"))
