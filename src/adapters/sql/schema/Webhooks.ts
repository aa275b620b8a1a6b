import { appendOnly, identity, step } from "./Step.js"

/**
 * Endpoints, and one row per event to deliver to an endpoint. `url` and the secrets are sealed. `kinds` is empty, or the
 * kinds with a space around each.
 */
export const webhooks = step((sql) => [
  sql`
    create table webhooks (
      webhook_no ${identity(sql)},
      webhook_id text not null unique,
      account_id text not null,
      url text not null,
      kinds text not null,
      state text not null check (state in ('enabled', 'paused', 'failing')),
      secret text not null,
      old_secret text,
      old_until bigint not null default 0,
      created_at bigint not null,
      rests_until bigint not null default 0,
      claimed_by text not null default '',
      claimed_until bigint not null default 0
    )`,
  sql`create index webhooks_account on webhooks (account_id, webhook_no)`,
  sql`
    create table webhook_deliveries (
      request_no bigint not null,
      sequence integer not null,
      webhook_no bigint not null references webhooks (webhook_no),
      state text not null check (state in ('waiting', 'dead')),
      attempts integer not null,
      owed_at bigint not null,
      due_at bigint not null,
      failing_since bigint,
      last_error text,
      primary key (request_no, sequence, webhook_no)
    )`,
  sql`
    create index webhook_deliveries_due on webhook_deliveries (webhook_no, due_at) where state = 'waiting'`,
  sql`
    create index webhook_deliveries_dead on webhook_deliveries (webhook_no, owed_at) where state = 'dead'`,
  sql`
    create index webhook_deliveries_oldest on webhook_deliveries (owed_at) where state = 'waiting'`,
  // Sealed secrets older than the newest two, which are in `webhooks`; each is kept until it expires.
  sql`
    create table webhook_secrets (
      webhook_no bigint not null,
      secret text not null,
      counts_until bigint not null,
      primary key (webhook_no, secret)
    )`,
  // Changes of endpoints and of their watches, with authors. As with `audit`, the database refuses to change or delete rows.
  sql`
    create table webhook_changes (
      change_no ${identity(sql)},
      at bigint not null,
      webhook_id text not null,
      account_id text not null,
      what text not null,
      changed_by text not null,
      watch_id text
    )`,
  sql`create index webhook_changes_webhook on webhook_changes (webhook_id, change_no)`,
  appendOnly(sql, "webhook_changes", "the log of changes")
])

/**
 * Watches, with their nodes, positions and events:
 *
 * - Nodes: `rpc` is sealed, null for the operator's; `account_id` is empty for a node of all accounts.
 * - Positions are shared by watches of a node; `hashes` are of the blocks before `next_block`, the newest last. `part`:
 *   recorded part of the block `next_block`, when it takes several steps: JSON; null: none.
 * - An event without a sequence number waits for its confirmations.
 * - `webhook_deliveries` stores the negated watch number as `request_no`.
 * - There is no reference to `webhooks`, so that versions without watches can delete endpoints.
 */
export const watches = step((sql) => [
  sql`
    create table watch_sources (
      source_no ${identity(sql)},
      source_id text not null unique,
      chain_id text not null,
      account_id text not null,
      rpc text,
      revision bigint not null,
      problem text,
      claimed_by text not null default '',
      claimed_until bigint not null default 0
    )`,
  sql`create index watch_sources_node on watch_sources (chain_id, account_id)`,
  sql`
    create table watch_cursors (
      cursor_no ${identity(sql)},
      source_no bigint not null references watch_sources (source_no),
      first_block bigint not null,
      next_block bigint not null,
      hashes text not null,
      part text
    )`,
  sql`create index watch_cursors_source on watch_cursors (source_no, next_block)`,
  sql`
    create table watches (
      watch_no ${identity(sql)},
      watch_id text not null unique,
      account_id text not null,
      webhook_no bigint not null,
      source_no bigint not null references watch_sources (source_no),
      cursor_no bigint not null references watch_cursors (cursor_no),
      state text not null check (state in ('enabled', 'paused', 'held')),
      spec text not null,
      is_broad integer not null,
      confirmations integer not null,
      from_block bigint not null,
      sequence integer not null,
      revision bigint not null,
      created_at bigint not null
    )`,
  sql`create index watches_account on watches (account_id, watch_no)`,
  sql`create index watches_broad on watches (account_id) where is_broad = 1`,
  sql`create index watches_webhook on watches (webhook_no)`,
  sql`create index watches_source on watches (source_no, revision)`,
  sql`create index watches_cursor on watches (cursor_no)`,
  sql`
    create table watch_events (
      event_no ${identity(sql)},
      watch_no bigint not null,
      sequence integer,
      kind text not null check (kind in ('event', 'removed')),
      stands integer not null,
      block_number bigint not null,
      block_hash text not null,
      log_index bigint not null,
      data text not null,
      told_at bigint not null
    )`,
  sql`create unique index watch_events_sequence on watch_events (watch_no, sequence)`,
  sql`
    create unique index watch_events_stands on watch_events (watch_no, block_number, log_index) where stands = 1`,
  sql`
    create index watch_events_waiting on watch_events (watch_no, block_number, log_index) where sequence is null`
])
