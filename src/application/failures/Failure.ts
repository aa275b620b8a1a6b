import * as Data from "effect/Data"
import { type Catalogue, type CodeOf, catalogue, type RefusalCode } from "./Catalogue.js"
import * as Reasons from "./Reasons.js"

/** The place of a failure in the request (`operations[0].to`), and the error there. */
export interface Detail {
  readonly path: string
  readonly message: string
  readonly [key: string]: string | number | boolean | null
}

/** A detail of a refusal: its message is one of the closed set. */
export interface RefusalDetail extends Detail {
  readonly message: Reasons.Text
}

interface Body<C extends keyof Catalogue> {
  readonly code: C
  /** The public text: the catalogue's, unless the code's rule words it per case. */
  readonly message: string
  readonly details: ReadonlyArray<Detail>
}

/** The request can never succeed as it is. Nothing was sent or spent. */
export class InvalidRequest extends Data.TaggedError("InvalidRequest")<Body<CodeOf<"invalid">>> {}

/** The key or the signer does not grant this. */
export class Unauthorized extends Data.TaggedError("Unauthorized")<Body<CodeOf<"unauthorized">>> {}

/** The account has no object of that name. */
export class NotFound extends Data.TaggedError("NotFound")<Body<CodeOf<"notFound">>> {}

/** Well-formed, but the chain, the custody provider or the state of a wallet refused it; or its outcome is unknown. */
export class Unprocessable extends Data.TaggedError("Unprocessable")<
  Body<RefusalCode> & {
    /** Response fields in addition to the error: `txHash`, `returnData`. */
    readonly extra: Readonly<Record<string, unknown>>
  }
> {}

/** Too much at a time. */
export class TooManyRequests extends Data.TaggedError("TooManyRequests")<
  Body<CodeOf<"limited">> & { readonly retryAfterSeconds: number }
> {}

/** The service cannot answer now. */
export class Unavailable extends Data.TaggedError("Unavailable")<
  Body<CodeOf<"unavailable">> & { readonly retryAfterSeconds: number }
> {}

/** Every failure of a use case. */
export type Failure = InvalidRequest | Unauthorized | NotFound | Unprocessable | TooManyRequests | Unavailable

/**
 * 400: the request breaks a rule; `details` names the fields.
 *
 * @example Failure.invalid("invalid_request").message
 * // "invalid request"
 */
export const invalid = (
  code: CodeOf<"invalid">,
  details: ReadonlyArray<Detail> = [],
  message: string = catalogue[code].text
): InvalidRequest => new InvalidRequest({ code, message, details })

/**
 * 400 for one field.
 *
 * @example Failure.invalidAt("to", "expected an address").details
 * // [{ path: "to", message: "expected an address" }]
 */
export const invalidAt = (
  path: string,
  message: string,
  code: CodeOf<"invalid"> = "invalid_request"
): InvalidRequest => invalid(code, [{ path, message }])

/**
 * 401: no account for the key, or the account may not.
 *
 * @example Failure.unauthorized("scope_missing")._tag
 * // "Unauthorized"
 */
export const unauthorized = (
  code: CodeOf<"unauthorized">,
  details: ReadonlyArray<Detail> = []
): Unauthorized => new Unauthorized({ code, message: catalogue[code].text, details })

/**
 * 422: nothing was sent, except with `outcome_unknown`.
 *
 * @example Failure.unprocessable("outcome_unknown")._tag
 * // "Unprocessable"
 */
export const unprocessable = (
  code: RefusalCode,
  details: ReadonlyArray<RefusalDetail> = [],
  options: { readonly message?: Reasons.Text; readonly extra?: Readonly<Record<string, unknown>> } = {}
): Unprocessable =>
  new Unprocessable({
    code,
    message: options.message ?? Reasons.ofCode(code),
    details,
    extra: options.extra ?? {}
  })

/**
 * 404: the account has no such object.
 *
 * @example Failure.notFound("webhook_not_found")._tag
 * // "NotFound"
 */
export const notFound = (code: CodeOf<"notFound">): NotFound =>
  new NotFound({ code, message: catalogue[code].text, details: [] })

/**
 * `retryAfterSeconds`: delay before the same request is worth a retry.
 *
 * @example Failure.unavailable().retryAfterSeconds
 * // 1
 */
export const unavailable = (
  code: CodeOf<"unavailable"> = "unavailable",
  details: ReadonlyArray<Detail> = [],
  retryAfterSeconds = 1
): Unavailable => new Unavailable({ code, message: catalogue[code].text, details, retryAfterSeconds })
