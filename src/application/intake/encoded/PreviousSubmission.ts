import * as Effect from "effect/Effect"
import type * as Hex from "../../../domain/primitives/Hex.js"
import { WakeUps } from "../../lanes/WakeUps.js"
import type { OpOutcome } from "../../ports/chain/Bundler.js"
import { Journal } from "../../ports/journal/Journal.js"
import type { Caller } from "../../request/Caller.js"
import { type Failure, unprocessable } from "../../request/Failure.js"

/**
 * The outcome of an op that this account has posted before, waited for if need be until the deadline (Unix
 * milliseconds); null: it was never sent, or by an earlier life of this request, which is taken up where it ended.
 */
export const outcome = (
  { principal: { accountId }, requestId }: Caller,
  chainId: bigint,
  userOpHash: Hex.Bytes32,
  deadline: number
): Effect.Effect<OpOutcome | null, Failure, WakeUps | Journal> =>
  Effect.gen(function* () {
    const journal = yield* Journal
    const wakeUps = yield* WakeUps
    for (;;) {
      const record = yield* Effect.orDie(journal.findOp(accountId, chainId, userOpHash))
      if (record === null || record.state === "abandoned" || record.requestId === requestId) return null
      const { requestId: other, revertData, state, success, txHash } = record
      if (state === "settled" && txHash !== null) return { success: success === true, txHash, revertData }
      if (!(yield* wakeUps.wait(deadline)))
        return yield* Effect.fail(
          unprocessable("outcome_unknown", [], { extra: { txHash: txHash ?? "", requestId: other } })
        )
    }
  })
