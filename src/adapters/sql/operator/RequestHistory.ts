import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Fragment } from "effect/sql/Statement"
import {
  type Entry,
  RequestHistory,
  RequestHistoryError
} from "../../../application/ports/operator/RequestHistory.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Keccak from "../../../domain/primitives/Keccak.js"
import type * as Custody from "../../../domain/wallet/Custody.js"
import * as WalletAddress from "../../../domain/wallet/WalletAddress.js"
import * as ErrorCode from "../ErrorCode.js"
import * as Terms from "../listing/Terms.js"
import * as Migrations from "../Migrations.js"

/** Lists and searches the requests of all accounts, for the console, `castellan requests` and `Situation`. */

interface Row extends Omit<Entry, "chainId" | "failure" | "number" | "result" | "state"> {
  readonly number: number | string
  readonly chainId: string
  readonly state: "open" | "final" | "forgotten"
  readonly held: string | null
  /** Kind and data of the last event that ended the request. */
  readonly ended: string | null
}

const End = Schema.Struct({
  httpStatus: Schema.optional(Schema.Number),
  status: Schema.optional(Schema.Number),
  code: Schema.optional(Schema.String),
  elements: Schema.optional(Schema.Array(Schema.Struct({ error: Schema.optional(Schema.String) })))
})
const decodeEnd = Schema.decodeUnknownOption(Schema.fromJsonString(End))

/** By the result status values of the interface. */
const endOf = (ended: string): Pick<Entry, "failure" | "result"> => {
  const [kind = "", data] = ended.split("\n")
  if (kind === "cancelled" || kind === "expired")
    return { result: kind, failure: { code: `request_${kind}`, message: null } }
  const end = Option.getOrElse(decodeEnd(data), (): typeof End.Type => ({}))
  const { code = "execution_failed", elements = [], httpStatus = 200, status = 1 } = end
  const isPart = status === 3 || status === 4
  if (httpStatus === 200 && status !== 0 && !isPart) return { result: "succeeded", failure: null }
  const message = elements.find(({ error }) => error !== undefined)?.error ?? null
  return { result: httpStatus === 200 && isPart ? "partly" : "failed", failure: { code, message } }
}

const entryOf = ({ ended, held, ...row }: Row): Entry => ({
  ...row,
  number: BigInt(row.number),
  chainId: BigInt(row.chainId),
  acceptedAt: Number(row.acceptedAt),
  state: row.state !== "open" ? row.state : held === null ? "pending" : "held",
  ...(row.state !== "final" || ended === null ? { result: null, failure: null } : endOf(ended))
})

const custodies: ReadonlyArray<Custody.Stored> = [1, 2, 3, 4, 5]

/** CREATE2 salts of wallets with this salt, whatever their custody. */
const create2Salts = (salt: string): ReadonlyArray<string> => {
  const hash = Keccak.hashText(salt)
  return [hash, ...custodies.map((custody) => WalletAddress.create2Salt(hash, custody, false))]
}

/** Requests whose metadata is searched. */
const mostSearched = 20_000

const failed = (error: unknown): RequestHistoryError =>
  new RequestHistoryError({ message: `the journal's store failed${ErrorCode.suffix(error)}` })

/** Reads the journal's tables; only the journal writes them. */
export const make: Migrations.Stored<RequestHistory["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const select = sql.literal(`
    select request_no as number, request_id as "requestId", account_id as "accountId", endpoint,
      chain_id as "chainId", state, accepted_at as "acceptedAt", elements, held, (
        select kind || '\n' || coalesce(data, '{}') from request_events
        where request_events.request_no = requests.request_no and kind in ('final', 'cancelled', 'expired')
        order by sequence desc limit 1) as ended
    from requests`)
  const entries = Effect.mapBoth({
    onFailure: failed,
    onSuccess: (rows: ReadonlyArray<Row>) => rows.map(entryOf)
  })
  /**
   * Rows of a table by an index whose first column is unknown: with one lookup for each of the column's values, which
   * lookups find too. `cross join` makes SQLite begin with the values.
   */
  const byEach = (column: string, table: string, where: string): Fragment =>
    sql.literal(`(
      with recursive own(value) as (
        select min(${column}) from ${table} where ${where}
        union all
        select (select min(${column}) from ${table} where ${where} and ${column} > value)
        from own where value is not null)
      select value from own) as own cross join ${table}
      where ${where} and ${table}.${column} = own.value`)
  const opsWith = (hash: string, state: string): Fragment => sql`
    select request_id from ${byEach("chain_id", "ops", `state ${state}`)} and user_op_hash = ${hash}`
  const ofWallets = (wallets: ReadonlyArray<Address.Address>): Fragment => sql`
    select request_no from ${byEach("account_id", "request_terms", "true")}
      and ${sql.in("term", wallets.map(Terms.ofWallet))}`
  const matching = (text: string, wallets: ReadonlyArray<Address.Address>): Fragment => {
    if (/^0x[0-9a-fA-F]{64}$/.test(text)) {
      const hash = text.toLowerCase()
      const version = sql`(
        select chain_id, signer, nonce
        from ${byEach("chain_id", "transaction_versions", "true")} and tx_hash = ${hash}) as version`
      return sql`
        select request_no from requests where request_id in (
          ${opsWith(hash, "<> 'abandoned'")} union ${opsWith(hash, "= 'abandoned'")}
          union select ops.request_id from ${version}
            cross join transaction_ops as link cross join ops
            where link.chain_id = version.chain_id and link.signer = version.signer
              and link.nonce = version.nonce and ops.op_id = link.op_id)`
    }
    const address = Address.from(text)
    if (Result.isSuccess(address)) return ofWallets([address.success])
    return sql`
      select request_no from requests where request_id = ${text}
      union select request_no from requests where request_id in (
        select request_id from deployments where ${sql.in("create2_salt", create2Salts(text))})
      union select request_no from requests
        where metadata like ${`%:${JSON.stringify(text).replace(/[\\%_]/g, "\\$&")}%`} escape '\\'
          and request_no > (select coalesce(max(request_no), 0) from requests) - ${mostSearched}
      ${wallets.length === 0 ? sql.literal("") : sql`union ${ofWallets(wallets)}`}`
  }
  return {
    search: (text, limit, wallets = []) =>
      sql<Row>`
        ${select} where declined_at is null and state <> 'forgotten' and request_no in (${matching(text, wallets)})
        order by request_no desc limit ${limit}`.pipe(Effect.withTracerEnabled(false), entries),
    find: ({ accountId, before, chainId, endpoint, isOldestFirst = false, limit, state }) => {
      const [beyond, order] = isOldestFirst ? [">", "asc"] : ["<", "desc"]
      // In the order of the index: an account's requests are many.
      const places = accountId === undefined ? ["request_no"] : ["accepted_at", "request_no"]
      const last = before?.toString() ?? null
      const end =
        accountId === undefined
          ? sql`${last}`
          : sql`
              select accepted_at, cast(${last} as bigint) from requests as last
              where last.request_no <= ${last} order by last.request_no desc limit 1`
      return sql<Row>`
        ${select}
        where ${sql.and([
          sql`declined_at is null`,
          ...(last === null
            ? []
            : [sql`(${sql.literal(places.join(", "))}) ${sql.literal(beyond)} (${end})`]),
          ...(accountId === undefined ? [] : [sql`account_id = ${accountId}`]),
          ...(chainId === undefined ? [] : [sql`chain_id = ${chainId.toString()}`]),
          ...(endpoint === undefined ? [] : [sql`endpoint = ${endpoint}`]),
          // A literal: a partial index is used for no parameter.
          ...(state === undefined
            ? []
            : [sql.literal(`state = '${state === "pending" || state === "held" ? "open" : state}'`)]),
          ...(state === "held" ? [sql`held is not null`] : [])
        ])}
        order by ${sql.literal(places.map((each) => `${each} ${order}`).join(", "))}
        limit ${Math.min(Math.max(1, limit), 1_000)}`.pipe(Effect.withTracerEnabled(false), entries)
    },
    waiting: Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const due = sql`
        requests.state = 'open' and held is null and declined_at is null and (due_at is null or due_at <= ${now})`
      const ops = yield* sql<{ readonly chainId: string; readonly ops: number | string }>`
        select ops.chain_id as "chainId", count(*) as ops
        from ops cross join requests
        where ops.state in ('accepted', 'sent') and requests.request_id = ops.request_id and ${due}
        group by ops.chain_id`
      const requests = yield* sql<{
        readonly chainId: string
        readonly unopened: number | string
        readonly oldestAt: number | string
      }>`
        select chain_id as "chainId", sum(coalesce(unopened, 0)) as unopened,
          min(case when not_before * 1000 > accepted_at then not_before * 1000 else accepted_at end) as "oldestAt"
        from requests where ${due} group by chain_id`
      return requests.map(({ chainId, oldestAt, unopened }) => ({
        chainId: BigInt(chainId),
        ops: Number(ops.find((each) => each.chainId === chainId)?.ops ?? 0) + Number(unopened),
        oldestAt: Number(oldestAt)
      }))
    }).pipe(Effect.withTracerEnabled(false), Effect.mapError(failed))
  }
})

export const layer: Migrations.StoredLayer<RequestHistory> = Layer.effect(RequestHistory, make)
