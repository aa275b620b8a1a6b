import * as Effect from "effect/Effect"
import { identity, step } from "./Step.js"

/**
 * The database itself refuses to change or remove a row, whoever asks: only the owner of the table can take the triggers
 * away. Chain ids are decimal text, nonces too; times are Unix milliseconds.
 */
export const audit = step((sql) => [
  sql`
    create table audit (
      entry_no ${identity(sql)},
      at bigint not null,
      kind text not null check (kind in ('signature', 'transaction')),
      account_id text,
      request_id text,
      acted_by text,
      signer text not null,
      hash text not null,
      chain_id text,
      nonce text
    )`,
  sql`create index audit_account on audit (account_id, entry_no)`,
  sql`create index audit_signer on audit (signer, entry_no)`,
  sql`create index audit_hash on audit (hash)`,
  sql`create index audit_request on audit (request_id)`,
  sql`create index audit_at on audit (at)`,
  sql.onDialectOrElse({
    pg: () =>
      Effect.andThen(
        sql`
          create function audit_is_append_only() returns trigger language plpgsql as
          'begin raise exception ''the audit log is append-only''; end'`,
        sql`
          create trigger audit_append_only before update or delete or truncate on audit
          for each statement execute function audit_is_append_only()`
      ),
    orElse: () =>
      Effect.andThen(
        sql`
          create trigger audit_no_update before update on audit
          begin select raise(abort, 'the audit log is append-only'); end`,
        sql`
          create trigger audit_no_delete before delete on audit
          begin select raise(abort, 'the audit log is append-only'); end`
      )
  })
])
