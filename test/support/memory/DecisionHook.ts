import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { DecisionHook } from "../../../src/application/policies/DecisionHook.js"

/** No hook is set. */
export const layer = Layer.succeed(DecisionHook, {
  decide: (_, batches) => Effect.succeed(batches),
  decideSignatures: () => Effect.succeed(new Map())
})
