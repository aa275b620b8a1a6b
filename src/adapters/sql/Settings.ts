import { randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { type Setting, Settings, SettingsError } from "../../application/ports/operator/Settings.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"
import * as Seal from "./Seal.js"
import * as Store from "./Store.js"

interface Row {
  readonly accountId: AccountId
  readonly content: string | null
  readonly at: number | string
  readonly by: string
  readonly requestId: string | null
}

const failed = (error: unknown): SettingsError =>
  new SettingsError({ message: `the store of accounts' settings failed${ErrorCode.suffix(error)}` })

/** Text does not open as another account's, or as another setting. */
const rowOf = (accountId: AccountId, name: Setting["name"]): string => `setting ${name} ${accountId}`

export const make = (sealingKey: Redacted.Redacted<string>): Migrations.Stored<Settings["Service"]> =>
  Effect.gen(function* () {
    const sql = yield* Migrations.client
    const seal = Seal.make(sealingKey)
    const asked = <A>(effect: Effect.Effect<A, unknown>) =>
      Effect.withTracerEnabled(Effect.mapError(effect, failed), false)
    return {
      newSecret: Effect.sync(() => `whsec_${randomBytes(32).toString("base64")}`),
      put: ({ accountId, at, by, content, name, requestId }) =>
        asked(
          Store.transaction(sql)(sql`
            insert into settings ${sql.insert({
              account_id: accountId,
              name,
              content: content === null ? null : seal.close(rowOf(accountId, name), content),
              at,
              made_by: by,
              request_id: requestId
            })}`)
        ),
      find: (accountId, name) =>
        asked(
          sql<Row>`
            select content, at, made_by as by, request_id as "requestId" from settings
            where account_id = ${accountId} and name = ${name} order by setting_no desc limit 1`
        ).pipe(
          Effect.flatMap(([row]) =>
            row === undefined || row.content === null
              ? Effect.succeed(null)
              : Effect.map(seal.open(rowOf(accountId, name), row.content), (content) => ({
                  ...row,
                  accountId,
                  name,
                  at: Number(row.at),
                  content
                }))
          ),
          Effect.catchTag("JournalError", ({ message }) => new SettingsError({ message }))
        ),
      having: (name) =>
        asked(
          Effect.map(
            sql<Pick<Row, "accountId">>`
              select account_id as "accountId" from settings where name = ${name} and content is not null
                and setting_no = (
                  select max(setting_no) from settings as later
                  where later.account_id = settings.account_id and later.name = settings.name)
              order by account_id`,
            (rows) => rows.map(({ accountId }) => accountId)
          )
        )
    }
  })

/** Settings in the database, as the port `Settings`. The database refuses to change its rows. */
export const layer = ({
  sealingKey
}: {
  readonly sealingKey: Redacted.Redacted<string>
}): Migrations.StoredLayer<Settings> => Layer.effect(Settings, make(sealingKey))
