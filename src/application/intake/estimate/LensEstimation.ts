import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as GasLens from "../../../domain/erc4337/gas/GasLens.js"
import * as LensOverrides from "../../../domain/erc4337/gas/LensOverrides.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as PaymasterData from "../../../domain/erc4337/paymaster/PaymasterData.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import * as Proof from "../../../domain/signature/Proof.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import { refusal } from "../../chain/Connection.js"
import type { StateOverride } from "../../ports/chain/ChainRpc.js"
import { type Failure, unprocessable } from "../../request/Failure.js"
import * as Reasons from "../../request/Reasons.js"
import type { OpContext } from "../Preparation.js"
import * as FallbackEstimation from "./FallbackEstimation.js"
import * as SharedLooks from "./SharedLooks.js"

/** Who looks, and at which state. */
export interface View {
  readonly context: OpContext
  readonly entryPointCode: Hex.Hex
  /** The EOA that will submit (tx.origin). */
  readonly from: Address
  /** State as the simulation shall see it. */
  readonly extra?: Readonly<Record<string, LensOverrides.AccountOverride>>
  /** The ops carry their final limits: nothing is measured, they are only tried. */
  readonly declared: boolean
}

/** What an op's frames are given while they are measured. */
export interface Grant {
  /** Of creation and validation together; on v0.6 of the paymaster's too. */
  readonly verificationGas: bigint
  readonly callGas: bigint
  /** Of the paymaster's frames, from v0.7 on. */
  readonly paymaster: PaymasterData.Limits
}

/** One op under a grant. */
export interface Trial extends Grant {
  readonly op: UserOperation.UserOperation
  /** Wei that who pays is asked for. */
  readonly prefund: bigint
}

/** No node gives more gas than this to one call. */
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

/** What the lens needs of an EntryPoint with this code. It is the same for most looks, and dear to write. */
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

/** Whether a look says nothing of an op because there was too little gas for it. */
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

/** The paymaster of an op, as the lens takes it. */
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
  const signature = Proof.challenged(op.signature, hash)
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

/** Tries the ops in order, each on the state after its predecessors, as the EntryPoint would run them. */
export const look = (
  view: View,
  trials: ReadonlyArray<Trial>,
  /** What these wallets shall have in the place of their balances. */
  balances: ReadonlyMap<Address, bigint> = new Map(),
  /** Wallets and paymasters whose funds and nonces shall be reported: each once, since a row holds every key. */
  wallets: ReadonlyArray<Address> = []
): Effect.Effect<GasLens.Report, Failure, ChainFacts> =>
  Effect.gen(function* () {
    const facts = yield* ChainFacts
    const { accountId, chainId, connection, entryPoint, formula } = view.context
    const unavailable = ({ reason }: GasLens.GasLensError) =>
      unprocessable("node_refused", [
        { path: "settings.rpc", message: Reasons.text("nodeWithoutOverrides", { problem: reason }) }
      ])
    const request = {
      entryPoint,
      beacon: formula.beacon,
      declared: view.declared,
      wallets,
      nonceKeys: [...new Set(trials.map(({ op }) => Nonce.keyOf(op.nonce)))],
      probes: trials.map((trial) => probeOf(view.context, trial))
    }
    const { chain, trust } = connection
    const plainly = Effect.mapError(FallbackEstimation.measure(chain, request), refusal(trust))
    if (facts.isPlain(chain)) return yield* plainly
    const data = yield* Effect.fromResult(Result.mapError(GasLens.encodeCall(request), unavailable))
    const extra: Record<string, LensOverrides.AccountOverride> = { ...view.extra }
    for (const [wallet, balance] of balances)
      extra[wallet] = { ...extra[wallet], balance: Uint.toQuantity(balance) }
    const lookThrough: SharedLooks.Look = {
      chain,
      accountId,
      from: view.from,
      entryPoint,
      overrides: overridesOf(view, extra),
      data
    }
    // Of several ops the figures go by what gas is left for running each alone.
    const isSharable = trials.length === 1 && Object.keys(extra).length === 0
    let answer = yield* Effect.result(
      isSharable ? SharedLooks.ask(facts, lookThrough) : SharedLooks.alone(facts, lookThrough)
    )
    let shared: Result.Result<GasLens.Report, GasLens.GasLensError> | null = null
    if (Result.isSuccess(answer) && answer.success.isShared) {
      shared = GasLens.decode(answer.success.data, request)
      if (Result.isFailure(shared) || shared.success.measures.some(isStarved)) {
        shared = null
        answer = yield* Effect.result(SharedLooks.alone(facts, lookThrough))
      }
    }
    if (FallbackEstimation.isWithoutOverrides(answer)) {
      yield* facts.notePlain(chain)
      return yield* plainly
    }
    const { data: told } = yield* Effect.fromResult(Result.mapError(answer, refusal(trust)))
    const report = yield* Effect.fromResult(
      Result.mapError(shared ?? GasLens.decode(told, request), unavailable)
    )
    if (report.chainId !== chainId)
      return yield* Effect.fail(
        unprocessable("node_refused", [
          {
            path: "settings.rpc",
            message: Reasons.text("nodeOfOtherChain", { chain: report.chainId, expected: chainId })
          }
        ])
      )
    // More than there was to spend: limits made of it would fit no field.
    if (report.measures.some(spentMoreThanGiven)) return yield* Effect.fail(unavailable(senseless))
    return report
  })
