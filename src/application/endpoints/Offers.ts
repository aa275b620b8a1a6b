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

/** An offer, and how its request is answered. */
export interface Offered<A> extends Offer {
  /** Where its elements stand in its body. */
  readonly list: ElementList
  readonly answer: (outcomes: Outcomes) => Effect.Effect<A, Failure>
  /** Its answer as it is stored. */
  readonly final: (outcomes: Outcomes) => Effect.Effect<Answer.Final>
  /** A stored answer of it. */
  readonly read: (outcome: string) => Effect.Effect<A, Failure>
  /** Transactions of its that the journal does not count to it, by its note. */
  readonly sent: (note: string | null) => ReadonlyArray<Bytes32>
}

/** An endpoint whose requests are accepted. */
export interface Kind<Q, I, O, R> {
  readonly endpoint: string
  readonly Request: Schema.Codec<Q, I>
  /** What the request asks for: everything that it can be wrong about by itself ends here. `body`: its JSON. */
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
    // What was just encoded need not be decoded.
    read: (outcome) =>
      made?.outcome === outcome ? Effect.fromResult(made.result) : Answer.decode(Response, outcome)
  }
}
