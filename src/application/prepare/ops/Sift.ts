import * as Result from "effect/Result"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import * as Proof from "../../../domain/signature/Proof.js"
import * as Ledger from "../../../domain/wallet/Ledger.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import type { Failure } from "../../failures/Failure.js"
import * as Submitter from "../../payers/Submitter.js"
import * as Call from "../Call.js"
import type * as Estimation from "../estimate/Estimation.js"
import type * as InitialSimulation from "../estimate/InitialSimulation.js"
import type { OpContext } from "../OpContext.js"
import type * as Preparation from "../Preparation.js"
import * as SignerAuthorization from "../SignerAuthorization.js"
import * as OwnedWallets from "../wallets/OwnedWallets.js"
import * as Links from "./Links.js"
import * as NotBegun from "./NotBegun.js"
import * as Windows from "./Windows.js"

/** Selects the executable calls of a request, and prepares their measurement. */

export type Batch = Preparation.Batch<Call.OpCall>

export interface Input extends Preparation.Input<Call.OpCall> {
  /** Initial simulations on an earlier snapshot, one per batch, see `Prepare.initialSimulations`. */
  readonly early?: ReadonlyArray<InitialSimulation.InitialSimulation | null>
}

/** A call with the consent of enough owners among the keys. */
export interface Willing {
  readonly call: Call.OpCall
  readonly places: ReadonlyArray<number>
  readonly conditions: Conditions.Conditions
  /** A dummy proof of the real shape. */
  readonly dummy: Hex.Hex
}

export interface Sifted {
  readonly batch: Batch
  readonly dependencies: Dependencies.Dependencies
  readonly willing: Map<number, Willing>
  readonly failed: Map<number, ElementFailure>
  readonly waiting: ReadonlyMap<number, number>
}

/** Whether the call has no window except the signature's ten minutes. */
export const isTimeless = ({ window }: Pick<Call.OpCall, "window">): boolean => window === null

/** The calls that are too early at this time of the chain, with the Unix seconds that they wait for. */
export const waitingOf = (
  { connection, version }: Pick<OpContext, "connection" | "version">,
  calls: ReadonlyArray<Pick<Call.Call, "dependsOn" | "index" | "window">>,
  timestamp: number
): ReadonlyMap<number, number> => {
  if (calls.every(isTimeless)) return new Map()
  const windows = new Map(calls.map(({ index, window }) => [index, window]))
  return NotBegun.until(
    [...windows.keys()],
    (index) => windows.get(index) ?? null,
    Call.dependencies(calls),
    {
      timestamp,
      isApart: connection.profile.remoteBundler !== null,
      version
    }
  )
}

/**
 * Selects the calls of a batch that can be executed now, by wallets, windows and keys. `Failure`: the whole request is
 * bad. A window that has ended makes a new request bad, but fails only its call in an accepted one.
 */
export const of = (input: Input, batch: Batch, lastSecond: number): Result.Result<Sifted, Failure> =>
  Result.gen(function* () {
    const { context, snapshot } = input
    const { connection, signers, submitter, version } = context
    const dependencies = Call.dependencies(batch.calls)
    const waiting = new Map(batch.mayWait ? waitingOf(context, batch.calls, snapshot.block.timestamp) : [])
    const { configs, failed } = yield* OwnedWallets.find(batch.calls, snapshot)
    const willing = new Map<number, Willing>()
    const bundler = Submitter.boundTo(connection.profile, submitter)
    for (const call of batch.calls) {
      const { index } = call
      const bounds = Windows.check(call.window, `operations[${index}]`, snapshot.block, version)
      const why = Result.isFailure(bounds) ? bounds.failure : null
      if (why !== null && "_tag" in why && !batch.isAccepted) return yield* Result.fail(why)
      const config = configs.get(index)
      if (config === undefined) continue
      const places = SignerAuthorization.places(config, signers)
      if (why !== null && "_tag" in why) failed.set(index, elementFailure("window_passed"))
      else if (why !== null && !waiting.has(index)) failed.set(index, why)
      else if (Result.isFailure(places)) failed.set(index, places.failure)
      else if (!waiting.has(index)) {
        const { validAfter = 0, validUntil = 0 } = call.window ?? {}
        const conditions = { validUntil: validUntil === 0 ? lastSecond : validUntil, validAfter, bundler }
        const dummy = Proof.dummyEcdsa(places.success.length)
        willing.set(index, { call, places: places.success, conditions, dummy })
      }
    }
    Links.failDependants(dependencies, failed)
    for (const index of failed.keys()) {
      willing.delete(index)
      waiting.delete(index)
    }
    return { batch, dependencies, willing, failed, waiting }
  })

export const callOf = ({ data, to, value }: Call.OpCall) => ({ target: to, value, data })

/**
 * The calls in this order for measurement, with placeholders for the names that depend on nonces, and without their
 * payer's part.
 */
export const draft = (
  { context, nonceOf, snapshot }: Pick<Input, "nonceOf" | "snapshot"> & { readonly context: OpContext },
  sifted: Pick<Sifted, "batch" | "dependencies" | "willing">,
  order: ReadonlyArray<number>,
  early: InitialSimulation.InitialSimulation | null
): Estimation.Input => {
  const ledger = Links.ledger(sifted.dependencies, context.connection)
  const links = placeholders(sifted, order)
  return {
    context,
    entryPointCode: snapshot.entryPointCode,
    from: context.submitter,
    drafts: order.flatMap((index) => {
      const own = sifted.willing.get(index)
      if (own === undefined) return []
      const { call, conditions, dummy } = own
      const { maxFeePerGas, maxPriorityFeePerGas } = snapshot.prices
      const op = {
        sender: call.wallet,
        nonce: Nonce.make(nonceOf(call).key, 0n),
        initCode: Hex.empty,
        callData: Links.callData(ledger, callOf(call), links(index)),
        callGasLimit: 0n,
        verificationGasLimit: 0n,
        preVerificationGas: 0n,
        maxFeePerGas,
        maxPriorityFeePerGas,
        paymasterAndData: Hex.empty,
        signature: Conditions.encodeSignature(conditions, dummy)
      }
      return [{ index, op, value: call.value }]
    }),
    declared: false,
    lowestPrefund: false,
    revert: sifted.batch.revert,
    early
  }
}

export const placeholders = (
  { dependencies, willing }: Pick<Sifted, "dependencies" | "willing">,
  order: ReadonlyArray<number>
) =>
  Links.of(dependencies, order, (index) => ({
    wallet: willing.get(index)?.call.wallet ?? Address.zero,
    key: Ledger.placeholder(index)
  }))

/** At an external bundler, an op that waits for another op's inclusion blocks later ops of its nonce key. */
export const order = (
  { context: { connection } }: Pick<Input, "context">,
  { dependencies, willing }: Sifted
): ReadonlyArray<number> =>
  connection.profile.remoteBundler === null
    ? Dependencies.order(dependencies, willing.keys())
    : Dependencies.orderByDepth(dependencies, willing.keys())
