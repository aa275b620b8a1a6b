import * as Effect from "effect/Effect"
import * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import { type Failure, invalid } from "../failures/Failure.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { Call } from "../prepare/Call.js"
import type { Offer } from "../prepare/Offer.js"
import * as Sift from "../prepare/ops/Sift.js"
import * as Slices from "../prepare/ops/Slices.js"
import * as Preview from "../preview/Preview.js"
import * as Simulation from "../preview/Simulation.js"

const callDataOf = (call: Call) => {
  if (call.kind === "given") return call.op.callData
  if (call.kind !== "op") return null
  const { data, target, value } = Sift.callOf(call)
  return WalletCalls.execute(target, value, data)
}

const make =
  (
    rpcs: ChainRpc["Service"],
    { calls, context, revert }: Pick<Offer, "calls" | "context" | "revert">
  ): NonNullable<Offer["preview"]> =>
  ({ ops, waiting }) => {
    if (context.kind === "direct") return Effect.succeed(null)
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
    return Simulation.of({ connection, entryPoint, version, revert }, asked).pipe(
      Effect.provideService(ChainRpc, rpcs),
      Effect.map((shown) =>
        Preview.write(
          [...shown].sort(([one], [other]) => one - other).map(([index, own]) => ({ index, ...own }))
        )
      )
    )
  }

/**
 * Previews for a request whose caller does not wait; undefined: it asks for none. Fails for a caller that waits, and for
 * requests that are opened in slices.
 */
export const of = (
  { isAsynchronous, resumed }: Offer["caller"],
  isAsked: boolean | undefined,
  offer: Pick<Offer, "calls" | "context" | "revert">
): Effect.Effect<Offer["preview"], Failure, ChainRpc> => {
  const refuse = (message: string) => Effect.fail(invalid("invalid_request", [{ path: "preview", message }]))
  if (isAsked !== true || resumed === true) return Effect.succeed(undefined)
  if (isAsynchronous !== true)
    return refuse("expected false without Prefer: respond-async; /estimateGas returns previews")
  if (offer.calls.length > Slices.size)
    return refuse(`expected false with more than ${Slices.size} operations`)
  return Effect.map(ChainRpc, (rpcs) => make(rpcs, offer))
}
