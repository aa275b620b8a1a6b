import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Bundle, Bundler, type BundlerError, type Landed } from "../../application/ports/Bundler.js"
import type { Receipt } from "../../application/ports/ChainRpc.js"
import * as Keccak from "../../domain/evm/Keccak.js"

/** What becomes of a bundle; `position` counts the bundles from 0. */
export type Outcome = (bundle: Bundle, position: number) => Effect.Effect<Landed, BundlerError>

/** A receipt of a transaction that never was: every figure in it is made of the bundle. */
export const receipt = (bundle: Bundle, position: number): Receipt => ({
  txHash: Keccak.hashText(`transaction ${position} ${bundle.ops.map((op) => op.userOpHash).join(" ")}`),
  success: true,
  blockNumber: BigInt(position + 1),
  blockHash: Keccak.hashText(`block ${position}`),
  gasUsed: bundle.gasLimit,
  cumulativeGasUsed: bundle.gasLimit,
  effectiveGasPrice: bundle.prices.maxFeePerGas,
  from: bundle.submitter.address,
  logs: []
})

/** Every op of the bundle succeeds, in one transaction. */
export const landAll: Outcome = (bundle, position) =>
  Effect.sync(() => {
    const mined = receipt(bundle, position)
    return {
      receipt: mined,
      outcomes: new Map(
        bundle.ops.map((op) => [op.userOpHash, { success: true, txHash: mined.txHash, revertData: null }])
      )
    }
  })

/** The bundles that a `Bundler` of this module was given, oldest first. */
export class Submitted extends Context.Tag("castellan/memory/Submitted")<
  Submitted,
  Effect.Effect<ReadonlyArray<Bundle>>
>() {}

/** A bundler without a chain: it keeps what it is given and says at once what became of it. */
export const make = (
  outcome: Outcome = landAll
): Effect.Effect<{
  readonly bundler: Context.Tag.Service<typeof Bundler>
  readonly submitted: Context.Tag.Service<typeof Submitted>
}> =>
  Effect.sync(() => {
    const bundles: Array<Bundle> = []
    return {
      bundler: {
        submit: (bundle) => Effect.suspend(() => outcome(bundle, bundles.push(bundle) - 1))
      },
      submitted: Effect.sync(() => [...bundles])
    }
  })

export const layerWith = (outcome: Outcome): Layer.Layer<Bundler | Submitted> =>
  Layer.effectContext(
    Effect.map(make(outcome), ({ bundler, submitted }) =>
      Context.make(Bundler, bundler).pipe(Context.add(Submitted, submitted))
    )
  )

/** Lands everything. */
export const layer: Layer.Layer<Bundler | Submitted> = layerWith(landAll)
