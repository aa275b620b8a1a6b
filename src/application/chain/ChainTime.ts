import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/**
 * Start of the life of signatures made now, Unix seconds. A chain that makes blocks only for transactions does not
 * advance between them, but its next block has the current time. Counted only from its latest block, a signature made
 * after a long gap would be expired when it is mined.
 */
export const present = ({ timestamp }: { readonly timestamp: number }): Effect.Effect<number> =>
  Effect.map(Clock.currentTimeMillis, (millis) => Math.max(timestamp, Math.floor(millis / 1_000)))
