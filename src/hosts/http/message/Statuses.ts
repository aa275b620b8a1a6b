import { type Code, catalogue } from "../../../application/failures/Catalogue.js"
import type { FailureKind } from "../../../application/failures/FailureKind.js"

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

/** HTTP status of an error response. */
export type Status = (typeof statuses)[FailureKind]

export const of = (code: Code): Status => statuses[catalogue[code].kind]

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

/** Error codes with this status, in the order of the catalogue. */
export const codesOf = (status: Status): ReadonlyArray<Code> =>
  (Object.keys(catalogue) as ReadonlyArray<Code>).filter((code) => of(code) === status)
