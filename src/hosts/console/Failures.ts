import * as Effect from "effect/Effect"
import { catalogue } from "../../application/failures/Catalogue.js"
import type { RequestJournal } from "../../application/ports/journal/RequestJournal.js"
import type { Kept, Refusal } from "../../application/ports/operator/Refusals.js"
import type { Entry, RequestHistory } from "../../application/ports/operator/RequestHistory.js"
import type { Failure } from "./Data.js"

/** Recent failures: refused requests, and accepted requests with a failed answer. */

/** Refusals, and ended requests, read for the list. */
const scanned = 300
const shown = 20

const isListed = (code: string): code is keyof typeof catalogue => code in catalogue

const ofEntry = (entry: Entry): ReadonlyArray<Omit<Refusal, "answer">> => {
  const { acceptedAt, accountId, chainId, endpoint, failure, requestId, result } = entry
  if (failure === null || (result !== "failed" && result !== "partly")) return []
  const { code } = failure
  const message = failure.message ?? (isListed(code) ? catalogue[code].text : code)
  return [{ requestId, accountId, endpoint, chainId, code, message, at: acceptedAt }]
}

const kindOf = ({ accountId, chainId, code, endpoint, message }: Omit<Refusal, "answer">): string =>
  [accountId, chainId, endpoint, code, message].join("\n")

/** The newest failures, each kind of an account once, with its count among the last `scanned`. */
export const make = ({
  history,
  refusals,
  requests
}: {
  readonly history: Pick<RequestHistory["Service"], "find">
  readonly refusals: Pick<Kept, "latest">
  readonly requests: Pick<RequestJournal["Service"], "newestEvents">
}): Effect.Effect<ReadonlyArray<Failure>> =>
  Effect.gen(function* () {
    const refused = yield* refusals.latest(scanned)
    // An accepted request that then failed is in the history.
    const accepted = yield* requests.newestEvents(refused.map(({ requestId }) => requestId))
    const ended = yield* history.find({ state: "final", limit: scanned })
    const all = [
      ...refused.filter(({ requestId }) => (accepted.get(requestId) ?? 0) === 0),
      ...ended.flatMap(ofEntry)
    ].sort((one, other) => other.at - one.at)
    return [...Map.groupBy(all, kindOf).values()]
      .flatMap((own) => {
        const [first] = own
        return first === undefined ? [] : [{ ...first, times: own.length }]
      })
      .slice(0, shown)
  }).pipe(Effect.orElseSucceed(() => []))
