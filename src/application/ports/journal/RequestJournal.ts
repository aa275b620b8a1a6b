import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { RequestEvent } from "./Events.js"
import type { JournalError } from "./JournalError.js"
import type * as Records from "./Records.js"
import type { Cancellation, DeploymentIntent, ListQuestion, RequestList, RequestRecord } from "./Requests.js"
import type { Lane } from "./Transactions.js"

/** Accepted requests: their work, their failures, their final answers. See `Journals`. */
export class RequestJournal extends Context.Service<
  RequestJournal,
  {
    /**
     * Accepts requests of one lane in one transaction; no part of any of them was accepted before. Returns a result for
     * each, in order. Of each request either everything is stored (the request, its ops with the nonces that they own
     * from here on, the money they may cost, the deployments it will authorise, its failures) or nothing. They are
     * judged in order, each as if the ones before it had been judged in earlier calls. The result is the first obstacle
     * in the order of `AcceptanceResult`. A request whose id is already accepted is `accepted`: the answer to an
     * earlier call was lost. Not fenced: any process accepts.
     *
     * Money: the sum that ops of other requests and of this request hold of the wallet, at all EntryPoints of the
     * chain, must not exceed the available funds. If no other request holds any of it, the request passes: the caller
     * has judged that case.
     *
     * Fails, and accepts none, when a request contradicts itself: an element is accepted twice, or also refused; an op
     * or a deployment is of another lane. Likewise when the funds of a wallet are missing, or an integer does not fit
     * its field.
     */
    readonly accept: (
      list: ReadonlyArray<Records.Acceptance>
    ) => Effect.Effect<ReadonlyArray<Records.AcceptanceResult>, JournalError>
    /**
     * Stores the authorisation of a deployment before it is signed outside of any accepted request. False, and without
     * effect, while an authorisation for another configuration is alive. `accept` heeds these authorisations likewise.
     */
    readonly authorise: (intent: DeploymentIntent) => Effect.Effect<boolean, JournalError>
    /** Reads the state for requests that are prepared together. */
    readonly read: (question: Records.JournalQuery) => Effect.Effect<Records.JournalState, JournalError>
    /**
     * Opens elements of an accepted request of the lane like `accept`, with the same checks. The request's count of
     * unopened elements falls by the ops and the failures without an op. `schedule` null: the remaining unopened
     * elements are due.
     */
    readonly openElements: (
      lane: Lane,
      opening: Records.Opening
    ) => Effect.Effect<Records.AcceptanceResult, JournalError>
    /**
     * The oldest requests of the lane that have unopened elements and are due, not held and not cancelled; only of
     * `endpoint` where it is given.
     */
    readonly unopened: (
      lane: Lane,
      limit: number,
      endpoint?: string
    ) => Effect.Effect<ReadonlyArray<Records.Unopened>, JournalError>
    /** Time at which the first of the lane's waiting requests is due, Unix milliseconds; null: none waits. */
    readonly nextDue: (lane: Lane) => Effect.Effect<number | null, JournalError>
    /**
     * The oldest open requests of the lane that were accepted and became due before `before` (Unix milliseconds), and
     * are neither held nor cancelled; only behind `after` if given. A request with work that is or was exposed counts
     * only if it has unopened elements or ready, unexposed ops, and if no work was signed or included since `before`.
     */
    readonly overdue: (
      lane: Lane,
      before: number,
      limit: number,
      after?: string
    ) => Effect.Effect<ReadonlyArray<Records.Overdue>, JournalError>
    /** The bodies of these requests; unknown and forgotten requests are left out. */
    readonly bodies: (
      requestIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<Records.Body>, JournalError>
    /** `request` for several, in their order; unknown and forgotten ones are left out. */
    readonly requests: (
      requestIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<RequestRecord>, JournalError>
    /** The given requests that are open and have no unopened element and no ready or sent op: they can be answered. */
    readonly ended: (requestIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, JournalError>
    /** The oldest requests of the lane that can be answered, see `ended`; no caller needs to know of them. */
    readonly unanswered: (lane: Lane, limit: number) => Effect.Effect<ReadonlyArray<string>, JournalError>
    /**
     * Stores final answers in one transaction, and returns each request's current answer, in order. The first one stays
     * until the request is reopened, a cancellation's too. Null, and nothing is stored: the request is unknown, has not
     * ended, or has an event newer than `sequence`. Not fenced: the process that has the caller answers.
     */
    readonly answer: (
      answers: ReadonlyArray<Records.Final>
    ) => Effect.Effect<ReadonlyArray<string | null>, JournalError>
    /**
     * Waits until the effects of all methods that have returned survive the machine. Call it before a caller hears of
     * an acceptance; `request` and `events` have already waited.
     */
    readonly durable: Effect.Effect<void, JournalError>
    /**
     * Decides about a request whose acceptance failed and may still take effect, now or later; waits for an acceptance
     * in progress. Returns the lane of the accepted request. Null: it was not accepted, and nothing can be accepted
     * under its id from now on. The idempotency key of a declined request stays free, and no read shows the request.
     */
    readonly decline: (requestId: string) => Effect.Effect<Lane | null, JournalError>
    /**
     * Decides that a request is refused before it is accepted. No request under its idempotency key that has arrived
     * before now is accepted any more: another process may prepare a copy. Waits for an acceptance in progress. Returns
     * the request that was accepted under the key: it stands. Null: none was; the key stays free for later repeats.
     */
    readonly refuse: (
      requestId: string,
      key: Records.JournalQuery["idempotency"][number]
    ) => Effect.Effect<string | null, JournalError>
    /**
     * Keeps a string (JSON or hex) with an accepted request, replacing the previous one: data that its endpoint needs
     * for the answer and cannot recover after a restart. Null: none.
     */
    readonly note: (requestId: string, text: string | null) => Effect.Effect<void, JournalError>
    /** Requests that wait for a time, in all replicas, and their elements, by account. */
    readonly waiting: Effect.Effect<ReadonlyArray<Records.Tally>, JournalError>
    /** Requests that are due and not held, in all replicas, and their elements, by account. */
    readonly going: Effect.Effect<ReadonlyArray<Records.Tally>, JournalError>
    /**
     * Permanently cancels the unsigned part of an accepted request, whichever process works on its lane. Ops whose
     * nonces were never signed for become `abandoned`; only elements that have a signed nonce are accepted again, under
     * it. A request without work that was ever in a signed transaction, at a remote bundler or on the chain becomes
     * final with `outcome`. `kept`: it has such work, and the request continues with it to its end. A final request
     * stays unchanged. Null: unknown, or forgotten.
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
    /** The account's requests, newest first, without forgotten ones. */
    readonly list: (accountId: AccountId, question: ListQuestion) => Effect.Effect<RequestList, JournalError>
    /** Which of these requests have a final answer. */
    readonly finalAmong: (
      requestIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<string>, JournalError>
    /**
     * Events of the request with a sequence number above `after` (0: all), oldest first. An event is visible exactly
     * when the change that it reports is. A forgotten request has none.
     */
    readonly events: (
      requestId: string,
      after: number,
      limit: number
    ) => Effect.Effect<ReadonlyArray<RequestEvent>, JournalError>
    /** The newest event's sequence number of each known request; 0: none. */
    readonly newestEvents: (
      requestIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyMap<string, number>, JournalError>
    /**
     * Deletes final requests accepted before `before` (Unix milliseconds), if none of their ops is under way or at a
     * remote bundler and none of their transactions is signed or mined. Also deletes their events, leases, ops,
     * transactions that carry nothing else, and authorisations with a deadline before `before`. Their ids stay blocked:
     * nothing is accepted under them. Requests declined before `before` leave no trace. Hashes of a nonce with several
     * versions stay. Works in many small transactions, and may be called again.
     */
    readonly forget: (before: number) => Effect.Effect<void, JournalError>
  }
>()("castellan/RequestJournal") {}
