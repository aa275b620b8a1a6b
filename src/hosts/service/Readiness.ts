import * as Effect from "effect/Effect"
import type { OpJournal } from "../../application/ports/journal/OpJournal.js"
import type { LeaseRequest } from "../../application/ports/journal/Requests.js"
import * as Wait from "../../application/runtime/Wait.js"
import * as Address from "../../domain/primitives/Address.js"

/** How long the journal may take to answer, and how long its answer stands, milliseconds. */
const millis = 1_000

/** A nonce key of no wallet, free again at once. */
const probe: LeaseRequest = {
  authority: Address.zero,
  chainId: 0n,
  entryPoint: Address.zero,
  wallet: Address.zero,
  holder: "",
  keys: { from: 0n, to: 0n },
  count: 1,
  ttlMillis: 0
}

/**
 * Whether the journal can be written: a locked file and a server that only reads still answer reads, and a full disk
 * takes a write that changes nothing. Anybody may want to know, however often: it is asked once in a second.
 */
export const make = (
  opJournal: Pick<OpJournal["Service"], "lease" | "release">
): Effect.Effect<Effect.Effect<boolean>> => {
  const written = Effect.andThen(opJournal.lease([probe]), opJournal.release(probe.holder)).pipe(
    Effect.as(true),
    Effect.catchCause(() => Effect.succeed(false))
  )
  return Effect.cachedWithTTL(
    Wait.within(written, millis, () => Effect.succeed(false)),
    millis
  )
}
