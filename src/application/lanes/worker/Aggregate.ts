import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Aggregation from "../../../domain/erc4337/Aggregation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Words from "../../../domain/primitives/Words.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import * as Reasons from "../../failures/Reasons.js"
import type { CallResult, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { OpId } from "../../ports/journal/Records.js"
import { type Obstacle, obstacle, type SubmissionContext } from "./rules/Context.js"
import type { Sealed } from "./Sign.js"

/** Combines the signatures of a transaction's ops if they have an aggregator. */

/** One signature instead of those of a transaction's ops. */
export interface Aggregate {
  readonly aggregator: Address
  readonly signature: Hex.Hex
  /** Gas of the aggregator's verification; no op is charged for it. */
  readonly gas: bigint
}

export interface Aggregated {
  readonly ops: ReadonlyArray<Sealed>
  /** Null: each op has its own signature. */
  readonly aggregate: Aggregate | null
}

/** The aggregator rejects signatures of these ops permanently. */
export interface Refused {
  readonly _tag: "Refused"
  readonly failed: ReadonlyMap<OpId, ElementFailure>
}

const refusal = (failed: Iterable<readonly [OpId, Reasons.Text]>): Refused => ({
  _tag: "Refused",
  failed: new Map([...failed].map(([opId, why]) => [opId, elementFailure("aggregator_refused", why)]))
})

type Revert = (data: Hex.Hex) => Effect.Effect<string>

const reversal = (field: string, data: Hex.Hex, revert: Revert) =>
  Effect.flatMap(revert(data), (reason) => Effect.fail(Reasons.text("aggregatorReverted", { field, reason })))

/** Offset and length of an aggregate's part, bytes. */
const perPart = 64

/**
 * The `bytes` that a call returned; the failure names the field. Rejects an aggregate longer than the signatures: no party
 * agreed to pay for that calldata.
 */
const bytesOf = (
  { data, success }: CallResult,
  most: number,
  field: string,
  revert: Revert
): Effect.Effect<Hex.Hex, Reasons.Text> => {
  if (!success) return reversal(field, data, revert)
  const inner = Words.readBytes(Words.read(data), 0)
  if (Words.encode([Words.bytes(inner)]) !== data)
    return Effect.fail(Reasons.text("aggregatorShape", { field }))
  return Hex.size(inner) > most
    ? Effect.fail(Reasons.text("aggregatorLength", { field, given: Hex.size(inner), most }))
    : Effect.succeed(inner)
}

const bare = ({ op, seal }: Sealed) => ({
  ...op,
  signature: Hex.unsafe(op.signature.slice(0, op.signature.length - 2 * Hex.size(seal)))
})

/** Aggregates the ops' signatures, after the aggregator has validated each op. */
export const aggregate = (
  { aggregator, connection: { chain }, entryPoint, version }: SubmissionContext,
  ops: ReadonlyArray<Sealed>,
  revert: Revert
): Effect.Effect<Aggregated, Refused | Obstacle> =>
  Effect.gen(function* () {
    if (aggregator === null || ops.length === 0) return { ops, aggregate: null }
    const ask = (data: Hex.Hex) => chain.call({ from: entryPoint, to: aggregator, data })
    const node = Effect.mapError(({ message }: ChainRpcError) => obstacle(message))
    const own = ops.map(bare)
    const [each, together] = yield* node(
      Effect.all(
        [
          Effect.forEach(own, (op) => ask(Aggregation.validateOne(version, op)), {
            concurrency: "unbounded"
          }),
          ask(Aggregation.aggregate(version, own))
        ],
        { concurrency: "unbounded" }
      )
    )
    const carried: Array<Sealed> = []
    const lost: Array<readonly [OpId, Reasons.Text]> = []
    for (const [position, one] of ops.entries()) {
      const answer = each[position] ?? { success: false, data: Hex.empty }
      const most = Hex.size(own[position]?.signature ?? Hex.empty)
      const signature = yield* Effect.result(bytesOf(answer, most, "signature", revert))
      if (Result.isFailure(signature)) lost.push([one.opId, signature.failure])
      else carried.push({ ...one, op: { ...one.op, signature: signature.success } })
    }
    if (lost.length > 0) return yield* Effect.fail(refusal(lost))
    const all = Effect.mapError((why: Reasons.Text) => refusal(ops.map(({ opId }) => [opId, why])))
    const whole = "aggregated signature"
    const most = carried.reduce((sum, { op }) => sum + Hex.size(op.signature) + perPart, perPart)
    const signature = yield* all(bytesOf(together, most, whole, revert))
    const validation = yield* node(
      chain.estimateGas({
        from: entryPoint,
        to: aggregator,
        data: Aggregation.validateAll(
          version,
          carried.map(({ op }) => op),
          signature
        )
      })
    )
    if (!validation.success) return yield* all(reversal(whole, validation.data, revert))
    return {
      ops: carried.map((one) => ({
        ...one,
        op: { ...one.op, signature: Hex.concat(one.op.signature, one.seal) }
      })),
      aggregate: { aggregator, signature, gas: validation.gas }
    }
  })
