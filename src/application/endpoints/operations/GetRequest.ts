import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Answer from "../../answers/Answer.js"
import { type Failure, notFound } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { RequestRecord } from "../../ports/journal/Requests.js"
import { Refusals } from "../../ports/operator/Refusals.js"
import * as Preview from "../../preview/Preview.js"
import type { Caller } from "../../request/Caller.js"
import { optional } from "../../request/Fields.js"
import { Submissions } from "../Submissions.js"
import * as Metadata from "./Metadata.js"

export const Request = Schema.Struct({
  requestId: Schema.String.annotate({
    description: "The requestId of an answer, also in its header X-Request-Id."
  })
}).annotate({ identifier: "GetRequestPath" })
export type Request = typeof Request.Type

export const Query = Schema.Struct({
  wait: optional(
    Schema.String.check(
      Schema.isPattern(/^(?:[0-9]|[1-5][0-9]|60)$/u, { message: "expected whole seconds, 0 to 60" })
    ).annotate({
      description: "Seconds, 0 to 60, for which the answer waits for a request that is not final. Default 0."
    })
  )
}).annotate({ identifier: "GetRequestQuery" })
export type Query = typeof Query.Type

/** The form of all request ids; other strings in a path do not reach the journal. */
const shape = /^[!-~]{1,255}$/

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const Progress = Schema.Struct({
  total: Count,
  waiting: Count.annotate({ description: "Not signed yet." }),
  sent: Count.annotate({ description: "In a signed transaction, or at a bundler." }),
  succeeded: Count,
  failed: Count.annotate({ description: "Reverted on the chain, or not to be sent any more." })
}).annotate({ identifier: "RequestProgress" })

export const Response = Schema.Struct({
  requestId: Schema.String,
  endpoint: Schema.String.annotate({ description: "For example /execute." }),
  state: Schema.Literals(["pending", "final", "refused"]).annotate({
    description:
      "refused: castellan did not accept the request, and a repeat runs again. It keeps the answers of the latest refusals."
  }),
  acceptedAt: Schema.Int.annotate({
    description: "Unix seconds. Of a refused request: when it was refused."
  }),
  metadata: Metadata.schema,
  notBefore: Schema.NullOr(Schema.Int).annotate({
    description:
      "Unix seconds by the chain's clock, until which the open elements wait unsigned. Null: the request does not wait for a time."
  }),
  txHashes: Schema.Array(Schema.String).annotate({
    description: "Its signed transactions, the newest version of each."
  }),
  progress: Progress.annotateKey({
    description: "Its operations or accounts, counted by state; a request without a list counts as one."
  }),
  previews: Preview.stored.annotateKey({
    description:
      "Previews of its operations, made before its acceptance. Null: the request did not ask, or was refused."
  }),
  policies: Schema.Array(
    Schema.Struct({
      subject: Schema.String,
      layer: Schema.Literals(["operator", "account"]),
      version: Schema.Int
    }).annotate({ identifier: "PolicyName" })
  ).annotate({ description: "Spending rules that bound it at its acceptance." }),
  delay: Schema.NullOr(Schema.String).annotate({
    description:
      "Reason of the delay of its unsigned elements. Null: their turn has not come, or the answering process does not know."
  }),
  httpStatus: Schema.NullOr(Schema.Int).annotate({
    description: "Status of the final answer: 200 or 422. Null while it is pending."
  }),
  answer: Schema.Unknown.annotateKey({
    description: "Body of the final answer, as the endpoint gives it. Null while it is pending."
  })
}).annotate({ identifier: "RequestState" })
export type Response = typeof Response.Type

/** The account's accepted request. Another account's request is not found, like an unknown one. */
export const find = (
  { principal }: Caller,
  requestId: string
): Effect.Effect<RequestRecord, Failure, RequestJournal> =>
  Effect.gen(function* () {
    const requestJournal = yield* RequestJournal
    const record = shape.test(requestId) ? yield* Effect.orDie(requestJournal.request(requestId)) : null
    if (record !== null && record.accountId === principal.accountId) return record
    return yield* notFound("request_not_found")
  })

const isStatus = Schema.is(Schema.Struct({ status: Schema.Int }))

/** Counts progress by the journal's ops, or by the final answer of a request without ops. */
const progressOf = (
  { elements, failed, ops }: RequestRecord,
  final: { readonly httpStatus: number; readonly answer: unknown } | null
): typeof Progress.Type => {
  const alive = ops.filter(({ state }) => state === "sent" || state === "settled")
  const sent = alive.filter(({ state }) => state === "sent").length
  const succeeded = alive.filter(({ state, success }) => state === "settled" && success === true).length
  const known = new Set(alive.map(({ index }) => index))
  const refused = failed.filter(({ index }) => !known.has(index)).length
  const ended = alive.length - sent - succeeded + refused
  const left = elements - sent - succeeded - ended
  if (final === null) return { total: elements, waiting: left, sent, succeeded, failed: ended }
  const isDone =
    ops.length === 0 && final.httpStatus === 200 && isStatus(final.answer) && final.answer.status !== 0
  return {
    total: elements,
    waiting: 0,
    sent,
    succeeded: succeeded + (isDone ? left : 0),
    failed: ended + (isDone ? 0 : left)
  }
}

/** A request that was refused before acceptance, while its refusal is kept; otherwise `failure`. */
const refusedOr = (
  { principal }: Caller,
  requestId: string,
  failure: Failure
): Effect.Effect<Response, Failure> =>
  Effect.gen(function* () {
    const refusal = shape.test(requestId) ? yield* (yield* Refusals).find(requestId) : null
    if (refusal === null || refusal.accountId !== principal.accountId) return yield* Effect.fail(failure)
    const { answer, at, code, endpoint, message } = refusal
    return {
      requestId,
      endpoint,
      state: "refused" as const,
      acceptedAt: Math.floor(at / 1_000),
      metadata: {},
      notBefore: null,
      previews: null,
      policies: [],
      delay: null,
      txHashes: [],
      progress: { total: 0, waiting: 0, sent: 0, succeeded: 0, failed: 0 },
      httpStatus: 422,
      answer:
        answer === null ? { error: message, code, requestId, details: [] } : (JSON.parse(answer) as unknown)
    }
  })

/** The state of an accepted or lately refused request of the account. */
export const run = (
  caller: Caller,
  { requestId, wait = "0" }: Request & Query
): Effect.Effect<Response, Failure, RequestJournal | Submissions> =>
  Effect.gen(function* () {
    const { awaitFinal, delayOf } = yield* Submissions
    let record = yield* find(caller, requestId)
    if (record.outcome === null && wait !== "0") {
      yield* awaitFinal(requestId, Number(wait) * 1_000)
      record = yield* find(caller, requestId)
    }
    const final = record.outcome === null ? null : yield* Answer.toHttpResponse(record.outcome, requestId)
    return {
      requestId,
      endpoint: record.endpoint,
      state: final === null ? ("pending" as const) : ("final" as const),
      acceptedAt: Math.floor(record.acceptedAt / 1_000),
      metadata: record.metadata,
      notBefore: record.notBefore,
      txHashes: record.txHashes,
      progress: progressOf(record, final),
      previews: Preview.read(record.previews),
      policies: record.policies ?? [],
      delay: final === null ? delayOf(record) : null,
      httpStatus: final?.httpStatus ?? null,
      answer: final?.answer ?? null
    }
  }).pipe(
    Effect.catchTag("NotFound", (failure) => refusedOr(caller, requestId, failure)),
    Span.named("GetRequest")
  )
