import * as Arr from "effect/Array"
import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Revert from "../../../domain/abi/Revert.js"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import type * as GasLens from "../../../domain/erc4337/gas/GasLens.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import type * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import { type Failure, unavailable } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import * as Funding from "../../payers/Funding.js"
import * as PaymasterFailure from "../../payers/PaymasterFailure.js"
import type { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import * as InitialSimulation from "./InitialSimulation.js"
import * as L1Fees from "./L1Fees.js"
import * as LensEstimation from "./LensEstimation.js"
import * as RemoteGas from "./RemoteGas.js"
import * as SilentRevert from "./SilentRevert.js"

/**
 * Measures ops with the gas lens, and sets their limits: `Gas.meteredLimits` for the limits that the EntryPoint meters,
 * `Gas.preVerificationGas` for the part that it does not.
 *
 * Gotchas: a list of ops may take three simulations. The second has smaller grants, for nodes that stop the first. The third
 * has the real prefunds.
 */

/** A list of ops to measure. */
export interface Input extends InitialSimulation.Input {
  readonly revert: (data: Hex.Hex) => string
  /** An initial simulation requested earlier; it is used if it fits. */
  readonly early?: InitialSimulation.InitialSimulation | null
}

/** An op with its limits, and its call's return data in the last simulation. */
export interface Estimated extends InitialSimulation.Draft {
  readonly returned: Hex.Hex
  /** Wei that the EntryPoint demands from the op's wallet or paymaster before it runs the op. */
  readonly prefund: bigint
  /** Possible layer 1 fee of the submitter for the op's data, wei; the op's preVerificationGas refunds it. */
  readonly l1Fee: bigint
}

/** The measured list: each draft is in `estimated` or in `failed`. */
export interface Estimate extends Funding.Funds {
  readonly estimated: ReadonlyArray<Estimated>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Sequence of each draft's nonce key, by index, before any of the drafts. */
  readonly sequences: ReadonlyMap<number, bigint>
  readonly implementation: GasLens.Report["implementation"]
  /** Timestamp of the block of the measurement, Unix seconds. */
  readonly timestamp: number
}

/** Extra gas for a call that failed for lack of funds, on top of its use, in the trial with the right prefund. */
const retryCallGas = 200_000n

/** The op with the measured limits, including the caller's buffer. */
const withLimits = (
  input: Input,
  draft: InitialSimulation.Draft,
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

/** A call that used up a grant below the cap counts as starved: with the cap it may succeed. */
const judged =
  (grant: LensEstimation.Grant, cap: bigint) =>
  (measure: GasLens.Measure): GasLens.Measure =>
    grant.callGas < cap && measure.stage === "call" && measure.callGas * 32n > grant.callGas * 31n
      ? { ...measure, stage: "starved" }
      : measure

/** Reason for a call's failure without revert data; `most` is the gas that it was given. */
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
  { op }: InitialSimulation.Draft,
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
    const undecoded = Revert.unreadableData(data, input.revert(data))
    return elementFailure(
      "execution_failed",
      Reasons.text("reverted", { reason }),
      undecoded === null ? {} : { data: undecoded }
    )
  })

/** One estimate in progress: its trials, and the node's reports. */
interface Progress {
  readonly input: Input
  /** The ops without limits, with their payers' parts. */
  readonly trials: ReadonlyArray<InitialSimulation.InitialTrial>
  readonly l1Fees: ReadonlyArray<L1Fees.FeeOf>
  /** Wallets and paymasters, in the order of the report. */
  readonly accounts: ReadonlyArray<Address>
  readonly initial: InitialSimulation.InitialSimulation
  /** Funds of the accounts, see `accounts`. */
  states: ReadonlyArray<GasLens.WalletState>
  grant: LensEstimation.Grant
  report: GasLens.Report
  leastPreVerification: ReadonlyArray<bigint>
  /** The ops with the limits of the last report; null: not computed. */
  limited: ReadonlyArray<Limited> | null
  /** The node's refusal to simulate the list; null: none. */
  refused: Failure | null
}

type Limited = InitialSimulation.Draft & {
  readonly prefund: bigint
  readonly measure: GasLens.Measure | undefined
  readonly l1Fee: bigint
}

const limit = ({
  grant,
  input,
  l1Fees,
  leastPreVerification,
  report,
  trials
}: Progress): ReadonlyArray<Limited> => {
  const { connection, version } = input.context
  const measured = judged(grant, connection.profile.caps.transactionGas)
  return trials.map(({ index, op: draft, value }, position) => {
    const reported = report.measures[position]
    const measure = reported === undefined ? undefined : measured(reported)
    const priced = (l1Gas: bigint) =>
      measure === undefined
        ? draft
        : withLimits(input, { index, op: draft, value }, measure, l1Gas, leastPreVerification[position] ?? 0n)
    const uncharged = priced(0n)
    // The chain's operator charges for gas that the limits allow, excluding the gas that pays for this charge.
    const fee = l1Fees[position]?.(Gas.requiredPrefund(version, { ...uncharged, maxFeePerGas: 1n })) ?? {
      wei: 0n,
      gas: 0n
    }
    const op = fee.gas === 0n ? uncharged : priced(fee.gas)
    return { index, op, value, prefund: Gas.requiredPrefund(version, op), measure, l1Fee: fee.wei }
  })
}

const currentOf = (one: Progress): ReadonlyArray<Limited> => {
  one.limited ??= limit(one)
  return one.limited
}

const opsOf = ({ trials }: Pick<Progress, "trials">) => trials.map(({ op }) => op)

const fundsIn = (one: Progress): Funding.Funds => Funding.found(opsOf(one), one.accounts, one.states)

/** Sequence of each draft's nonce key, before any of the drafts. */
const sequencesIn = ({ accounts, states, trials }: Progress): ReadonlyMap<number, bigint> => {
  const keys = [...new Set(trials.map(({ op }) => Nonce.keyOf(op.nonce)))]
  return new Map(
    trials.flatMap(({ index, op }) => {
      const state = states[accounts.indexOf(op.sender)]
      return state === undefined
        ? []
        : [[index, state.sequences[keys.indexOf(Nonce.keyOf(op.nonce))] ?? 0n] as const]
    })
  )
}

/** The second simulation, for ops whose first one assumed the wrong funding; null: none is needed. */
const secondOf = (one: Progress) => {
  const current = currentOf(one)
  const { grant, initial, input } = one
  const { version } = input.context
  if (input.declared) return null
  const funds = fundsIn(one)
  const lacks = Funding.lacks(version, current, funds)
  const guessed = Funding.selfFunded(version, initial.trials, funds)
  const isMisguessed = Funding.selfFunded(version, current, funds).some(
    (pays, position) => pays !== guessed[position]
  )
  const isForMoney = current.some(
    ({ measure, value }, position) =>
      (lacks[position] ?? 0n) > 0n ||
      measure?.stage === "prefund" ||
      (measure?.stage === "call" && (value > 0n || measure.shortfall > 0n))
  )
  if (!isMisguessed && !isForMoney) return null
  const balances = new Map<Address, bigint>()
  for (const [position, { op, prefund, value }] of current.entries())
    if ((lacks[position] ?? 0n) > 0n && Funding.paymasterOf(version, op) === null)
      balances.set(
        op.sender,
        (balances.get(op.sender) ?? funds.available.get(op.sender) ?? 0n) + prefund + value
      )
  const trials = current.map((each, position) => {
    const call = each.measure?.stage === "call" ? retryCallGas : 0n
    return {
      ...each,
      ...grant,
      op: one.trials[position]?.op ?? each.op,
      prefund: each.prefund + call * each.op.maxFeePerGas
    }
  })
  return { balances, trials }
}

const conclude = (one: Progress): Effect.Effect<Estimate, Failure, ChainFacts> =>
  Effect.gen(function* () {
    if (one.refused !== null) return yield* Effect.fail(one.refused)
    const current = currentOf(one)
    const { grant, input, report } = one
    const { version } = input.context
    const funds = fundsIn(one)
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
    if (stopped.length > 0) yield* Effect.all(stopped, { concurrency: "unbounded" })
    const { block, implementation } = report
    return {
      ...funds,
      estimated,
      failed,
      sequences: sequencesIn(one),
      implementation,
      timestamp: Number(block.timestamp)
    }
  })

const take = (one: Progress, report: Result.Result<GasLens.Report, Failure>): void => {
  if (Result.isFailure(report)) one.refused = report.failure
  else {
    one.report = report.success
    one.limited = null
  }
}

const open = (all: ReadonlyArray<Progress>): ReadonlyArray<Progress> =>
  all.filter(({ refused }) => refused === null)

/** Repeats a simulation for some of the lists, and replaces their reports. */
const simulateAgain = (
  view: LensEstimation.View,
  some: ReadonlyArray<Progress>,
  questionOf: (one: Progress) => LensEstimation.Question
): Effect.Effect<void, Failure, ChainFacts> =>
  some.length === 0
    ? Effect.void
    : Effect.map(LensEstimation.simulateEach(view, some.map(questionOf)), (reports) => {
        for (const [place, one] of some.entries()) {
          const report = reports[place]
          if (report !== undefined) take(one, report)
        }
      })

/** The layer 1 fees of each list's ops. */
const feesOf = (
  view: Input,
  all: ReadonlyArray<ReadonlyArray<UserOperation.UserOperation>>
): Effect.Effect<ReadonlyArray<Result.Result<ReadonlyArray<L1Fees.FeeOf>, Failure>>, never, ChainFacts> =>
  view.context.connection.profile.l1Fee === null
    ? Effect.succeed(all.map(() => Result.succeed([])))
    : Effect.forEach(all, (ops) => Effect.result(L1Fees.ofOps(view.context, view.from, ops)), {
        concurrency: "unbounded"
      })

/** A list whose trials are ready, and its earlier simulation, if it fits them. */
interface Begun {
  readonly input: Input
  readonly trials: ReadonlyArray<InitialSimulation.InitialTrial>
  readonly early: InitialSimulation.InitialSimulation | null
}

const begin = (input: Input) =>
  Effect.map(Effect.result(InitialSimulation.trials(input)), (made) =>
    Result.map(made, (trials): Begun => {
      const early = input.early ?? null
      return { input, trials, early: early !== null && InitialSimulation.fits(early, trials) ? early : null }
    })
  )

const progressOf = (
  { early, input, trials }: Begun,
  l1Fees: ReadonlyArray<L1Fees.FeeOf>,
  report: GasLens.Report
): Progress => ({
  input,
  trials,
  l1Fees,
  accounts: Funding.payers(input.context.version, opsOf({ trials })),
  initial: early ?? { trials, report },
  states: report.wallets,
  grant: InitialSimulation.generous(input.context.connection.profile.caps.transactionGas),
  report,
  leastPreVerification: [],
  limited: null,
  refused: null
})

/** Simulates the lists that have no earlier simulation together, with generous grants. */
const simulateFirst = (view: Input, lists: ReadonlyArray<Result.Result<Begun, Failure>>) =>
  Effect.gen(function* () {
    const begun = Arr.getSuccesses(lists)
    const unseen = begun.filter(({ early }) => early === null)
    const [reports, fees] = yield* Effect.all(
      [
        LensEstimation.simulateEach(
          view,
          unseen.map(({ trials }) => InitialSimulation.question(view, trials))
        ),
        feesOf(view, begun.map(opsOf))
      ],
      { concurrency: "unbounded" }
    )
    const reportOf = new Map(unseen.map((one, position) => [one, reports[position]]))
    const feesOfList = new Map(begun.map((one, position) => [one, fees[position]]))
    return lists.map((list) =>
      Result.flatMap(list, (one) =>
        Result.flatMap(feesOfList.get(one) ?? Result.succeed([]), (l1Fees) => {
          const report = one.early === null ? reportOf.get(one) : Result.succeed(one.early.report)
          return Result.map(report ?? Result.fail(unavailable()), (first) => progressOf(one, l1Fees, first))
        })
      )
    )
  })

/** Simulates lists again, with modest grants, that the node could not simulate with generous ones. */
const simulateStarved = (view: Input, all: ReadonlyArray<Progress>) =>
  Effect.gen(function* () {
    const starved = all.filter(
      ({ input, report }) => !input.declared && report.measures.some(LensEstimation.isStarved)
    )
    for (const one of starved)
      one.grant = InitialSimulation.modest(view.context.connection.profile.caps.transactionGas)
    yield* simulateAgain(view, starved, ({ accounts, grant, trials }) => ({
      trials: trials.map((each) => ({ ...each, ...grant })),
      wallets: accounts
    }))
    for (const one of starved) one.states = one.report.wallets
  })

/** Asks a remote bundler for the least preVerificationGas that it accepts. */
const askBundler = (view: Input, all: ReadonlyArray<Progress>) =>
  view.declared || view.context.connection.profile.remoteBundler === null
    ? Effect.void
    : Effect.forEach(
        all,
        (one) => {
          const sequences = sequencesIn(one)
          return Effect.map(
            RemoteGas.leastPreVerificationGas(
              view.context,
              currentOf(one).map(({ index, op }) => ({
                ...op,
                nonce: Nonce.make(Nonce.keyOf(op.nonce), sequences.get(index) ?? 0n)
              })),
              LensEstimation.toOverrides(view.extra ?? {})
            ),
            (least) => {
              one.leastPreVerification = least
              one.limited = null
            }
          )
        },
        { discard: true }
      )

const simulateSecond = (view: Input, all: ReadonlyArray<Progress>) =>
  Effect.gen(function* () {
    const seconds = new Map(
      all.flatMap((one) => {
        const second = secondOf(one)
        return second === null ? [] : [[one, second] as const]
      })
    )
    const ordinary = [...seconds.keys()].filter((one) => seconds.get(one)?.balances.size === 0)
    yield* simulateAgain(view, ordinary, (one) => ({ trials: seconds.get(one)?.trials ?? [] }))
    // These change wallet balances, and overrides hold for a whole call.
    for (const [one, { balances, trials }] of seconds)
      if (balances.size > 0)
        take(one, yield* Effect.result(LensEstimation.simulate(view, { trials }, balances)))
  })

/**
 * Measures lists of ops and sets the lowest limits that give the same results as generous ones. Each list runs in
 * order, each op on the state after its predecessors; lists do not see each other. Inputs may differ only in `drafts`,
 * `revert` and `early`. All lists share one simulation. A list that the node cannot simulate with generous grants is
 * simulated again with modest ones. A list has a second simulation if its guessed prefund was on the wrong side of a
 * deposit, if an op failed for money, or if a wallet lacks funds (so that the lack is exact).
 */
export const estimateEach = (
  inputs: ReadonlyArray<Input>
): Effect.Effect<ReadonlyArray<Result.Result<Estimate, Failure>>, Failure, BundlerRpc | ChainFacts> =>
  Effect.gen(function* () {
    const [view] = inputs
    if (view === undefined) return []
    const lists = yield* Effect.forEach(inputs, begin)
    const simulated = yield* simulateFirst(view, lists)
    const all = Arr.getSuccesses(simulated)
    yield* simulateStarved(view, all)
    yield* askBundler(view, open(all))
    yield* simulateSecond(view, open(all))
    return yield* Effect.forEach(simulated, (one) =>
      Effect.result(Effect.flatMap(Effect.fromResult(one), conclude))
    )
  })

/** Measures one list, see `estimateEach`. */
export const estimate = (input: Input): Effect.Effect<Estimate, Failure, BundlerRpc | ChainFacts> =>
  Effect.flatMap(estimateEach([input]), ([only]) =>
    only === undefined ? Effect.die(new Error("a list has an estimate")) : Effect.fromResult(only)
  )
