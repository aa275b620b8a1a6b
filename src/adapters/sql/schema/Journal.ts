import * as Effect from "effect/Effect"
import { clustered, identity, step } from "./Step.js"

/** Longer than a file should be: the tables of the journal, and what came to them, stand together. */

/**
 * Column conventions: chain ids and wei are decimal text. Nonces, nonce keys and sequences are decimal text padded with
 * zeros to a fixed width (20, 58, 20), so that the order of the text is the order of the numbers. Neither SQLite nor a
 * driver's 64-bit integer holds them exactly. Times are Unix milliseconds, deadlines Unix seconds.
 *
 * A query uses a partial index only when it says the same condition, also where another one implies it.
 */
export const journal = step((sql) => [
  // `body` is sealed. `failed` is a JSON array, one entry for each index.
  sql`
    create table requests (
      request_no ${identity(sql)},
      request_id text not null unique,
      account_id text not null,
      endpoint text not null,
      chain_id text not null,
      body text not null,
      idempotency_key text,
      body_hash text,
      failed text not null,
      state text not null check (state in ('open', 'final', 'forgotten')),
      outcome text,
      accepted_at bigint not null
    )`,
  sql`
    create unique index requests_idempotency on requests (account_id, endpoint, idempotency_key)
    where idempotency_key is not null`,
  sql`create index requests_open on requests (request_no) where state = 'open'`,
  sql`create index requests_final on requests (accepted_at) where state = 'final'`,
  sql`
    create table ops (
      op_id ${identity(sql)},
      request_id text not null references requests (request_id),
      op_index integer not null,
      authority text not null,
      chain_id text not null,
      entry_point text not null,
      wallet text not null,
      nonce_key text not null,
      sequence text not null,
      user_op_hash text,
      reserve text not null,
      returned text,
      state text not null check (state in ('accepted', 'sent', 'settled', 'abandoned')),
      tx_hash text,
      success smallint,
      revert_data text,
      accepted_at bigint not null
    )`,
  sql`
    create unique index ops_nonce on ops (authority, chain_id, entry_point, wallet, nonce_key, sequence)
    where state <> 'abandoned'`,
  sql`create unique index ops_element on ops (request_id, op_index) where state <> 'abandoned'`,
  sql`create index ops_request on ops (request_id, op_index, op_id)`,
  sql`create unique index ops_hash on ops (chain_id, user_op_hash, authority) where state <> 'abandoned'`,
  sql`create index ops_given_up on ops (chain_id, user_op_hash) where state = 'abandoned'`,
  sql`create index ops_under_way on ops (authority, chain_id, wallet) where state in ('accepted', 'sent')`,
  sql`
    create table leases (
      authority text not null,
      chain_id text not null,
      entry_point text not null,
      wallet text not null,
      nonce_key text not null,
      holder text not null,
      expires_at bigint not null,
      primary key (authority, chain_id, entry_point, wallet, nonce_key)
    )`,
  sql`create index leases_holder on leases (holder)`,
  sql`
    create table deployments (
      chain_id text not null,
      factory text not null,
      create2_salt text not null,
      config_hash text not null,
      deadline bigint not null,
      request_id text not null references requests (request_id),
      primary key (chain_id, factory, create2_salt)
    )`,
  // `free`: handed back; the lane's next work takes it. `key_client` is null for the service's own EOA; `rpc` is sealed.
  sql`
    create table transactions (
      chain_id text not null,
      signer text not null,
      nonce text not null,
      state text not null check (state in ('free', 'allocated', 'signed', 'mined', 'settled', 'foreign')),
      account_id text not null,
      key_client text,
      key_version text,
      key_asset text,
      rpc text not null,
      trust text not null check (trust in ('caller', 'operator')),
      direct text references requests (request_id),
      max_cost text not null,
      tx_hash text,
      success smallint,
      block_number text,
      block_hash text,
      allocated_at bigint not null,
      primary key (chain_id, signer, nonce)
    )`,
  sql`
    create index transactions_open on transactions (chain_id, signer, nonce) where state in ('signed', 'mined')`,
  sql`
    create index transactions_unsigned on transactions (chain_id, signer, nonce) where state in ('free', 'allocated')`,
  sql`create index transactions_direct on transactions (direct) where direct is not null`,
  // One row for every set of bytes that was ever signed for a nonce: each of them may be the one that is mined.
  sql`
    create table transaction_versions (
      version_id ${identity(sql)},
      chain_id text not null,
      signer text not null,
      nonce text not null,
      tx_hash text not null,
      raw text not null,
      max_fee_per_gas text not null,
      max_priority_fee_per_gas text not null,
      signed_at bigint not null,
      unique (chain_id, signer, nonce, tx_hash),
      foreign key (chain_id, signer, nonce) references transactions (chain_id, signer, nonce)
    )`,
  sql`create index transaction_versions_hash on transaction_versions (chain_id, tx_hash)`,
  sql`
    create table transaction_ops (
      chain_id text not null,
      signer text not null,
      nonce text not null,
      op_id bigint not null references ops (op_id),
      position integer not null,
      primary key (chain_id, signer, nonce, op_id),
      foreign key (chain_id, signer, nonce) references transactions (chain_id, signer, nonce) on delete cascade
    )`,
  sql`create index transaction_ops_op on transaction_ops (op_id)`
])

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

/**
 * What a caller says of its request, a JSON object; null: nothing. `request_terms` has a row for each member of it and for
 * each wallet of the request: by them an account's requests are found, in the order in which they are listed. Requests of
 * before have their wallets.
 */
export const requestMetadata = step((sql) => [
  sql`alter table requests add column metadata text`,
  sql`
    create table request_terms (
      account_id text not null,
      term text not null,
      accepted_at bigint not null,
      request_no bigint not null,
      primary key (account_id, term, accepted_at, request_no)
    ) ${clustered(sql)}`,
  sql`
    insert into request_terms (account_id, term, accepted_at, request_no)
    select distinct requests.account_id, 'wallet ' || ops.wallet, requests.accepted_at, requests.request_no
    from requests join ops on ops.request_id = requests.request_id
    where requests.state <> 'forgotten'`
])

/**
 * `not_before`: what is left of a request waits for this time of its chain, Unix seconds. `due_at`: when it is taken up,
 * Unix milliseconds; null: it goes on.
 */
export const schedules = step((sql) => [
  sql`alter table requests add column not_before bigint`,
  sql`alter table requests add column due_at bigint`,
  sql`create index requests_due on requests (due_at) where state = 'open' and due_at is not null`,
  sql`create index requests_going on requests (request_no) where state = 'open' and due_at is null`
])

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

/**
 * Indexes of fewer bytes in the place of those that every op writes to. On SQLite alone: nobody else writes meanwhile, whom the
 * making of an index would hold up, and no process of the version before names the columns of the ones that go.
 *
 * - Nonces go without the zeros in front: 78 bytes less.
 * - `ops_request` has what `ops_element` has, beside abandoned ops. These are told apart by their ids now, so that one index
 *   finds all ops of a request, and allows each element one that is not abandoned.
 * - Hashes, signers and ids of requests in the audit log are found by their first 18 characters.
 */
export const shorterIndexes = step((sql) => [
  sql.onDialectOrElse({
    pg: () => Effect.void,
    orElse: () =>
      Effect.gen(function* () {
        yield* sql`drop index ops_nonce`
        yield* sql`
          create unique index ops_nonce
          on ops (authority, chain_id, entry_point, wallet, ltrim(nonce_key, '0'), ltrim(sequence, '0'))
          where state <> 'abandoned'`
        yield* sql`drop index ops_request`
        yield* sql`drop index ops_element`
        yield* sql`
          create unique index ops_element
          on ops (request_id, op_index, case when state = 'abandoned' then op_id else 0 end)`
        yield* sql`drop index audit_hash`
        yield* sql`create index audit_hash on audit (substr(hash, 1, 18))`
        yield* sql`drop index audit_signer`
        yield* sql`create index audit_signer on audit (substr(signer, 1, 18), entry_no)`
        yield* sql`drop index audit_request`
        yield* sql`create index audit_request on audit (substr(request_id, 1, 18))`
      })
  })
])

/**
 * `prepared`: all that signing an op needs, a byte that names the format first; null: it is to be prepared, or is settled.
 * Not sealed, as the bytes of transactions are not. `good_until`: Unix milliseconds. `context` names what a request shares with
 * others; `unopened`: its elements without an op that have not failed, null where an earlier version accepted it.
 * An op of the EntryPoint `direct` is a transaction of the signer's own. `was_public` of an op says that it is exposed.
 * `proven_at`: when a transaction of the lane was read last that the journal had lost, Unix milliseconds.
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
  sql`alter table lanes add column proven_at bigint`,
  sql`create index requests_lane on requests (chain_id, signer, request_no) where state = 'open'`,
  sql`
    create index requests_unopened on requests (chain_id, signer, request_no)
    where state = 'open' and (unopened is null or unopened > 0)`
])
