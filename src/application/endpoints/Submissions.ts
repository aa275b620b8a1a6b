import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Failure } from "../failures/Failure.js"
import type { Room } from "../intake/OpenRequests.js"
import type { RequestRecord } from "../ports/journal/Requests.js"
import type { Lane, LaneAccess } from "../ports/journal/Transactions.js"
import type { Caller } from "../request/Caller.js"
import type { Kind, Offered } from "./Offers.js"

/** Requests whose ops the workers of their lanes bring onto the chain. */
export interface Submissions {
  /** Takes the request in, and answers with what became of it; 422 `outcome_unknown` when that takes longer than its patience. */
  readonly run: <A>(caller: Caller, offer: Offered<A>) => Effect.Effect<A, Failure>
  /** Something else has changed the accepted request in the journal: it may be at its end. */
  readonly review: (request: Pick<RequestRecord, "lane" | "requestId">) => Effect.Effect<void>
  /** Fails where `run` would refuse the account's request for what is open: to be asked before the request is read. */
  readonly room: Room
  /** How many requests are accepted and have no answer, as far as is known here. */
  readonly accepted: () => number
  /** What keeps what is not signed of the accepted request from going; null: nothing that is known here. */
  readonly delayOf: (request: Pick<RequestRecord, "lane" | "requestId">) => string | null
  /** Nonces of the lane's EOA that hold its work up, since the journal does not know them; null: none does. */
  readonly unknown: (
    lane: Lane
  ) => { readonly nonces: ReadonlyArray<bigint>; readonly access: LaneAccess } | null
  /** Begins to look after what is accepted, whoever took it in: it goes on, and is answered where it is at its end. */
  readonly start: Effect.Effect<void>
}

export const Submissions: Context.Key<Submissions, Submissions> = Context.Service("castellan/Submissions")

/** Takes in the request, whose body is the JSON that the offer is made of. */
export const submit = <Q, I, A, R>(
  caller: Caller,
  { Request, offerOf }: Kind<Q, I, Offered<A>, R>,
  request: Q
): Effect.Effect<A, Failure, R | Submissions> =>
  Effect.gen(function* () {
    const encoded = yield* Effect.orDie(Schema.encodeEffect(Request)(request))
    const offer = yield* offerOf(caller, request, JSON.stringify(encoded))
    const { run } = yield* Submissions
    return yield* run(caller, offer)
  })
