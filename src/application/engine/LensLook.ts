import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Address } from "../../domain/evm/Address.js"
import type * as Hex from "../../domain/evm/Hex.js"
import * as Uint from "../../domain/evm/Uint.js"
import * as GasLens from "../../domain/op/GasLens.js"
import * as Nonce from "../../domain/op/Nonce.js"
import * as PaymasterData from "../../domain/op/PaymasterData.js"
import * as Proof from "../../domain/op/Proof.js"
import * as UserOperation from "../../domain/op/UserOperation.js"
import { type Failure, unprocessable } from "../Failure.js"
import type { StateOverride } from "../ports/ChainRpc.js"
import { refusal } from "./Connection.js"
import { Engine } from "./Engine.js"
import * as PlainLens from "./PlainLens.js"
import type { Ground } from "./Preparation.js"

/** Who looks, and at which state. */
export interface View {
  readonly ground: Ground
  readonly entryPointCode: Hex.Hex
  /** The EOA that will submit (tx.origin). */
  readonly from: Address
  /** State as the simulation shall see it. */
  readonly extra?: Readonly<Record<string, Omit<GasLens.AccountOverride, "code">>>
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
  overrides: Readonly<Record<string, GasLens.AccountOverride>>
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

const spentMoreThanGiven = (measure: GasLens.Measure): boolean =>
  [
    measure.creationGas,
    measure.validationGas,
    measure.bookkeepingGas,
    measure.callGas,
    measure.paymasterGas,
    measure.postOpGas
  ].some((gas) => gas > lensGas)

const senseless = new GasLens.GasLensError({ reason: "its figures make no sense" })

/** The paymaster of an op, as the lens takes it. */
const paymasterOf = ({ version }: Ground, { op, paymaster }: Trial): GasLens.PaymasterProbe | null => {
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

/** Tries the ops in order, each on the state after its predecessors, as the EntryPoint would run them. */
export const look = (
  view: View,
  trials: ReadonlyArray<Trial>,
  /** What these wallets shall have in the place of their balances. */
  balances: ReadonlyMap<Address, bigint> = new Map(),
  /** Wallets and paymasters whose funds and nonces shall be reported: each once, since a row holds every key. */
  wallets: ReadonlyArray<Address> = []
): Effect.Effect<GasLens.Report, Failure, Engine> =>
  Effect.gen(function* () {
    const { facts } = yield* Engine
    const { chainId, connection, entryPoint, formula, version } = view.ground
    const unavailable = ({ reason }: GasLens.GasLensError) =>
      unprocessable("node_refused", [
        { path: "settings.rpc", message: `the node cannot simulate with state overrides: ${reason}` }
      ])
    const request = {
      entryPoint,
      beacon: formula.beacon,
      wallets,
      nonceKeys: [...new Set(trials.map(({ op }) => Nonce.keyOf(op.nonce)))],
      probes: trials.map((trial) => {
        const { callGas, op, prefund, verificationGas } = trial
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
          paymaster: paymasterOf(view.ground, trial)
        }
      })
    }
    const { chain, trust } = connection
    const plainly = Effect.mapError(PlainLens.measure(chain, request), refusal(trust))
    if (facts.isPlain(chain)) return yield* plainly
    const data = yield* Either.mapLeft(GasLens.encodeCall(request), unavailable)
    const extra: Record<string, Omit<GasLens.AccountOverride, "code">> = { ...view.extra }
    for (const [wallet, balance] of balances)
      extra[wallet] = { ...extra[wallet], balance: Uint.toQuantity(balance) }
    const answer = yield* Effect.either(
      facts.generousCall(
        chain,
        { from: view.from, to: entryPoint, data },
        toOverrides(GasLens.overrides({ entryPoint, entryPointCode: view.entryPointCode, extra }))
      )
    )
    if (PlainLens.isWithoutOverrides(answer)) {
      yield* facts.notePlain(chain)
      return yield* plainly
    }
    const { data: told } = yield* Either.mapLeft(answer, refusal(trust))
    const report = yield* Either.mapLeft(GasLens.decodeResult(told), unavailable)
    if (report.chainId !== chainId)
      return yield* Effect.fail(
        unprocessable("node_refused", [
          {
            path: "settings.rpc",
            message: `the node serves chain ${report.chainId} by now, no more ${chainId}`
          }
        ])
      )
    // More than there was to spend: limits made of it would fit no field.
    if (report.measures.some(spentMoreThanGiven)) return yield* Effect.fail(unavailable(senseless))
    return report
  })
