import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Cancellations from "../../answers/Cancellations.js"
import type { Failure } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { RequestRecord } from "../../ports/journal/Requests.js"
import type { Caller } from "../../request/Caller.js"
import { Submissions } from "../Submissions.js"
import * as GetRequest from "./GetRequest.js"
import * as Unstuck from "./Unstuck.js"

export const Request = GetRequest.Request
export type Request = typeof Request.Type

export const Response = Schema.Struct({
  requestId: Schema.String,
  state: Schema.Literals(["pending", "final"]).annotate({
    description: "pending: signed elements continue to their end."
  }),
  cancelled: Schema.Array(Schema.Int).annotate({
    description:
      "Indexes of the cancelled elements, which are never sent. A request without a list of elements has one element, 0."
  }),
  kept: Schema.Array(Schema.Int).annotate({
    description: "Indexes of the elements that were signed before: they continue, or have ended."
  })
}).annotate({ identifier: "CancelledRequest" })
export type Response = typeof Response.Type

/** A request's list of elements, for any endpoint. */
interface Elements {
  readonly operations?: ReadonlyArray<unknown> | undefined
  readonly accounts?: ReadonlyArray<unknown> | undefined
}

const list = Schema.optional(Schema.Array(Schema.Unknown))
const readElements: (body: unknown) => Result.Result<Elements, unknown> = Schema.decodeUnknownResult(
  Schema.fromJsonString(Schema.Struct({ operations: list, accounts: list }))
)

/** Number of the request's elements; null: it has no list of them, or its body was sealed under another key. */
const sizeOf = (body: string | null): number | null => {
  const { accounts, operations }: Elements =
    body === null ? {} : Result.getOrElse(readElements(body), () => ({}))
  return (operations ?? accounts)?.length ?? null
}

/** Elements without an op under way whose nonce has signed bytes that left the process. */
const heldOf = ({ ops, signed }: RequestRecord): ReadonlySet<number> =>
  new Set(
    ops.flatMap(({ index, nonceKey, sequence, space, state }) =>
      state === "accepted" &&
      signed.some(
        (version) =>
          version.index === index &&
          version.space.entryPoint === space.entryPoint &&
          version.space.wallet === space.wallet &&
          version.nonceKey === nonceKey &&
          version.sequence === sequence
      )
        ? [index]
        : []
    )
  )

/** The cancelled and the kept elements of a request, by the journal. */
const toResponse = (record: RequestRecord): Response => {
  const { body, cancelled, failed, ops, outcome, requestId, txHashes } = record
  const state = outcome === null ? ("pending" as const) : ("final" as const)
  const size = sizeOf(body)
  if (size === null && ops.length === 0)
    return cancelled !== null && outcome !== null && txHashes.length === 0
      ? { requestId, state, cancelled: [0], kept: [] }
      : { requestId, state, cancelled: [], kept: [0] }
  const known = [...new Set([...ops, ...failed].map(({ index }) => index))].sort((a, b) => a - b)
  const elements = size === null ? known : Array.from({ length: size }, (_, index) => index)
  const held = heldOf(record)
  const left = new Set(
    ops.filter((op) => op.state === "sent" || op.state === "settled").map(({ index }) => index)
  )
  const refused = new Set(failed.filter(({ code }) => code !== cancelled).map(({ index }) => index))
  const kept = elements.filter((index) => left.has(index) || held.has(index))
  return {
    requestId,
    state,
    cancelled:
      cancelled === null ? [] : elements.filter((index) => !kept.includes(index) && !refused.has(index)),
    kept
  }
}

/**
 * Repricing cannot be cancelled: it signs other requests' transactions.
 *
 * @example CancelRequest.isCancellable("/unstuck")
 * // false
 */
export const isCancellable = (endpoint: string): boolean => endpoint !== Unstuck.kind.endpoint

/** Cancels the unsigned part of an accepted request, if it is cancellable. */
export const cancel = (
  requestJournal: Pick<RequestJournal["Service"], "cancel" | "request">,
  record: RequestRecord
): Effect.Effect<Response, JournalError> =>
  Effect.gen(function* () {
    if (!isCancellable(record.endpoint)) return toResponse(record)
    yield* Cancellations.cancel(requestJournal, record.requestId, "request_cancelled", {
      onlyUnsigned: false
    })
    return toResponse((yield* requestJournal.request(record.requestId)) ?? record)
  })

/**
 * Cancels the unsigned part of a request of the account. Another account's request is not found, like an unknown one.
 * Once this has answered, no process ever signs the cancelled elements. Repeats change nothing.
 */
export const run = (
  caller: Caller,
  { requestId }: Request
): Effect.Effect<Response, Failure, RequestJournal | Submissions> =>
  Effect.gen(function* () {
    const requestJournal = yield* RequestJournal
    const { review } = yield* Submissions
    const record = yield* GetRequest.find(caller, requestId)
    const answer = yield* Effect.orDie(cancel(requestJournal, record))
    yield* review(record)
    return answer
  }).pipe(Span.named("CancelRequest"))
