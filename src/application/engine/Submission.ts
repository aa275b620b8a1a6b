import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Bytes32, Hex } from "../../domain/evm/Hex.js"
import * as Uint from "../../domain/evm/Uint.js"
import type { Failure } from "../Failure.js"
import type { Bundler, OpOutcome } from "../ports/Bundler.js"
import type { Receipt } from "../ports/ChainRpc.js"
import { type Acceptance, type DeploymentIntent, Journal } from "../ports/Journal.js"
import { type ElementFailure, elementFailure } from "./Elements.js"
import { Engine } from "./Engine.js"
import * as Sending from "./Sending.js"

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
  /** Reads the chain for these elements. As long as wallets are busy nothing is prepared, and it is run again later. */
  readonly prepare: (elements: ReadonlyArray<number>) => Effect.Effect<Prepared | Busy, Failure, R>
}

export interface Outcomes {
  readonly landed: ReadonlyMap<number, OpOutcome & { readonly userOpHash: Bytes32 }>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Of the request's own transactions, in order. */
  readonly receipts: ReadonlyArray<Receipt>
}

/** A failure of the whole request, as that of an element once others have been accepted. */
const asElement = (failure: Failure): ElementFailure => {
  const [detail] = failure.details
  return elementFailure(
    failure._tag === "Unprocessable" ? failure.code : "execution_failed",
    detail === undefined ? failure.message : `${failure.message}: ${detail.message}`
  )
}

/**
 * Brings the elements of a request onto the chain: prepare, accept, sign, bundle, send, settle; again for those
 * that a failing neighbour, a chain that has moved on or an op under way kept out, until the profile's time-out.
 *
 * Up to acceptance an interruption of the caller ends everything and leaves nothing. From then on the work belongs
 * to the engine and goes on without him, and what fails is a failure of elements.
 */
export const run = <R>(
  plan: Plan<R>,
  revert: (data: Hex) => string
): Effect.Effect<Outcomes, Failure, R | Bundler | Journal | Engine> =>
  Effect.gen(function* () {
    const journal = yield* Journal
    const { releases, scope } = yield* Engine
    const { requestId } = plan.caller
    const { profile } = plan.ground.connection
    const deadline = (yield* Clock.currentTimeMillis) + profile.receiptTimeoutMillis
    const landed = new Map<number, OpOutcome & { readonly userOpHash: Bytes32 }>()
    const failed = new Map<number, ElementFailure>()
    const receipts: Array<Receipt> = []
    let left = plan.elements
    let accepted = false

    const fail = (failures: Iterable<readonly [number, ElementFailure]>) => {
      for (const [index, failure] of failures) failed.set(index, failure)
    }
    const failLike = (elements: ReadonlyArray<number>, failure: ElementFailure) =>
      fail(elements.map((index) => [index, failure]))
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

    const prepare = (elements: ReadonlyArray<number>) =>
      Effect.catchAll(plan.prepare(elements), (failure) => {
        if (!accepted) return Effect.fail(failure)
        failLike(elements, asElement(failure))
        return Effect.succeed(null)
      })

    const once = Effect.gen(function* () {
      const prepared = yield* prepare(left)
      if (prepared === null) return yield* release
      if ("busy" in prepared) return yield* waitForWallet(prepared.busy)
      fail(prepared.failed)
      const { bundles, tooLarge } = Sending.split(plan, prepared, prepared.ready)
      failLike(tooLarge, elementFailure("too_large_to_bundle"))
      const ready = bundles.flat()
      if (ready.length === 0) return
      const deployments = prepared.deployments.filter(({ index }) =>
        ready.some((each) => each.index === index)
      )
      const sending = yield* Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const acceptance = yield* Effect.orDie(
            journal.accept({
              requestId,
              accountId: plan.caller.principal.accountId,
              endpoint: plan.endpoint,
              chainId: profile.chainId,
              ops: ready.map(({ index, nonceKey, reserve, sequence, space, userOpHash }) => ({
                index,
                space,
                nonceKey,
                sequence,
                userOpHash,
                reserve: BigInts.min(reserve, Uint.max(256))
              })),
              funds: prepared.funds,
              deployments: deployments.map(({ intent }) => intent)
            })
          )
          if (acceptance._tag !== "accepted") return acceptance
          accepted = true
          const fiber = yield* Effect.forkIn(
            Effect.interruptible(Sending.send(plan, prepared, bundles, revert)),
            scope
          )
          return yield* restore(Fiber.join(fiber))
        })
      )
      if (!("_tag" in sending)) {
        for (const [index, outcome] of sending.landed) landed.set(index, outcome)
        fail(sending.failed)
        receipts.push(...sending.receipts)
        if (sending.outdated.size > 0) return yield* waitFor(sending.outdated)
        return yield* release
      }
      switch (sending._tag) {
        case "nonceTaken":
        case "reserved":
          return yield* waitForWallet([sending.index])
        case "otherConfiguration": {
          const refused = deployments[sending.deployment]
          if (refused !== undefined) failLike([refused.index], elementFailure("deployment_pending"))
          return yield* release
        }
      }
    })

    while (left.length > 0) {
      if (accepted && (yield* Clock.currentTimeMillis) >= deadline)
        failLike(
          left,
          elementFailure("execution_failed", "others were refused until the request's time was over")
        )
      else yield* once
      left = left.filter((index) => !landed.has(index) && !failed.has(index) && !plan.done.has(index))
    }
    return { landed, failed, receipts }
  }).pipe(
    Effect.ensuring(
      Effect.gen(function* () {
        const journal = yield* Journal
        const { releases } = yield* Engine
        yield* journal.release(plan.caller.requestId).pipe(Effect.ignoreLogged)
        yield* releases.signal
      })
    )
  )
