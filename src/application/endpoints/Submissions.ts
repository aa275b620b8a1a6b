import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Failure } from "../failures/Failure.js"
import type { Room } from "../intake/OpenRequests.js"
import type { RequestRecord } from "../ports/journal/Requests.js"
import type { Lane, LaneAccess } from "../ports/journal/Transactions.js"
import type { Caller } from "../request/Caller.js"
import type { Kind, Offered } from "./Offers.js"

/** Requests whose ops the lanes' workers bring onto the chain. */
export interface Submissions {
  /** Accepts the request, and answers with its outcome; 422 `outcome_unknown` after a time limit. */
  readonly run: <A>(caller: Caller, offer: Offered<A>) => Effect.Effect<A, Failure>
  /**
   * Call it before the request is answered with a refusal. A repeat of it that another process prepares is not accepted any
   * more; fails with `outcome_unknown` if one is.
   */
  readonly refuse: (caller: Caller, endpoint: string) => Effect.Effect<void, Failure>
  /** Waits until the request is final, at most for this time; shorter if only elements of unknown outcome are left. */
  readonly awaitFinal: (requestId: string, millis: number) => Effect.Effect<void>
  /** Reviews an accepted request after a change in the journal: it may have ended. */
  readonly review: (request: Pick<RequestRecord, "lane" | "requestId">) => Effect.Effect<void>
  /** Fails where `run` would refuse the account for its open requests. Call it before reading the request. */
  readonly room: Room
  /** Number of accepted requests without an answer, as far as known here. */
  readonly accepted: () => number
  /** The obstacle to the request's unsigned work; null: none is known here. */
  readonly delayOf: (request: Pick<RequestRecord, "lane" | "requestId">) => string | null
  /** Unknown nonces of the lane's EOA that block its work; null: none does. */
  readonly unknown: (
    lane: Lane
  ) => { readonly nonces: ReadonlyArray<bigint>; readonly access: LaneAccess } | null
  /** Starts work on all accepted requests, by any process: continues them, and answers the finished ones. */
  readonly start: Effect.Effect<void>
}

export const Submissions: Context.Key<Submissions, Submissions> = Context.Service("castellan/Submissions")

/** Submits the request; its stored body is the JSON that its offer is read from. */
export const submit = <Q, I, A, R>(
  caller: Caller,
  { Request, endpoint, offerOf }: Kind<Q, I, Offered<A>, R>,
  request: Q
): Effect.Effect<A, Failure, R | Submissions> =>
  Effect.gen(function* () {
    const encoded = yield* Effect.orDie(Schema.encodeEffect(Request)(request))
    const { refuse, run } = yield* Submissions
    const offer = yield* offerOf(
      caller,
      request,
      JSON.stringify({ keyId: caller.principal.keyId, ...encoded })
    ).pipe(Effect.tapErrorTag("Unprocessable", () => refuse(caller, endpoint)))
    return yield* run(caller, offer)
  })
