import type { Answered, Delivery } from "../ports/Webhooks.js"

/** Pauses double from the first one on. */
const firstMillis = 5_000
const longestMillis = 4 * 3_600_000
/** Counted from the first attempt that failed. */
export const givenUpMillis = 3 * 24 * 3_600_000

/** Answers whose Retry-After is about the endpoint, not about the event: too many at once, and not now. */
const unready = new Set([429, 503])

/** For how long the endpoint wants nothing; 0: it does not say. Milliseconds. */
export const asked = ({ retryAfterMillis, status }: Answered): number =>
  unready.has(status) ? retryAfterMillis : 0

/**
 * When an event is sent again whose latest attempt has failed now: after what the endpoint has asked for at least, and
 * for the last time at the end of the three days. Null: it is given up.
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
