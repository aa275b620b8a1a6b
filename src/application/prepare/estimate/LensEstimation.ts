import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as GasLens from "../../../domain/erc4337/gas/GasLens.js"
import * as LensBatch from "../../../domain/erc4337/gas/LensBatch.js"
import * as LensOverrides from "../../../domain/erc4337/gas/LensOverrides.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as PaymasterData from "../../../domain/erc4337/paymaster/PaymasterData.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import * as Proof from "../../../domain/signature/Proof.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import { refusal } from "../../chain/Connection.js"
import { type Failure, unprocessable } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import type { ChainRpcError, StateOverride } from "../../ports/chain/ChainRpc.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import type { OpContext } from "../OpContext.js"
import * as FallbackEstimation from "./FallbackEstimation.js"

/**
 * Runs ops through the gas lens, whose code replaces the EntryPoint's for one `eth_call`. `Estimation` turns the
 * figures into limits. `FallbackEstimation` serves nodes without state overrides.
 */

/** The caller of a simulation, and its state. */
export interface View {
  readonly context: OpContext
  readonly entryPointCode: Hex.Hex
  /** The submitting EOA (tx.origin). */
  readonly from: Address
  readonly extra?: Readonly<Record<string, LensOverrides.AccountOverride>>
  /** The ops carry their final limits, which are only tried, not measured. */
  readonly declared: boolean
}

/** Gas for an op's frames during the measurement. */
export interface Grant {
  /** For creation and validation together; on v0.6 also for the paymaster. */
  readonly verificationGas: bigint
  readonly callGas: bigint
  /** For the paymaster's frames, from v0.7 on. */
  readonly paymaster: PaymasterData.Limits
}

export interface Trial extends Grant {
  readonly op: UserOperation.UserOperation
  /** Wei demanded from the payer. */
  readonly prefund: bigint
}

/** No node gives one call more gas than this. */
const lensGas = 400_000_000n

export const toOverrides = (
  overrides: Readonly<Record<string, LensOverrides.AccountOverride>>
): ReadonlyMap<Address, StateOverride> =>
  new Map(
    Object.entries(overrides).map(([address, { balance, code, stateDiff }]) => [
      address as Address,
      {
        ...(balance !== undefined && { balance: BigInt(balance) }),
        ...(code !== undefined && { code }),
        ...(stateDiff !== undefined && { stateDiff: stateDiff as StateOverride["stateDiff"] & object })
      }
    ])
  )

/** The lens's overrides for an EntryPoint with this code; most simulations share them. Costly to make. */
const usual = new Lru<
  Address,
  { readonly code: Hex.Hex; readonly overrides: ReadonlyMap<Address, StateOverride> }
>(16)

const overridesOf = (
  { context: { entryPoint }, entryPointCode }: View,
  extra: Readonly<Record<string, LensOverrides.AccountOverride>>
): ReadonlyMap<Address, StateOverride> => {
  const make = () => toOverrides(LensOverrides.overrides({ entryPoint, entryPointCode, extra }))
  if (Object.keys(extra).length > 0) return make()
  const known = usual.get(entryPoint)
  if (known !== undefined && known.code === entryPointCode) return known.overrides
  const overrides = make()
  usual.set(entryPoint, { code: entryPointCode, overrides })
  return overrides
}

/** Whether the simulation had too little gas to judge the op. */
export const isStarved = ({ stage }: GasLens.Measure): boolean => stage === "starved"

const spentMoreThanGiven = (measure: GasLens.Measure): boolean =>
  [
    measure.creationGas,
    measure.validationGas,
    measure.bookkeepingGas,
    measure.callGas,
    measure.paymasterGas,
    measure.postOpGas,
    measure.callLimit,
    measure.paymasterLimit,
    measure.postOpLimit
  ].some((gas) => gas > lensGas)

const senseless = new GasLens.GasLensError({ reason: "its figures make no sense" })

const paymasterOf = ({ version }: OpContext, { op, paymaster }: Trial): GasLens.PaymasterProbe | null => {
  const parts = PaymasterData.read(version, op.paymasterAndData)
  return parts === null
    ? null
    : {
        address: parts.paymaster,
        validationGas: paymaster.verificationGasLimit,
        postOpGas: paymaster.postOpGasLimit,
        feePerGas: BigInt.asUintN(128, op.maxFeePerGas)
      }
}

const probeOf = (context: OpContext, trial: Trial): GasLens.Probe => {
  const { callGas, op, prefund, verificationGas } = trial
  const { chainId, entryPoint, version } = context
  const hash = UserOperation.hash(version, entryPoint, chainId, op)
  const signature = Proof.challenge(op.signature, hash)
  return {
    sender: op.sender,
    nonce: op.nonce,
    initCode: op.initCode,
    validateCall: UserOperation.validateCall(version, { ...op, signature }, hash),
    callData: op.callData,
    requiredPrefund: prefund,
    verificationGas,
    callGas,
    paymaster: paymasterOf(context, trial)
  }
}

export interface Question {
  readonly trials: ReadonlyArray<Trial>
  /** Distinct wallets and paymasters whose funds and nonces are reported: a row holds every key. */
  readonly wallets?: ReadonlyArray<Address>
}

const requestOf = ({ context, declared }: View, { trials, wallets = [] }: Question) => ({
  entryPoint: context.entryPoint,
  beacon: context.formula.beacon,
  declared,
  wallets,
  nonceKeys: [...new Set(trials.map(({ op }) => Nonce.keyOf(op.nonce)))],
  probes: trials.map((trial) => probeOf(context, trial))
})

const unavailable = ({ reason }: GasLens.GasLensError): Failure =>
  unprocessable("node_refused", [
    { path: "settings.rpc", message: Reasons.text("nodeWithoutOverrides", { problem: reason }) }
  ])

/** A report that passes the plausibility checks. */
const accept = (
  { context: { chainId } }: View,
  report: Result.Result<GasLens.Report, GasLens.GasLensError>
): Result.Result<GasLens.Report, Failure> =>
  Result.flatMap(Result.mapError(report, unavailable), (decoded): Result.Result<GasLens.Report, Failure> => {
    if (decoded.chainId !== chainId)
      return Result.fail(
        unprocessable("node_refused", [
          {
            path: "settings.rpc",
            message: Reasons.text("nodeOfOtherChain", { chain: decoded.chainId, expected: chainId })
          }
        ])
      )
    // More than the available gas: limits computed from it would not fit their fields.
    return decoded.measures.some(spentMoreThanGiven)
      ? Result.fail(unavailable(senseless))
      : Result.succeed(decoded)
  })

const plainly = (view: View, request: ReturnType<typeof requestOf>) =>
  Effect.mapError(
    FallbackEstimation.measure(view.context.connection.chain, request),
    refusal(view.context.connection.trust)
  )

/** Simulates the ops in order, each on the state after its predecessors, as the EntryPoint would run them. */
export const simulate = (
  view: View,
  question: Question,
  /** Balances that replace these wallets' own. */
  balances: ReadonlyMap<Address, bigint> = new Map()
): Effect.Effect<GasLens.Report, Failure, ChainFacts> =>
  Effect.gen(function* () {
    const facts = yield* ChainFacts
    const { connection, entryPoint } = view.context
    const request = requestOf(view, question)
    const { chain, trust } = connection
    if (facts.isPlain(chain)) return yield* plainly(view, request)
    const data = yield* Effect.fromResult(Result.mapError(GasLens.encodeCall(request), unavailable))
    const extra: Record<string, LensOverrides.AccountOverride> = { ...view.extra }
    for (const [wallet, balance] of balances)
      extra[wallet] = { ...extra[wallet], balance: Uint.toQuantity(balance) }
    const answer = yield* Effect.result(
      facts.generousCall(chain, { from: view.from, to: entryPoint, data }, overridesOf(view, extra))
    )
    if (FallbackEstimation.isWithoutOverrides(answer)) {
      yield* facts.notePlain(chain)
      return yield* plainly(view, request)
    }
    const { data: returned } = yield* Effect.fromResult(Result.mapError(answer, refusal(trust)))
    return yield* Effect.fromResult(accept(view, GasLens.decode(returned, request)))
  })

interface Asked {
  readonly place: number
  readonly question: Question
  readonly request: GasLens.Request
  readonly data: Hex.Hex
}

/** Most simulations in one call. Many nodes grant a call 50 million gas, which is enough for this many usual ones. */
const mostSimulations = 32

/** Most hex digits of calldata in one call, in addition to the code of lens and EntryPoint. */
const mostDigits = 262_144

/** The node refuses the whole call for a reason that may not apply to a part of it. */
const mayBeOfPart = ({ reason }: ChainRpcError): boolean =>
  reason === "rejected" || reason === "notAnRpc" || reason === "unsupported"

/** Groups queries into calls, in order. */
const callsOf = (asked: ReadonlyArray<Asked>): ReadonlyArray<ReadonlyArray<Asked>> => {
  const calls: Array<Array<Asked>> = []
  let digits = 0
  for (const each of asked) {
    const last = calls.at(-1)
    digits += each.data.length
    if (last !== undefined && last.length < mostSimulations && digits <= mostDigits) last.push(each)
    else {
      calls.push([each])
      digits = each.data.length
    }
  }
  return calls
}

/**
 * Runs several independent simulations in as few calls as possible, and returns their reports in order. A call that the
 * node refuses as such, or where a simulation had too little gas, is halved. Only a node that does not answer fails all
 * of them.
 */
export const simulateEach = (
  view: View,
  questions: ReadonlyArray<Question>
): Effect.Effect<ReadonlyArray<Result.Result<GasLens.Report, Failure>>, Failure, ChainFacts> =>
  Effect.gen(function* () {
    const facts = yield* ChainFacts
    const { chain, trust } = view.context.connection
    const [only, ...others] = questions
    const alone = (question: Question) => Effect.result(simulate(view, question))
    if (facts.isPlain(chain) || only === undefined || others.length === 0)
      return yield* Effect.forEach(questions, alone, { concurrency: "unbounded" })
    const found = new Map<number, Result.Result<GasLens.Report, Failure>>()
    const asked: Array<Asked> = []
    for (const [place, question] of questions.entries()) {
      const request = requestOf(view, question)
      const data = GasLens.encodeCall(request)
      if (Result.isFailure(data)) found.set(place, Result.fail(unavailable(data.failure)))
      else asked.push({ place, question, request, data: data.success })
      yield* EventLoop.breathe
    }
    const overrides = overridesOf(view, view.extra ?? {})

    const halves = (some: ReadonlyArray<Asked>) => {
      const middle = Math.ceil(some.length / 2)
      return Effect.forEach([some.slice(0, middle), some.slice(middle)], ask, {
        concurrency: "unbounded",
        discard: true
      })
    }
    const ask = (some: ReadonlyArray<Asked>): Effect.Effect<void, Failure, ChainFacts> =>
      Effect.gen(function* () {
        const [first, ...more] = some
        if (first === undefined) return
        if (more.length === 0) {
          found.set(first.place, yield* alone(first.question))
          return
        }
        const call = {
          from: view.from,
          to: view.context.entryPoint,
          data: LensBatch.encode(some.map(({ data }) => data))
        }
        const answer = yield* Effect.result(facts.generousCall(chain, call, overrides))
        if (Result.isFailure(answer) && !mayBeOfPart(answer.failure))
          return yield* Effect.fail(refusal(trust)(answer.failure))
        const parts =
          Result.isSuccess(answer) && answer.success.success
            ? LensBatch.decode(answer.success.data, some.length)
            : null
        if (parts === null) return yield* halves(some)
        const again: Array<Asked> = []
        for (const [position, each] of some.entries()) {
          yield* EventLoop.breathe
          const report = GasLens.decode(parts[position] ?? Hex.empty, each.request)
          if (Result.isFailure(report) || report.success.measures.some(isStarved)) again.push(each)
          else found.set(each.place, accept(view, report))
        }
        yield* again.length === some.length ? halves(again) : ask(again)
      })
    yield* Effect.forEach(callsOf(asked), ask, { concurrency: "unbounded", discard: true })
    return questions.map((_, place) => found.get(place) ?? Result.fail(unavailable(senseless)))
  })
