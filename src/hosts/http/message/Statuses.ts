import { type Code, catalogue } from "../../../application/request/Catalogue.js"
import type { FailureKind } from "../../../application/request/FailureKind.js"

/** The HTTP status of each kind of failure. */
const statuses = {
  invalid: 400,
  unauthorized: 401,
  notFound: 404,
  notAllowed: 405,
  refused: 422,
  unknown: 422,
  limited: 429,
  internal: 500,
  unavailable: 503
} as const satisfies Record<FailureKind, number>

/** A status of an answer that is no success. */
export type Status = (typeof statuses)[FailureKind]

/** The status that a failure answers with. */
export const of = (code: Code): Status => statuses[catalogue[code].kind]

/** Names of the statuses in schemas and headings. */
export const names = {
  400: "BadRequest",
  401: "Unauthorized",
  404: "NotFound",
  405: "MethodNotAllowed",
  422: "Unprocessable",
  429: "TooManyRequests",
  500: "InternalError",
  503: "Unavailable"
} as const satisfies Record<Status, string>

/** The codes that answer with the status, in the order of the catalogue. */
export const codesOf = (status: Status): ReadonlyArray<Code> =>
  (Object.keys(catalogue) as ReadonlyArray<Code>).filter((code) => of(code) === status)
