import type { Code } from "../application/request/Catalogue.js"

/** What the service says of a request that it did not answer with 200 or 202. */
export interface Problem {
  readonly error: string
  readonly code: Code
  readonly requestId: string
  readonly details: ReadonlyArray<{ readonly path: string; readonly message: string }>
}

const isProblem = (body: unknown): body is Problem =>
  typeof body === "object" && body !== null && "code" in body && "error" in body && "details" in body

/**
 * Why there is no result. `code` is the service's, or `no_answer`: the service was not reached, or its answer was lost;
 * a write may have been accepted then, and the same `idempotencyKey` asks for its outcome.
 */
export class CastellanError extends Error {
  override readonly name = "CastellanError"
  readonly code: Code | "no_answer"
  /** HTTP status; 0 without an answer. */
  readonly status: number
  readonly requestId: string | null
  readonly details: Problem["details"]
  /** All of the answer's body. */
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

  /** The error of an answer that is none of 200 and 202. */
  static of(status: number, body: unknown, idempotencyKey: string | null): CastellanError {
    const about = { status, body, idempotencyKey }
    // Something in front of the service has answered for it.
    if (!isProblem(body))
      return new CastellanError(`HTTP status ${status}`, {
        ...about,
        code: "no_answer",
        requestId: null,
        details: []
      })
    const { code, details, error, requestId } = body
    const said = details.map(({ message, path }) => (path === "" ? message : `${path}: ${message}`))
    return new CastellanError([error, ...said.filter((text) => text !== error)].join("; "), {
      ...about,
      code,
      requestId,
      details
    })
  }
}
