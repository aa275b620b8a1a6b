import * as Effect from "effect/Effect"
import type * as Hex from "../../../domain/primitives/Hex.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import { WakeUps } from "../../lanes/requests/WakeUps.js"
import * as TakenBack from "../../lanes/TakenBack.js"
import type { TransactionMonitor } from "../../lanes/TransactionMonitor.js"
import type { Bundler } from "../../ports/chain/Bundler.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import type { AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import * as Delays from "../../request/Delays.js"
import { elementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import * as KillSwitch from "../../tenants/KillSwitch.js"
import * as Sending from "./Sending.js"
import type { Action, Event, Failures, Outcomes as Seen, State } from "./SubmissionPhases.js"
import type { Plan, Prepared } from "./SubmissionPlan.js"
import * as Records from "./SubmissionRecords.js"
import * as Transfers from "./Transfers.js"

/** What the actions of `SubmissionState` do: one function an action, and the event that follows. */

export type Services =
  | Bundler
  | ChainFacts
  | Records.SubmissionJournals
  | TransactionMonitor
  | WakeUps
  | CurrentRequest

/** What is being sent: the elements of the machine's transfers as they were prepared. */
interface Batch {
  readonly prepared: Prepared
  readonly transfers: ReadonlyArray<Transfers.Transfer>
  /** Whether keys stay leased once its ops are accepted: acceptance ends the leases of the keys that they use. */
  readonly leavesLeases: boolean
}

/** One request's submission, as its actions are executed. */
export interface Run<R> extends Records.Reader {
  readonly plan: Plan<R>
  readonly revert: (data: Hex.Hex) => string
  readonly lane: Lane
  readonly current: CurrentRequest["Service"]
  batch: Batch | null
  /** Whether it may have leased keys that none of its ops uses. */
  holdsLeases: boolean
  /** All of the transaction is on its way: an event will tell of it. */
  isSent: boolean
}

export const giveBack = <R>(run: Run<R>) =>
  Effect.flatMap(OpJournal, (opJournal) =>
    Effect.map(Effect.orDie(opJournal.release(run.plan.part?.holder ?? run.plan.caller.requestId)), () => {
      run.holdsLeases = false
    })
  )

/** Gives back what was leased, and tells those who wait for it. */
const release = <R>(run: Run<R>) =>
  Effect.andThen(
    Effect.suspend(() => (run.holdsLeases ? giveBack(run) : Effect.void)),
    Effect.flatMap(WakeUps, (wakeUps) => wakeUps.signal(run.lane))
  )

const prepare = <R>(
  run: Run<R>,
  { elements, held }: Extract<Action, { readonly _tag: "prepare" }>,
  { shared }: State
): Effect.Effect<Event, Failure, R> =>
  Effect.suspend(() => {
    const { current, plan } = run
    const heldLeases = run.holdsLeases
    run.batch = null
    run.holdsLeases = true
    return Effect.matchEffect(plan.prepare(elements, held), {
      onFailure: (failure) => {
        if (!current.accepted()) return Effect.fail(failure)
        const by = Delays.ofFailure(failure)
        return Effect.succeed<Event>(
          by === null ? { _tag: "refused", failure: Delays.asElement(failure) } : { _tag: "delayed", by }
        )
      },
      onSuccess: (prepared): Effect.Effect<Event> => {
        if ("busy" in prepared) return Effect.succeed({ _tag: "busy", elements: prepared.busy })
        const { tooLarge, transfers } = Transfers.transfers(
          plan,
          prepared,
          prepared.ready,
          plan.dependencies ?? [],
          (index) => shared.get(index) ?? 0
        )
        const ready = transfers.flatMap(({ ops }) => ops.filter(({ index }) => !held.has(index)))
        const keys = new Set(ready.map(({ nonceKey, space }) => `${space.wallet} ${nonceKey}`))
        run.batch = { prepared, transfers, leavesLeases: heldLeases || prepared.leased > keys.size }
        return Effect.succeed({
          _tag: "prepared",
          failed: new Map([
            ...prepared.failed,
            ...tooLarge.map((index) => [index, elementFailure("too_large_to_bundle")] as const)
          ]),
          done: [...prepared.done],
          scheduled: prepared.scheduled ?? new Map(),
          transfers: transfers.map(({ ops }) => ops)
        })
      }
    })
  })

/** The failures as the journal keeps them. */
export const elementsOf = (failed: Failures) => [...failed].map(([index, failure]) => ({ index, ...failure }))

const accept = <R>(
  run: Run<R>,
  failed: Failures
): Effect.Effect<Event, Failure | AnsweredElsewhere, Services> =>
  Effect.gen(function* () {
    const { batch, current, plan } = run
    if (batch === null) return yield* Effect.die(new Error("what is accepted was prepared before"))
    const { prepared, transfers } = batch
    const ready = transfers.flatMap(({ ops }) => ops)
    const deployments = prepared.deployments.filter(({ index }) => ready.some((each) => each.index === index))
    yield* KillSwitch.recheck(current, plan.submitter.address)
    run.ops = null
    const acceptance = yield* current.accept(
      Records.acceptance(plan, current, ready, prepared.funds, deployments, elementsOf(failed)),
      plan.context.connection.profile.receiptTimeoutMillis
    )
    switch (acceptance._tag) {
      case "accepted":
        run.holdsLeases = batch.leavesLeases
        return acceptance
      case "nonceTaken":
        if (!acceptance.isSettled) return { _tag: "occupied", index: acceptance.index }
        yield* Effect.ignoreCause(
          TakenBack.offerOpen(
            yield* TransactionJournal,
            run.lane,
            plan.context.connection.chain,
            plan.access
          ),
          { log: "Debug" }
        )
        return { _tag: "nonceUsed", index: acceptance.index }
      case "reserved":
        return { _tag: "occupied", index: acceptance.index }
      case "otherConfiguration":
        return { _tag: "deploymentPending", index: deployments[acceptance.deployment]?.index ?? null }
      case "cancelled":
        return { _tag: "cancelled", failure: elementFailure(acceptance.code) }
    }
  })

/** One transaction, simulated on the state that its predecessor left. */
const send = <R>(run: Run<R>, place: number): Effect.Effect<Event, never, Services> =>
  Effect.gen(function* () {
    const { batch, current, plan, revert } = run
    const transfer = batch?.transfers[place]
    if (batch === null || transfer === undefined)
      return yield* Effect.die(new Error("what is sent was prepared before"))
    run.ops = null
    const result = yield* Sending.send(plan, batch.prepared, transfer, revert)
    run.isSent = result.isSent
    // Who waits for what stands in the way waits no longer for it than for a transaction.
    if (result.isSent) yield* current.extend(plan.context.connection.profile.receiptTimeoutMillis)
    return { _tag: "sent", ...result }
  })

const wait = <R>(run: Run<R>, deadline: number): Effect.Effect<Event, never, Services> =>
  Effect.gen(function* () {
    const wakeUps = yield* WakeUps
    run.ops = null
    if (run.holdsLeases) yield* giveBack(run)
    return { _tag: (yield* wakeUps.wait(run.lane, deadline)) ? "woken" : "waitedInVain" }
  })

const pause = <R>(
  run: Run<R>,
  { millis, releases }: Extract<Action, { readonly _tag: "pause" }>
): Effect.Effect<Event, never, Services> =>
  Effect.suspend(() => {
    run.ops = null
    const released = releases ? release(run) : Effect.void
    return Effect.as(millis > 0 ? Effect.andThen(released, Effect.sleep(millis)) : released, {
      _tag: "paused"
    })
  })

const note = <R>({ plan }: Run<R>, failed: Failures): Effect.Effect<Event, never, Services> =>
  Effect.flatMap(RequestJournal, (requestJournal) =>
    Effect.as(Effect.orDie(requestJournal.refuse(plan.caller.requestId, elementsOf(failed))), {
      _tag: "noted"
    })
  )

/** What asks nodes has its turn; what waits for something else leaves it to others. */
const inTurn = ({ current }: Pick<Run<never>, "current">, action: Going): Effect.Effect<void> => {
  switch (action._tag) {
    case "resume":
    case "ask":
    case "prepare":
      return current.work
    case "send":
    case "follow":
    case "wait":
    case "pause":
      return current.rest
    default:
      return Effect.void
  }
}

export type Going = Exclude<Action, { readonly _tag: "end" }>

/** Does what the state machine says, and tells what came of it. */
export const execute = <R>(run: Run<R>, action: Going, state: State) =>
  Effect.andThen(inTurn(run, action), perform(run, action, state))

const perform = <R>(
  run: Run<R>,
  action: Going,
  state: State
): Effect.Effect<Event, Failure | AnsweredElsewhere, R | Services> => {
  switch (action._tag) {
    case "resume":
      return Records.resume(run, run.current)
    case "ask":
      return Records.ask(run, action.elements)
    case "prepare":
      return prepare(run, action, state)
    case "accept":
      return accept(run, action.failed)
    case "send":
      return send(run, action.place)
    case "follow":
      return Effect.map(Records.follow(run, action.elements, run.isSent), (seen: Seen) => ({
        _tag: "followed",
        ...seen
      }))
    case "yield":
      return Effect.as(Records.abandonUnsigned(run, action.elements), { _tag: "yielded" })
    case "wait":
      return wait(run, action.deadline)
    case "pause":
      return pause(run, action)
    case "note":
      return note(run, action.failed)
  }
}
