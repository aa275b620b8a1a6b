import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Answer from "../../application/answers/Answer.js"
import type { RequestJournal } from "../../application/ports/journal/RequestJournal.js"
import type { RequestRecord } from "../../application/ports/journal/Requests.js"
import type { Kept, Refusal } from "../../application/ports/operator/Refusals.js"
import type { RequestHistory } from "../../application/ports/operator/RequestHistory.js"
import type { Failure } from "./Data.js"

/** Recent failures: refused requests, and accepted requests with a failed answer. */

/** Refusals, and ended requests, read for the list. */
const looked = 300
const shown = 20

const Said = Schema.Struct({
  error: Schema.optional(Schema.String),
  code: Schema.optional(Schema.String),
  returnData: Schema.optional(
    Schema.Array(
      Schema.Record(Schema.String, Schema.Struct({ error: Schema.optional(Schema.NullOr(Schema.String)) }))
    )
  )
})
const decode = Schema.decodeUnknownOption(Said)

/** The first reason in an answer. */
const ofRecord = ({ accountId, acceptedAt, endpoint, failed, lane, outcome, requestId }: RequestRecord) =>
  Effect.map(Answer.told(outcome ?? "{}", requestId), ({ answer }) => {
    const said = Option.getOrElse(decode(answer), (): typeof Said.Type => ({}))
    const error = said.returnData
      ?.flatMap((entry) => Object.values(entry))
      .find((element) => element.error != null)?.error
    const [first] = failed
    return {
      requestId,
      accountId,
      endpoint,
      chainId: lane.chainId,
      code: said.code ?? first?.code ?? "reverted",
      message: first?.message ?? error ?? said.error ?? "failed",
      at: acceptedAt
    }
  })

const kindOf = ({ accountId, chainId, code, endpoint, message }: Omit<Refusal, "answer">): string =>
  [accountId, chainId, endpoint, code, message].join("\n")

/** The newest failures, each kind of an account once, with its count among the last `looked`. */
export const make = ({
  history,
  refusals,
  requests
}: {
  readonly history: Pick<RequestHistory["Service"], "find">
  readonly refusals: Pick<Kept, "latest">
  readonly requests: Pick<RequestJournal["Service"], "newestEvents" | "requests">
}): Effect.Effect<ReadonlyArray<Failure>> =>
  Effect.gen(function* () {
    const refused = yield* refusals.latest(looked)
    // A retry of a refused request may have been accepted: its record reports it.
    const accepted = yield* requests.newestEvents(refused.map(({ requestId }) => requestId))
    const ended = yield* history.find({ state: "final", limit: looked })
    const records = yield* requests.requests(
      ended.flatMap(({ requestId, result }) =>
        result === "failed" || result === "partly" ? [requestId] : []
      )
    )
    const all = [
      ...refused.filter(({ requestId }) => (accepted.get(requestId) ?? 0) === 0),
      ...(yield* Effect.forEach(
        records.filter(({ outcome }) => outcome !== null),
        ofRecord
      ))
    ].sort((one, other) => other.at - one.at)
    return [...Map.groupBy(all, kindOf).values()]
      .flatMap((own) => {
        const [first] = own
        return first === undefined ? [] : [{ ...first, times: own.length }]
      })
      .slice(0, shown)
  }).pipe(Effect.orElseSucceed(() => []))
