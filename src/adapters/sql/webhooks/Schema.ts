import * as Effect from "effect/Effect"
import { identity, step } from "../schema/Step.js"

/**
 * Endpoints, and one row for each event that is owed to one of them. `url` and the secrets are sealed. `kinds` is empty,
 * or the kinds with a space around each.
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
    create index webhook_deliveries_oldest on webhook_deliveries (owed_at) where state = 'waiting'`
])

/** Changes of watches are in the log of their endpoint, with their id. */
export const watchChanges = step((sql) => [sql`alter table webhook_changes add column watch_id text`])

/** Secrets older than the one before the newest, which are in `webhooks`; sealed, each until it counts no more. */
export const webhookSecrets = step((sql) => [
  sql`
    create table webhook_secrets (
      webhook_no bigint not null,
      secret text not null,
      counts_until bigint not null,
      primary key (webhook_no, secret)
    )`
])

/** Who changed which endpoint, and how. As with `audit`, the database itself refuses to change or remove a row. */
export const webhookChanges = step((sql) => [
  sql`
    create table webhook_changes (
      change_no ${identity(sql)},
      at bigint not null,
      webhook_id text not null,
      account_id text not null,
      what text not null,
      changed_by text not null
    )`,
  sql`create index webhook_changes_webhook on webhook_changes (webhook_id, change_no)`,
  sql.onDialectOrElse({
    pg: () => sql`
      create trigger webhook_changes_append_only before update or delete or truncate on webhook_changes
      for each statement execute function audit_is_append_only()`,
    orElse: () =>
      Effect.andThen(
        sql`
          create trigger webhook_changes_no_update before update on webhook_changes
          begin select raise(abort, 'the log of changes is append-only'); end`,
        sql`
          create trigger webhook_changes_no_delete before delete on webhook_changes
          begin select raise(abort, 'the log of changes is append-only'); end`
      )
  })
])
