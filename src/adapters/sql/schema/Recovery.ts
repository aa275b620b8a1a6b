import { step } from "./Step.js"

/**
 * `held`: why a request waits for the operator; null: it does not, or the operator has decided. `decision`: what the operator
 * has said of it, once it was held. `explained`: nonces of the lane below this one were read on the chain.
 */
export const recovery = step((sql) => [
  sql`alter table requests add column held text`,
  sql`alter table requests add column decision text check (decision in ('released', 'dropped'))`,
  sql`alter table lanes add column explained text`
])

/**
 * `unread`: the journal did not know by what nonces of the lane from this one on were used, and they are to be read; until
 * then what is signed above them makes none of them known. Null: there are none.
 */
export const unreadNonces = step((sql) => [sql`alter table lanes add column unread text`])
