import type { Delivery } from "../ports/Webhooks.js"

/** Pauses double from the first one on. */
const firstMillis = 5_000
const longestMillis = 4 * 3_600_000
/** Counted from the first attempt that failed. */
export const givenUpMillis = 3 * 24 * 3_600_000

/** When an event is sent again whose latest attempt has failed now; null: it is given up. */
export const next = (
  { attempts, failingSince }: Pick<Delivery, "attempts" | "failingSince">,
  now: number
): number | null =>
  failingSince !== null && now - failingSince >= givenUpMillis
    ? null
    : now + Math.min(longestMillis, firstMillis * 2 ** Math.min(attempts, 20))
