import * as Effect from "effect/Effect"
import type { Health } from "../../../application/observe/Health.js"
import type { OpJournal } from "../../../application/ports/journal/OpJournal.js"
import type { LeaseRequest } from "../../../application/ports/journal/Requests.js"
import * as Wait from "../../../application/runtime/Wait.js"
import * as Address from "../../../domain/primitives/Address.js"
import type { Node } from "./Public.js"

/** Time-out of the journal, and lifetime of its result, in ms. */
const millis = 1_000

/** A nonce key of no wallet, released immediately. */
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
 * Whether the journal is writable, tested by a write: a locked file or a read-only server still answers reads, and a full
 * disk accepts a write without changes. The test runs at most once a second, however often callers ask.
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

/** Whether the operator's node of each chain answered the last poll; a chain without such a node is unknown. */
export const nodes = ({ chains }: Pick<Health, "chains">): Readonly<Record<string, Node>> =>
  Object.fromEntries(
    chains().map(({ answeredAt, failing, profile }) => [
      profile.chainId.toString(),
      failing !== null ? "down" : answeredAt === null ? "unknown" : "up"
    ])
  )
