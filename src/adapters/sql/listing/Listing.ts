import * as Effect from "effect/Effect"
import type { Fragment } from "effect/sql/Statement"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type { ListedRequest, ListPlace, ListQuestion } from "../../../application/ports/journal/Requests.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type * as Store from "../Store.js"
import * as Terms from "./Terms.js"

interface Row extends Omit<ListedRequest, "chainId" | "metadata" | "number" | "state"> {
  readonly number: number | string
  readonly chainId: string
  readonly state: "open" | "final"
  readonly metadata: string | null
}

const toListed = (row: Row): ListedRequest => ({
  ...row,
  number: BigInt(row.number),
  chainId: BigInt(row.chainId),
  state: row.state === "open" ? "pending" : "final",
  metadata: Terms.read(row.metadata)
})

const columns = `requests.request_no as number, request_id as "requestId", endpoint, chain_id as "chainId", state,
  requests.accepted_at as "acceptedAt", requests.metadata`

const termsOf = ({ member, wallet }: ListQuestion): ReadonlyArray<string> => [
  ...(wallet === undefined ? [] : [Terms.ofWallet(wallet)]),
  ...(member === undefined ? [] : [Terms.ofMember(member.key, member.value)])
]

/** Requests of one term searched for another term in one query; larger searches are split. */
const mostSearched = 10_000

/** SQLite and PostgreSQL use a partial index only when the query states its condition as a literal. */
const states = { pending: "requests.state = 'open'", final: "requests.state = 'final'" } as const

const ofState = ({ sql }: Store.Store, { state }: ListQuestion): ReadonlyArray<Fragment> =>
  state === undefined ? [] : [sql.literal(states[state])]

/** Bounds by time and previous page; `table` is the one whose index has the list's order. */
const bounds = (
  { sql }: Store.Store,
  table: "requests" | "request_terms",
  { after, since, until }: ListQuestion
): ReadonlyArray<Fragment> => {
  const [time, number] = [sql.literal(`${table}.accepted_at`), sql.literal(`${table}.request_no`)]
  return [
    ...(since === undefined ? [] : [sql`${time} >= ${since}`]),
    ...(until === undefined ? [] : [sql`${time} < ${until}`]),
    ...(after === undefined
      ? []
      : [sql`(${time}, ${number}) < (${after.acceptedAt}, ${after.number.toString()})`])
  ]
}

const hasTerm = ({ sql }: Store.Store, accountId: AccountId, table: string, term: string): Fragment => sql`
  exists (
    select 1 from request_terms as other
    where other.account_id = ${accountId} and other.term = ${term}
      and other.accepted_at = ${sql.literal(table)}.accepted_at
      and other.request_no = ${sql.literal(table)}.request_no)`

/** A page of the account's requests, or of a term's. `cross join` fixes SQLite's order of the tables. */
const page = (
  store: Store.Store,
  table: "requests" | "request_terms",
  question: ListQuestion,
  conditions: ReadonlyArray<Fragment>
) => {
  const { sql } = store
  const joined = "request_terms cross join requests"
  return sql<Row>`
    select ${sql.literal(columns)} from ${sql.literal(table === "requests" ? table : joined)}
    where ${sql.and([...conditions, ...ofState(store, question), ...bounds(store, table, question)])}
    order by ${sql.literal(`${table}.accepted_at desc, ${table}.request_no desc`)} limit ${question.limit}`
}

const ofTerm = ({ sql }: Store.Store, accountId: AccountId, term: string): ReadonlyArray<Fragment> => [
  sql`request_terms.account_id = ${accountId}`,
  sql`request_terms.term = ${term}`,
  sql`requests.request_no = request_terms.request_no`
]

/** Last request of a term within one search; null: all are within it. */
const lastSearched = (
  store: Store.Store,
  accountId: AccountId,
  question: ListQuestion,
  term: string,
  most: number
) => {
  const { sql } = store
  return Effect.map(
    sql<{ readonly accepted_at: number | string; readonly request_no: number | string }>`
      select accepted_at, request_no from request_terms
      where ${sql.and([
        sql`account_id = ${accountId}`,
        sql`term = ${term}`,
        ...bounds(store, "request_terms", question)
      ])}
      order by accepted_at desc, request_no desc limit 1 offset ${most - 1}`,
    ([row]): ListPlace | null =>
      row === undefined ? null : { acceptedAt: Number(row.accepted_at), number: BigInt(row.request_no) }
  )
}

/** Walks the rarer term's requests and looks the other term up, within one search. */
const amongBoth = (
  store: Store.Store,
  accountId: AccountId,
  question: ListQuestion,
  [one, other]: readonly [string, string],
  most: number
) =>
  Effect.gen(function* () {
    const { sql } = store
    const endOfOne = yield* lastSearched(store, accountId, question, one, most)
    const endOfOther = endOfOne === null ? null : yield* lastSearched(store, accountId, question, other, most)
    const isOther = endOfOne !== null && endOfOther === null
    const [walked, looked, end] = isOther ? [other, one, endOfOther] : [one, other, endOfOne]
    const rows = yield* page(store, "request_terms", question, [
      ...ofTerm(store, accountId, walked),
      ...(end === null
        ? []
        : [
            sql`(request_terms.accepted_at, request_terms.request_no)
              >= (${end.acceptedAt}, ${end.number.toString()})`
          ]),
      hasTerm(store, accountId, "request_terms", looked)
    ])
    return { rows, searched: rows.length < question.limit ? end : null }
  })

const find = (store: Store.Store, accountId: AccountId, question: ListQuestion, most: number) => {
  const terms = termsOf(question)
  const [one, other] = terms
  const whole = Effect.map((rows: ReadonlyArray<Row>) => ({ rows, searched: null }))
  // An account has few pending requests, so they need no bounded search.
  if (one === undefined || question.state === "pending")
    return whole(
      page(store, "requests", question, [
        store.sql`account_id = ${accountId}`,
        store.sql`declined_at is null`,
        ...terms.map((term) => hasTerm(store, accountId, "requests", term))
      ])
    )
  if (other === undefined) return whole(page(store, "request_terms", question, ofTerm(store, accountId, one)))
  return amongBoth(store, accountId, question, [one, other], most)
}

export const list =
  (store: Store.Store, most = mostSearched): RequestJournal["Service"]["list"] =>
  (accountId, question) =>
    store.reading(
      Effect.map(find(store, accountId, question, most), ({ rows, searched }) => ({
        requests: rows.map(toListed),
        searched
      }))
    )
