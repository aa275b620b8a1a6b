import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import * as Answer from "../answers/Answer.js"
import type { Outcomes } from "../answers/Results.js"
import type { ElementList } from "../failures/Elements.js"
import type { Failure, Unprocessable } from "../failures/Failure.js"
import type { Offer } from "../prepare/Offer.js"
import type { Caller } from "../request/Caller.js"

/** An offer, and its request's answers. */
export interface Offered<A> extends Offer {
  /** The list in its body that holds its elements. */
  readonly list: ElementList
  readonly answer: (outcomes: Outcomes) => Effect.Effect<A, Failure>
  readonly final: (outcomes: Outcomes) => Effect.Effect<Answer.Final>
  readonly read: (outcome: string) => Effect.Effect<A, Failure>
  /** Its transactions that the journal does not link to it, by its note. */
  readonly sent: (note: string | null) => ReadonlyArray<Bytes32>
}

/** An endpoint whose requests are accepted. */
export interface Kind<Q, I, O, R> {
  readonly endpoint: string
  readonly Request: Schema.Codec<Q, I>
  /** Reads the request, and fails for every error that it can have by itself. `body`: its JSON. */
  readonly offerOf: (caller: Caller, request: Q, body: string) => Effect.Effect<O, Failure, R>
}

export const make = <A, I>({
  Response,
  answer,
  list = "operations",
  mayWait = false,
  sent = () => [],
  ...offer
}: Omit<Offer, "mayWait" | "requestId"> &
  Pick<Offered<A>, "answer"> &
  Partial<Pick<Offered<A>, "list" | "mayWait" | "sent">> & {
    readonly Response: Schema.Codec<A, I>
  }): Offered<A> => {
  let made: { readonly outcome: string; readonly result: Result.Result<A, Unprocessable> } | null = null
  return {
    ...offer,
    requestId: offer.caller.requestId,
    list,
    mayWait,
    sent,
    answer,
    final: (outcomes) =>
      Effect.gen(function* () {
        const result = Result.mapError(yield* Effect.result(answer(outcomes)), Answer.asUnprocessable)
        const outcome = yield* Answer.encode(Response, result)
        made = { outcome, result }
        return { outcome, summary: Answer.summary(result) }
      }),
    // The answer that was just encoded need not be decoded.
    read: (outcome) =>
      made?.outcome === outcome ? Effect.fromResult(made.result) : Answer.decode(Response, outcome)
  }
}
