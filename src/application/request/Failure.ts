import * as Data from "effect/Data"
import { type Catalogue, type CodeOf, catalogue } from "./Catalogue.js"

/** What one failure is about: where in the request (`operations[0].to`), and what is wrong there. */
export interface Detail {
  readonly path: string
  readonly message: string
  readonly [key: string]: string | number | boolean | null
}

interface Body<C extends keyof Catalogue> {
  readonly code: C
  /** The public text; exactly the catalogue's unless the rule for this code words it per case. */
  readonly message: string
  readonly details: ReadonlyArray<Detail>
}

/** 400: the request can never succeed as it is. Nothing was sent or spent. */
export class InvalidRequest extends Data.TaggedError("InvalidRequest")<Body<CodeOf<400>>> {}

/** 401: the key or the signer does not grant this. */
export class Unauthorized extends Data.TaggedError("Unauthorized")<Body<CodeOf<401>>> {}

/** 404: the account has nothing of that name. */
export class NotFound extends Data.TaggedError("NotFound")<Body<CodeOf<404>>> {}

/** 422: well-formed, and the chain, the custody provider or the state of a wallet refused it. */
export class Unprocessable extends Data.TaggedError("Unprocessable")<
  Body<CodeOf<422>> & {
    /** Response fields beside the error: `txHash`, `returnData`. */
    readonly extra: Readonly<Record<string, unknown>>
  }
> {}

/** 429 */
export class TooManyRequests extends Data.TaggedError("TooManyRequests")<
  Body<CodeOf<429>> & { readonly retryAfterSeconds: number }
> {}

/** 503 */
export class Unavailable extends Data.TaggedError("Unavailable")<
  Body<CodeOf<503>> & { readonly retryAfterSeconds: number }
> {}

/** Everything that a use case may fail with. */
export type Failure = InvalidRequest | Unauthorized | NotFound | Unprocessable | TooManyRequests | Unavailable

export const invalid = (
  code: CodeOf<400>,
  details: ReadonlyArray<Detail> = [],
  message: string = catalogue[code].text
): InvalidRequest => new InvalidRequest({ code, message, details })

export const unauthorized = (code: CodeOf<401>, details: ReadonlyArray<Detail> = []): Unauthorized =>
  new Unauthorized({ code, message: catalogue[code].text, details })

export const unprocessable = (
  code: CodeOf<422>,
  details: ReadonlyArray<Detail> = [],
  options: { readonly message?: string; readonly extra?: Readonly<Record<string, unknown>> } = {}
): Unprocessable =>
  new Unprocessable({
    code,
    message: options.message ?? catalogue[code].text,
    details,
    extra: options.extra ?? {}
  })
