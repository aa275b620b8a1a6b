import * as Effect from "effect/Effect"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type { ListedRequest, ListQuestion } from "../../../application/ports/journal/Requests.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type * as Store from "../Store.js"
import * as Terms from "./Terms.js"

interface Row {
  readonly request_no: number | string
  readonly request_id: string
  readonly endpoint: string
  readonly chain_id: string
  readonly state: "open" | "final"
  readonly accepted_at: number | string
  readonly metadata: string | null
}

const toListed = (row: Row): ListedRequest => ({
  number: BigInt(row.request_no),
  requestId: row.request_id,
  endpoint: row.endpoint,
  chainId: BigInt(row.chain_id),
  state: row.state === "open" ? "pending" : "final",
  acceptedAt: Number(row.accepted_at),
  metadata: Terms.read(row.metadata)
})

const columns =
  "requests.request_no, request_id, endpoint, chain_id, state, requests.accepted_at, requests.metadata"

const termOf = ({ by }: ListQuestion): string | null => {
  if (by === undefined) return null
  return by._tag === "wallet" ? Terms.ofWallet(by.wallet) : Terms.ofMember(by.key, by.value)
}

/** A partial index serves a query that says its condition, as a literal. */
const states = { pending: "requests.state = 'open'", final: "requests.state = 'final'" } as const

/** Everything but the account and the term; the table is the one whose index is in the order of the list. */
const bounds = (
  { sql }: Store.Store,
  table: "requests" | "request_terms",
  { after, since, state, until }: ListQuestion
) => {
  const [time, number] = [sql.literal(`${table}.accepted_at`), sql.literal(`${table}.request_no`)]
  return [
    ...(state === undefined ? [] : [sql.literal(states[state])]),
    ...(since === undefined ? [] : [sql`${time} >= ${since}`]),
    ...(until === undefined ? [] : [sql`${time} < ${until}`]),
    ...(after === undefined
      ? []
      : [sql`(${time}, ${number}) < (${after.acceptedAt}, ${after.number.toString()})`])
  ]
}

/** Over the account's requests; those of a term among them are looked up one by one. */
const amongRequests = (
  store: Store.Store,
  accountId: AccountId,
  question: ListQuestion,
  term: string | null
) => {
  const { sql } = store
  const found = sql`exists (
    select 1 from request_terms
    where request_terms.account_id = ${accountId} and request_terms.term = ${term}
      and request_terms.accepted_at = requests.accepted_at and request_terms.request_no = requests.request_no)`
  return sql<Row>`
    select ${sql.literal(columns)} from requests
    where ${sql.and([
      sql`account_id = ${accountId}`,
      ...bounds(store, "requests", question),
      ...(term === null ? [] : [found])
    ])}
    order by accepted_at desc, requests.request_no desc limit ${question.limit}`
}

/** Over the requests of a term: `cross join` keeps SQLite to that order of the tables. */
const amongTerms = (store: Store.Store, accountId: AccountId, question: ListQuestion, term: string) => {
  const { sql } = store
  return sql<Row>`
    select ${sql.literal(columns)} from request_terms cross join requests
    where ${sql.and([
      sql`request_terms.account_id = ${accountId}`,
      sql`request_terms.term = ${term}`,
      sql`requests.request_no = request_terms.request_no`,
      ...bounds(store, "request_terms", question)
    ])}
    order by request_terms.accepted_at desc, request_terms.request_no desc limit ${question.limit}`
}

export const list =
  (store: Store.Store) =>
  (
    accountId: AccountId,
    question: ListQuestion
  ): Effect.Effect<ReadonlyArray<ListedRequest>, JournalError> => {
    const term = termOf(question)
    return store.reading(
      Effect.map(
        // Those that are pending are few, whatever they are found by.
        term === null || question.state === "pending"
          ? amongRequests(store, accountId, question, term)
          : amongTerms(store, accountId, question, term),
        (rows) => rows.map(toListed)
      )
    )
  }
