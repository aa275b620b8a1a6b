import * as Effect from "effect/Effect"
import type * as Hex from "../../domain/evm/Hex.js"
import type { Caller } from "../Caller.js"
import { Engine } from "../engine/Engine.js"
import { type Failure, unprocessable } from "../Failure.js"
import type { OpOutcome } from "../ports/Bundler.js"
import { Journal } from "../ports/Journal.js"

/**
 * The outcome of an op that this account has posted before, waited for if need be until the deadline (Unix
 * milliseconds); null: it was never sent, or by an earlier life of this request, which is taken up where it ended.
 */
export const outcome = (
  { principal: { accountId }, requestId }: Caller,
  chainId: bigint,
  userOpHash: Hex.Bytes32,
  deadline: number
): Effect.Effect<OpOutcome | null, Failure, Engine | Journal> =>
  Effect.gen(function* () {
    const journal = yield* Journal
    const { releases } = yield* Engine
    for (;;) {
      const record = yield* Effect.orDie(journal.findOp(accountId, chainId, userOpHash))
      if (record === null || record.state === "abandoned" || record.requestId === requestId) return null
      const { requestId: other, revertData, state, success, txHash } = record
      if (state === "settled" && txHash !== null) return { success: success === true, txHash, revertData }
      if (!(yield* releases.wait(deadline)))
        return yield* Effect.fail(
          unprocessable("outcome_unknown", [], { extra: { txHash: txHash ?? "", requestId: other } })
        )
    }
  })
