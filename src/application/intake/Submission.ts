import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Dependencies from "../../domain/erc4337/Dependencies.js"
import type * as Hex from "../../domain/primitives/Hex.js"
import { ChainFacts } from "../chain/ChainFacts.js"
import { WakeUps } from "../lanes/requests/WakeUps.js"
import { TransactionMonitor } from "../lanes/TransactionMonitor.js"
import type { Bundler, OpOutcome } from "../ports/chain/Bundler.js"
import type { Receipt } from "../ports/chain/ChainRpc.js"
import { OpJournal } from "../ports/journal/OpJournal.js"
import { RemoteOpJournal } from "../ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { Acceptance, DeploymentIntent, OpSettlement, RequestRecord } from "../ports/journal/Requests.js"
import { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { RefusalCode } from "../request/Catalogue.js"
import { type AnsweredElsewhere, CurrentRequest } from "../request/CurrentRequest.js"
import { type ElementFailure, elementFailure } from "../request/Elements.js"
import type { Failure } from "../request/Failure.js"
import * as Reasons from "../request/Reasons.js"
import * as KillSwitch from "../tenants/KillSwitch.js"
import * as HeldNonces from "./HeldNonces.js"
import * as NodeFault from "./NodeFault.js"
import * as Sending from "./Sending.js"
import * as Records from "./SubmissionRecords.js"

/** What a look at the chain made of the elements that are still to be done. */
export interface Prepared extends Sending.Bounds {
  readonly ready: ReadonlyArray<Sending.Ready>
  readonly failed: ReadonlyMap<number, ElementFailure>
  readonly funds: Acceptance["funds"]
  readonly deployments: ReadonlyArray<{ readonly index: number; readonly intent: DeploymentIntent }>
}

/** The wallets of these elements have no nonce key left at the moment. */
export interface Busy {
  readonly busy: ReadonlyArray<number>
}

export interface Plan<R> extends Sending.SubmissionRoute {
  readonly endpoint: string
  readonly elements: ReadonlyArray<number>
  /** Elements that `prepare` found done already: nothing has to be sent for them. */
  readonly done: ReadonlySet<number>
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

/** An element whose op is on the chain. */
export interface Landed extends OpOutcome {
  readonly userOpHash: Hex.Bytes32
  /** What its call returned in the last simulation before it was sent; null: nothing that was kept. */
  readonly returned: Hex.Hex | null
}

export interface Outcomes {
  readonly landed: ReadonlyMap<number, Landed>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Of the transactions that concern the request, oldest first; of their logs those of its own ops. */
  readonly receipts: ReadonlyArray<Receipt>
}

/** The failure of an element because of the one that it depends on. */
export const dependencyFailed = (on: number): ElementFailure =>
  elementFailure("dependency_failed", Reasons.text("dependency", { operation: on }))

/** A node that answers with errors is asked so often before a request that was accepted is given up. */
const maxRefusals = 3
/** What a request waits before it asks a failing node again, milliseconds: twice as long each time. */
const firstPause = 100
const longestPause = 2_000

/** An element whose transactions, in which it was alone, were mined without it this often is given up. */
const maxTries = 3
const notIncluded = elementFailure("execution_failed", Reasons.text("notIncluded", { tries: maxTries }))
const nonceBlocked = elementFailure("execution_failed", Reasons.text("nonceBlocked"))
const overdue = elementFailure("execution_failed", Reasons.text("timeLimit"))

/**
 * Brings the elements of a request onto the chain: prepare, accept, sign, bundle, send, settle; again for those
 * that a failing neighbour, a chain that has moved on or an op under way kept out, until the profile's time-out, and
 * for those whose transaction was mined without them.
 *
 * Up to acceptance an interruption ends everything and leaves nothing. From then on what fails is a failure of
 * elements. A request that was accepted in an earlier life goes on where the journal says that it was.
 */
export const run = <R>(
  plan: Plan<R>,
  revert: (data: Hex.Hex) => string
): Effect.Effect<
  Outcomes,
  Failure | AnsweredElsewhere,
  R | Bundler | ChainFacts | Records.SubmissionJournals | TransactionMonitor | WakeUps | CurrentRequest
> =>
  Effect.gen(function* () {
    const requestJournal = yield* RequestJournal
    const opJournal = yield* OpJournal
    const transactionJournal = yield* TransactionJournal
    const remoteOpJournal = yield* RemoteOpJournal
    const current = yield* CurrentRequest
    const facts = yield* ChainFacts
    const wakeUps = yield* WakeUps
    const monitor = yield* TransactionMonitor
    const { requestId } = plan.caller
    const { chain, profile } = plan.ground.connection
    const dependencies = plan.dependencies ?? []
    const dependencyOf = (index: number) => dependencies[index] ?? null
    const components = Dependencies.components(dependencies)
    const componentOf = (index: number) => components[index] ?? index
    /** Somebody else's bundler keeps nothing together: an op is given to it once the one it depends on has landed. */
    const apart = profile.remoteBundler !== null
    let deadline = (yield* Clock.currentTimeMillis) + profile.receiptTimeoutMillis
    const landed = new Map<number, Landed>()
    const failed = new Map<number, ElementFailure>()
    /** How often a transaction was mined without the element: one of its component alone, one that it shared. */
    const tries = new Map<number, number>()
    const shared = new Map<number, number>()
    let noted = 0
    /** Whether something that was signed may have come back. */
    let mayHold = current.resumed
    const calm = { trouble: null, pause: firstPause, refusals: 0 }
    /** What the node did, as long as it does it. */
    let node: { trouble: NodeFault.NodeFault | null; pause: number; refusals: number } = { ...calm }

    const fail = (failures: Iterable<readonly [number, ElementFailure]>) => {
      for (const [index, failure] of failures) failed.set(index, failure)
    }
    const failLike = (elements: ReadonlyArray<number>, failure: ElementFailure) =>
      fail(elements.map((index) => [index, failure]))
    const open = () =>
      plan.elements.filter((index) => !landed.has(index) && !failed.has(index) && !plan.done.has(index))
    /** What can be cancelled. */
    const openBut = (held: HeldNonces.HeldNonces) => open().filter((index) => !held.has(index))
    /** What depends on elements that have come to nothing comes to nothing too. */
    const failDependants = () => {
      for (const index of Dependencies.order(dependencies, open())) {
        const on = dependencyOf(index)
        if (on !== null && (failed.has(on) || landed.get(on)?.success === false))
          failed.set(index, dependencyFailed(on))
      }
    }
    const failures = () => [...failed].map(([index, failure]) => ({ index, ...failure }))
    /** Failures are durable before anything that follows from them. */
    const note = Effect.suspend(() => {
      if (!current.accepted() || failed.size === noted) return Effect.void
      noted = failed.size
      return Effect.orDie(requestJournal.refuse(requestId, failures()))
    })
    const lane = { chainId: profile.chainId, signer: plan.submitter.address }
    const release = opJournal.release(requestId).pipe(Effect.orDie, Effect.zipRight(wakeUps.signal(lane)))
    /**
     * Waits until others have released something; the elements fail when there is no time left. Gives back what was
     * leased without waking anybody: waiters that woke each other would do so for ever.
     */
    const waitFor = (elements: Iterable<readonly [number, ElementFailure]>) =>
      Effect.gen(function* () {
        yield* Effect.orDie(opJournal.release(requestId))
        if (!(yield* wakeUps.wait(lane, deadline))) fail(elements)
      })
    const waitForWallet = (elements: ReadonlyArray<number>) =>
      waitFor(elements.map((index) => [index, elementFailure("wallet_busy")]))

    const record: Effect.Effect<RequestRecord> = Effect.orDie(
      Effect.filterOrDieMessage(
        requestJournal.request(requestId),
        (found): found is RequestRecord => found !== null,
        "the journal has lost an accepted request"
      )
    )

    const carriersOf = Effect.flatMap(record, Records.carriers(transactionJournal, profile.chainId))

    /** Waits until none of these elements' ops may be on its way any more. Those that came to nothing are open again. */
    const outcomes = (elements: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        const own = new Set(elements)
        const ops = yield* wakeUps.until(
          requestId,
          Effect.map(record, (found) => {
            const ours = found.ops.filter(({ index }) => own.has(index))
            return ours.some(({ state }) => state === "sent") ? null : ours
          })
        )
        const back: Array<number> = []
        for (const op of ops) {
          const outcome = Records.landedOf(op)
          if (outcome !== null) landed.set(op.index, outcome)
          else if (op.state === "accepted") back.push(op.index)
        }
        if (back.length === 0) return
        const carriers = yield* carriersOf
        yield* Effect.orDie(opJournal.abandonUnsigned(requestId, back))
        mayHold = true
        for (const op of ops.filter(({ index }) => back.includes(index))) {
          const carrier = carriers.find((each) =>
            each.ops.some(({ userOpHash }) => userOpHash === op.userOpHash)
          )
          // Its nonce was used elsewhere: nobody's op has to do with that.
          if (carrier === undefined) continue
          const others = carrier.ops.some(
            (other) => other.requestId !== requestId || componentOf(other.index) !== componentOf(op.index)
          )
          const counts = others ? shared : tries
          counts.set(op.index, (counts.get(op.index) ?? 0) + 1)
          if ((tries.get(op.index) ?? 0) >= maxTries) failed.set(op.index, notIncluded)
          // The time until a revert is at settled depth is not the request's.
          deadline = (yield* Clock.currentTimeMillis) + profile.receiptTimeoutMillis
        }
      })

    /**
     * The node failed, and nothing is on its way: the same again after a pause, until the request's time is over. It ends
     * with all open elements given up at the latest.
     */
    const endure = (met: NodeFault.NodeFault) =>
      Effect.gen(function* () {
        const left = deadline - (yield* Clock.currentTimeMillis)
        node.trouble = met
        node.refusals = met.unreachable ? 0 : node.refusals + 1
        if (node.refusals >= maxRefusals || left <= 0) return failLike(open(), met.failure)
        yield* release
        yield* Effect.sleep(Math.min(node.pause, left))
        node.pause = Math.min(node.pause * 2, longestPause)
      })

    /** Elements of which some version is on the chain, in whatever transaction, are done. */
    const takeLanded = (elements: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        const found = yield* record
        const outcomes: Array<OpSettlement> = []
        for (const [index, outcome] of yield* HeldNonces.landings(plan.ground, found, elements)) {
          landed.set(index, outcome)
          failed.delete(index)
          // Its nonce is used: whatever version the journal holds is through.
          const userOpHash = found.ops.find((op) => op.index === index)?.userOpHash ?? outcome.userOpHash
          outcomes.push({ ...outcome, userOpHash })
        }
        yield* Effect.orDie(
          remoteOpJournal.recordInclusions(plan.submitter.address, profile.chainId, outcomes)
        )
      })

    /**
     * The nonces that open elements are held to, once the chain was asked what became of them; null: it has to be asked
     * again.
     */
    const holdings = Effect.gen(function* () {
      if (!mayHold) return new Map()
      const held = HeldNonces.of(yield* record, open())
      if (held.size === 0) return held
      const fate = yield* HeldNonces.fateOf(plan.ground, { facts }, held)
      yield* takeLanded([...held.keys()])
      const dead = fate.dead.filter((index) => !landed.has(index))
      yield* Effect.orDie(opJournal.abandon(requestId, dead))
      if (fate.undecided.some((index) => !landed.has(index))) {
        yield* Effect.sleep(longestPause)
        return null
      }
      return new Map([...held].filter(([index]) => !landed.has(index) && !dead.includes(index)))
    }).pipe(Effect.catchAll((error) => Effect.as(endure(NodeFault.ofNode(error)), null)))

    /** Whether every op has the nonce that its element is held to; those that can not get it fail. */
    const keeps = (ready: ReadonlyArray<Sending.Ready>, held: HeldNonces.HeldNonces) =>
      Effect.gen(function* () {
        const { behind, moved } = HeldNonces.displaced(ready, held)
        if (moved.length === 0) return true
        failLike(
          behind.map(({ index }) => index),
          nonceBlocked
        )
        yield* release
        // The chain has moved on since it was asked.
        if (behind.length === 0) yield* Effect.sleep(firstPause)
        return false
      })

    const prepare = (elements: ReadonlyArray<number>, held: HeldNonces.HeldNonces) =>
      Effect.catchAll(plan.prepare(elements, held), (failure) => {
        if (!current.accepted()) return Effect.fail(failure)
        const met = NodeFault.ofFailure(failure)
        if (met !== null) return Effect.as(endure(met), null)
        failLike(elements, NodeFault.asElement(failure))
        return Effect.as(release, null)
      })

    const accept = (
      ready: ReadonlyArray<Sending.Ready>,
      prepared: Prepared,
      deployments: Prepared["deployments"]
    ) =>
      Effect.zipRight(
        KillSwitch.recheck(current, plan.submitter.address),
        Effect.tap(
          current.accept(
            Records.acceptance(plan, current, ready, prepared.funds, deployments, failures()),
            profile.receiptTimeoutMillis
          ),
          ({ _tag }) =>
            Effect.sync(() => {
              if (_tag === "accepted") noted = failed.size
            })
        )
      )

    const once = Effect.gen(function* () {
      const held = yield* holdings
      if (held === null) return
      const waiting = new Set(open())
      if (waiting.size === 0) return
      const free = (index: number) => !apart || !waiting.has(dependencyOf(index) ?? -1)
      const prepared = yield* prepare([...waiting].filter(free), held)
      if (prepared === null) return
      if ("busy" in prepared) return yield* waitForWallet(prepared.busy)
      fail(prepared.failed)
      const { tooLarge, transfers } = Sending.transfers(
        plan,
        prepared,
        prepared.ready,
        dependencies,
        (index) => shared.get(index) ?? 0
      )
      failLike(tooLarge, elementFailure("too_large_to_bundle"))
      const ready = transfers.flatMap(({ ops }) => ops)
      if (ready.length === 0 || !(yield* keeps(ready, held))) return
      const deployments = prepared.deployments.filter(({ index }) =>
        ready.some((each) => each.index === index)
      )
      const acceptance = yield* accept(ready, prepared, deployments)
      switch (acceptance._tag) {
        case "nonceTaken":
        case "reserved":
          return yield* waitForWallet([acceptance.index])
        case "otherConfiguration": {
          const refused = deployments[acceptance.deployment]
          if (refused !== undefined) failLike([refused.index], elementFailure("deployment_pending"))
          return yield* release
        }
        case "cancelled":
          return yield* Effect.as(release, failLike(openBut(held), elementFailure(acceptance.code)))
      }
      // One after the other, each simulated on the state that its predecessor left.
      const outdated = new Map<number, ElementFailure>()
      for (const [place, transfer] of transfers.entries()) {
        const { ops: bundle } = transfer
        const sending = yield* Sending.send(plan, prepared, transfer, revert)
        yield* current.extend(profile.receiptTimeoutMillis)
        fail(sending.failed)
        for (const index of Dependencies.order(dependencies, sending.failed.keys())) {
          const on = dependencyOf(index)
          if (on !== null && failed.has(on)) failed.set(index, dependencyFailed(on))
        }
        for (const [index, failure] of sending.outdated) outdated.set(index, failure)
        yield* note
        yield* outcomes(bundle.map(({ index }) => index))
        if (bundle.every(({ index }) => landed.has(index))) {
          node = { ...calm }
          continue
        }
        const rest = transfers.slice(place + 1).flatMap((each) => each.ops.map(({ index }) => index))
        yield* Effect.orDie(opJournal.abandonUnsigned(requestId, rest))
        if (sending.forAll !== null) failLike(rest, sending.forAll)
        if (sending.trouble !== null) return yield* endure(sending.trouble)
        break
      }
      if (outdated.size > 0) return yield* waitFor(outdated)
      return yield* release
    })

    if (current.resumed) {
      const before = yield* record
      // What failed with another one is judged again: that one may have vanished from the chain, and done better since.
      for (const { index, ...failure } of before.failed)
        if (failure.code !== "dependency_failed")
          failed.set(index, {
            ...failure,
            code: failure.code as RefusalCode,
            message: Reasons.known(failure.message)
          })
      noted = failed.size
      const unsent = before.ops.filter(({ state }) => state === "accepted")
      const left = new Set(unsent.map(({ index }) => index))
      for (const index of yield* Effect.orDie(Records.landings(remoteOpJournal, plan, unsent)))
        left.delete(index)
      yield* Effect.orDie(opJournal.abandonUnsigned(requestId, [...left]))
      yield* outcomes(
        before.ops
          .filter(({ index, state }) => state !== "abandoned" && !left.has(index))
          .map(({ index }) => index)
      )
      const versions = before.signed.map(({ index }) => index)
      yield* Effect.orDie(
        takeLanded(versions.filter((each, at) => !landed.has(each) || versions.indexOf(each) < at))
      )
      for (const index of landed.keys()) failed.delete(index)
      if (before.cancelled !== null)
        failLike(openBut(HeldNonces.of(yield* record, open())), elementFailure(before.cancelled))
    }
    failDependants()
    while (open().length > 0) {
      const now = yield* Clock.currentTimeMillis
      if (current.accepted() && now >= deadline) failLike(open(), node.trouble?.failure ?? overdue)
      else {
        const before = landed.size
        yield* once
        // What waited for the others has the time that they had.
        if (apart && landed.size > before)
          deadline = (yield* Clock.currentTimeMillis) + profile.receiptTimeoutMillis
      }
      failDependants()
      yield* note
    }
    if (!current.accepted()) return { landed, failed, receipts: [] }

    // What was signed and given up may have landed all the same.
    yield* Effect.ignoreLogged(takeLanded([...failed.keys()]))
    const { ops, txHashes } = yield* record
    const over = ops.filter(({ state }) => state === "accepted").map(({ index }) => index)
    if (over.length > 0)
      yield* Effect.zipRight(Effect.orDie(opJournal.abandon(requestId, over)), wakeUps.signal(lane))
    const hashes = new Set([...txHashes, ...[...landed.values()].map(({ txHash }) => txHash)])
    const receipts = yield* Effect.forEach(hashes, (txHash) => monitor.receiptOf(chain, txHash), {
      concurrency: "unbounded"
    })
    const own = new Set([...landed.values()].map(({ userOpHash }) => userOpHash))
    yield* current.conclude
    return {
      landed,
      failed,
      receipts: Records.receiptsOf(plan.ground.entryPoint, receipts, own)
    }
  }).pipe(
    Effect.ensuring(
      Effect.gen(function* () {
        const opJournal = yield* OpJournal
        const wakeUps = yield* WakeUps
        yield* plan.ground.payer.end
        yield* opJournal.release(plan.caller.requestId).pipe(Effect.ignoreLogged)
        const { connection } = plan.ground
        yield* wakeUps.signal({ chainId: connection.profile.chainId, signer: plan.submitter.address })
      })
    )
  )
