import type * as SqlClient from "effect/sql/SqlClient"
import { clustered, identity, step } from "./Step.js"

/**
 * Column conventions: chain ids and wei are decimal text. Nonces, nonce keys and sequences are decimal text padded with
 * zeros to a fixed width (20, 58, 20), so that text order is numeric order. Neither SQLite nor a driver's 64-bit integer
 * holds them exactly. Times are Unix milliseconds, deadlines Unix seconds.
 *
 * A query uses a partial index only when it states the index's condition literally; an implying condition does not suffice.
 */
export const journal = step((sql) => [
  // `body` is sealed. `failed` is a JSON array with one entry per index. `signer` is null when neither an op nor a transaction
  // names it, `lane_key` when it is unknown. `declined_at`: the id was never accepted, and stays taken until its time is over;
  // with an idempotency key: the last request that was refused under it.
  // `not_before`: earliest chain time of the remaining work, Unix seconds. `due_at`: its next start; null: started.
  // `held`: reason of a held request; null: not held, or the operator has decided.
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
      accepted_at bigint not null,
      signer text,
      lane_key text,
      declined_at bigint,
      cancelled text check (cancelled in ('request_cancelled', 'request_expired')),
      note text,
      elements integer not null default 1,
      metadata text,
      not_before bigint,
      due_at bigint,
      held text,
      decision text check (decision in ('released', 'dropped'))
    )`,
  sql`
    create unique index requests_idempotency on requests (account_id, endpoint, idempotency_key)
    where idempotency_key is not null`,
  sql`create index requests_open on requests (request_no) where state = 'open'`,
  sql`create index requests_final on requests (accepted_at) where state = 'final'`,
  sql`create index requests_declined on requests (declined_at) where declined_at is not null`,
  sql`create index requests_account on requests (account_id, accepted_at, request_no)`,
  sql`
    create index requests_account_open on requests (account_id, accepted_at, request_no) where state = 'open'`,
  sql`create index requests_due on requests (due_at) where state = 'open' and due_at is not null`,
  sql`create index requests_going on requests (request_no) where state = 'open' and due_at is null`,
  // A row per metadata member and per wallet of a request, to find an account's requests in list order.
  sql`
    create table request_terms (
      account_id text not null,
      term text not null,
      accepted_at bigint not null,
      request_no bigint not null,
      primary key (account_id, term, accepted_at, request_no)
    ) ${clustered(sql)}`,
  // No reference to `requests`: it would lock the request's row after the ops, other transactions lock it before them.
  sql`
    create table request_events (
      request_no bigint not null,
      sequence integer not null,
      kind text not null,
      data text,
      told_at bigint not null,
      primary key (request_no, sequence)
    ) ${clustered(sql)}`,
  // `was_public`: 1 for an op that is exposed.
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
      accepted_at bigint not null,
      was_public smallint
    )`,
  // SQLite has smaller indexes than PostgreSQL, where processes of the previous version name the columns: nonces without
  // leading zeros, and one index that finds all ops of a request and allows each element one op that is not abandoned.
  ...sql.onDialectOrElse({
    pg: () => [
      sql`
        create unique index ops_nonce on ops (authority, chain_id, entry_point, wallet, nonce_key, sequence)
        where state <> 'abandoned'`,
      sql`create unique index ops_element on ops (request_id, op_index) where state <> 'abandoned'`,
      sql`create index ops_request on ops (request_id, op_index, op_id)`
    ],
    orElse: () => [
      sql`
        create unique index ops_nonce
        on ops (authority, chain_id, entry_point, wallet, ltrim(nonce_key, '0'), ltrim(sequence, '0'))
        where state <> 'abandoned'`,
      sql`
        create unique index ops_element
        on ops (request_id, op_index, case when state = 'abandoned' then op_id else 0 end)`
    ]
  }),
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
  sql`create index deployments_deadline on deployments (deadline)`,
  // Deleting a request's row searches the rows that refer to it.
  sql`create index deployments_request on deployments (request_id)`,
  // `key_client` is null for the service's EOA, and, with the `key_version` treasury, for the treasury; `rpc` is sealed; `submitted`: whether the event `submitted` was written.
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
      epoch bigint not null default 0,
      submitted smallint not null default 1,
      primary key (chain_id, signer, nonce)
    )`,
  sql`
    create index transactions_open on transactions (chain_id, signer, nonce) where state in ('signed', 'mined')`,
  sql`
    create index transactions_unsigned on transactions (chain_id, signer, nonce) where state in ('free', 'allocated')`,
  sql`create index transactions_direct on transactions (direct) where direct is not null`,
  // One row per signed version of a nonce's transaction: any of them may be mined.
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
  sql`create index transaction_ops_op on transaction_ops (op_id)`,
  // One row per op at a remote bundler, or that landed in a foreign transaction and is not yet at settled depth. `rpc` is
  // sealed. `signed`: `0x` when no bundler received the op. `landed_as`: the op's hash on the chain, if different.
  sql`
    create table handovers (
      op_id bigint primary key references ops (op_id),
      rpc text not null,
      trust text not null check (trust in ('caller', 'operator')),
      since text not null,
      signed text not null,
      landed_as text,
      submitted smallint not null default 1
    )`,
  // One row per lane ever claimed, held by a journal instance. `explained`: nonces below this one were read from the chain.
  // `unread`: uses of nonces from this one on are unknown to the journal and must be read; null: none.
  sql`
    create table lanes (
      chain_id text not null,
      signer text not null,
      epoch bigint not null,
      holder text not null,
      process text not null,
      explained text,
      unread text,
      primary key (chain_id, signer)
    )`
])

/** Ops of direct transactions, counts of unopened elements, and exposure, for work that an earlier version accepted. */
const adopted = (sql: SqlClient.SqlClient) => {
  const [key, sequence, failed] = sql.onDialectOrElse({
    pg: () => [
      sql`lpad(requests.request_no::text, 58, '0')`,
      sql`lpad('', 20, '0')`,
      sql`select (value ->> 'index')::integer from json_array_elements(requests.failed::json)`
    ],
    orElse: () => [
      sql`substr(printf('%058d', 0) || requests.request_no, -58)`,
      sql`printf('%020d', 0)`,
      sql`select json_extract(value, '$.index') from json_each(requests.failed)`
    ]
  })
  return [
    sql`delete from transactions where state in ('free', 'allocated')`,
    sql`
      insert into ops (request_id, op_index, authority, chain_id, entry_point, wallet, nonce_key, sequence, reserve,
        returned, state, tx_hash, success, accepted_at, was_public)
      select requests.request_id, 0, requests.signer, requests.chain_id, 'direct', requests.signer, ${key},
        ${sequence}, '0', requests.note,
        case when carrier.state is null then 'accepted' when carrier.state = 'signed' then 'sent' else 'settled' end,
        coalesce(carrier.tx_hash, (
          select tx_hash from transaction_versions as version
          where version.chain_id = carrier.chain_id and version.signer = carrier.signer
            and version.nonce = carrier.nonce
          order by version_id desc limit 1)),
        carrier.success, requests.accepted_at,
        case when exists (
          select 1 from transactions where direct = requests.request_id and direct is not null) then 1 end
      from requests left join transactions as carrier
        on carrier.direct = requests.request_id and carrier.direct is not null and carrier.state <> 'foreign'
      where requests.endpoint = '/transactSigner' and requests.state <> 'forgotten' and requests.failed = '[]'
        and requests.signer is not null and (
          carrier.state is not null or (requests.state = 'open' and requests.cancelled is null))
        and not exists (
          select 1 from ops where ops.request_id = requests.request_id and ops.state <> 'abandoned')`,
    sql`
      insert into transaction_ops (chain_id, signer, nonce, op_id, position)
      select transactions.chain_id, transactions.signer, transactions.nonce, ops.op_id, 0
      from transactions join ops on ops.request_id = transactions.direct and ops.entry_point = 'direct'
      where transactions.direct is not null`,
    sql`
      update requests set unopened = case when cancelled is null then elements - (
        select count(*) from (
          select op_index from ops where ops.request_id = requests.request_id and ops.state <> 'abandoned'
          union ${failed}) as opened) else 0 end
      where state = 'open'`,
    sql`
      update ops set was_public = 1
      where was_public is null and request_id in (select request_id from requests where state = 'open') and (
        exists (select 1 from handovers where handovers.op_id = ops.op_id)
        or exists (select 1 from transaction_ops where transaction_ops.op_id = ops.op_id))`
  ]
}

/**
 * `prepared`: all data for signing an op, after one byte for the format; null: the op is not prepared yet, or is settled.
 * Not sealed, like the bytes of transactions. `good_until`: Unix milliseconds. `context` names settings
 * that requests share. `unopened`: elements without an op that have not failed; null for a request that was never open since.
 * An op of the EntryPoint `direct` is a direct transaction. `was_public`: 1 for an exposed op. `proven_at`: Unix milliseconds
 * of the last read of a lane's transaction that the journal had lost.
 * The step alters tables in the order that transactions lock them.
 */
export const opRows = step((sql) => [
  sql`alter table lanes add column proven_at bigint`,
  sql`alter table requests add column context text`,
  sql`alter table requests add column unopened integer`,
  sql`create index requests_lane on requests (chain_id, signer, request_no) where state = 'open'`,
  sql`
    create index requests_unopened on requests (chain_id, signer, request_no)
    where state = 'open' and unopened > 0`,
  sql.onDialectOrElse({
    pg: () => sql`alter table ops add column prepared bytea`,
    orElse: () => sql`alter table ops add column prepared blob`
  }),
  sql`alter table ops add column good_until bigint`,
  sql`create index ops_ready on ops (authority, chain_id, op_id) where state = 'accepted'`,
  sql`create index deployments_salt on deployments (create2_salt)`,
  ...adopted(sql)
])

/** Authorisations of deployments that were signed for no accepted request. */
export const unboundDeployments = step((sql) => [
  sql`
    create table unbound_deployments (
      chain_id text not null,
      factory text not null,
      create2_salt text not null,
      config_hash text not null,
      deadline bigint not null,
      primary key (chain_id, factory, create2_salt)
    )`,
  sql`create index unbound_deployments_deadline on unbound_deployments (deadline)`
])

/** `previews`: JSON of what a request's ops would move, sealed; null: none were made. */
export const previews = step((sql) => [sql`alter table requests add column previews text`])

/** `policies`: JSON of the names of the policies that bound a request; null: none. */
export const policies = step((sql) => [sql`alter table requests add column policies text`])
