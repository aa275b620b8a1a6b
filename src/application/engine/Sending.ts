import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Address from "../../domain/evm/Address.js"
import * as Hex from "../../domain/evm/Hex.js"
import * as Conditions from "../../domain/op/Conditions.js"
import * as FailedOp from "../../domain/op/FailedOp.js"
import type { FeePrices } from "../../domain/op/Fees.js"
import * as Gas from "../../domain/op/Gas.js"
import type { UserOperation } from "../../domain/op/UserOperation.js"
import type { Caller } from "../Caller.js"
import { type Failure, unprocessable } from "../Failure.js"
import { Bundler, type BundlerError, type OpOutcome, type SignedOp } from "../ports/Bundler.js"
import type { Receipt } from "../ports/ChainRpc.js"
import { Journal, type NonceSpace } from "../ports/Journal.js"
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
  /** Wei that layer 1 may ask of the submitter for the op's data. */
  readonly l1Fee: bigint
  /** Null when the hash depends on a signature: then `complete` gives it. */
  readonly userOpHash: Hex.Bytes32 | null
  /** The op with everything but its own signature. Runs after acceptance. */
  readonly complete: Effect.Effect<
    { readonly op: UserOperation; readonly userOpHash: Hex.Bytes32 },
    SignerError
  >
  /** The op's signature. Runs after the hash is journalled. */
  readonly sign: (userOpHash: Hex.Bytes32) => Effect.Effect<Hex.Hex, SignerError>
}

/** Whose ops these are, and who brings them where. */
export interface Course {
  readonly caller: Caller
  readonly ground: Ground
  readonly submitter: Signer
}

export interface Bounds {
  readonly prices: FeePrices
  /** Gas that one transaction may have. */
  readonly gasBound: bigint
}

/** What a try did. Elements in no map were refused only for the company they were in: they may go once more. */
export interface Try {
  readonly landed: ReadonlyMap<number, OpOutcome & { readonly userOpHash: Hex.Bytes32 }>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Refused because the chain is not as it was when they were prepared: worth another look, a bit later. */
  readonly outdated: ReadonlyMap<number, ElementFailure>
  /** Of the transactions that were mined, in order. */
  readonly receipts: ReadonlyArray<Receipt>
}

/** As few bundles as possible, in order; what does not fit even alone is left out. */
export const split = (
  { ground: { buffers, version } }: Course,
  { gasBound }: Bounds,
  ops: ReadonlyArray<Ready>
): {
  readonly bundles: ReadonlyArray<ReadonlyArray<Ready>>
  readonly tooLarge: ReadonlyArray<number>
} => {
  const fits = (some: ReadonlyArray<Ready>) =>
    Either.isRight(
      Gas.transactionGasLimit(
        version,
        some.map(({ op }) => op),
        { bound: gasBound, overshoot: buffers.transaction }
      )
    )
  const bundles: Array<ReadonlyArray<Ready>> = []
  const tooLarge: Array<number> = []
  let open: ReadonlyArray<Ready> = []
  for (const ready of ops) {
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

const notLanded = "the transaction reverted and the operation did not land"
const notLandedYet =
  "the transaction reverted and the operation has not landed; others may still land it, since it is not bound to its bundler: post the same op again, not a new one"

/** Whether the op's own conditions let nobody but its submitter carry it. */
const isBound = ({ signature }: UserOperation): boolean =>
  Either.match(Conditions.decodeSignature(signature), {
    onLeft: () => false,
    onRight: ({ conditions }) => conditions.bundler !== Address.zero
  })

const bundlerFailure = (error: BundlerError, submitter: string): ElementFailure => {
  switch (error.reason) {
    case "insufficientFunds":
      return elementFailure(
        "insufficient_funds",
        `insufficient funds: the submitting EOA ${submitter} lacks ${error.missing} wei`,
        { submitter, missing: error.missing.toString() }
      )
    case "signerRefused":
    case "signerUnavailable":
      return elementFailure("signer_unavailable")
    default:
      return elementFailure("node_refused", `the node refused the request: ${error.message}`)
  }
}

const indexesOf = (bundles: ReadonlyArray<ReadonlyArray<Ready>>): ReadonlyArray<number> =>
  bundles.flatMap((bundle) => bundle.map(({ index }) => index))

/**
 * Signs and sends accepted ops. Whatever happens here, each of them ends landed, abandoned, or watched: never in
 * between. Bundles go one after the other, each simulated on the state that its predecessor left. Fails with
 * `outcome_unknown` only.
 */
export const send = (
  { caller: { requestId }, ground, submitter }: Course,
  { gasBound, prices }: Bounds,
  bundles: ReadonlyArray<ReadonlyArray<Ready>>,
  revert: (data: Hex.Hex) => string
): Effect.Effect<Try, Failure, Bundler | Journal | Engine> =>
  Effect.gen(function* () {
    const bundler = yield* Bundler
    const journal = yield* Journal
    const { releases } = yield* Engine
    const { buffers, connection, entryPoint, version } = ground
    const landed = new Map<number, OpOutcome & { readonly userOpHash: Hex.Bytes32 }>()
    const failed = new Map<number, ElementFailure>()
    const outdated = new Map<number, ElementFailure>()
    const receipts: Array<Receipt> = []
    const result: Try = { landed, failed, outdated, receipts }

    const abandon = (indexes: ReadonlyArray<number>) =>
      journal.abandon(requestId, indexes).pipe(Effect.orDie, Effect.zipRight(releases.signal))

    const sign = (ready: Ready): Effect.Effect<SignedOp, SignerError> =>
      Effect.gen(function* () {
        const { op, userOpHash } = yield* ready.complete
        if (ready.userOpHash === null)
          yield* Effect.orDie(journal.identify(requestId, [{ index: ready.index, userOpHash }]))
        const signature = yield* ready.sign(userOpHash)
        return { index: ready.index, op: { ...op, signature }, userOpHash }
      })

    /** True when the next bundle may go. */
    const carry = (bundle: ReadonlyArray<Ready>, rest: ReadonlyArray<ReadonlyArray<Ready>>) =>
      Effect.gen(function* () {
        const unsent = indexesOf([bundle, ...rest])
        const signed = yield* Effect.either(Effect.forEach(bundle, sign, { concurrency: "unbounded" }))
        if (Either.isLeft(signed)) {
          yield* abandon(unsent)
          const failure = elementFailure("signer_unavailable", "signer unavailable", {
            reason: signed.left.message
          })
          for (const index of unsent) failed.set(index, failure)
          return false
        }
        const ops = signed.right
        const gasLimit = Gas.transactionGasLimit(
          version,
          ops.map(({ op }) => op),
          { bound: gasBound, overshoot: buffers.transaction }
        )
        const outcome = yield* Effect.either(
          bundler.submit({
            requestId,
            chain: connection.chain,
            profile: connection.profile,
            version,
            entryPoint,
            ops,
            submitter,
            prices,
            l1Fee: bundle.reduce((sum, { l1Fee }) => sum + l1Fee, 0n),
            gasLimit: Either.getOrElse(gasLimit, () => gasBound)
          })
        )
        if (Either.isRight(outcome)) {
          const { outcomes, receipt } = outcome.right
          receipts.push(receipt)
          for (const { index, op, userOpHash } of ops) {
            const found = outcomes.get(userOpHash)
            if (found !== undefined) landed.set(index, { ...found, userOpHash })
            else
              failed.set(
                index,
                elementFailure("execution_failed", isBound(op) ? notLanded : notLandedYet, {
                  txHash: receipt.txHash
                })
              )
          }
          return true
        }
        const error = outcome.left
        if (error.reason === "outcomeUnknown") {
          yield* abandon(indexesOf(rest))
          // The transactions before it are mined: a caller who is not told of them would do their work again.
          const txHashes = [...receipts.map(({ txHash }) => txHash), error.txHash]
          return yield* Effect.fail(
            unprocessable("outcome_unknown", [], { extra: { txHash: error.txHash, txHashes, requestId } })
          )
        }
        yield* abandon(unsent)
        if (error.reason !== "rejected") {
          for (const index of unsent) failed.set(index, bundlerFailure(error, submitter.address))
          return false
        }
        const dropped = ops.filter(({ userOpHash }) => error.dropped.has(userOpHash))
        for (const { index, userOpHash } of dropped) {
          const data = error.dropped.get(userOpHash) ?? Hex.empty
          const kind = FailedOp.isOutdated(data) ? outdated : failed
          kind.set(index, elementFailure("execution_failed", revert(data)))
        }
        if (dropped.length === 0)
          for (const index of unsent) failed.set(index, elementFailure("execution_failed", error.message))
        return false
      })

    for (const [position, bundle] of bundles.entries()) {
      // After a defect, or an interruption at shutdown: what is in no signed transaction is given up.
      const giveUp = Effect.forEach(
        bundles.slice(position),
        (each) => Effect.ignore(journal.abandon(requestId, indexesOf([each]))),
        { discard: true }
      )
      const more = yield* Effect.onError(carry(bundle, bundles.slice(position + 1)), () =>
        Effect.zipRight(giveUp, releases.signal)
      )
      if (!more) break
    }
    return result
  })
