import type { Answered, Delivery } from "../ports/Webhooks.js"

/** Pauses double from the first one on. */
const firstMillis = 5_000
const longestMillis = 4 * 3_600_000
/** Counted from the first failed attempt. */
export const givenUpMillis = 3 * 24 * 3_600_000

/** Statuses whose Retry-After applies to the endpoint, not to the event: too many requests, and not now. */
const unready = new Set([429, 503])

/** Pause that the endpoint requests, milliseconds; 0: none. */
export const requestedMillis = ({
  retryAfterMillis,
  status
}: Pick<Answered, "retryAfterMillis" | "status">): number => (unready.has(status) ? retryAfterMillis : 0)

/**
 * Time of the next attempt of an event whose latest attempt has just failed: not before the endpoint's requested pause,
 * and for the last time at the end of the three days. Null: the event is abandoned.
 */
export const next = (
  { attempts, failingSince }: Pick<Delivery, "attempts" | "failingSince">,
  now: number,
  askedMillis = 0
): number | null => {
  const end = (failingSince ?? now) + givenUpMillis
  const pause = Math.min(longestMillis, firstMillis * 2 ** Math.min(attempts, 20))
  return now >= end ? null : Math.min(end, now + Math.max(pause, askedMillis))
}
