import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Revert from "../../domain/abi/Revert.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { ChainFacts } from "../chain/ChainFacts.js"
import { refusal } from "../chain/Connection.js"
import * as Prices from "../chain/Prices.js"
import { type ElementFailure, elementFailure, revertDataOf } from "../failures/Elements.js"
import { type Failure, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import type { PreparedOp } from "../ports/journal/Records.js"
import { direct } from "../ports/journal/Requests.js"
import type { DirectCall } from "./Call.js"
import * as CalledContracts from "./estimate/CalledContracts.js"
import * as L1Fees from "./estimate/L1Fees.js"
import * as SilentRevert from "./estimate/SilentRevert.js"
import type { Direct } from "./OpContext.js"
import * as Preparation from "./Preparation.js"

/** Prepares transactions of the signer, each one separately. */

class Refused extends Data.TaggedError("Refused")<{ readonly failure: ElementFailure }> {}

const refused = (
  code: ElementFailure["code"],
  message: Reasons.Text,
  figures: ElementFailure["figures"] = {}
) => new Refused({ failure: elementFailure(code, message, figures) })

/** The request's field that the failure is about. */
const pathOf = ({ code }: ElementFailure): string => {
  if (code === "no_contract") return "to"
  return code === "insufficient_funds" || code === "signer_unavailable" ? "settings.signer" : ""
}

/** 422 that names the obstacle to a signer's transaction. */
export const refusalOf = (
  failure: ElementFailure,
  extra: Readonly<Record<string, unknown>> = {}
): Failure => {
  const { code, figures, message } = failure
  return unprocessable(code, [{ path: pathOf(failure), message, ...figures }], { extra })
}

/** `refusalOf` with the failed element, as the other writes answer. */
export const failureOf = (failure: ElementFailure): Failure => {
  const { message } = failure
  const element = {
    userOpHash: null,
    success: false,
    error: message,
    result: null,
    txHash: null,
    ...revertDataOf(failure)
  }
  return refusalOf(failure, { returnData: [{ "0": element }] })
}

/** Fails when the signer's balance is below the cost, regardless of its transactions in flight. */
const affordable = ({ submitter }: Direct, balance: bigint, cost: bigint): Effect.Effect<void, Refused> => {
  const missing = cost - balance
  return missing <= 0n
    ? Effect.void
    : refused("insufficient_funds", Reasons.text("signerFunds", { signer: submitter, missing }), {
        missing: missing.toString()
      })
}

/** Longer return values are not kept. */
const maxReturned = 65_536

const prepareOne = (
  context: Direct,
  { requestId, revert }: Preparation.Batch,
  { data, gas, index, to, value, wallet }: DirectCall
): Effect.Effect<PreparedOp, Refused | Failure, ChainFacts> =>
  Effect.gen(function* () {
    const { buffers, chainId, connection, submitter } = context
    const { chain, profile, trust } = connection
    const facts = yield* ChainFacts
    const transaction = { from: submitter, to, data, value }
    const answered = Effect.mapError(refusal(trust))
    const [prices, block, balance, estimated, called, code] = yield* Effect.all(
      [
        Prices.now(connection, buffers.price),
        answered(facts.block(chain, "recent")),
        answered(chain.balance(submitter)),
        Effect.result(answered(chain.estimateGas(transaction))),
        Effect.result(answered(chain.call(transaction))),
        CalledContracts.needsOne({ target: to, data }, profile)
          ? answered(facts.code(chain, to, "recent"))
          : Effect.succeed(undefined)
      ],
      { concurrency: "unbounded" }
    )
    if (code === null) return yield* new Refused({ failure: CalledContracts.failureAt(to, profile) })
    // Check before reading the node's answer: nodes word this failure differently.
    yield* affordable(context, balance, value)
    const seen = yield* Effect.fromResult(called)
    const estimate = seen.success ? yield* Effect.fromResult(estimated) : { ...seen, gas: 0n }
    const failed = seen.success ? estimate : seen
    if (!failed.success) {
      const reason = failed.outOfGas
        ? SilentRevert.outOfGas
        : SilentRevert.isSilent(failed)
          ? yield* SilentRevert.reason(chain, facts, transaction)
          : revert(failed.data)
      const undecoded = Revert.unreadableData(failed.data, reason)
      return yield* refused(
        "execution_failed",
        Reasons.text("reverted", { reason }),
        undecoded === null ? {} : { data: undecoded }
      )
    }
    // No block includes a transaction with a higher limit than its own, so the lane would wait forever.
    const most = BigInts.min(profile.caps.transactionGas, gas ?? profile.caps.transactionGas)
    const bound = BigInts.min(most, block?.gasLimit ?? most)
    if (estimate.gas > bound)
      return yield* refused(
        "too_large_to_bundle",
        Reasons.text("transactionGas", { gas: estimate.gas, cap: bound })
      )
    const gasLimit = BigInts.min(Gas.overshoot(estimate.gas, buffers.transaction), bound)
    const l1Fee = yield* L1Fees.ofTransaction(connection, { ...transaction, gasLimit, chainId })
    yield* affordable(context, balance, value + gasLimit * prices.maxFeePerGas + l1Fee)
    return {
      requestId,
      index,
      kind: "direct",
      unsigned: { to, data, value, gasLimit },
      space: { authority: submitter, chainId, entryPoint: direct, wallet },
      nonceKey: 0n,
      sequence: 0n,
      userOpHash: null,
      proof: null,
      window: null,
      dependsOn: [],
      // The EOA's funds are checked at signing.
      reserve: 0n,
      l1Fee,
      returned: Hex.size(seen.data) > maxReturned ? null : seen.data,
      goodUntil: Preparation.goodUntil(yield* Clock.currentTimeMillis, 0, 0)
    }
  })

/** An accepted request waits for money; any other obstacle ends it. */
const isFinal = ({ code }: ElementFailure, { isAccepted }: Preparation.Batch): boolean =>
  isAccepted === true && code !== "insufficient_funds"

/** Prepares each batch's one call, in the order of the batches. */
export const prepare = (
  context: Direct,
  batches: ReadonlyArray<Preparation.Batch<DirectCall>>
): Effect.Effect<ReadonlyArray<Result.Result<Preparation.Prepared, Failure>>, never, ChainFacts> =>
  Effect.forEach(
    batches,
    (batch) =>
      Effect.map(
        Effect.result(Effect.forEach(batch.calls, (call) => prepareOne(context, batch, call))),
        (made): Result.Result<Preparation.Prepared, Failure> => {
          if (Result.isSuccess(made)) return Result.succeed({ ...Preparation.nothing, ops: made.success })
          const { failure } = made
          if (failure._tag !== "Refused") return Result.fail(failure)
          return isFinal(failure.failure, batch)
            ? Result.succeed({ ...Preparation.nothing, failed: new Map([[0, failure.failure]]) })
            : Result.fail(failureOf(failure.failure))
        }
      ),
    { concurrency: "unbounded" }
  )
