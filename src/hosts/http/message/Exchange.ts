import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Schema from "effect/Schema"
import type { Principal } from "../../../application/ports/Tenants.js"
import * as Body from "./Body.js"
import * as ErrorEnvelope from "./ErrorEnvelope.js"
import * as RequestId from "./RequestId.js"

/** A place among the requests under way. */
export interface Ticket {
  /** What to interrupt when the drain time is over. */
  fiber: Fiber.Fiber<unknown, unknown>
}

/** What becomes known of a request on its way; for the log, and the headers of whatever the answer is. */
export interface Known {
  readonly requestId: string
  /** Unix milliseconds. */
  readonly began: number
  readonly method: string
  /** What of the contract it asked for. */
  endpoint: { readonly name: string; readonly path: string; readonly query: Schema.Top | null } | null
  /** Whose key it brought, once that was looked up. */
  principal: Principal | null
  /** The chain that it was about, as far as that came out. */
  chainId: bigint | null
  /** Of the answer; null: nobody was left to take it. */
  status: number | null
  /** Of an answer that is no success. */
  code: string | null
  millis: number
  /** Of every answer from now on. */
  headers: Readonly<Record<string, string>>
  /** Where a request without a valid key is counted; null: it is not. */
  anonymousAddress: string | null
  ticket: Ticket | null
  /** One of many that are alike: it leaves no line in the log. */
  isQuiet: boolean
}

export const begin = (method: string, now: number): Known => ({
  requestId: RequestId.make(now),
  began: now,
  method,
  endpoint: null,
  principal: null,
  chainId: null,
  status: null,
  code: null,
  millis: 0,
  headers: {},
  anonymousAddress: null,
  ticket: null,
  isQuiet: false
})

/** The request that a fiber answers. */
export const Exchange = Context.Reference<Known>("castellan/http/Exchange", {
  defaultValue: () => begin("", 0)
})

/** The answer to a request that is refused. A body that broke off has nobody who waits for one. */
export const refuse = (
  why: ErrorEnvelope.Problem | Body.Broken
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.flatMap(Exchange, (known) => {
    if (why instanceof Body.Broken) return Effect.die(why)
    known.code = why.code
    return Effect.succeed(ErrorEnvelope.response(why, known.requestId))
  })
