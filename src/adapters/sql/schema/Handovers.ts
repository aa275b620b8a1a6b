import { step } from "./Step.js"

/**
 * One row for every op that a remote bundler has, or that landed in a transaction of others and is not yet at settled depth.
 * `rpc` is sealed. `signed`: `0x` where no bundler was given it.
 */
export const handovers = step((sql) => [
  sql`
    create table handovers (
      op_id bigint primary key references ops (op_id),
      rpc text not null,
      trust text not null check (trust in ('caller', 'operator')),
      since text not null,
      signed text not null
    )`
])

/**
 * Ops that were found on the chain. `landed_as`: the hash under which the op landed, where it is not its own. `was_public`: 1
 * for an op whose landing has vanished, so that its bytes are known to others.
 */
export const landings = step((sql) => [
  sql`alter table handovers add column landed_as text`,
  sql`alter table ops add column was_public smallint`
])
