import { step } from "./Step.js"

/**
 * `ordinal` counts the definitions of an account from 1 without a gap, in the order of their commits: a reader
 * that knows the first n asks for those above n, and misses none. `digest` is keccak256 of the canonical text,
 * which may be longer than what an index takes.
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
