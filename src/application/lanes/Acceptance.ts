import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import { Journal } from "../ports/journal/Journal.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { Caller } from "../request/Caller.js"
import { CurrentRequest } from "../request/CurrentRequest.js"
import type { Failure } from "../request/Failure.js"
import * as KillSwitch from "../tenants/KillSwitch.js"
import { AnsweredElsewhere } from "./Requests.js"

/** Accepts a request whose work is no ops, once: what was accepted before stays so. Not while its key or chain is paused. */
export const withoutOps = (
  { principal: { accountId }, requestId }: Caller,
  endpoint: string,
  { chainId, receiptTimeoutMillis }: NetworkProfile,
  signer: Address
): Effect.Effect<void, AnsweredElsewhere | Failure, CurrentRequest | Journal> =>
  Effect.gen(function* () {
    const journal = yield* Journal
    const current = yield* CurrentRequest
    if (current.accepted()) return
    yield* KillSwitch.recheck(current, null)
    const { body, idempotency } = current
    const result = yield* Effect.uninterruptible(
      Effect.tap(
        Effect.orDie(
          journal.accept({
            requestId,
            accountId,
            endpoint,
            lane: { chainId, signer },
            body,
            idempotency,
            ops: [],
            funds: [],
            deployments: [],
            failed: []
          })
        ),
        ({ _tag }) => (_tag === "accepted" ? current.accept(receiptTimeoutMillis) : Effect.void)
      )
    )
    if (result._tag === "known") return yield* new AnsweredElsewhere({ requestId: result.requestId })
  })
