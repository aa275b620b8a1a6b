import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { Lru } from "../../domain/primitives/Lru.js"
import * as Waiters from "../answers/Waiters.js"
import { WakeUps } from "../answers/WakeUps.js"
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
import { ChainRpc } from "../ports/chain/ChainRpc.js"
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
import { Lifetime } from "../runtime/Lifetime.js"
import * as Bodies from "./Bodies.js"
import type { Offered } from "./Offers.js"
import * as Outcomes from "./Outcomes.js"
import { Submissions } from "./Submissions.js"

/** Wires intake (wakes lanes), lanes (report changed requests) and answers (read the journal). */

/** Most calls of requests under way that stay in memory, so that neither body nor answer is read again. */
const most = 8_192

type Surroundings =
  | AbiStore
  | ChainRpc
  | Intake.Services
  | Engine
  | Journals
  | Networks
  | Replicas
  | Signers
  | SystemSigners

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
    const schedule = OpenRequests.admitScheduled(yield* OpenRequests.ScheduledRequestBounds, requestJournal)
    const wakeUps = yield* WakeUps
    const claims = yield* Claims
    const following = yield* Lanes.Following
    const lifetime = yield* Lifetime
    const { deployer } = yield* SystemSigners
    const services = yield* Effect.context<Bodies.Surroundings>()

    const open = new Lru<string, Offered<unknown>>(most, ({ calls }) => calls.length)

    const offerOf = (record: RequestRecord) =>
      Effect.suspend(() => {
        const known = open.get(record.requestId)
        return known === undefined ? Bodies.offerOf(record, record.lane.chainId) : Effect.succeed(known)
      }).pipe(Effect.provideContext(services))

    const outcomes = Outcomes.make({ budgets, monitor: following.monitor, offerOf, opJournal })

    const waiters = yield* Waiters.make({
      requestJournal,
      finalOf: outcomes.finalOf,
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
      offered: (requestId) => open.get(requestId),
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
      wakeLane: (lane, accepted) =>
        Effect.andThen(
          wakeUps.notifyEvents,
          replicas.owns(lane)
            ? lanes.accepted(lane, accepted)
            : replicas.tell({
                _tag: "accepted",
                lane,
                hasUnopened: accepted.some(({ unopened }) => unopened > 0)
              })
        ),
      broadcastUndone: ({ access, chainId, connection: { chain }, submitter }) =>
        OpenNonces.broadcastOpen(transactionJournal, { chainId, signer: submitter }, chain, access).pipe(
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
      Stream.runForEach(replicas.signals, (signal) => {
        if (signal._tag !== "final") return wake(signal.lane, signal.hasUnopened)
        openRequests.close(signal.requestId)
        return waiters.recheck(signal.requestId)
      })
    )

    const wait = <A>({ list, read, sent }: Offered<A>, requestId: string, millis: number) =>
      Effect.gen(function* () {
        const outcome = yield* waiters.wait(requestId, millis)
        if (outcome !== null) return yield* read(outcome)
        const record = yield* Effect.orElseSucceed(requestJournal.request(requestId), () => null)
        const delay = record === null ? null : lanes.delayOf(record.lane, requestId)
        return yield* Effect.fail(
          Outcomes.outcomeUnknown(requestId, record, sent(record?.note ?? null), delay, list)
        )
      })

    const room = OpenRequests.room(openRequests, requestJournal, intake.isPreparing)

    const refuse = Outcomes.refuse(requestJournal)
    const run: Submissions["run"] = (caller, offer) =>
      Effect.gen(function* () {
        const { idempotency, requestId } = caller
        const { accountId, connection } = offer.context
        yield* room(accountId, offer.endpoint, idempotency?.key ?? null)
        openRequests.begin({ requestId, accountId, elements: offer.calls.length })
        open.set(requestId, offer)
        const taken = Effect.tapErrorTag(intake.take(offer), "Unprocessable", ({ code }) =>
          code === "outcome_unknown" ? Effect.void : refuse(caller, offer.endpoint)
        )
        const answer = yield* Effect.onExit(taken, (exit) =>
          Effect.sync(() => {
            const isAccepted =
              Exit.isSuccess(exit) && exit.value._tag === "accepted" && exit.value.requestId === requestId
            openRequests.end(requestId, isAccepted)
            if (!isAccepted) open.delete(requestId)
          })
        )
        if (answer._tag === "refused") {
          yield* refuse(caller, offer.endpoint)
          const { existing, failed } = answer
          const nothing = {
            landed: new Map(),
            failed,
            existing: new Set(existing),
            txHashes: [],
            note: null
          }
          return yield* offer.answer(yield* outcomes.doneBefore(offer, nothing))
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
      refuse,
      awaitFinal: (requestId, millis) => Effect.asVoid(waiters.wait(requestId, millis)),
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
