import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Replicas } from "../../application/ports/Replicas.js"

/** A single process that owns every lane, for a journal without other users. */
export const layer: Layer.Layer<Replicas> = Layer.sync(Replicas, () => ({
  process: randomUUID(),
  owns: () => true,
  assigned: Stream.never,
  independent: Effect.succeed([]),
  tell: () => Effect.void,
  signals: Stream.never
}))
