import { clustered, step } from "../schema/Step.js"

/**
 * What became of each request, in order. No reference to `requests`: it would lock the request's row, which others lock
 * before its ops, after them.
 */
export const requestEvents = step((sql) => [
  sql`
    create table request_events (
      request_no bigint not null,
      sequence integer not null,
      kind text not null,
      data text,
      told_at bigint not null,
      primary key (request_no, sequence)
    ) ${clustered(sql)}`
])

/**
 * Whether `submitted` was told of a transaction, or of an op at a remote bundler. Processes of the version before tell it when
 * they sign, and name no such column.
 */
export const submissions = step((sql) => [
  sql`alter table transactions add column submitted smallint not null default 1`,
  sql`alter table handovers add column submitted smallint not null default 1`
])
