import * as Effect from "effect/Effect"
import type { Address } from "../../../domain/primitives/Address.js"
import type { LaneAccess } from "../../ports/journal/Transactions.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"
import type { Caller } from "../../request/Caller.js"
import { type AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import type { Failure } from "../../request/Failure.js"
import * as KillSwitch from "../../tenants/KillSwitch.js"

/** Accepts a request whose work is no ops, once: what was accepted before stays so. Not while its key or chain is paused. */
export const withoutOps = (
  { principal: { accountId }, requestId }: Caller,
  endpoint: string,
  {
    access,
    note = null,
    profile: { chainId, receiptTimeoutMillis },
    signer
  }: {
    readonly access: LaneAccess
    readonly profile: NetworkProfile
    readonly signer: Address
    readonly note?: string | null
  }
): Effect.Effect<void, AnsweredElsewhere | Failure, CurrentRequest> =>
  Effect.gen(function* () {
    const current = yield* CurrentRequest
    if (current.accepted()) return
    yield* KillSwitch.recheck(current, null)
    const { body, idempotency } = current
    yield* current.accept(
      {
        requestId,
        accountId,
        endpoint,
        lane: { chainId, signer },
        key: access.key,
        body,
        idempotency,
        ops: [],
        funds: [],
        deployments: [],
        failed: [],
        note,
        schedule: null
      },
      receiptTimeoutMillis
    )
  })
