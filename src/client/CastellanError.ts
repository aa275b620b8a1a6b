import type { Code } from "../application/failures/Catalogue.js"

/** Error body of a response other than 200 or 202. */
export interface Problem {
  readonly error: string
  readonly code: Code
  readonly requestId: string
  readonly details: ReadonlyArray<{ readonly path: string; readonly message: string }>
}

const isProblem = (body: unknown): body is Problem =>
  typeof body === "object" && body !== null && "code" in body && "error" in body && "details" in body

/**
 * A failed call. `code` is the service's, or `no_answer`: the service was not reached, or its response was lost. A write
 * may have been accepted then; repeat it with the same `idempotencyKey` to get its outcome.
 */
export class CastellanError extends Error {
  override readonly name = "CastellanError"
  readonly code: Code | "no_answer"
  /** HTTP status; 0 without an answer. */
  readonly status: number
  readonly requestId: string | null
  readonly details: Problem["details"]
  /** The whole response body. */
  readonly body: unknown
  readonly idempotencyKey: string | null

  constructor(
    message: string,
    about: Pick<CastellanError, "code" | "status" | "requestId" | "details" | "body" | "idempotencyKey">,
    cause?: unknown
  ) {
    super(message, { cause })
    this.code = about.code
    this.status = about.status
    this.requestId = about.requestId
    this.details = about.details
    this.body = about.body
    this.idempotencyKey = about.idempotencyKey
  }

  /** The error of a response whose status is neither 200 nor 202. */
  static of(status: number, body: unknown, idempotencyKey: string | null): CastellanError {
    const about = { status, body, idempotencyKey }
    // A proxy in front of the service answered.
    if (!isProblem(body))
      return new CastellanError(`HTTP status ${status}`, {
        ...about,
        code: "no_answer",
        requestId: null,
        details: []
      })
    const { code, details, error, requestId } = body
    const problems = details.map(({ message, path }) => (path === "" ? message : `${path}: ${message}`))
    return new CastellanError([error, ...problems.filter((text) => text !== error)].join("; "), {
      ...about,
      code,
      requestId,
      details
    })
  }
}
