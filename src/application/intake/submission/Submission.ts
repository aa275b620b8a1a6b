import * as Effect from "effect/Effect"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import { WakeUps, type Watch } from "../../lanes/requests/WakeUps.js"
import { TransactionMonitor } from "../../lanes/TransactionMonitor.js"
import type { Receipt } from "../../ports/chain/ChainRpc.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import { type AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import type { ElementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import { execute, giveBack, type Run, type Services } from "./SubmissionActions.js"
import type { Landed } from "./SubmissionElements.js"
import type { Event, State } from "./SubmissionPhases.js"
import type { Plan } from "./SubmissionPlan.js"
import * as SubmissionProgress from "./SubmissionProgress.js"
import * as Records from "./SubmissionRecords.js"
import * as SubmissionState from "./SubmissionState.js"

export interface Outcomes {
  readonly landed: ReadonlyMap<number, Landed>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** What is left and waits for its time, Unix seconds by the chain's clock: the outcomes are not all. */
  readonly scheduled: ReadonlyMap<number, number>
  /** Of the transactions that concern the request, oldest first; of their logs those of its own ops. */
  readonly receipts: ReadonlyArray<Receipt>
}

/** Once nothing is left to do: what was signed and given up may have landed all the same, and its op is given up. */
const conclude = <R>(run: Run<R>, state: State): Effect.Effect<Outcomes, never, Services> =>
  Effect.gen(function* () {
    const { current, lane, plan } = run
    const { caller, context } = plan
    const given = [...SubmissionProgress.failuresOf(state).keys()]
    const late = yield* Records.outlast(run, given, plan.part == null ? current.dismiss : Effect.void)
    const rest = given.filter((index) => !late.has(index))
    const found =
      rest.length === 0
        ? new Map<number, Landed>()
        : yield* Effect.catchCause(Records.takeLanded(run, rest), (cause) =>
            Effect.as(Effect.logDebug("what was given up could not be looked for", cause), new Map())
          )
    const now = yield* MonotonicTime.millis
    const all = new Map([...late, ...found])
    const end = SubmissionState.step(state, { _tag: "foundLanded", landed: all }, now).state
    const landed = SubmissionProgress.landedOf(end)
    const { ops } = yield* Records.opsOf(run)
    const over = ops.filter((op) => op.state === "accepted").map(({ index }) => index)
    if (over.length > 0) {
      const opJournal = yield* OpJournal
      const wakeUps = yield* WakeUps
      yield* Effect.orDie(opJournal.abandon(caller.requestId, over))
      yield* wakeUps.signal(lane)
    }
    const { txHashes } = yield* Records.minedOps(run)
    const monitor = yield* TransactionMonitor
    const hashes = new Set([...txHashes, ...[...landed.values()].map(({ txHash }) => txHash)])
    const receipts = yield* Effect.forEach(
      hashes,
      (txHash) => monitor.receiptOf(context.connection.chain, txHash),
      { concurrency: "unbounded" }
    )
    const own = new Set([...landed.values()].map(({ userOpHash }) => userOpHash))
    if (plan.part == null) yield* current.conclude
    return {
      landed,
      failed: SubmissionProgress.failuresOf(end),
      scheduled: new Map(),
      receipts: Records.receiptsOf(context.entryPoint, receipts, own)
    }
  })

/**
 * Brings the elements of a request onto the chain: prepare, accept, sign, bundle, send, settle; again for those
 * that a failing neighbour, a chain that has moved on or an op under way kept out, until the profile's time-out, and
 * for those whose transaction was mined without them. What is to be done is said by `SubmissionState`.
 *
 * Up to acceptance an interruption ends everything and leaves nothing. From then on what fails is a failure of
 * elements. A request that was accepted before a restart goes on where the journal says that it was.
 */
export const run = <R>(
  plan: Plan<R>,
  revert: (data: Hex.Hex) => string
): Effect.Effect<Outcomes, Failure | AnsweredElsewhere, R | Services> =>
  Effect.gen(function* () {
    const current = yield* CurrentRequest
    const wakeUps = yield* WakeUps
    const { profile } = plan.context.connection
    const { requestId } = plan.caller
    const dependencies = plan.dependencies ?? []
    const components = Dependencies.components(dependencies)
    const terms = {
      dependencies,
      isApart: profile.remoteBundler !== null,
      patienceMillis: profile.receiptTimeoutMillis,
      expiryMillis: profile.requestExpiryMillis
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
          isAccepted: current.accepted(),
          isResumed: current.resumed,
          now: yield* MonotonicTime.millis
        })
        while (action._tag !== "end") {
          const event: Event = yield* execute(run, action, state)
          const now: number = yield* MonotonicTime.millis
          ;({ action, state } = SubmissionState.step(state, event, now))
        }
        yield* current.rest
        const scheduled = SubmissionProgress.scheduledOf(state)
        return current.accepted() && scheduled.size === 0
          ? yield* conclude(run, state)
          : {
              landed: SubmissionProgress.landedOf(state),
              failed: SubmissionProgress.failuresOf(state),
              scheduled,
              receipts: []
            }
      }).pipe(
        Effect.ensuring(
          plan.context.payer
            .release(plan.elements.map((index) => ({ requestId, index, given: null })))
            .pipe(
              Effect.andThen(
                Effect.suspend(() =>
                  run.holdsLeases ? Effect.ignoreCause(giveBack(run), { log: "Debug" }) : Effect.void
                )
              ),
              Effect.andThen(wakeUps.signal(run.lane))
            )
        )
      )
    }
    return yield* wakeUps.watching(plan.caller.requestId, submission)
  })
