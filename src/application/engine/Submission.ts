import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Hex from "../../domain/evm/Hex.js"
import * as Uint from "../../domain/evm/Uint.js"
import * as Dependencies from "../../domain/op/Dependencies.js"
import * as Outcome from "../../domain/op/Outcome.js"
import type { CodeOf } from "../Catalogue.js"
import type { Failure } from "../Failure.js"
import type { Bundler, OpOutcome } from "../ports/Bundler.js"
import type { Receipt } from "../ports/ChainRpc.js"
import {
  type Acceptance,
  type DeploymentIntent,
  Journal,
  type OpRecord,
  type RequestRecord
} from "../ports/Journal.js"
import { CurrentRequest } from "./CurrentRequest.js"
import { type ElementFailure, elementFailure } from "./Elements.js"
import { Engine } from "./Engine.js"
import * as Landings from "./Landings.js"
import * as Pauses from "./Pauses.js"
import { AnsweredElsewhere } from "./Requests.js"
import * as Sending from "./Sending.js"
import * as Trouble from "./Trouble.js"

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

export interface Plan<R> extends Sending.Course {
  readonly endpoint: string
  readonly elements: ReadonlyArray<number>
  /** Elements that `prepare` found done already: nothing has to be sent for them. */
  readonly done: ReadonlySet<number>
  /** What each element depends on, by index; none when left out. */
  readonly dependencies?: Dependencies.Dependencies
  /**
   * Reads the chain for these elements. As long as wallets are busy nothing is prepared, and it is run again later. What
   * one of them depends on is among them, or has succeeded.
   */
  readonly prepare: (elements: ReadonlyArray<number>) => Effect.Effect<Prepared | Busy, Failure, R>
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
  elementFailure("dependency_failed", `dependency failed: operation ${on}`)

/** A node that answers with errors is asked so often before a request that was accepted is given up. */
const maxRefusals = 3
/** What a request waits before it asks a failing node again, milliseconds: twice as long each time. */
const firstPause = 100
const longestPause = 2_000

/** An element whose transaction was mined without it this often is given up. */
const maxTries = 3
const notLanded = "its transactions reverted or lost their nonce, and the operation did not land"
const overdue = elementFailure("execution_failed", "others were refused until the request's time was over")
/** Longer return values are not kept. */
const maxReturned = 16_384

const kept = (returned: Hex.Hex): Hex.Hex | null => (Hex.size(returned) > maxReturned ? null : returned)

const landedOf = (op: OpRecord): Landed | null =>
  op.state === "settled" && op.userOpHash !== null && op.txHash !== null
    ? {
        userOpHash: op.userOpHash,
        success: op.success === true,
        txHash: op.txHash,
        revertData: op.revertData,
        returned: op.returned
      }
    : null

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
): Effect.Effect<Outcomes, Failure | AnsweredElsewhere, R | Bundler | Journal | Engine | CurrentRequest> =>
  Effect.gen(function* () {
    const journal = yield* Journal
    const current = yield* CurrentRequest
    const { releases, watcher } = yield* Engine
    const { requestId } = plan.caller
    const { chain, profile } = plan.ground.connection
    const dependencies = plan.dependencies ?? []
    const dependencyOf = (index: number) => dependencies[index] ?? null
    /** Somebody else's bundler keeps nothing together: an op is given to it once the one it depends on has landed. */
    const apart = profile.remoteBundler !== null
    let deadline = (yield* Clock.currentTimeMillis) + profile.receiptTimeoutMillis
    const landed = new Map<number, Landed>()
    const failed = new Map<number, ElementFailure>()
    const tries = new Map<number, number>()
    let noted = 0
    const calm = { trouble: null, pause: firstPause, refusals: 0 }
    /** What the node did, as long as it does it. */
    let node: { trouble: Trouble.Trouble | null; pause: number; refusals: number } = { ...calm }

    const fail = (failures: Iterable<readonly [number, ElementFailure]>) => {
      for (const [index, failure] of failures) failed.set(index, failure)
    }
    const failLike = (elements: ReadonlyArray<number>, failure: ElementFailure) =>
      fail(elements.map((index) => [index, failure]))
    const open = () =>
      plan.elements.filter((index) => !landed.has(index) && !failed.has(index) && !plan.done.has(index))
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
      return Effect.orDie(journal.refuse(requestId, failures()))
    })
    const release = journal.release(requestId).pipe(Effect.orDie, Effect.zipRight(releases.signal))
    /**
     * Waits until others have released something; the elements fail when there is no time left. Gives back what was
     * leased without waking anybody: waiters that woke each other would do so for ever.
     */
    const waitFor = (elements: Iterable<readonly [number, ElementFailure]>) =>
      Effect.gen(function* () {
        yield* Effect.orDie(journal.release(requestId))
        if (!(yield* releases.wait(deadline))) fail(elements)
      })
    const waitForWallet = (elements: ReadonlyArray<number>) =>
      waitFor(elements.map((index) => [index, elementFailure("wallet_busy")]))

    const record: Effect.Effect<RequestRecord> = Effect.orDie(
      Effect.filterOrDieMessage(
        journal.request(requestId),
        (found): found is RequestRecord => found !== null,
        "the journal has lost an accepted request"
      )
    )

    /** Waits until none of these elements' ops may be on its way any more. Those that came to nothing are open again. */
    const outcomes = (elements: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        const own = new Set(elements)
        const ops = yield* releases.until(
          requestId,
          Effect.map(record, (found) => {
            const ours = found.ops.filter(({ index }) => own.has(index))
            return ours.some(({ state }) => state === "sent") ? null : ours
          })
        )
        const back: Array<number> = []
        for (const op of ops) {
          const outcome = landedOf(op)
          if (outcome !== null) landed.set(op.index, outcome)
          else if (op.state === "accepted") back.push(op.index)
        }
        if (back.length === 0) return
        yield* Effect.orDie(journal.abandon(requestId, back))
        for (const index of back) {
          const tried = (tries.get(index) ?? 0) + 1
          tries.set(index, tried)
          if (tried >= maxTries) failed.set(index, elementFailure("execution_failed", notLanded))
        }
      })

    /** Those of the ops that are on the chain all the same: a backup of the journal may be older than their transaction. */
    const landings = (ops: ReadonlyArray<OpRecord>) =>
      Effect.gen(function* () {
        const indexes = new Map(
          ops.flatMap((op) => (op.userOpHash === null ? [] : [[op.userOpHash, op.index]]))
        )
        if (indexes.size === 0) return []
        const head = yield* chain.block("latest")
        const { entryPoint } = plan.ground
        const found = yield* Landings.find(chain, entryPoint, [...indexes.keys()], head?.number ?? 0n)
        const outcomes = [...found].map(([userOpHash, outcome]) => ({ userOpHash, ...outcome }))
        yield* journal.land(plan.submitter.address, profile.chainId, outcomes)
        return outcomes.flatMap(({ userOpHash }) => indexes.get(userOpHash) ?? [])
      })

    /**
     * The node failed, and nothing is on its way: the same again after a pause, until the request's time is over. It ends
     * with all open elements given up at the latest.
     */
    const endure = (met: Trouble.Trouble) =>
      Effect.gen(function* () {
        const left = deadline - (yield* Clock.currentTimeMillis)
        node.trouble = met
        node.refusals = met.unreachable ? 0 : node.refusals + 1
        if (node.refusals >= maxRefusals || left <= 0) return failLike(open(), met.failure)
        yield* release
        yield* Effect.sleep(Math.min(node.pause, left))
        node.pause = Math.min(node.pause * 2, longestPause)
      })

    const prepare = (elements: ReadonlyArray<number>) =>
      Effect.catchAll(plan.prepare(elements), (failure) => {
        if (!current.accepted()) return Effect.fail(failure)
        const met = Trouble.ofFailure(failure)
        if (met !== null) return Effect.as(endure(met), null)
        failLike(elements, Trouble.asElement(failure))
        return Effect.as(release, null)
      })

    const accept = (
      ready: ReadonlyArray<Sending.Ready>,
      prepared: Prepared,
      deployments: Prepared["deployments"]
    ) =>
      Effect.zipRight(
        Pauses.recheck(current, plan.submitter.address),
        Effect.uninterruptible(
          Effect.tap(
            Effect.orDie(
              journal.accept({
                requestId,
                accountId: plan.caller.principal.accountId,
                endpoint: plan.endpoint,
                chainId: profile.chainId,
                body: current.body,
                idempotency: current.idempotency,
                ops: ready.map(({ index, nonceKey, reserve, returned, sequence, space, userOpHash }) => ({
                  index,
                  space,
                  nonceKey,
                  sequence,
                  userOpHash,
                  reserve: BigInts.min(reserve, Uint.max(256)),
                  returned: kept(returned)
                })),
                funds: prepared.funds,
                deployments: deployments.map(({ intent }) => intent),
                failed: failures()
              })
            ),
            (result) => {
              if (result._tag !== "accepted") return Effect.void
              noted = failed.size
              return current.accept(profile.receiptTimeoutMillis)
            }
          )
        )
      )

    const once = Effect.gen(function* () {
      const waiting = new Set(open())
      const free = (index: number) => !apart || !waiting.has(dependencyOf(index) ?? -1)
      const prepared = yield* prepare([...waiting].filter(free))
      if (prepared === null) return
      if ("busy" in prepared) return yield* waitForWallet(prepared.busy)
      fail(prepared.failed)
      const { bundles, tooLarge } = Sending.split(plan, prepared, prepared.ready, dependencies)
      failLike(tooLarge, elementFailure("too_large_to_bundle"))
      const ready = bundles.flat()
      if (ready.length === 0) return
      const deployments = prepared.deployments.filter(({ index }) =>
        ready.some((each) => each.index === index)
      )
      const acceptance = yield* accept(ready, prepared, deployments)
      switch (acceptance._tag) {
        case "known":
          return yield* new AnsweredElsewhere({ requestId: acceptance.requestId })
        case "nonceTaken":
        case "reserved":
          return yield* waitForWallet([acceptance.index])
        case "otherConfiguration": {
          const refused = deployments[acceptance.deployment]
          if (refused !== undefined) failLike([refused.index], elementFailure("deployment_pending"))
          return yield* release
        }
      }
      // One after the other, each simulated on the state that its predecessor left.
      const outdated = new Map<number, ElementFailure>()
      for (const [place, bundle] of bundles.entries()) {
        const sending = yield* Sending.send(plan, prepared, bundle, revert)
        yield* current.accept(profile.receiptTimeoutMillis)
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
        const rest = bundles.slice(place + 1).flatMap((each) => each.map(({ index }) => index))
        yield* Effect.orDie(journal.abandon(requestId, rest))
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
          failed.set(index, { ...failure, code: failure.code as CodeOf<422> })
      noted = failed.size
      const unsent = before.ops.filter(({ state }) => state === "accepted")
      const left = new Set(unsent.map(({ index }) => index))
      for (const index of yield* Effect.orDie(landings(unsent))) left.delete(index)
      yield* Effect.orDie(journal.abandon(requestId, [...left]))
      yield* outcomes(
        before.ops
          .filter(({ index, state }) => state !== "abandoned" && !left.has(index))
          .map(({ index }) => index)
      )
      for (const index of landed.keys()) failed.delete(index)
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

    const { txHashes } = yield* record
    const hashes = new Set([...txHashes, ...[...landed.values()].map(({ txHash }) => txHash)])
    const receipts = yield* Effect.forEach(hashes, (txHash) => watcher.receiptOf(chain, txHash), {
      concurrency: "unbounded"
    })
    const own = new Set([...landed.values()].map(({ userOpHash }) => userOpHash))
    yield* current.conclude
    return {
      landed,
      failed,
      receipts: receipts
        .sort((a, b) => (a.blockNumber < b.blockNumber ? -1 : a.blockNumber > b.blockNumber ? 1 : 0))
        .map((receipt) => ({
          ...receipt,
          logs: Outcome.logsOf(plan.ground.entryPoint, receipt.logs, own)
        }))
    }
  }).pipe(
    Effect.ensuring(
      Effect.gen(function* () {
        const journal = yield* Journal
        const { releases } = yield* Engine
        yield* plan.ground.payer.end
        yield* journal.release(plan.caller.requestId).pipe(Effect.ignoreLogged)
        yield* releases.signal
      })
    )
  )
