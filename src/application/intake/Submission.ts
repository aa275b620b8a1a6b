import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Dependencies from "../../domain/erc4337/Dependencies.js"
import type * as Hex from "../../domain/primitives/Hex.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import { WakeUps, type Watch } from "../lanes/requests/WakeUps.js"
import { TransactionMonitor } from "../lanes/TransactionMonitor.js"
import type { Bundler } from "../ports/chain/Bundler.js"
import type { Receipt } from "../ports/chain/ChainRpc.js"
import { OpJournal } from "../ports/journal/OpJournal.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { Acceptance, DeploymentIntent } from "../ports/journal/Requests.js"
import type { Lane } from "../ports/journal/Transactions.js"
import { type AnsweredElsewhere, CurrentRequest } from "../request/CurrentRequest.js"
import { type ElementFailure, elementFailure } from "../request/Elements.js"
import type { Failure } from "../request/Failure.js"
import * as KillSwitch from "../tenants/KillSwitch.js"
import type * as HeldNonces from "./HeldNonces.js"
import * as NodeFault from "./NodeFault.js"
import * as Sending from "./Sending.js"
import type { Landed } from "./SubmissionElements.js"
import type { Action, Event, Failures, Outcomes as Seen, State } from "./SubmissionPhases.js"
import * as Records from "./SubmissionRecords.js"
import * as SubmissionState from "./SubmissionState.js"

/** What a look at the chain made of the elements that are still to be done. */
export interface Prepared extends Sending.Bounds {
  readonly ready: ReadonlyArray<Sending.Ready>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Elements that were found done: nothing has to be sent for them. */
  readonly done: Iterable<number>
  readonly funds: Acceptance["funds"]
  readonly deployments: ReadonlyArray<{ readonly index: number; readonly intent: DeploymentIntent }>
  /** How many nonce keys were leased for them. */
  readonly leased: number
}

/** The wallets of these elements have no nonce key left at the moment. */
export interface Busy {
  readonly busy: ReadonlyArray<number>
}

export interface Plan<R> extends Sending.SubmissionRoute {
  readonly endpoint: string
  readonly elements: ReadonlyArray<number>
  /** What each element depends on, by index; none when left out. */
  readonly dependencies?: Dependencies.Dependencies
  /**
   * Reads the chain for these elements. As long as wallets are busy nothing is prepared, and it is run again later. What
   * one of them depends on is among them, or has succeeded. Elements with a held nonce are prepared under it: the journal
   * keeps its key for them.
   */
  readonly prepare: (
    elements: ReadonlyArray<number>,
    held: HeldNonces.HeldNonces
  ) => Effect.Effect<Prepared | Busy, Failure, R>
}

export interface Outcomes {
  readonly landed: ReadonlyMap<number, Landed>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Of the transactions that concern the request, oldest first; of their logs those of its own ops. */
  readonly receipts: ReadonlyArray<Receipt>
}

type Services =
  | Bundler
  | ChainFacts
  | Records.SubmissionJournals
  | TransactionMonitor
  | WakeUps
  | CurrentRequest

/** What is being sent: the elements of the machine's transfers as they were prepared. */
interface Batch {
  readonly prepared: Prepared
  readonly transfers: ReadonlyArray<Sending.Transfer>
  /** Whether keys stay leased once its ops are accepted: acceptance ends the leases of the keys that they use. */
  readonly leavesLeases: boolean
}

/** One request's submission, as its actions are executed. */
interface Run<R> extends Records.Reader {
  readonly plan: Plan<R>
  readonly revert: (data: Hex.Hex) => string
  readonly lane: Lane
  readonly current: CurrentRequest["Type"]
  batch: Batch | null
  /** Whether it may have leased keys that none of its ops uses. */
  holdsLeases: boolean
  /** All of the transaction is on its way: an event will tell of it. */
  isSent: boolean
}

const giveBack = <R>(run: Run<R>) =>
  Effect.flatMap(OpJournal, (opJournal) =>
    Effect.map(Effect.orDie(opJournal.release(run.plan.caller.requestId)), () => {
      run.holdsLeases = false
    })
  )

/** Gives back what was leased, and tells those who wait for it. */
const release = <R>(run: Run<R>) =>
  Effect.zipRight(
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
        const fault = NodeFault.ofFailure(failure)
        return Effect.succeed<Event>(
          fault === null
            ? { _tag: "refused", failure: NodeFault.asElement(failure) }
            : { _tag: "nodeFailed", fault }
        )
      },
      onSuccess: (prepared): Effect.Effect<Event> => {
        if ("busy" in prepared) return Effect.succeed({ _tag: "busy", elements: prepared.busy })
        const { tooLarge, transfers } = Sending.transfers(
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
          transfers: transfers.map(({ ops }) => ops)
        })
      }
    })
  })

/** The failures as the journal keeps them. */
const elementsOf = (failed: Failures) => [...failed].map(([index, failure]) => ({ index, ...failure }))

const accept = <R>(
  run: Run<R>,
  failed: Failures
): Effect.Effect<Event, Failure | AnsweredElsewhere, Services> =>
  Effect.gen(function* () {
    const { batch, current, plan } = run
    if (batch === null) return yield* Effect.dieMessage("what is accepted was prepared before")
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
      return yield* Effect.dieMessage("what is sent was prepared before")
    run.ops = null
    const result = yield* Sending.send(plan, batch.prepared, transfer, revert)
    run.isSent = result.isSent
    yield* current.extend(plan.context.connection.profile.receiptTimeoutMillis)
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
    return Effect.as(millis > 0 ? Effect.zipRight(released, Effect.sleep(millis)) : released, {
      _tag: "paused"
    })
  })

const note = <R>({ plan }: Run<R>, failed: Failures): Effect.Effect<Event, never, Services> =>
  Effect.flatMap(RequestJournal, (requestJournal) =>
    Effect.as(Effect.orDie(requestJournal.refuse(plan.caller.requestId, elementsOf(failed))), {
      _tag: "noted"
    })
  )

type Going = Exclude<Action, { readonly _tag: "end" }>

const execute = <R>(
  run: Run<R>,
  action: Going,
  state: State
): Effect.Effect<Event, Failure | AnsweredElsewhere, R | Services> => {
  switch (action._tag) {
    case "resume":
      return Records.resume(run)
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

/** Once nothing is left to do: what was signed and given up may have landed all the same, and its op is given up. */
const conclude = <R>(run: Run<R>, state: State): Effect.Effect<Outcomes, never, Services> =>
  Effect.gen(function* () {
    const { current, lane, plan } = run
    const { caller, context } = plan
    const given = [...SubmissionState.failuresOf(state).keys()]
    const found =
      given.length === 0
        ? new Map<number, Landed>()
        : yield* Effect.catchAllCause(Records.takeLanded(run, given), (cause) =>
            Effect.as(Effect.logDebug("what was given up could not be looked for", cause), new Map())
          )
    const now = yield* Clock.currentTimeMillis
    const end = SubmissionState.step(state, { _tag: "foundLanded", landed: found }, now).state
    const landed = SubmissionState.landedOf(end)
    const { ops, txHashes } = yield* Records.opsOf(run)
    const over = ops.filter((op) => op.state === "accepted").map(({ index }) => index)
    if (over.length > 0) {
      const opJournal = yield* OpJournal
      const wakeUps = yield* WakeUps
      yield* Effect.orDie(opJournal.abandon(caller.requestId, over))
      yield* wakeUps.signal(lane)
    }
    const monitor = yield* TransactionMonitor
    const hashes = new Set([...txHashes, ...[...landed.values()].map(({ txHash }) => txHash)])
    const receipts = yield* Effect.forEach(
      hashes,
      (txHash) => monitor.receiptOf(context.connection.chain, txHash),
      { concurrency: "unbounded" }
    )
    const own = new Set([...landed.values()].map(({ userOpHash }) => userOpHash))
    yield* current.conclude
    return {
      landed,
      failed: SubmissionState.failuresOf(end),
      receipts: Records.receiptsOf(context.entryPoint, receipts, own)
    }
  })

/**
 * Brings the elements of a request onto the chain: prepare, accept, sign, bundle, send, settle; again for those
 * that a failing neighbour, a chain that has moved on or an op under way kept out, until the profile's time-out, and
 * for those whose transaction was mined without them. What is to be done is said by `SubmissionState`.
 *
 * Up to acceptance an interruption ends everything and leaves nothing. From then on what fails is a failure of
 * elements. A request that was accepted in an earlier life goes on where the journal says that it was.
 */
export const run = <R>(
  plan: Plan<R>,
  revert: (data: Hex.Hex) => string
): Effect.Effect<Outcomes, Failure | AnsweredElsewhere, R | Services> =>
  Effect.gen(function* () {
    const current = yield* CurrentRequest
    const wakeUps = yield* WakeUps
    const { profile } = plan.context.connection
    const dependencies = plan.dependencies ?? []
    const components = Dependencies.components(dependencies)
    const terms = {
      dependencies,
      isApart: profile.remoteBundler !== null,
      patienceMillis: profile.receiptTimeoutMillis
    }
    const submission = (watch: Watch) => {
      const run: Run<R> = {
        plan,
        revert,
        lane: { chainId: profile.chainId, signer: plan.submitter.address },
        componentOf: (index) => components[index] ?? index,
        current,
        watch,
        batch: null,
        ops: null,
        holdsLeases: current.resumed,
        isSent: false
      }
      return Effect.gen(function* () {
        let { action, state } = SubmissionState.begin(terms, plan.elements, {
          isAccepted: current.resumed,
          now: yield* Clock.currentTimeMillis
        })
        while (action._tag !== "end") {
          const event: Event = yield* execute(run, action, state)
          const now: number = yield* Clock.currentTimeMillis
          ;({ action, state } = SubmissionState.step(state, event, now))
        }
        return current.accepted()
          ? yield* conclude(run, state)
          : { landed: new Map(), failed: SubmissionState.failuresOf(state), receipts: [] }
      }).pipe(
        Effect.ensuring(
          plan.context.payer.end.pipe(
            Effect.zipRight(
              Effect.suspend(() =>
                run.holdsLeases ? Effect.ignoreLogged(Effect.sandbox(giveBack(run))) : Effect.void
              )
            ),
            Effect.zipRight(wakeUps.signal(run.lane))
          )
        )
      )
    }
    return yield* wakeUps.watching(plan.caller.requestId, submission)
  })
