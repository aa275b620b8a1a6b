import { identity, step } from "./Step.js"

/**
 * `account_id` is empty for what is the operator's. Wei are decimal text, days are counted from 1970-01-01.
 * `landed` is null while nothing is known of the cost; `expires_at` are Unix milliseconds, `until` Unix seconds.
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
      expires_at bigint not null
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

/** The instances that hold a reservation, each with a space behind it: it is given back with the last of them. */
export const budgetHolders = step((sql) => [
  sql`alter table budget_holds add column holders text not null default ''`
])
