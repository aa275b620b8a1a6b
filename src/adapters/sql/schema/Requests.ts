import { step } from "./Step.js"

/** What came to the tables of requests after the first version. */

/** The submitting EOA of a request stands with the request: null where neither an op nor a transaction tells it. */
export const requestLanes = step((sql) => [
  sql`alter table requests add column signer text`,
  sql`
    update requests set signer = coalesce(
      (select authority from ops where ops.request_id = requests.request_id order by op_id desc limit 1),
      (select transactions.signer from transactions where direct = requests.request_id and direct is not null limit 1))`
])

/** What has ended is found by its time. */
export const retention = step((sql) => [sql`create index deployments_deadline on deployments (deadline)`])

/** A declined request is a forgotten one that never was accepted: its id is taken, until its time is over. */
export const declinedRequests = step((sql) => [
  sql`alter table requests add column declined_at bigint`,
  sql`create index requests_declined on requests (declined_at) where declined_at is not null`,
  // What refers to a request is looked for when its row is deleted.
  sql`create index deployments_request on deployments (request_id)`
])

/** Why what was not signed of a request never will be; null: it was not cancelled. */
export const cancellations = step((sql) => [
  sql`
    alter table requests add column cancelled text check (cancelled in ('request_cancelled', 'request_expired'))`
])

/** What the endpoint of a request keeps for itself: JSON or hex, perhaps deflated. */
export const requestNotes = step((sql) => [sql`alter table requests add column note text`])

/** How many operations or accounts a request has: accepted work is bounded by it. One, as long as it is not known. */
export const requestElements = step((sql) => [
  sql`alter table requests add column elements integer not null default 1`
])

/** An account's requests by the time of their acceptance; those that are not final are few, and found among many. */
export const listing = step((sql) => [
  sql`create index requests_account on requests (account_id, accepted_at, request_no)`,
  sql`
    create index requests_account_open on requests (account_id, accepted_at, request_no) where state = 'open'`
])
