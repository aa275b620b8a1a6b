import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { appendOnly, beginning, identity, step } from "./Step.js"

/**
 * Accounts, keys and kill switches. Limits override the tier's; null: the tier's. `account_changes` has one row, whose version grows in the transaction of every change
 * to the other tables except `api_key_uses`. Keys and pauses may concern accounts of the configuration file, which have no
 * row. `number` is the insertion order.
 */
export const accounts = step((sql) => [
  sql`
    create table account_changes (
      id smallint primary key check (id = 1),
      version bigint not null
    )`,
  sql`insert into account_changes (id, version) values (1, 1)`,
  sql`
    create table accounts (
      number ${identity(sql)},
      account_id text not null unique,
      name text not null,
      tier text not null check (tier in ('free', 'pro', 'enterprise')),
      created_at bigint not null,
      requests_per_minute bigint,
      requests_per_hour bigint
    )`,
  sql`
    create table api_keys (
      number ${identity(sql)},
      hash text not null unique,
      account_id text not null,
      scopes text not null,
      origin text not null check (origin in ('command', 'file')),
      issued_at bigint not null,
      ends_at bigint
    )`,
  sql`
    create table api_key_uses (
      hash text primary key,
      used_at bigint not null
    )`,
  sql`
    create table account_networks (
      number ${identity(sql)},
      account_id text not null references accounts (account_id),
      chain_id text not null,
      factory text,
      settings text not null,
      unique (account_id, chain_id)
    )`,
  sql`
    create unique index account_networks_factory on account_networks (chain_id, factory)
    where factory is not null`,
  sql`
    create table account_signers (
      number ${identity(sql)},
      account_id text not null references accounts (account_id),
      client_id text not null,
      version_id text,
      asset_id text,
      provider text not null,
      key_name text not null,
      address text,
      check ((version_id is null) <> (asset_id is null))
    )`,
  sql`
    create unique index account_signers_version on account_signers (account_id, client_id, version_id)
    where version_id is not null`,
  sql`
    create unique index account_signers_asset on account_signers (account_id, client_id, asset_id)
    where asset_id is not null`,
  sql`
    create table pauses (
      number ${identity(sql)},
      kind text not null check (kind in ('account', 'signer', 'chain')),
      subject text not null,
      since bigint not null,
      unique (kind, subject)
    )`
])

/**
 * `ordinal` counts an account's definitions from 1 without gaps, in commit order: a reader that knows the first n queries
 * those above n, and misses none. `digest` is keccak256 of the canonical text, which may be too long for an index.
 */
export const abi = step((sql) => [
  sql`
    create table abi_definitions (
      account_id text not null,
      ordinal integer not null,
      kind text not null check (kind in ('event', 'error')),
      digest text not null,
      canonical text not null,
      primary key (account_id, ordinal)
    )`,
  sql`create unique index abi_definitions_digest on abi_definitions (account_id, kind, digest)`
])

/**
 * `account_id` is empty for the operator's budgets. Wei are decimal text; days count from 1970-01-01. `landed` is null
 * while the cost is unknown; `expires_at` are Unix milliseconds, `until` Unix seconds. Nothing uses `holders` any more.
 */
export const budgets = step((sql) => [
  sql`
    create table budget_holds (
      hold_no ${identity(sql)},
      account_id text not null,
      chain_id text not null,
      pot text not null,
      id text not null,
      day integer not null,
      wei text not null,
      landed text,
      state text not null check (state in ('reserved', 'bound', 'settled')),
      note text not null,
      expires_at bigint not null,
      holders text not null default ''
    )`,
  sql`create unique index budget_holds_id on budget_holds (chain_id, id, pot, account_id)`,
  sql`
    create index budget_holds_open on budget_holds (chain_id, pot, account_id) where state <> 'settled'`,
  sql`create index budget_holds_settled on budget_holds (day) where state = 'settled'`,
  sql`
    create table budget_days (
      account_id text not null,
      chain_id text not null,
      pot text not null,
      day integer not null,
      booked text not null,
      primary key (account_id, chain_id, pot, day)
    )`,
  sql`
    create table budget_ops (
      account_id text not null,
      chain_id text not null,
      user_op_hash text not null,
      until bigint not null,
      primary key (account_id, chain_id, user_op_hash)
    )`,
  sql`create index budget_ops_until on budget_ops (until)`
])

interface Held {
  readonly account_id: string
  readonly chain_id: string
  readonly pot: string
  readonly day: number
  readonly hour: number
  readonly wei: string
  readonly landed: string | null
}

/** Counts the reservations that are open. */
const count = (sql: SqlClient.SqlClient, open: ReadonlyArray<Held>) =>
  Effect.gen(function* () {
    const totals = new Map<string, { readonly held: bigint; readonly holds: number }>()
    for (const { account_id, chain_id, day, hour, landed, pot, wei } of open) {
      const add = (unit: string, at: number, amount: string, more: number) => {
        const key = JSON.stringify({ account_id, chain_id, pot, unit, at })
        const { held, holds } = totals.get(key) ?? { held: 0n, holds: 0 }
        totals.set(key, { held: held + BigInt(amount), holds: holds + more })
      }
      if (landed === null) add("open", 0, wei, 1)
      add("day", day, landed ?? wei, 0)
      add("hour", hour, landed ?? wei, 0)
    }
    yield* sql`update budget_totals set held = '0', holds = 0`
    for (const [key, { held, holds }] of totals)
      yield* sql`
        insert into budget_totals ${sql.insert({ ...JSON.parse(key), held: held.toString(), holds, booked: "0" })}
        on conflict (account_id, chain_id, pot, unit, at) do update set
          held = excluded.held, holds = excluded.holds`
  })

/**
 * Running totals of budgets: of open reservations (`at` 0), and of those made in each day and hour, counted from 1970. Wei
 * are decimal text. `booked` is only of hours: days have `budget_days`.
 */
export const budgetTotals = step((sql) => [
  sql`
    create table budget_totals (
      account_id text not null,
      chain_id text not null,
      pot text not null,
      unit text not null check (unit in ('open', 'day', 'hour')),
      at bigint not null,
      held text not null,
      holds bigint not null,
      booked text not null,
      primary key (chain_id, pot, account_id, unit, at)
    )`,
  sql`create index budget_totals_at on budget_totals (unit, at)`,
  // A process that does not know the totals would leave them wrong: it must not find the table.
  sql`alter table budget_holds rename to budget_reservations`,
  sql`alter table budget_reservations add column hour integer`,
  sql`update budget_reservations set hour = day * 24 + 23`,
  ...["budget_holds_id", "budget_holds_open", "budget_holds_settled"].map(
    (name) => sql`drop index ${sql(name)}`
  ),
  sql`create unique index budget_reservations_id on budget_reservations (chain_id, id, pot, account_id)`,
  sql`create index budget_reservations_settled on budget_reservations (day) where state = 'settled'`,
  sql`
    create index budget_reservations_expiry on budget_reservations (chain_id, pot, account_id, expires_at)
    where state = 'reserved'`,
  // PostgreSQL finds the beginnings of ids only in this order, SQLite in the unique index.
  sql.onDialectOrElse({
    pg: () =>
      sql`create index budget_reservations_beginning on budget_reservations (chain_id, id collate "C") where state <> 'settled'`,
    orElse: () => Effect.void
  }),
  // Their hour is the last one of their day.
  Effect.flatMap(sql<Held>`select * from budget_reservations where state <> 'settled'`, (open) =>
    count(sql, open)
  )
])

interface Reservation extends Held {
  readonly id: string
  readonly hour: number
  readonly state: "reserved" | "bound" | "settled"
  readonly note: string
  readonly expires_at: number | string
}

/** Reservations for one purpose become one hold: bound where one of them was, and settled where all were. */
const gathered = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const rows = yield* sql<Reservation>`select * from budget_reservations order by hold_no`
    const counted: Array<Held> = []
    for (const all of Map.groupBy(rows, ({ chain_id, id }) => `${chain_id} ${id}`).values()) {
      const open = all.filter(({ state }) => state !== "settled")
      const own = open.length > 0 ? open : all
      const [first] = own
      if (first === undefined) continue
      const { chain_id, day, hour, id } = first
      const costs = own.flatMap(({ landed }) => (landed === null ? [] : [BigInt(landed)]))
      const landed = costs.length === 0 ? null : costs.reduce(BigInts.max).toString()
      yield* sql`insert into holds ${sql.insert({
        chain_id,
        id,
        owner: own.find(({ account_id }) => account_id !== "")?.account_id ?? "",
        parts: JSON.stringify(own.map(({ account_id, pot, wei }) => [account_id, pot, wei])),
        day,
        hour,
        landed,
        state: own.find(({ state }) => state === "bound")?.state ?? first.state,
        note: [...new Set(own.flatMap(({ note }) => note.split("\n")))].join("\n"),
        expires_at: Math.max(...own.map(({ expires_at }) => Number(expires_at)))
      })}`
      counted.push(...open.map((row) => ({ ...row, day, hour, landed })))
    }
    yield* count(sql, counted)
  })

/**
 * Holds of budgets. `parts` is JSON of `[account_id, pot, wei]`, and `owner` its account, empty where only the operator's
 * budgets hold. `landed` is null while the cost is unknown; `due` is the number of a block before which a hold cannot end.
 */
export const holds = step((sql) => [
  sql`
    create table holds (
      hold_no ${identity(sql)},
      chain_id text not null,
      id text not null,
      owner text not null,
      parts text not null,
      day integer not null,
      hour integer not null,
      landed text,
      state text not null check (state in ('reserved', 'bound', 'settled')),
      note text not null,
      expires_at bigint not null,
      due bigint not null default 0
    )`,
  sql`create unique index holds_id on holds (chain_id, id)`,
  sql`create index holds_due on holds (chain_id, owner, due) where state = 'bound'`,
  sql`create index holds_settled on holds (day) where state = 'settled'`,
  sql`create index holds_expiry on holds (expires_at) where state = 'reserved'`,
  // PostgreSQL finds the beginnings of ids only in this order, SQLite in the unique index.
  sql.onDialectOrElse({
    pg: () => sql`create index holds_beginning on holds (chain_id, id collate "C") where state <> 'settled'`,
    orElse: () => Effect.void
  }),
  gathered(sql),
  sql`drop table budget_reservations`
])

/**
 * The database refuses to change or delete rows; only the table's owner can drop the triggers. Chain ids and nonces are
 * decimal text; times are Unix milliseconds.
 */
export const audit = step((sql) => [
  sql`
    create table audit (
      entry_no ${identity(sql)},
      at bigint not null,
      kind text not null check (kind in ('signature', 'transaction')),
      account_id text,
      request_id text,
      acted_by text,
      signer text not null,
      hash text not null,
      chain_id text,
      nonce text
    )`,
  sql`create index audit_account on audit (account_id, entry_no)`,
  sql`create index audit_signer on audit (${beginning(sql, "signer")}, entry_no)`,
  sql`create index audit_hash on audit (${beginning(sql, "hash")})`,
  sql`create index audit_request on audit (${beginning(sql, "request_id")})`,
  sql`create index audit_at on audit (at)`,
  sql.onDialectOrElse({
    pg: () => sql`
      create function audit_is_append_only() returns trigger language plpgsql as
      'begin raise exception ''the audit log is append-only''; end'`,
    orElse: () => Effect.void
  }),
  appendOnly(sql, "audit", "the audit log")
])

/**
 * An account's requests in its newest minute and hour, each given by its start in Unix milliseconds. On PostgreSQL the
 * table is unlogged: losing counts in a server crash is cheaper than disk writes.
 */
export const rateCounts = step((sql) => [
  sql`
    create ${sql.literal(sql.onDialectOrElse({ pg: () => "unlogged table", orElse: () => "table" }))} rate_counts (
      account_id text primary key,
      minute bigint not null,
      in_minute integer not null,
      hour bigint not null,
      in_hour integer not null
    )`
])

/** Times at which an operator confirmed the clock; Unix milliseconds. */
export const clockConfirmations = step((sql) => [
  sql`create table clock_confirmations (confirmation_no ${identity(sql)}, confirmed_at bigint not null)`
])

/**
 * Acts of operators, append-only like the audit log, and the latest refused requests. `answer` is JSON, null where it was
 * too long. Times are Unix milliseconds.
 */
export const operators = step((sql) => [
  sql`
    create table operator_acts (
      entry_no ${identity(sql)},
      at bigint not null,
      operator text not null,
      act text not null,
      subject text not null,
      reason text not null
    )`,
  appendOnly(sql, "operator_acts", "the log of operators"),
  sql`
    create table refusals (
      refusal_no ${identity(sql)},
      request_id text not null unique,
      account_id text not null,
      endpoint text not null,
      chain_id text,
      code text not null,
      message text not null,
      answer text,
      at bigint not null
    )`
])

/**
 * Versions of spending rules and of lists. `change_no` has no gaps, and grows in commit order. `content` is JSON, null where
 * the subject was removed. Times are Unix seconds.
 */
export const policies = step((sql) => [
  sql`
    create table policies (
      change_no bigint primary key,
      account_id text not null,
      layer text not null check (layer in ('operator', 'account')),
      subject text not null,
      version bigint not null,
      content text,
      counted_as text not null,
      at bigint not null,
      made_by text not null,
      request_id text,
      unique (account_id, layer, subject, version)
    )`,
  appendOnly(sql, "policies", "the table of spending rules")
])

/** Versions of settings that accounts make, the newest last. `content` is sealed, null where the setting was removed. */
export const settings = step((sql) => [
  sql`
    create table settings (
      setting_no ${identity(sql)},
      account_id text not null,
      name text not null,
      content text,
      at bigint not null,
      made_by text not null,
      request_id text
    )`,
  sql`create index settings_of_account on settings (account_id, name, setting_no)`,
  sql`create index settings_by_name on settings (name, account_id, setting_no)`,
  appendOnly(sql, "settings", "the table of settings")
])
