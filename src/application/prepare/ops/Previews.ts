import * as Effect from "effect/Effect"
import type * as Hex from "../../../domain/primitives/Hex.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { Shown } from "../../preview/Preview.js"
import * as Simulation from "../../preview/Simulation.js"
import type { Call } from "../Call.js"
import type { Offer } from "../Offer.js"
import type { Prepared } from "../Preparation.js"
import * as Sift from "./Sift.js"

/** Calldata of the element's wallet; null: it has none. */
export const callDataOf = (call: Call): Hex.Hex | null => {
  if (call.kind === "given") return call.op.callData
  if (call.kind !== "op") return null
  const { data, target, value } = Sift.callOf(call)
  return WalletCalls.execute(target, value, data)
}

/** Previews of the prepared and the waiting elements of a request, by index. Deployments and direct transactions have none. */
export const of = (
  { calls, context, revert }: Pick<Offer, "calls" | "context" | "revert">,
  { ops, waiting }: Pick<Prepared, "ops" | "waiting">
): Effect.Effect<ReadonlyMap<number, Shown>, never, ChainFacts | ChainRpc> => {
  if (context.kind === "direct") return Effect.succeed(new Map())
  const { connection, entryPoint, version } = context
  const order = [...ops.map(({ index }) => index), ...waiting.keys()]
  const asked = order.flatMap((index): ReadonlyArray<Simulation.Op> => {
    const call = calls.find((each) => each.index === index)
    const callData = call === undefined ? null : callDataOf(call)
    if (call === undefined || callData === null) return []
    const prepared = ops.find((each) => each.index === index)
    const op = prepared === undefined || prepared.kind === "direct" ? null : prepared.unsigned
    return [{ index, wallet: call.wallet, callData, op }]
  })
  return Simulation.of({ connection, entryPoint, version, revert }, asked)
}
