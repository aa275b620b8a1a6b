import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type RefusalDetail, unprocessable } from "../failures/Failure.js"
import type { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { Cancellation, CancellationCode } from "../ports/journal/Requests.js"
import * as Answer from "./Answer.js"

export const cancel = (
  requestJournal: Pick<RequestJournal["Service"], "cancel">,
  requestId: string,
  code: CancellationCode,
  only: Pick<Cancellation, "onlyUnsigned">,
  details: ReadonlyArray<RefusalDetail> = []
) =>
  Effect.flatMap(Answer.encode(Schema.Never, Result.fail(unprocessable(code, details))), (outcome) =>
    requestJournal.cancel(requestId, { ...only, code, outcome })
  )
