import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { RequestEvent } from "./Events.js"
import type { JournalError } from "./JournalError.js"
import type * as Records from "./Records.js"
import type { Cancellation, ListQuestion, RequestList, RequestRecord } from "./Requests.js"
import type { Lane } from "./Transactions.js"

/** Accepted requests: their work, what failed of it, their final answers. See `Journals`. */
export class RequestJournal extends Context.Service<
  RequestJournal,
  {
    /**
     * Accepts requests of one lane, each of which nothing was accepted of before, in one transaction: a result for each, in the order of the
     * list. Of each either everything is there (the request, its ops with the nonces that they own from here on, the money they
     * may cost, the deployments it will authorise, its failures) or nothing. They are judged in that order as if one came
     * after the other; of each the first obstacle in the order of the results is the answer. One that is there under its id was accepted by a call
     * whose answer was lost: it is accepted. Not fenced: any process accepts.
     *
     * Money: what other requests' ops under way hold of the wallet, at all EntryPoints of the chain together, and what
     * this request's ops hold of it, is within what is available. When nobody else holds any of it, it is accepted: the
     * caller has judged that case.
     *
     * Fails, and accepts none, when one of them contradicts itself: an element is accepted twice, or also refused; an op or a
     * deployment is of another lane; the funds of a wallet are missing; an integer does not fit its field.
     */
    readonly accept: (
      list: ReadonlyArray<Records.Acceptance>
    ) => Effect.Effect<ReadonlyArray<Records.AcceptanceResult>, JournalError>
    /** One look for requests that are prepared together. */
    readonly look: (question: Records.Look) => Effect.Effect<Records.Seen, JournalError>
    /**
     * Opens elements of an accepted request of the lane: as `accept` adds them, under the same judgement. The request's
     * count of unopened elements falls by the ops and the failures that had no op. Null of `schedule`: what is left is due.
     */
    readonly openElements: (
      lane: Lane,
      opening: Records.Opening
    ) => Effect.Effect<Records.AcceptanceResult, JournalError>
    /**
     * The oldest requests of the lane that have unopened elements and are due, not held and not cancelled; of that endpoint only
     * where one is named.
     */
    readonly unopened: (
      lane: Lane,
      limit: number,
      endpoint?: string
    ) => Effect.Effect<ReadonlyArray<Records.Unopened>, JournalError>
    /** When the first of the lane's requests that wait for a time is due, Unix milliseconds; null: none waits. */
    readonly nextDue: (lane: Lane) => Effect.Effect<number | null, JournalError>
    /**
     * The oldest open requests of the lane that were accepted before that time (Unix milliseconds), became due before it, and are
     * neither held nor cancelled; behind `after` where a request is named. Of those of which something is or was exposed only
     * those that have ready ops which are not, or unopened elements, and of which nothing was signed or included since that time.
     */
    readonly overdue: (
      lane: Lane,
      before: number,
      limit: number,
      after?: string
    ) => Effect.Effect<ReadonlyArray<Records.Overdue>, JournalError>
    /** What these requests asked for; unknown and forgotten ones are left out. */
    readonly bodies: (
      requestIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<Records.Body>, JournalError>
    /** `request` for several, in their order; unknown and forgotten ones are left out. */
    readonly requests: (
      requestIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<RequestRecord>, JournalError>
    /** Those of the requests that are open and of which nothing is unopened, ready or sent: they can be answered. */
    readonly ended: (requestIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, JournalError>
    /** The oldest requests of the lane that are so, whoever knows of it. */
    readonly unanswered: (lane: Lane, limit: number) => Effect.Effect<ReadonlyArray<string>, JournalError>
    /**
     * Stores final answers in one transaction; gives the one that each request has now, in their order. The first one stays
     * until the request is reopened, that of a cancellation too. Null, and nothing is stored: it is not at its end, or
     * something was told of it since it was read for the answer, or it is unknown. Not fenced: who has the caller answers.
     */
    readonly answer: (
      answers: ReadonlyArray<Records.Final>
    ) => Effect.Effect<ReadonlyArray<string | null>, JournalError>
    /**
     * Waits until everything that methods have returned before survives the machine. Whoever tells a caller of an acceptance
     * waits for it; what `request` and `events` tell has waited.
     */
    readonly durable: Effect.Effect<void, JournalError>
    /**
     * Decides about a request whose acceptance failed and may take effect all the same, now or later: waits for one that is
     * being written. The lane of the accepted request, or null: it was not accepted, and nothing is under its id from now
     * on. The idempotency key of a declined request stays free; nothing tells of it.
     */
    readonly decline: (requestId: string) => Effect.Effect<Lane | null, JournalError>
    /**
     * Keeps a text (JSON or hex) with an accepted request, in the place of the one before: what its endpoint needs for the
     * answer and cannot find out again after a restart. Null: nothing.
     */
    readonly note: (requestId: string, text: string | null) => Effect.Effect<void, JournalError>
    /** How many requests wait for a time, all replicas' together, and how many elements they have, by account. */
    readonly waiting: Effect.Effect<ReadonlyArray<Records.Tally>, JournalError>
    /** The same of those that are due and not held. */
    readonly going: Effect.Effect<ReadonlyArray<Records.Tally>, JournalError>
    /**
     * Cancels what was never signed of an accepted request, for good, whichever process works on its lane: ops under whose
     * nonces nothing was signed are `abandoned`, and only elements that have a signed nonce are accepted again, under it.
     * A request of which nothing was ever in a signed transaction, at a remote bundler or on the chain is final with this outcome.
     * `kept`: something was; the request goes on to its end with it. Nothing changes in a request that is final. Null:
     * unknown, or forgotten.
     */
    readonly cancel: (
      requestId: string,
      cancellation: Cancellation
    ) => Effect.Effect<"final" | "kept" | null, JournalError>
    /** An accepted request; null: unknown, or forgotten. */
    readonly request: (requestId: string) => Effect.Effect<RequestRecord | null, JournalError>
    /** The accepted request of an idempotency key; null: none. */
    readonly requestOf: (
      accountId: AccountId,
      endpoint: string,
      idempotencyKey: string
    ) => Effect.Effect<{ readonly requestId: string; readonly bodyHash: Bytes32 } | null, JournalError>
    /** Requests of the account, the newest first. Those that are forgotten are not among them. */
    readonly list: (accountId: AccountId, question: ListQuestion) => Effect.Effect<RequestList, JournalError>
    /** Which of these requests have a final answer. */
    readonly finalAmong: (
      requestIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<string>, JournalError>
    /**
     * What became of the request after the event of that sequence number (0: from the beginning on), oldest first. An
     * event is there with what it tells of, as soon as that is, and never without it. A forgotten request has none.
     */
    readonly events: (
      requestId: string,
      after: number,
      limit: number
    ) => Effect.Effect<ReadonlyArray<RequestEvent>, JournalError>
    /** The sequence number of the newest event of each of these requests that there are; 0: none. */
    readonly newestEvents: (
      requestIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyMap<string, number>, JournalError>
    /**
     * Deletes final requests that were accepted before that time (Unix milliseconds), none of whose ops is under way or at a
     * remote bundler, and none of whose transactions is signed or mined; with them their events, leases, ops, the transactions that carry
     * nothing else, and authorisations whose deadline is before that time. Their ids stay: nothing is accepted under them.
     * Requests that were declined before that time leave nothing.
     * Of a nonce with several versions the hashes stay. It takes many small transactions, and may be called again.
     */
    readonly forget: (before: number) => Effect.Effect<void, JournalError>
  }
>()("castellan/RequestJournal") {}
