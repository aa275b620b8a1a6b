import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LaneOwnership } from "../../application/ports/LaneOwnership.js"

/** Owns every lane: for a process that has its journal to itself. */
export const layer: Layer.Layer<LaneOwnership> = Layer.sync(LaneOwnership, () => ({
  process: randomUUID(),
  owns: () => true,
  independent: Effect.succeed([])
}))
