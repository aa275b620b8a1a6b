import * as Effect from "effect/Effect"
import type * as Hex from "../../../domain/primitives/Hex.js"
import { WakeUps } from "../../lanes/requests/WakeUps.js"
import type { OpOutcome } from "../../ports/chain/Bundler.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import type { OpRecord } from "../../ports/journal/Requests.js"
import type { Caller } from "../../request/Caller.js"
import { type Failure, unprocessable } from "../../request/Failure.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"

/** `none`: there is nothing to wait for; null: its outcome is not known yet. */
const seen = (record: OpRecord | null, requestId: string): OpOutcome | "none" | null => {
  if (record === null || record.state === "abandoned" || record.requestId === requestId) return "none"
  const { revertData, state, success, txHash } = record
  return state === "settled" && txHash !== null ? { success: success === true, txHash, revertData } : null
}

/**
 * The outcome of an op that this account has posted before, waited for if need be until the deadline
 * (`MonotonicTime`); null: it was never sent, or by this request before a restart, after which it goes on where it was.
 */
export const outcome = (
  { principal: { accountId }, requestId }: Caller,
  chainId: bigint,
  userOpHash: Hex.Bytes32,
  deadline: number
): Effect.Effect<OpOutcome | null, Failure, WakeUps | OpJournal> =>
  Effect.gen(function* () {
    const opJournal = yield* OpJournal
    const wakeUps = yield* WakeUps
    const find = Effect.orDie(opJournal.findOp(accountId, chainId, userOpHash))
    const first = yield* find
    const known = seen(first, requestId)
    // Only what was posted is waited for: of anything else a slow journal would make an outcome that is not known.
    if (first === null || known === "none") return null
    if (known !== null) return known
    const poster = first.requestId
    const patience = Math.max(deadline - (yield* MonotonicTime.millis), 0)
    const result = yield* Effect.timeoutOrElse(
      wakeUps.until(
        poster,
        Effect.map(find, (record) => seen(record, requestId))
      ),
      {
        duration: patience,
        orElse: () =>
          Effect.fail(
            unprocessable("outcome_unknown", [], { extra: { txHash: first.txHash ?? "", requestId: poster } })
          )
      }
    )
    return result === "none" ? null : result
  })
