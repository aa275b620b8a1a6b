import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import type { Bytes32, Hex } from "../../domain/evm/Hex.js"
import type { FeePrices } from "../../domain/op/Fees.js"
import * as Gas from "../../domain/op/Gas.js"
import type { UserOperation } from "../../domain/op/UserOperation.js"
import type { Caller } from "../Caller.js"
import { type Failure, unprocessable } from "../Failure.js"
import { Bundler, type BundlerError, type OpOutcome, type SignedOp } from "../ports/Bundler.js"
import type { Receipt } from "../ports/ChainRpc.js"
import { type Acceptance, type DeploymentIntent, Journal, type NonceSpace } from "../ports/Journal.js"
import type { Signer, SignerError } from "../ports/Signers.js"
import { type ElementFailure, elementFailure } from "./Elements.js"
import { Engine } from "./Engine.js"
import type { Ground } from "./Preparation.js"

/** One op, estimated and simulated, ready to be accepted and then signed. */
export interface Ready {
  readonly index: number
  readonly op: UserOperation
  readonly space: NonceSpace
  readonly nonceKey: bigint
  readonly sequence: bigint
  /** Prefund and value, wei. */
  readonly reserve: bigint
  /** Null when the hash depends on a signature: then `complete` gives it. */
  readonly userOpHash: Bytes32 | null
  /** The op with everything but its own signature. Runs after acceptance. */
  readonly complete: Effect.Effect<{ readonly op: UserOperation; readonly userOpHash: Bytes32 }, SignerError>
  /** The op's signature. Runs after the hash is journalled. */
  readonly sign: (userOpHash: Bytes32) => Effect.Effect<Hex, SignerError>
}

/** What a look at the chain made of the elements that are still to be done. */
export interface Prepared {
  readonly ready: ReadonlyArray<Ready>
  readonly failed: ReadonlyMap<number, ElementFailure>
  readonly funds: Acceptance["funds"]
  readonly deployments: ReadonlyArray<{ readonly index: number; readonly intent: DeploymentIntent }>
  readonly prices: FeePrices
  /** Gas that one transaction may have. */
  readonly gasBound: bigint
}

export interface Plan<R> {
  readonly caller: Caller
  readonly endpoint: string
  readonly ground: Ground
  readonly submitter: Signer
  readonly elements: ReadonlyArray<number>
  /** Elements that `prepare` found done already: nothing has to be sent for them. */
  readonly done: ReadonlySet<number>
  /** Reads the chain for these elements; null when nonce keys that it needs are taken: it is run again later. */
  readonly prepare: (elements: ReadonlyArray<number>) => Effect.Effect<Prepared | null, Failure, R>
}

export interface Outcomes {
  readonly landed: ReadonlyMap<number, OpOutcome & { readonly userOpHash: Bytes32 }>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Of the request's own transactions, in order. */
  readonly receipts: ReadonlyArray<Receipt>
}

/** As few transactions as possible, in order; what does not fit even alone is left out. */
const split = (
  plan: Plan<never>,
  prepared: Prepared
): {
  readonly bundles: ReadonlyArray<ReadonlyArray<Ready>>
  readonly tooLarge: ReadonlyArray<number>
} => {
  const { buffers, version } = plan.ground
  const options = { bound: prepared.gasBound, overshoot: buffers.transaction }
  const fits = (ops: ReadonlyArray<Ready>) =>
    Either.isRight(
      Gas.transactionGasLimit(
        version,
        ops.map(({ op }) => op),
        options
      )
    )
  const bundles: Array<ReadonlyArray<Ready>> = []
  const tooLarge: Array<number> = []
  let open: ReadonlyArray<Ready> = []
  for (const ready of prepared.ready) {
    if (fits([...open, ready])) {
      open = [...open, ready]
      continue
    }
    if (open.length > 0) bundles.push(open)
    open = []
    if (fits([ready])) open = [ready]
    else tooLarge.push(ready.index)
  }
  if (open.length > 0) bundles.push(open)
  return { bundles, tooLarge }
}

const bundlerFailure = (error: BundlerError): ElementFailure => {
  switch (error.reason) {
    case "insufficientFunds":
      return elementFailure(
        "insufficient_funds",
        `insufficient funds: the submitting EOA lacks ${error.missing} wei`,
        { missing: error.missing.toString() }
      )
    case "signerRefused":
    case "signerUnavailable":
      return elementFailure("signer_unavailable")
    default:
      return elementFailure("node_refused", `the node refused the request: ${error.message}`)
  }
}

/** What a try did. Elements in neither map were refused only for the company they were in: they may go once more. */
interface Try {
  readonly landed: Map<number, OpOutcome & { readonly userOpHash: Bytes32 }>
  readonly failed: Map<number, ElementFailure>
  readonly receipts: Array<Receipt>
}

/**
 * Signs and sends accepted ops. Whatever happens here, each of them ends landed, abandoned, or watched: never in
 * between. Bundles go one after the other, each simulated on the state that its predecessor left.
 */
const send = (
  plan: Plan<never>,
  prepared: Prepared,
  bundles: ReadonlyArray<ReadonlyArray<Ready>>,
  revert: (data: Hex) => string
): Effect.Effect<Try, Failure, Bundler | Journal | Engine> =>
  Effect.gen(function* () {
    const bundler = yield* Bundler
    const journal = yield* Journal
    const { releases } = yield* Engine
    const { requestId } = plan.caller
    const { buffers, connection, entryPoint, version } = plan.ground
    const result: Try = { landed: new Map(), failed: new Map(), receipts: [] }
    const indexesFrom = (position: number) =>
      bundles.slice(position).flatMap((bundle) => bundle.map(({ index }) => index))
    const abandonFrom = (position: number) =>
      journal.abandon(requestId, indexesFrom(position)).pipe(Effect.orDie, Effect.zipRight(releases.signal))

    const sign = (ready: Ready): Effect.Effect<SignedOp, SignerError> =>
      Effect.gen(function* () {
        const { op, userOpHash } = yield* ready.complete
        if (ready.userOpHash === null)
          yield* Effect.orDie(journal.identify(requestId, [{ index: ready.index, userOpHash }]))
        const signature = yield* ready.sign(userOpHash)
        return { index: ready.index, op: { ...op, signature }, userOpHash }
      })

    for (const [position, bundle] of bundles.entries()) {
      const signed = yield* Effect.either(Effect.forEach(bundle, sign, { concurrency: "unbounded" }))
      if (Either.isLeft(signed)) {
        yield* abandonFrom(position)
        for (const index of indexesFrom(position))
          result.failed.set(
            index,
            elementFailure("signer_unavailable", "signer unavailable", { reason: signed.left.message })
          )
        return result
      }
      const gasLimit = Gas.transactionGasLimit(
        version,
        signed.right.map(({ op }) => op),
        { bound: prepared.gasBound, overshoot: buffers.transaction }
      )
      const outcome = yield* Effect.either(
        bundler.submit({
          requestId,
          chain: connection.chain,
          profile: connection.profile,
          version,
          entryPoint,
          ops: signed.right,
          submitter: plan.submitter,
          prices: prepared.prices,
          gasLimit: Either.getOrElse(gasLimit, () => prepared.gasBound)
        })
      )
      if (Either.isRight(outcome)) {
        const { outcomes, receipt } = outcome.right
        result.receipts.push(receipt)
        for (const { index, userOpHash } of signed.right) {
          const landed = outcomes.get(userOpHash)
          if (landed !== undefined) result.landed.set(index, { ...landed, userOpHash })
          else
            result.failed.set(
              index,
              elementFailure("execution_failed", "the transaction reverted and the operation did not land", {
                txHash: receipt.txHash
              })
            )
        }
        continue
      }
      const error = outcome.left
      if (error.reason === "outcomeUnknown") {
        yield* abandonFrom(position + 1)
        return yield* Effect.fail(
          unprocessable("outcome_unknown", [], { extra: { txHash: error.txHash, requestId } })
        )
      }
      yield* abandonFrom(position)
      if (error.reason !== "rejected") {
        for (const index of indexesFrom(position)) result.failed.set(index, bundlerFailure(error))
        return result
      }
      for (const { index, userOpHash } of signed.right) {
        const data = error.dropped.get(userOpHash)
        if (data !== undefined) result.failed.set(index, elementFailure("execution_failed", revert(data)))
      }
      if (result.failed.size === 0)
        for (const index of indexesFrom(position))
          result.failed.set(index, elementFailure("execution_failed", error.message))
      return result
    }
    return result
  })

/**
 * Brings the elements of a request onto the chain: prepare, accept, sign, bundle, send, settle; again for those
 * that a failing neighbour or an op under way kept out, until the profile's time-out.
 *
 * Up to acceptance an interruption of the caller ends everything and leaves nothing. From then on the work belongs
 * to the engine and goes on without him.
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

    const release = journal.release(requestId).pipe(Effect.orDie, Effect.zipRight(releases.signal))
    /**
     * Waits until others have released something; the elements fail when there is no time left. Gives back what was
     * leased without waking anybody: waiters that woke each other would do so for ever.
     */
    const waitFor = (elements: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        yield* Effect.orDie(journal.release(requestId))
        if (yield* releases.wait(deadline)) return
        for (const index of elements) failed.set(index, elementFailure("wallet_busy"))
      })

    const once = Effect.gen(function* () {
      const prepared = yield* plan.prepare(left)
      if (prepared === null) return yield* waitFor(left)
      for (const [index, failure] of prepared.failed) failed.set(index, failure)
      const { bundles, tooLarge } = split(plan as Plan<never>, prepared)
      for (const index of tooLarge) failed.set(index, elementFailure("too_large_to_bundle"))
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
                reserve
              })),
              funds: prepared.funds,
              deployments: deployments.map(({ intent }) => intent)
            })
          )
          if (acceptance._tag !== "accepted") return acceptance
          const fiber = yield* Effect.forkIn(
            Effect.interruptible(send(plan as Plan<never>, prepared, bundles, revert)),
            scope
          )
          return yield* restore(Fiber.join(fiber))
        })
      )
      if (!("_tag" in sending)) {
        for (const [index, outcome] of sending.landed) landed.set(index, outcome)
        for (const [index, failure] of sending.failed) failed.set(index, failure)
        receipts.push(...sending.receipts)
        return yield* release
      }
      switch (sending._tag) {
        case "nonceTaken":
          return yield* waitFor([sending.index])
        case "reserved":
          return yield* waitFor([sending.index])
        case "otherConfiguration": {
          const refused = deployments[sending.deployment]
          if (refused !== undefined) failed.set(refused.index, elementFailure("deployment_pending"))
          return yield* release
        }
      }
    })

    while (left.length > 0) {
      yield* once
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
