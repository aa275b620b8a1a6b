import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import { Lru } from "../../domain/primitives/Lru.js"
import type * as Answer from "../answers/Answer.js"
import * as Earlier from "../answers/Earlier.js"
import * as Ended from "../answers/Ended.js"
import * as Results from "../answers/Results.js"
import * as Waiters from "../answers/Waiters.js"
import { WakeUps } from "../answers/WakeUps.js"
import * as Connection from "../chain/Connection.js"
import * as Delays from "../failures/Delays.js"
import * as Elements from "../failures/Elements.js"
import { unprocessable } from "../failures/Failure.js"
import * as Intake from "../intake/Intake.js"
import * as OpenRequests from "../intake/OpenRequests.js"
import * as Keys from "../keys/Keys.js"
import { SignerOf } from "../keys/LaneSigners.js"
import { Claims } from "../lanes/Claims.js"
import type { Engine } from "../lanes/Engine.js"
import * as OpenNonces from "../lanes/OpenNonces.js"
import * as Rounds from "../lanes/Rounds.js"
import * as Resume from "../lanes/remote/Resume.js"
import * as Lanes from "../lanes/worker/Lanes.js"
import * as PrepareAgain from "../lanes/worker/prepare/PrepareAgain.js"
import { obstacle } from "../lanes/worker/rules/Context.js"
import type { AbiStore } from "../ports/AbiStore.js"
import { Budgets } from "../ports/Budgets.js"
import { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import { ChainRpc, type Receipt } from "../ports/chain/ChainRpc.js"
import type { Journals } from "../ports/journal/Journals.js"
import { LaneJournal } from "../ports/journal/LaneJournal.js"
import { OpJournal } from "../ports/journal/OpJournal.js"
import { RemoteOpJournal } from "../ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { RequestRecord } from "../ports/journal/Requests.js"
import { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { Lane } from "../ports/journal/Transactions.js"
import { Networks } from "../ports/Networks.js"
import { Replicas } from "../ports/Replicas.js"
import { type Signers, SystemSigners } from "../ports/Signers.js"
import type { Offer } from "../prepare/Offer.js"
import * as Slices from "../prepare/ops/Slices.js"
import * as Reservations from "../prepare/Reservations.js"
import { Lifetime } from "../runtime/Lifetime.js"
import * as Bodies from "./Bodies.js"
import type { Offered } from "./Offers.js"
import { Submissions } from "./Submissions.js"

/** Wires intake (wakes lanes), lanes (report changed requests) and answers (read the journal). */

/** Most calls of requests under way that stay in memory, so that neither body nor answer is read again. */
const most = 8_192

/** Time limit for reading receipts; afterwards they are queried again later, milliseconds. */
const receiptMillis = 3_000

type Surroundings = AbiStore | ChainRpc | Engine | Journals | Networks | Replicas | Signers | SystemSigners

/** The logs of the request's own ops in these receipts. */
const ownReceipts = (
  { context }: Offer,
  { landed }: Ended.Ended,
  receipts: ReadonlyArray<Receipt>
): ReadonlyArray<Receipt> => {
  if (context.kind === "direct") return receipts
  const own = new Set([...landed.values()].flatMap(({ userOpHash }) => userOpHash ?? []))
  return Results.receiptsOf(context.entryPoint, receipts, own)
}

/** A pending request's known state: its transactions, its elements' failures, and the others' delay. */
const outcomeUnknown = (
  requestId: string,
  record: Pick<RequestRecord, "failed" | "txHashes"> | null,
  sent: ReadonlyArray<Bytes32>,
  delay: string | null,
  list: Elements.ElementList = "operations"
) => {
  const txHashes = [...(record?.txHashes ?? []), ...sent]
  const details = Elements.detailsOf(list, Elements.ofJournal(record?.failed ?? []))
  return unprocessable("outcome_unknown", [...details, ...Delays.detailsOf(delay)], {
    extra: { txHash: txHashes.at(-1) ?? "", txHashes, requestId }
  })
}

/** Wakes only this process's lanes; other lanes' owners get a signal. */
export const layer: Layer.Layer<Submissions | Lifetime, never, Surroundings> = Layer.effectContext(
  Effect.gen(function* () {
    const budgets = yield* Budgets
    const requestJournal = yield* RequestJournal
    const opJournal = yield* OpJournal
    const laneJournal = yield* LaneJournal
    const transactionJournal = yield* TransactionJournal
    const replicas = yield* Replicas
    const openRequests = OpenRequests.make(yield* OpenRequests.OpenRequestBounds)
    const schedule = OpenRequests.scheduling(yield* OpenRequests.ScheduledRequestBounds, requestJournal)
    const wakeUps = yield* WakeUps
    const claims = yield* Claims
    const following = yield* Lanes.Following
    const lifetime = yield* Lifetime
    const { deployer } = yield* SystemSigners
    const services = yield* Effect.context<Bodies.Surroundings>()
    const { monitor } = following

    const open = new Lru<string, Offered<unknown>>(most, ({ calls }) => calls.length)

    const offerOf = (record: RequestRecord) =>
      Effect.suspend(() => {
        const known = open.get(record.requestId)
        return known === undefined ? Bodies.offerOf(record, record.lane.chainId) : Effect.succeed(known)
      }).pipe(Effect.provideContext(services))

    const withEarlier = ({ calls, context }: Offer, ended: Ended.Ended) => {
      const given = calls.flatMap((call) => (call.kind === "given" ? [call] : []))
      if (context.kind === "direct" || given.length === 0 || ended.existing.size === 0)
        return Effect.succeed(ended)
      const { accountId, chainId, connection, entryPoint } = context
      return Earlier.add(opJournal, { accountId, chainId, chain: connection.chain, entryPoint }, given, ended)
    }

    /** Null: one of its transactions is not mined, or its receipts cannot be read now. */
    const receiptsOf = (offer: Offer, requestId: string, ended: Ended.Ended) =>
      Effect.gen(function* () {
        const { context } = offer
        if (Ended.mayBeUnmined(ended) && (yield* opJournal.ofRequest(requestId)).hasUnmined) return null
        const receipts = yield* Effect.timeoutOption(
          Effect.forEach(ended.txHashes, (txHash) => monitor.receiptOf(context.connection.chain, txHash), {
            concurrency: "unbounded"
          }),
          receiptMillis
        )
        if (Option.isNone(receipts)) return null
        const all = ownReceipts(offer, ended, receipts.value)
        // A large request has too many logs.
        return offer.calls.length > Slices.size ? all.map((receipt) => ({ ...receipt, logs: [] })) : all
      })

    const finalOf = (record: RequestRecord): Effect.Effect<Answer.Final | null> =>
      Effect.gen(function* () {
        const { body, requestId } = record
        if (body === null) return null
        const offer = yield* offerOf(record)
        const ended = yield* withEarlier(offer, Ended.of(record))
        const receipts = yield* receiptsOf(offer, requestId, ended)
        if (receipts === null) return null
        yield* Effect.provideService(Reservations.giveBack(offer.context, offer.calls), Budgets, budgets)
        return yield* offer.final({ ...ended, receipts })
      }).pipe(
        Effect.catchCause((cause) =>
          Effect.as(Effect.logDebug("a request at its end can not be answered now", cause), null)
        )
      )

    const waiters = yield* Waiters.make({
      requestJournal,
      finalOf,
      answered: (requestIds) =>
        Effect.gen(function* () {
          for (const requestId of requestIds) {
            open.delete(requestId)
            openRequests.close(requestId)
          }
          yield* wakeUps.notify(requestIds)
          yield* Effect.forEach(requestIds, (requestId) => replicas.tell({ _tag: "final", requestId }), {
            discard: true
          })
        })
    })

    const preparing = yield* PrepareAgain.make({
      requestJournal,
      read: (body, chainId) => Effect.provideContext(Bodies.read(body, chainId), services),
      deployer: Effect.mapError(deployer, (error) => obstacle(Keys.unavailable(error)))
    })
    const lanes = yield* Lanes.make({
      following,
      claims,
      preparing,
      refused: waiters.refused,
      affected: waiters.affected
    })
    const wake = (lane: Lane, hasUnopened = false) =>
      replicas.owns(lane) ? lanes.wake(lane, hasUnopened) : Effect.void

    const intake = yield* Intake.make({
      requestJournal,
      opJournal,
      enterWaiting: (entry) => Effect.catchTag(schedule(entry), "JournalError", Effect.die),
      ring: (lane, accepted) =>
        Effect.andThen(
          wakeUps.tell,
          replicas.owns(lane)
            ? lanes.accepted(lane, accepted)
            : replicas.tell({
                _tag: "accepted",
                lane,
                hasUnopened: accepted.some(({ unopened }) => unopened > 0)
              })
        ),
      undone: ({ access, chainId, connection: { chain }, submitter }) =>
        OpenNonces.offerOpen(transactionJournal, { chainId, signer: submitter }, chain, access).pipe(
          Effect.ignoreCause({ log: "Debug" })
        )
    })
    /** Nonce keys and money of the lane's requests may be free. */
    const affected = (lane: Lane, requestIds: ReadonlyArray<string>) =>
      Effect.andThen(waiters.affected(requestIds), intake.released(lane))
    following.listen({
      affected: (lane, requestIds) => Effect.andThen(affected(lane, requestIds), wake(lane)),
      mined: lanes.mined
    })
    yield* Effect.forkScoped(
      Stream.runForEach(replicas.heard, (signal) => {
        if (signal._tag !== "final") return wake(signal.lane, signal.hasUnopened)
        openRequests.close(signal.requestId)
        return waiters.heard(signal.requestId)
      })
    )

    const wait = <A>({ list, read, sent }: Offered<A>, requestId: string, millis: number) =>
      Effect.gen(function* () {
        const outcome = yield* waiters.wait(requestId, millis)
        if (outcome !== null) return yield* read(outcome)
        const record = yield* Effect.orElseSucceed(requestJournal.request(requestId), () => null)
        const delay = record === null ? null : lanes.delayOf(record.lane, requestId)
        return yield* Effect.fail(outcomeUnknown(requestId, record, sent(record?.note ?? null), delay, list))
      })

    /** Earlier outcomes for a request without accepted work. */
    const doneBefore = (offer: Offer, nothing: Ended.Ended) =>
      Effect.gen(function* () {
        const { chain } = offer.context.connection
        const ended = yield* Effect.catchTag(withEarlier(offer, nothing), "JournalError", Effect.die)
        const receipts = yield* Effect.forEach(ended.txHashes, (txHash) => chain.receipt(txHash), {
          concurrency: "unbounded"
        })
        const mined = receipts.flatMap((receipt) => receipt ?? [])
        return { ...ended, receipts: ownReceipts(offer, ended, mined) }
      }).pipe(Effect.mapError(Connection.refusal(offer.context.connection.trust)))

    const room = OpenRequests.room(openRequests, requestJournal, intake.isPreparing)

    const run: Submissions["run"] = (caller, offer) =>
      Effect.gen(function* () {
        const { idempotency, requestId } = caller
        const { accountId, connection } = offer.context
        yield* room(accountId, offer.endpoint, idempotency?.key ?? null)
        openRequests.begin({ requestId, accountId, elements: offer.calls.length })
        open.set(requestId, offer)
        const answer = yield* Effect.onExit(intake.take(offer), (exit) =>
          Effect.sync(() => {
            const isAccepted =
              Exit.isSuccess(exit) && exit.value._tag === "accepted" && exit.value.requestId === requestId
            openRequests.end(requestId, isAccepted)
            if (!isAccepted) open.delete(requestId)
          })
        )
        if (answer._tag === "refused") {
          const { existing, failed } = answer
          const nothing = {
            landed: new Map(),
            failed,
            existing: new Set(existing),
            txHashes: [],
            note: null
          }
          return yield* offer.answer(yield* doneBefore(offer, nothing))
        }
        const known = answer.isKnown
          ? yield* Effect.orElseSucceed(requestJournal.request(answer.requestId), () => null)
          : null
        if (known !== null && known.outcome !== null) return yield* offer.read(known.outcome)
        if (caller.onAccepted !== undefined) {
          yield* Effect.orDie(requestJournal.durable)
          caller.onAccepted(answer.requestId)
        }
        return yield* wait(offer, answer.requestId, connection.profile.receiptTimeoutMillis)
      })

    const rounds = Rounds.make({
      laneJournal,
      requestJournal,
      claims,
      counted: openRequests.read,
      owns: replicas.owns,
      signerOf: yield* SignerOf,
      wake: (lane) => lanes.wake(lane, true),
      affected: waiters.affected,
      nudged: Queue.take(lifetime.nudges)
    })

    const resumed = Resume.make({
      journal: yield* RemoteOpJournal,
      holds: claims.holds,
      networks: yield* Networks,
      nodes: yield* ChainRpc,
      bundlers: yield* BundlerRpc,
      ops: following.remoteOps
    })
    const start = Effect.andThen(rounds(lifetime.scope), resumed(lifetime.scope))

    return Context.make(Submissions, {
      run,
      review: ({ lane, requestId }) =>
        Effect.andThen(affected(lane, [requestId]), wakeUps.notify([requestId])),
      room,
      accepted: openRequests.accepted,
      delayOf: ({ lane, requestId }) => lanes.delayOf(lane, requestId),
      unknown: lanes.unknown,
      start
    }).pipe(
      Context.add(Lifetime, {
        ...lifetime,
        stopWaiting: lifetime.stopWaiting.pipe(Effect.andThen(intake.stop), Effect.andThen(waiters.stop))
      })
    )
  })
)
