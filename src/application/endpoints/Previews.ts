import * as Effect from "effect/Effect"
import { type Failure, invalidAt } from "../failures/Failure.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { Offer } from "../prepare/Offer.js"
import * as Previews from "../prepare/ops/Previews.js"
import * as Slices from "../prepare/ops/Slices.js"
import * as Preview from "../preview/Preview.js"

/**
 * Previews for a request whose caller does not wait; undefined: it asks for none. Fails for a caller that waits, and for
 * requests that are opened in slices.
 */
export const of = (
  { isAsynchronous, resumed }: Offer["caller"],
  isAsked: boolean | undefined,
  offer: Pick<Offer, "calls" | "context" | "revert">
): Effect.Effect<Offer["preview"], Failure, ChainRpc> => {
  const refuse = (message: string) => Effect.fail(invalidAt("preview", message))
  if (isAsked !== true || resumed === true) return Effect.succeed(undefined)
  if (isAsynchronous !== true)
    return refuse("expected false without Prefer: respond-async; /estimateGas returns previews")
  if (offer.calls.length > Slices.size)
    return refuse(`expected false with more than ${Slices.size} operations`)
  return Effect.map(
    ChainRpc,
    (rpcs): Offer["preview"] =>
      (prepared) =>
        Previews.of(offer, prepared).pipe(
          Effect.provideService(ChainRpc, rpcs),
          Effect.map((shown) =>
            Preview.write(
              [...shown].sort(([one], [other]) => one - other).map(([index, own]) => ({ index, ...own }))
            )
          )
        )
  )
}
