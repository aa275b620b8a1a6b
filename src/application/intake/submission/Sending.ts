import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as FailedOp from "../../../domain/erc4337/FailedOp.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import * as Connection from "../../chain/Connection.js"
import { WakeUps } from "../../lanes/requests/WakeUps.js"
import { withheld } from "../../ports/AuditLog.js"
import { Bundler, type BundlerError } from "../../ports/chain/Bundler.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { LaneAccess } from "../../ports/journal/Transactions.js"
import type { Signer } from "../../ports/Signers.js"
import type { OpContext } from "../../prepare/OpContext.js"
import * as Epochs from "../../prepare/wallets/Epochs.js"
import type { Caller } from "../../request/Caller.js"
import * as Delays from "../../request/Delays.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import * as Reasons from "../../request/Reasons.js"
import * as Signing from "../Signing.js"
import type { Bounds, Ready, Transfer } from "./Transfers.js"

/** The caller of a submission, what it submits with, and from which EOA. */
export interface SubmissionRoute {
  readonly caller: Caller
  readonly context: OpContext
  readonly submitter: Signer
  /** How the submitter's lane goes on without the request. */
  readonly access: LaneAccess
}

/** What a try did. Elements that are neither sent nor in a map were refused only for the company they were in. */
export interface SendResult {
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Refused because the chain is not as it was when they were prepared: worth another look, a bit later. */
  readonly outdated: ReadonlyMap<number, ElementFailure>
  /** What stands in the way of every other bundle of the request as well. */
  readonly forAll: ElementFailure | null
  /** What stood in the way before anything was sent, and passes: all that did not fail goes again after a pause. */
  readonly delay: ElementFailure | null
  /** All of them are on their way: what becomes of them will be told. */
  readonly isSent: boolean
}

const bundlerRefused = (message: string): ElementFailure =>
  elementFailure("bundler_refused", Reasons.text("bundlerRefused", { message }))

const bundlerFailure = (
  error: BundlerError,
  submitter: string,
  connection: OpContext["connection"]
): ElementFailure => {
  switch (error.reason) {
    case "insufficientFunds":
      return elementFailure(
        "insufficient_funds",
        Reasons.text("submitterFunds", { submitter, missing: error.missing }),
        { submitter, missing: error.missing.toString() }
      )
    case "unpaid":
      return elementFailure(
        "submission_unpaid",
        error.gas === null ? Reasons.text("notMeasured") : Reasons.text("chargedLess", error.gas)
      )
    case "bundlerUnavailable":
    case "refusedByBundler":
      return bundlerRefused(error.message)
    case "signerRefused":
      return elementFailure("signer_unavailable", undefined, { reason: Reasons.text("signerRefused") })
    case "signerUnavailable":
      return elementFailure("signer_unavailable")
    default:
      return Connection.elementRefusal(connection, error.message)
  }
}

/**
 * Signs one bundle of accepted ops and hands it to the bundler. Afterwards each op is `sent` or given up, never in
 * between; one that a bundler refused and may land all the same is `sent`, and its element has failed.
 */
export const send = (
  { access, caller: { requestId }, context, submitter }: SubmissionRoute,
  { gasBound, prices }: Bounds,
  { alone, ops: bundle }: Transfer,
  revert: (data: Hex.Hex) => string
): Effect.Effect<SendResult, never, Bundler | ChainFacts | OpJournal | RequestJournal | WakeUps> =>
  Effect.gen(function* () {
    const bundler = yield* Bundler
    const opJournal = yield* OpJournal
    const requestJournal = yield* RequestJournal
    const facts = yield* ChainFacts
    const wakeUps = yield* WakeUps
    const { buffers, connection, entryPoint, version } = context
    const failed = new Map<number, ElementFailure>()
    const outdated = new Map<number, ElementFailure>()
    const giveUp = (some: ReadonlyArray<Pick<Ready, "index">>) =>
      opJournal
        .abandonUnsigned(
          requestId,
          some.map(({ index }) => index)
        )
        .pipe(
          Effect.orDie,
          Effect.andThen(wakeUps.signal({ chainId: connection.profile.chainId, signer: submitter.address }))
        )

    const none = { failed, outdated, forAll: null, delay: null, isSent: false }
    const blocked = (failure: ElementFailure): SendResult => {
      if (Delays.isPassing(failure)) return { ...none, delay: failure }
      for (const { index } of bundle) failed.set(index, failure)
      return { ...none, forAll: failure }
    }
    const signing = yield* Effect.result(
      Effect.provideService(Signing.sign(requestId, context, bundle, revert), withheld, true)
    )
    if (Result.isFailure(signing)) {
      yield* giveUp(bundle)
      const obstacle = signing.failure
      return obstacle._tag === "all"
        ? blocked(obstacle.failure)
        : { ...none, ...Delays.parted(obstacle.failed) }
    }
    const { aggregate, ops, release } = signing.success
    // Nodes see the signatures from here on: the ops own their nonces, whatever becomes of the machine.
    yield* Effect.orDie(requestJournal.durable)
    const outcome = yield* Effect.result(
      bundler.submit({
        requestId,
        chain: connection.chain,
        profile: connection.profile,
        access,
        version,
        entryPoint,
        ops,
        aggregate,
        alone,
        submitter,
        prices,
        l1Fee: bundle.reduce((sum, { l1Fee }) => sum + l1Fee, 0n),
        gasBound,
        gasOvershoot: buffers.transaction
      })
    )
    if (Result.isSuccess(outcome)) {
      const refused = ops.filter(({ userOpHash }) => outcome.success.has(userOpHash))
      const back = refused.filter(({ userOpHash }) => outcome.success.get(userOpHash)?.mayLand === false)
      if (back.length > 0) yield* Effect.andThen(giveUp(back), release(back))
      for (const { index, userOpHash } of refused) {
        const refusal = outcome.success.get(userOpHash)
        const kind = refusal?.passing === true ? outdated : failed
        kind.set(index, bundlerRefused(refusal?.message ?? ""))
      }
      return { ...none, isSent: refused.length === 0 }
    }
    yield* giveUp(bundle)
    yield* release(ops)
    const error = outcome.failure
    if (error.reason !== "rejected") {
      const failure = bundlerFailure(error, submitter.address, connection)
      return error.reason === "bundlerUnavailable" ? { ...none, delay: failure } : blocked(failure)
    }
    const unsigned = ops.filter(({ userOpHash }) =>
      FailedOp.isSignature(error.dropped.get(userOpHash) ?? Hex.empty)
    )
    // What was signed for the configuration before the last rotation is prepared again, for the one in force.
    const rotated = yield* Epochs.failuresOf(
      context,
      { facts },
      unsigned.map(({ op }) => op)
    ).pipe(Effect.orElseSucceed(() => new Map<Address, ElementFailure>()))
    for (const { index, op, userOpHash } of ops) {
      const data = error.dropped.get(userOpHash)
      if (data === undefined) continue
      const changed = FailedOp.isSignature(data) ? rotated.get(op.sender) : undefined
      const kind = changed !== undefined || FailedOp.isOutdated(data) ? outdated : failed
      kind.set(
        index,
        changed ?? elementFailure("execution_failed", Reasons.text("reverted", { reason: revert(data) }))
      )
    }
    return none
  })
