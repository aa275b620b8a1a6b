import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { catalogue, type RefusalCode } from "../failures/Catalogue.js"
import {
  type Detail,
  type Failure,
  type RefusalDetail,
  type Unprocessable,
  unprocessable
} from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import type { EventData } from "../ports/journal/Events.js"

/** Encodes and decodes the stored answers of requests, and shortens them for events. */

const Stored = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({
      failure: Schema.Struct({
        code: Schema.String,
        message: Schema.String,
        details: Schema.Array(
          Schema.StructWithRest(Schema.Struct({ path: Schema.String, message: Schema.String }), [
            Schema.Record(
              Schema.String,
              Schema.Union([Schema.String, Schema.Number, Schema.Boolean, Schema.Null])
            )
          ])
        ),
        extra: Schema.Record(Schema.String, Schema.Unknown)
      })
    }),
    Schema.Struct({ answer: Schema.Unknown })
  ])
)

export interface Final {
  readonly outcome: string
  readonly summary: EventData
}

/** Messages of a failure that was made here. */
const kept = (details: ReadonlyArray<Detail>): ReadonlyArray<RefusalDetail> =>
  details.map((detail) => ({ ...detail, message: Reasons.known(detail.message) }))

/** After acceptance a request can only be refused; no other failure is left (decision 7). */
export const asUnprocessable = (failure: Failure): Unprocessable =>
  failure._tag === "Unprocessable"
    ? failure
    : unprocessable("execution_failed", kept(failure.details), { message: Reasons.known(failure.message) })

/** JSON of the answer; an answer that does not fit its own schema is a defect. */
export const encode = <B, J>(
  Response: Schema.Codec<B, J>,
  result: Result.Result<B, Unprocessable>
): Effect.Effect<string> =>
  Effect.orDie(
    Effect.flatMap(
      Result.match<
        B,
        Unprocessable,
        Effect.Effect<unknown, Schema.SchemaError>,
        Effect.Effect<unknown, Schema.SchemaError>
      >(result, {
        onFailure: ({ code, details, extra, message }) =>
          Effect.succeed({ failure: { code, message, details, extra } }),
        onSuccess: (value) => Effect.map(Schema.encodeEffect(Response)(value), (answer) => ({ answer }))
      }),
      (value) => Effect.sync(() => JSON.stringify(value))
    )
  )

/** Most characters of an element's error in a summary. */
const longestText = 200

/** Most elements that a summary lists; above that it only counts successes. */
const mostElements = 256

/** One element's outcome from its answer: its `success`, or whether it has no error. */
const elementOf = (index: number, value: unknown): EventData => {
  const { error = null, success = error === null }: { readonly error?: unknown; readonly success?: unknown } =
    typeof value === "object" && value !== null ? value : {}
  return { index, success, ...(typeof error === "string" && { error: error.slice(0, longestText) }) }
}

const isAnswerOfElements = Schema.is(
  Schema.Struct({
    status: Schema.Number,
    returnData: Schema.Array(Schema.Record(Schema.String, Schema.Unknown))
  })
)

const elementsOf = (returnData: ReadonlyArray<Readonly<Record<string, unknown>>>): EventData => {
  const elements = returnData.flatMap((entry) =>
    Object.entries(entry).map(([index, value]) => elementOf(Number(index), value))
  )
  return elements.length <= mostElements
    ? { elements }
    : { total: elements.length, succeeded: elements.filter(({ success }) => success === true).length }
}

/** The answer in short: its status, and each element's outcome or the number of successes. */
export const summary = (result: Result.Result<unknown, Unprocessable>): EventData =>
  Result.match(result, {
    onFailure: ({ code }) => ({ httpStatus: 422, code }),
    onSuccess: (answer) =>
      isAnswerOfElements(answer)
        ? {
            httpStatus: 200,
            status: answer.status,
            ...elementsOf(answer.returnData)
          }
        : { httpStatus: 200 }
  })

const isRefusal = (code: string): code is RefusalCode =>
  code in catalogue && ["refused", "unknown"].includes(catalogue[code as keyof typeof catalogue].kind)

/** Decodes a stored answer; other JSON is a defect. */
export const decode = <B, J>(Response: Schema.Codec<B, J>, text: string): Effect.Effect<B, Unprocessable> =>
  Effect.gen(function* () {
    const stored = yield* Effect.orDie(Schema.decodeEffect(Stored)(text))
    if ("answer" in stored) return yield* Effect.orDie(Schema.decodeUnknownEffect(Response)(stored.answer))
    const { code, details, extra, message } = stored.failure
    return yield* unprocessable(isRefusal(code) ? code : "execution_failed", kept(details), {
      message: Reasons.known(message),
      extra
    })
  })

export const toHttpResponse = (
  text: string,
  requestId: string
): Effect.Effect<{ readonly httpStatus: 200 | 422; readonly answer: unknown }> =>
  Effect.map(Effect.orDie(Schema.decodeEffect(Stored)(text)), (stored) => {
    if ("answer" in stored) return { httpStatus: 200, answer: stored.answer }
    const { code, details, extra, message } = stored.failure
    return { httpStatus: 422, answer: { ...extra, error: message, code, requestId, details } }
  })
