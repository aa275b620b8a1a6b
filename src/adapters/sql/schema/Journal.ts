import { identity, step } from "./Step.js"

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
