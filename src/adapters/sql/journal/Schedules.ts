import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Fragment } from "effect/sql/Statement"
import type * as Records from "../../../application/ports/journal/Records.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type * as Store from "../Store.js"

interface TallyRow {
  readonly account_id: AccountId
  readonly requests: number | string
  readonly elements: number | string
}

const tallies = ({ sql }: Pick<Store.Store, "sql">, from: (now: number) => Fragment) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.map(
      sql<TallyRow>`
        select account_id, count(*) as requests, sum(elements) as elements from ${from(now)} group by account_id`,
      (rows): ReadonlyArray<Records.Tally> =>
        rows.map(({ account_id, elements, requests }) => ({
          accountId: account_id,
          requests: Number(requests),
          elements: Number(elements)
        }))
    )
  )

export const waiting = ({ sql, transaction }: Store.Store): RequestJournal["Service"]["waiting"] =>
  transaction(
    tallies({ sql }, (now) => sql`requests where state = 'open' and due_at is not null and due_at > ${now}`)
  )

/** Two selects, because each half has an index; scheduled requests may be very many. */
export const going = ({ query, sql }: Store.Store): RequestJournal["Service"]["going"] =>
  query(
    tallies(
      { sql },
      (now) => sql`(
        select account_id, elements from requests where state = 'open' and due_at is null and held is null
        union all
        select account_id, elements from requests
        where state = 'open' and due_at is not null and due_at <= ${now} and held is null) as going`
    )
  )
