import { step } from "./Step.js"

/**
 * `prepared`: all that signing an op needs, a byte that names the format first; null: it is to be prepared, or is settled.
 * Not sealed, as the bytes of transactions are not. `good_until`: Unix milliseconds. `context` names what a request shares with
 * others; `unopened`: its elements without an op that have not failed, null where an earlier version accepted it.
 * An op of the EntryPoint `direct` is a transaction of the signer's own. `was_public` of an op says that it is exposed.
 */
export const opRows = step((sql) => [
  sql.onDialectOrElse({
    pg: () => sql`alter table ops add column prepared bytea`,
    orElse: () => sql`alter table ops add column prepared blob`
  }),
  sql`alter table ops add column good_until bigint`,
  sql`create index ops_ready on ops (authority, chain_id, op_id) where state = 'accepted'`,
  sql`alter table requests add column context text`,
  sql`alter table requests add column unopened integer`,
  sql`create index requests_lane on requests (chain_id, signer, request_no) where state = 'open'`,
  sql`
    create index requests_unopened on requests (chain_id, signer, request_no)
    where state = 'open' and (unopened is null or unopened > 0)`
])
