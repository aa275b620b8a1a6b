import { step } from "./Step.js"

/**
 * One row for every lane that was ever claimed: its holder is one instance of the journal. A
 * request's `lane_key` is JSON, null where it is not known. A nonce keeps the epoch in which it was handed out.
 */
export const lanes = step((sql) => [
  sql`
    create table lanes (
      chain_id text not null,
      signer text not null,
      epoch bigint not null,
      holder text not null,
      process text not null,
      primary key (chain_id, signer)
    )`,
  sql`alter table requests add column lane_key text`,
  sql`alter table transactions add column epoch bigint not null default 0`
])
