import { identity, step } from "./Step.js"

/** Limits of an account in the place of its tier's; null: its tier's. */
export const accountLimits = step((sql) => [
  sql`alter table accounts add column requests_per_minute bigint`,
  sql`alter table accounts add column requests_per_hour bigint`
])

/**
 * Accounts, keys and kill switches. `account_changes` has one row: its version grows with every change of the others
 * but `api_key_uses`, in the transaction of the change. Keys and pauses may be about accounts of the configuration
 * file, which have no row. `number` is the order in which rows came.
 */
export const accounts = step((sql) => [
  sql`
    create table account_changes (
      id smallint primary key check (id = 1),
      version bigint not null
    )`,
  sql`insert into account_changes (id, version) values (1, 1)`,
  sql`
    create table accounts (
      number ${identity(sql)},
      account_id text not null unique,
      name text not null,
      tier text not null check (tier in ('free', 'pro', 'enterprise')),
      created_at bigint not null
    )`,
  sql`
    create table api_keys (
      number ${identity(sql)},
      hash text not null unique,
      account_id text not null,
      scopes text not null,
      origin text not null check (origin in ('command', 'file')),
      issued_at bigint not null,
      ends_at bigint
    )`,
  sql`
    create table api_key_uses (
      hash text primary key,
      used_at bigint not null
    )`,
  sql`
    create table account_networks (
      number ${identity(sql)},
      account_id text not null references accounts (account_id),
      chain_id text not null,
      factory text,
      settings text not null,
      unique (account_id, chain_id)
    )`,
  sql`
    create unique index account_networks_factory on account_networks (chain_id, factory)
    where factory is not null`,
  sql`
    create table account_signers (
      number ${identity(sql)},
      account_id text not null references accounts (account_id),
      client_id text not null,
      version_id text,
      asset_id text,
      provider text not null,
      key_name text not null,
      address text,
      check ((version_id is null) <> (asset_id is null))
    )`,
  sql`
    create unique index account_signers_version on account_signers (account_id, client_id, version_id)
    where version_id is not null`,
  sql`
    create unique index account_signers_asset on account_signers (account_id, client_id, asset_id)
    where asset_id is not null`,
  sql`
    create table pauses (
      number ${identity(sql)},
      kind text not null check (kind in ('account', 'signer', 'chain')),
      subject text not null,
      since bigint not null,
      unique (kind, subject)
    )`
])
