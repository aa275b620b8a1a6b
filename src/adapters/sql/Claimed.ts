import type { Fragment } from "@effect/sql/Statement"
import type * as Store from "./Store.js"

/** No claim lasts as long, milliseconds: one that seems to was made while the clock was ahead, perhaps by a process that is gone. */
export const longestMillis = 300_000

/** Of a row with a claim: whether no other process than this one has it. */
export const isFree = ({ sql }: Store.Store, process: string, now: number): Fragment => sql`
  (claimed_until <= ${now} or claimed_until > ${now + longestMillis} or claimed_by = ${process})`
