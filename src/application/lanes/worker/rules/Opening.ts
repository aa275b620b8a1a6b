import * as Result from "effect/Result"
import * as Dependencies from "../../../../domain/erc4337/Dependencies.js"
import * as Address from "../../../../domain/primitives/Address.js"
import * as Delays from "../../../failures/Delays.js"
import type { ElementFailure } from "../../../failures/Elements.js"
import type { Failure } from "../../../failures/Failure.js"
import type { Body, Opening, PreparedOp } from "../../../ports/journal/Records.js"
import * as Call from "../../../prepare/Call.js"
import * as NotBegun from "../../../prepare/ops/NotBegun.js"
import * as Slices from "../../../prepare/ops/Slices.js"
import { type Batch, nothing, type Prepared } from "../../../prepare/Preparation.js"
import { type Obstacle, obstacle } from "./Context.js"

/** Chooses the elements of an accepted request to open next, and judges the results. Pure. */

/** Unopened elements of a request, and the batch prepared next. */
export interface Todo {
  readonly left: ReadonlyArray<Call.Call>
  /** See `Prepared`. */
  readonly waiting: ReadonlyMap<number, number>
  readonly batch: Batch
}

export const busy = obstacle("a wallet has no free nonce key")

/** Calls that are neither opened nor failed. */
export const unopenedOf = (
  { cancelled, failed, opened }: Pick<Body, "cancelled" | "failed" | "opened">,
  calls: ReadonlyArray<Call.Call>
): ReadonlyArray<Call.Call> => {
  const gone = new Set([...opened, ...failed.map(({ index }) => index)])
  return cancelled === null ? calls.filter(({ index }) => !gone.has(index)) : []
}

export const firstOf = (calls: ReadonlyArray<Call.Call>): ReadonlyArray<Call.Call> => {
  if (calls.length <= Slices.size) return calls
  const byIndex = new Map(calls.map((call) => [call.index, call]))
  const [first = []] = Slices.of(
    Call.dependencies(calls),
    [...byIndex.keys()],
    (index) => byIndex.get(index)?.wallet ?? Address.zero
  )
  return first.flatMap((index) => byIndex.get(index) ?? [])
}

/** A request's permanent failure fails each of its elements. */
const whole = (
  { batch: { calls } }: Todo,
  result: Result.Result<Prepared, Failure>
): Result.Result<Prepared, Obstacle> => {
  if (Result.isSuccess(result)) return Result.succeed(result.success)
  const { failure } = result
  if (Delays.ofFailure(failure) !== null) return Result.fail(obstacle(failure.message))
  const own = Delays.asElement(failure)
  return Result.succeed({ ...nothing, failed: new Map(calls.map(({ index }) => [index, own])) })
}

/** Result of prepared elements. A delayed element, for lack of money for example, stays unopened with its component. */
export const of = (
  todo: Todo,
  result: Result.Result<Prepared, Failure>,
  lacks: ReadonlyMap<PreparedOp, ElementFailure>,
  clock: NotBegun.Clock & { readonly now: number }
): Result.Result<Opening, Obstacle> =>
  Result.flatMap(whole(todo, result), (prepared): Result.Result<Opening, Obstacle> => {
    const { batch, left, waiting } = todo
    const { deployments, failed, funds, ops } = prepared
    const delays = [
      ...[...failed].filter(([, failure]) => Delays.isPassing(failure)),
      ...ops.flatMap((op) => {
        const lack = lacks.get(op)
        return lack === undefined ? [] : [[op.index, lack] as const]
      })
    ]
    const components = delays.length === 0 ? [] : Dependencies.components(Call.dependencies(batch.calls))
    const away = new Set(delays.map(([index]) => components[index]))
    const goes = (index: number) => delays.length === 0 || !away.has(components[index])
    const opening = {
      requestId: batch.requestId,
      ops: ops.filter(({ index }) => goes(index)),
      failed: [...failed].flatMap(([index, failure]) => (goes(index) ? [{ index, ...failure }] : [])),
      funds,
      deployments
    }
    const done = new Set([...opening.ops, ...opening.failed].map(({ index }) => index))
    const rest = left.filter(({ index }) => !done.has(index))
    const times = new Map([...waiting, ...prepared.waiting])
    if (rest.length > 0 && rest.every(({ index }) => times.has(index)))
      return Result.succeed({ ...opening, schedule: NotBegun.schedule(times, clock, clock.now) })
    const [why] = delays
    return done.size > 0
      ? Result.succeed({ ...opening, schedule: null })
      : Result.fail(why === undefined ? busy : obstacle(why[1].message))
  })
