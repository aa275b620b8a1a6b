import * as Effect from "effect/Effect"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { AccountId } from "../../ports/Tenants.js"
import type { Failure } from "../../request/Failure.js"
import type { OpenRequests } from "./OpenRequests.js"

/**
 * Whether more work of the account is begun. A repeat of an accepted request has room, since its answer costs no more
 * work; a journal that can not be asked for it leaves the refusal, which may be repeated.
 */
export type Room = (
  accountId: AccountId,
  endpoint: string,
  key: string | null
) => Effect.Effect<void, Failure>

export const make =
  ({
    isPreparing,
    openRequests,
    requestJournal
  }: {
    /** Whether a request of the key is before its acceptance. */
    readonly isPreparing: (accountId: AccountId, endpoint: string, key: string) => boolean
    readonly openRequests: OpenRequests
    readonly requestJournal: RequestJournal["Service"]
  }): Room =>
  (accountId, endpoint, key) =>
    Effect.suspend((): Effect.Effect<void, Failure> => {
      const refusal = openRequests.refusal(accountId)
      if (refusal === null) return Effect.void
      if (key === null) return refusal
      if (isPreparing(accountId, endpoint, key)) return Effect.void
      return requestJournal.requestOf(accountId, endpoint, key).pipe(
        Effect.orElseSucceed(() => null),
        Effect.flatMap((found): Effect.Effect<void, Failure> => (found === null ? refusal : Effect.void))
      )
    })
