import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Revert from "../../../domain/abi/Revert.js"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import type * as GasLens from "../../../domain/erc4337/gas/GasLens.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import type * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import * as Funding from "../../pay/Funding.js"
import * as PaymasterFailure from "../../pay/PaymasterFailure.js"
import type { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import type { Acceptance } from "../../ports/journal/Requests.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import * as Reasons from "../../request/Reasons.js"
import type { OpContext } from "../Preparation.js"
import * as SilentRevert from "../SilentRevert.js"
import * as FirstLook from "./FirstLook.js"
import * as L1Fees from "./L1Fees.js"
import * as LensEstimation from "./LensEstimation.js"
import * as RemoteGas from "./RemoteGas.js"

export interface Input extends FirstLook.Input {
  readonly revert: (data: Hex.Hex) => string
  /** A first look that was asked for before all of this was known, and is good if it fits. */
  readonly early?: FirstLook.FirstLook | null
}

/** An op with its limits, and what its call returned in the last simulation. */
export interface Estimated extends FirstLook.Draft {
  readonly returned: Hex.Hex
  /** Wei that the EntryPoint demands before it runs the op, of its wallet or of its paymaster. */
  readonly prefund: bigint
  /** Wei that layer 1 may ask of the submitter for the op's data; the op's preVerificationGas pays it back. */
  readonly l1Fee: bigint
}

export interface Estimate extends Funding.Funds {
  readonly estimated: ReadonlyArray<Estimated>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Sequence of the nonce key of each draft, by index, before any of them. */
  readonly sequences: ReadonlyMap<number, bigint>
  readonly implementation: GasLens.Report["implementation"]
  /** The chain's clock in the block on which it was measured, Unix seconds. */
  readonly timestamp: number
}

/** What the wallets of an estimate had, as `RequestJournal.accept` wants it. */
export const fundsOf = (context: OpContext, estimate: Estimate): Acceptance["funds"] =>
  Funding.forAcceptance(context, estimate)

/** What a call that failed for lack of funds is granted beyond what it had used, while the right prefund is tried. */
const retryCallGas = 200_000n

/** The op under the limits that the measure asks for, the caller's buffer included. */
const withLimits = (
  input: Input,
  draft: FirstLook.Draft,
  measure: GasLens.Measure,
  l1Gas: bigint,
  leastPreVerificationGas: bigint
): UserOperation.UserOperation => {
  if (input.declared) return draft.op
  const { buffers, payer, version } = input.context
  const op = { ...draft.op, ...Gas.meteredLimits(version, draft.op, measure, buffers.op) }
  const { callGas, creationGas, paymasterGas, postOpGas, validationGas } = measure
  const own = Gas.preVerificationGas(payer.priced(op), {
    version,
    measuredGas: creationGas + validationGas + paymasterGas + callGas + postOpGas,
    l1Gas
  })
  return { ...op, preVerificationGas: BigInts.max(own, leastPreVerificationGas) }
}

/** A call that used up less than it may have when it is sent: its failure says as little as being starved. */
const judged =
  (grant: LensEstimation.Grant, cap: bigint) =>
  (measure: GasLens.Measure): GasLens.Measure =>
    grant.callGas < cap && measure.stage === "call" && measure.callGas * 32n > grant.callGas * 31n
      ? { ...measure, stage: "starved" }
      : measure

/** Why a call failed of which nothing came back; `most` is the gas that it was given. */
const silentReason = (
  { context: { connection } }: Input,
  op: UserOperation.UserOperation,
  { callGas }: GasLens.Measure,
  most: bigint
): Effect.Effect<string, never, ChainFacts> =>
  Effect.gen(function* () {
    const { chain, profile } = connection
    if (callGas * 32n > most * 31n) return SilentRevert.outOfGas
    const [call, ...others] = WalletCalls.read(op.callData).filter(({ target }) => target !== profile.ledger)
    if (call === undefined || others.length > 0) return SilentRevert.withoutReason
    const { data, target, value } = call
    return yield* SilentRevert.reason(chain, yield* ChainFacts, { from: op.sender, to: target, data, value })
  })

const stageFailure = (
  input: Input,
  { op }: FirstLook.Draft,
  measure: GasLens.Measure,
  callGas: bigint
): Effect.Effect<ElementFailure, never, ChainFacts> =>
  Effect.gen(function* () {
    if (LensEstimation.isStarved(measure))
      return elementFailure("too_large_to_bundle", Reasons.text("simulationGas"))
    const { data, stage } = measure
    const isSilent = stage === "call" && data === Hex.empty
    const silent = isSilent ? yield* silentReason(input, op, measure, callGas) : null
    const reason =
      silent ??
      PaymasterFailure.message(Funding.paymasterOf(input.context.version, op), measure, input.revert)
    const undecoded = Revert.undecoded(data, input.revert(data))
    return elementFailure(
      "execution_failed",
      Reasons.text("reverted", { reason }),
      undecoded === null ? {} : { data: undecoded }
    )
  })

/**
 * Measures the ops in order, each on the state after its predecessors, and fills in the least limits under which they
 * do the same as with plenty. One look in the ordinary case; one more with the exact prefund when the guess was on the
 * wrong side of a deposit, when money was what an op failed for, or when a wallet is not funded (so that what it lacks
 * is exact). Before these, one more when the node cannot simulate all of them under generous grants.
 */
export const estimate = (input: Input): Effect.Effect<Estimate, Failure, BundlerRpc | ChainFacts> =>
  Effect.gen(function* () {
    const { connection, version } = input.context
    const first = yield* FirstLook.trials(input)
    const drafts = first.map(({ index, op, value }): FirstLook.Draft => ({ index, op, value }))
    const ops = drafts.map(({ op }) => op)
    const cap = connection.profile.caps.transactionGas
    let grant = FirstLook.generous(cap)
    const accounts = Funding.payers(version, ops)
    const [looked, l1Fees] = yield* Effect.all(
      [
        input.early != null && FirstLook.fits(input.early, first)
          ? Effect.succeed(input.early)
          : FirstLook.at(input, first),
        L1Fees.ofOps(input.context, input.from, ops)
      ],
      { concurrency: "unbounded" }
    )
    let { report } = looked
    if (!input.declared && report.measures.some(LensEstimation.isStarved)) {
      grant = FirstLook.modest(cap)
      const again = first.map((each) => ({ ...each, ...grant }))
      report = yield* LensEstimation.look(input, again, new Map(), accounts)
    }
    const funds = Funding.found(ops, accounts, report.wallets)
    const sequences = new Map<number, bigint>()
    const keys = [...new Set(ops.map(({ nonce }) => Nonce.keyOf(nonce)))]
    for (const { index, op } of drafts) {
      const state = report.wallets[accounts.indexOf(op.sender)]
      if (state !== undefined)
        sequences.set(index, state.sequences[keys.indexOf(Nonce.keyOf(op.nonce))] ?? 0n)
    }

    let leastPreVerification: ReadonlyArray<bigint> = []
    const applied = (measures: ReadonlyArray<GasLens.Measure>) =>
      drafts.map((draft, position) => {
        const measure = measures[position]
        const priced = (l1Gas: bigint) =>
          measure === undefined
            ? draft.op
            : withLimits(input, draft, measure, l1Gas, leastPreVerification[position] ?? 0n)
        // The chain's operator takes his part of the gas that the limits allow; what pays for that part is no gas used.
        const allowed = Gas.requiredPrefund(version, { ...priced(0n), maxFeePerGas: 1n })
        const fee = l1Fees[position]?.(allowed) ?? { wei: 0n, gas: 0n }
        const op = priced(fee.gas)
        return { ...draft, op, prefund: Gas.requiredPrefund(version, op), measure, l1Fee: fee.wei }
      })
    let current = applied(report.measures.map(judged(grant, cap)))
    if (!input.declared && connection.profile.remoteBundler !== null) {
      leastPreVerification = yield* RemoteGas.leastPreVerificationGas(
        input.context,
        current.map(({ index, op }) => ({
          ...op,
          nonce: Nonce.make(Nonce.keyOf(op.nonce), sequences.get(index) ?? 0n)
        })),
        LensEstimation.toOverrides(input.extra ?? {})
      )
      current = applied(report.measures.map(judged(grant, cap)))
    }
    const lacks = Funding.lacks(version, current, funds)
    const guessed = Funding.paying(version, looked.trials, funds)
    const misguessed = Funding.paying(version, current, funds).some(
      (pays, position) => pays !== guessed[position]
    )
    const forMoney = current.some(
      ({ measure, value }, position) =>
        (lacks[position] ?? 0n) > 0n ||
        measure?.stage === "prefund" ||
        (measure?.stage === "call" && (value > 0n || measure.shortfall > 0n))
    )
    if (!input.declared && (misguessed || forMoney)) {
      const balances = new Map<Address, bigint>()
      for (const [position, { op, prefund, value }] of current.entries())
        if ((lacks[position] ?? 0n) > 0n && Funding.paymasterOf(version, op) === null)
          balances.set(
            op.sender,
            (balances.get(op.sender) ?? funds.available.get(op.sender) ?? 0n) + prefund + value
          )
      report = yield* LensEstimation.look(
        input,
        current.map((each, position) => {
          const call = each.measure?.stage === "call" ? retryCallGas : 0n
          return {
            ...each,
            ...grant,
            op: drafts[position]?.op ?? each.op,
            prefund: each.prefund + call * each.op.maxFeePerGas
          }
        }),
        balances
      )
      current = applied(report.measures.map(judged(grant, cap)))
    }

    const failed = new Map<number, ElementFailure>()
    const unfunded = Funding.failures(version, current, funds)
    const estimated: Array<Estimated> = []
    const stopped: Array<Effect.Effect<void, never, ChainFacts>> = []
    for (const [position, { measure, ...each }] of current.entries()) {
      const lack = unfunded.get(position)
      if (lack !== undefined) failed.set(each.index, lack)
      else if (measure === undefined) failed.set(each.index, elementFailure("execution_failed"))
      else if (measure.stage !== "ok") {
        const callGas = input.declared ? each.op.callGasLimit : grant.callGas
        stopped.push(
          Effect.map(
            stageFailure(input, each, measure, callGas),
            (failure) => void failed.set(each.index, failure)
          )
        )
      } else {
        const why = PaymasterFailure.objection(version, each.op, measure, report.block.timestamp)
        if (why === null) estimated.push({ ...each, returned: measure.data })
        else
          failed.set(
            each.index,
            elementFailure("execution_failed", Reasons.text("reverted", { reason: why }))
          )
      }
    }
    yield* Effect.all(stopped, { concurrency: "unbounded" })
    const { block, implementation } = report
    return { ...funds, estimated, failed, sequences, implementation, timestamp: Number(block.timestamp) }
  })
