import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import { elementFailure } from "../../failures/Elements.js"
import type { Failure } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import type { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import * as Estimation from "../estimate/Estimation.js"
import * as Fit from "./Fit.js"
import * as Links from "./Links.js"
import * as Sift from "./Sift.js"

/** Measures limits of sifted calls, and checks that connected calls fit into a transaction. */

export interface Measured extends Sift.Sifted {
  readonly order: ReadonlyArray<number>
  readonly estimate: Estimation.Estimate
}

/** Gas limits far below a transaction's bound, whatever their data cost: no further check is needed. */
const isSmall = (
  { context: { buffers }, snapshot: { gasBound } }: Sift.Input,
  { op }: Fit.Fitting
): boolean =>
  2n * Gas.overshoot(op.callGasLimit + op.verificationGasLimit + op.preVerificationGas, buffers.transaction) <
  gasBound

/** The ops of a measured batch that are too large for a transaction, and whether another order would help. */
const tooLargeOf = (input: Sift.Input, { dependencies, estimate, failed }: Measured) => {
  const left = estimate.estimated.filter(({ index }) => !failed.has(index))
  const isLinked = Dependencies.any(dependencies)
  if (!isLinked && left.every((each) => isSmall(input, each))) return { tooLarge: [], scattered: false }
  return Fit.split(input, input.snapshot, left, dependencies)
}

const refuseTooLarge = (measured: Measured, tooLarge: ReadonlyArray<number>): void => {
  const { dependencies, failed } = measured
  for (const index of tooLarge)
    failed.set(
      index,
      elementFailure(
        "too_large_to_bundle",
        dependencies.some((on, each) => (each === index && on !== null) || on === index)
          ? Reasons.text("dependentGas")
          : undefined
      )
    )
  Links.failDependants(dependencies, failed)
}

/** A batch with executable calls; `place`: its position among all batches. */
interface Todo {
  readonly sifted: Sift.Sifted
  readonly order: ReadonlyArray<number>
  readonly place: number
}

type ByPlace = Map<number, Result.Result<Measured, Failure>>

/** Measures batches in one simulation, each in its given order. */
const measure = (
  input: Sift.Input,
  todo: ReadonlyArray<Todo>
): Effect.Effect<ByPlace, Failure, BundlerRpc | ChainFacts> =>
  Effect.gen(function* () {
    const drafts = todo.map(({ order, place, sifted }) =>
      Sift.draft(input, sifted, order, input.early?.[place] ?? null)
    )
    const estimates = yield* Estimation.estimateEach(drafts)
    const measured: ByPlace = new Map()
    for (const [position, { order, place, sifted }] of todo.entries()) {
      const estimated = estimates[position]
      if (estimated === undefined) continue
      const own = Result.map(estimated, (estimate): Measured => {
        const failed = new Map(sifted.failed)
        Links.fail(sifted.dependencies, order, estimate.failed, failed)
        return { ...sifted, failed, order, estimate }
      })
      measured.set(place, own)
    }
    return measured
  })

/** Measures batches, by place. Ops too large for a transaction fail. */
export const all = (
  input: Sift.Input,
  todo: ReadonlyArray<Todo>
): Effect.Effect<ReadonlyMap<number, Result.Result<Measured, Failure>>, Failure, BundlerRpc | ChainFacts> =>
  Effect.gen(function* () {
    const measured = yield* measure(input, todo)
    // Reorder batches that do not fit into one transaction in the order of the request.
    const scattered: Array<Todo> = []
    for (const { place, sifted } of todo) {
      const one = measured.get(place)
      if (one === undefined || Result.isFailure(one)) continue
      const { scattered: isScattered, tooLarge } = tooLargeOf(input, one.success)
      const { dependencies, willing } = sifted
      if (isScattered)
        scattered.push({ place, sifted, order: Dependencies.orderByTree(dependencies, willing.keys()) })
      else if (tooLarge.length > 0) refuseTooLarge(one.success, tooLarge)
    }
    for (const [place, one] of yield* measure({ ...input, early: [] }, scattered)) {
      if (Result.isSuccess(one)) refuseTooLarge(one.success, tooLargeOf(input, one.success).tooLarge)
      measured.set(place, one)
    }
    return measured
  })
