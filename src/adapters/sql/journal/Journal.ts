import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Journals } from "../../../application/ports/journal/Journals.js"
import { LaneJournal } from "../../../application/ports/journal/LaneJournal.js"
import { OpJournal } from "../../../application/ports/journal/OpJournal.js"
import { RecoveryJournal } from "../../../application/ports/journal/RecoveryJournal.js"
import { RemoteOpJournal } from "../../../application/ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../application/ports/journal/TransactionJournal.js"
import * as Listing from "../listing/Listing.js"
import * as Migrations from "../Migrations.js"
import * as Store from "../Store.js"
import * as GroupCommit from "../sqlite/GroupCommit.js"
import * as Accept from "./Accept.js"
import * as Answers from "./Answers.js"
import * as Cancellation from "./Cancellation.js"
import * as Events from "./Events.js"
import * as KnownWork from "./KnownWork.js"
import * as LaneRequests from "./LaneRequests.js"
import * as Leases from "./Leases.js"
import * as OpRows from "./OpRows.js"
import * as Record from "./Record.js"
import * as Recovery from "./Recovery.js"
import * as RemoteSubmissions from "./RemoteSubmissions.js"
import * as Retention from "./Retention.js"
import * as Schedules from "./Schedules.js"
import * as Settlements from "./Settlements.js"
import * as Claims from "./tables/Claims.js"
import * as Ops from "./tables/Ops.js"
import * as Records from "./tables/Records.js"
import * as RequestRows from "./tables/RequestRows.js"
import * as Transactions from "./tables/Transactions.js"

const answering =
  (when: GroupCommit.Answered) =>
  <Args extends ReadonlyArray<unknown>, A, E>(method: (...args: Args) => Effect.Effect<A, E>) =>
  (...args: Args): Effect.Effect<A, E> =>
    Effect.provideService(method(...args), GroupCommit.answered, when)

/**
 * A method whose effect survives a crash of the process when it returns. It survives a crash of the machine once a later
 * durable method has returned, and no consequence leaves the process before that:
 * - a lost nonce lease was never in a sent op
 * - an acceptance is on the disk before the audit log permits a signature, and before the caller gets an answer
 * - the monitor reads mined transactions again
 *
 * Reads for the engine use it too.
 */
const early = answering("committed")

const committed = Effect.provideService(GroupCommit.answered, "committed")

/** A read that callers see: waits until the disk has all of it, so that a crash cannot revoke a reported fact. */
const durable = answering("whole")

/** The journal's ports over one store. */
export const make = (options: Store.Options): Migrations.Stored<Context.Context<Journals>> =>
  Effect.gen(function* () {
    const store = Store.make(yield* Migrations.client, options)
    return Context.empty().pipe(
      Context.add(RequestJournal, {
        accept: early(Accept.accept(store)),
        read: early(KnownWork.read(store)),
        authorise: Accept.authorise(store),
        openElements: early(Accept.openElements(store)),
        unopened: early(LaneRequests.unopened(store)),
        nextDue: early(LaneRequests.nextDue(store)),
        overdue: early(LaneRequests.overdue(store)),
        bodies: early(Answers.bodies(store)),
        requests: durable(RequestRows.requests(store)),
        ended: early(Answers.ended(store)),
        unanswered: early(Answers.unanswered(store)),
        answer: Answers.answer(store),
        decline: RequestRows.decline(store),
        refuse: early(RequestRows.refuse(store)),
        note: early(RequestRows.note(store)),
        waiting: Schedules.waiting(store),
        going: committed(Schedules.going(store)),
        cancel: Cancellation.cancel(store),
        durable: store.durable,
        request: durable(RequestRows.request(store)),
        requestOf: durable(RequestRows.requestOf(store)),
        list: durable(Listing.list(store)),
        finalAmong: early(RequestRows.finalAmong(store)),
        events: durable(Events.events(store)),
        newestEvents: early(Events.newestEvents(store)),
        forget: Retention.forget(store)
      }),
      Context.add(OpJournal, {
        ready: early(OpRows.ready(store)),
        versions: early(OpRows.versions(store)),
        renew: early(OpRows.renew(store)),
        renumber: early(OpRows.renumber(store)),
        fail: early(OpRows.fail(store)),
        publish: early(OpRows.publish(store)),
        lease: early(Leases.lease(store)),
        release: early(Leases.release(store)),
        ofRequest: early(Ops.ofRequest(store)),
        findOp: durable(Ops.findOp(store))
      }),
      Context.add(LaneJournal, {
        busy: committed(LaneRequests.busy(store)),
        claim: early(Claims.claim(store))
      }),
      Context.add(TransactionJournal, {
        nextNonce: early(Record.nextNonce(store)),
        record: Record.record(store),
        replace: Record.replace(store),
        adopt: Recovery.adopt(store),
        recordSubmitted: early(Transactions.recordSubmitted(store)),
        settle: early(Settlements.settle(store)),
        finalise: early(Settlements.finalise(store)),
        unsettle: Settlements.unsettle(store),
        recordExternalUse: Settlements.recordExternalUse(store),
        open: committed(Records.open(store)),
        openOf: early(Records.openOf(store)),
        transactionsBetween: early(Records.transactionsBetween(store)),
        findTransaction: durable(Records.findTransaction(store)),
        transactionOf: early(Records.transactionOf(store))
      }),
      Context.add(RecoveryJournal, {
        knownTo: early(Recovery.knownTo(store)),
        keepUnread: early(Recovery.keepUnread(store)),
        explain: early(Recovery.explain(store)),
        provenAt: early(Recovery.provenAt(store)),
        openIn: early(Recovery.openIn(store)),
        known: early(Recovery.known(store)),
        identifyAnew: early(Recovery.identifyAnew(store)),
        hold: Recovery.hold(store),
        unhold: Recovery.unhold(store)
      }),
      Context.add(RemoteOpJournal, {
        handOver: RemoteSubmissions.handOver(store),
        takeBack: early(RemoteSubmissions.takeBack(store)),
        recordTaken: early(RemoteSubmissions.recordTaken(store)),
        recordInclusions: RemoteSubmissions.recordInclusions(store),
        revertInclusions: RemoteSubmissions.revertInclusions(store),
        finaliseInclusions: RemoteSubmissions.finaliseInclusions(store),
        remoteSubmissions: committed(RemoteSubmissions.remoteSubmissions(store))
      })
    )
  })

/** The journal in the database, as its ports. */
export const layer = (options: Store.Options): Migrations.StoredLayer<Journals> =>
  Layer.effectContext(make(options))
