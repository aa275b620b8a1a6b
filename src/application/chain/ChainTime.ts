import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/**
 * The time from which on what is signed now is good for its minutes, Unix seconds. A chain that makes blocks only for
 * transactions stands still between them, and its next block has the time of the world again: by its latest block alone,
 * everything that is signed after a longer rest would be over as it is mined.
 */
export const present = ({ timestamp }: { readonly timestamp: number }): Effect.Effect<number> =>
  Effect.map(Clock.currentTimeMillis, (millis) => Math.max(timestamp, Math.floor(millis / 1_000)))
