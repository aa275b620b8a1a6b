import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Dependencies from "../../domain/erc4337/Dependencies.js"
import type { ElementFailure } from "../failures/Elements.js"
import type { Failure } from "../failures/Failure.js"
import type { Budgets } from "../ports/Budgets.js"
import type { PreparedOp } from "../ports/journal/Records.js"
import * as Call from "../prepare/Call.js"
import type { Offer } from "../prepare/Offer.js"
import type { OfRequest } from "../prepare/OpContext.js"
import * as Links from "../prepare/ops/Links.js"
import * as Reservations from "../prepare/Reservations.js"
import type * as Run from "./Run.js"

/**
 * Reserves the money that a run's ops may cost parties other than their wallets, in one call. Only ops without enough funds,
 * and their dependants, fail.
 */
export const hold = (
  context: OfRequest,
  offers: ReadonlyArray<Pick<Offer, "calls">>,
  { batches, snapshot }: Run.Made
): Effect.Effect<Run.Made["batches"], Failure, Budgets> =>
  Effect.gen(function* () {
    // The signer's own transaction costs only the signer.
    if (context.kind === "direct" || snapshot === null) return batches
    const plans = batches.map((batch, place) => ({
      batch,
      ops: batch === "busy" || Result.isFailure(batch) ? [] : batch.success.ops,
      dependencies: Call.dependencies(offers[place]?.calls ?? [])
    }))
    const { balance, gasBound, prices } = snapshot
    const poor =
      balance === null
        ? new Map<PreparedOp, ElementFailure>()
        : Reservations.unaffordable(
            context,
            plans.flatMap(({ dependencies, ops }) => {
              const components = Dependencies.components(dependencies)
              return [...Map.groupBy(ops, ({ index }) => components[index] ?? index).values()]
            }),
            { balance, gasBound, prices }
          )
    const left = plans.flatMap(({ ops }) => ops.filter((op) => !poor.has(op)))
    const lacks = yield* Reservations.reserve(context, left, prices)
    if (poor.size === 0 && lacks.size === 0) return batches
    const dependent: Array<PreparedOp> = []
    const made = plans.map(({ batch, dependencies }) => {
      if (batch === "busy") return batch
      return Result.map(batch, (prepared) => {
        const failed = new Map(
          prepared.ops.flatMap((op) => {
            const failure = poor.get(op) ?? lacks.get(op)
            return failure === undefined ? [] : [[op.index, failure] as const]
          })
        )
        const left = Links.leaveOut(dependencies, prepared, failed)
        dependent.push(...prepared.ops.filter(({ index }) => left.failed.has(index) && !failed.has(index)))
        return left
      })
    })
    // Dependants of failed ops hold reservations.
    yield* Reservations.release(context, dependent)
    return made
  })
