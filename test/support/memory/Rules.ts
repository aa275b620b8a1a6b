import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Rules } from "../../../src/application/policies/Rules.js"

/** The account has no policies. */
export const layer = Layer.succeed(Rules, {
  judge: (_, batches) => Effect.succeed({ batches, names: [] }),
  reserve: (_, batches) => Effect.succeed(batches),
  isRuled: () => Effect.succeed(false),
  bind: () => Effect.void,
  bindDirect: () => Effect.void,
  release: () => Effect.void
})
