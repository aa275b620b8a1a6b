import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { most, Policies, PoliciesError, type PolicyVersion } from "../../application/ports/Policies.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as Subject from "../../domain/policy/Subject.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"
import * as Store from "./Store.js"

interface Row extends Omit<PolicyVersion, "at" | "content" | "version"> {
  readonly version: number | string
  readonly at: number | string
  readonly content: string | null
}

type Place = Pick<PolicyVersion, "accountId" | "layer" | "subject">

const failed = (error: SqlError | PoliciesError): PoliciesError =>
  error instanceof PoliciesError
    ? error
    : new PoliciesError({
        reason: "unavailable",
        message: `the store of spending rules failed${ErrorCode.suffix(error)}`
      })

const versionOf = (row: Row): Effect.Effect<PolicyVersion, PoliciesError> => {
  const { content, subject } = row
  const whole = (found: Subject.Content): PolicyVersion => ({
    ...row,
    version: Number(row.version),
    at: Number(row.at),
    content: found
  })
  if (content === null) return Effect.succeed(whole(null))
  return Schema.decodeEffect(Schema.fromJsonString(Subject.contentOf(subject)))(content, {
    onExcessProperty: "error"
  }).pipe(
    Effect.mapBoth({
      onFailure: () =>
        new PoliciesError({
          reason: "unreadable",
          message: `version ${row.version} of ${subject} is in no form that this version of the program reads`
        }),
      onSuccess: whole
    })
  )
}

/** Excludes other writers until the transaction ends, so that `change_no` grows in commit order. */
const turn = "policies"

/** Adds a version, in the caller's transaction that holds `turn`. */
const add = (
  sql: SqlClient.SqlClient,
  { accountId, at, by, countedAs, layer, requestId, subject, version }: Omit<PolicyVersion, "content">,
  content: string | null
) => sql`
  insert into policies (change_no, account_id, layer, subject, version, content, counted_as, at, made_by, request_id)
  select coalesce(max(change_no), 0) + 1, cast(${accountId} as text), cast(${layer} as text),
    cast(${subject} as text), cast(${version} as bigint), cast(${content} as text), cast(${countedAs} as text),
    cast(${at} as bigint), cast(${by} as text), cast(${requestId} as text)
  from policies`

const columns = (sql: SqlClient.SqlClient): Fragment => sql`
  account_id as "accountId", layer, subject, version, content, counted_as as "countedAs", at, made_by as by,
  request_id as "requestId"`

/** Binds a key to the policies of the key that it replaces, and continues their counts. In the caller's transaction. */
export const handOver = (
  sql: SqlClient.SqlClient,
  accountId: AccountId,
  from: string,
  to: string,
  atMillis: number
) =>
  Effect.gen(function* () {
    yield* Store.lock(sql)(turn)
    const known = yield* sql<Row>`
      select ${columns(sql)} from policies
      where account_id = ${accountId} and subject = ${`key:${from}`} order by version desc`
    for (const layer of ["operator", "account"] as const) {
      const newest = known.find((row) => row.layer === layer)
      if (newest?.content == null) continue
      const at = Math.floor(atMillis / 1_000)
      const made = { ...newest, subject: `key:${to}`, version: 1, at, by: `key:${from}`, requestId: null }
      yield* add(sql, made, newest.content)
    }
  })

export const make: Migrations.Stored<Policies["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const asked = <A>(effect: Effect.Effect<A, SqlError | PoliciesError>) =>
    Effect.withTracerEnabled(Effect.mapError(effect, failed), false)

  const rows = (which: Fragment) => sql<Row>`select ${columns(sql)} from policies where ${which}`
  const read = (which: Fragment) => asked(Effect.flatMap(rows(which), Effect.forEach(versionOf)))

  const newestFirst = ({ accountId, layer, subject }: Place) => sql`
    account_id = ${accountId} and layer = ${layer} and subject = ${subject} order by version desc`

  const newestOf = (place: Place) => Effect.map(rows(sql`${newestFirst(place)} limit 1`), ([row]) => row)

  /** Newest versions that remove nothing. */
  const kept = sql.literal(`
    content is not null and version = (
      select max(version) from policies as later
      where later.account_id = policies.account_id and later.layer = policies.layer
        and later.subject = policies.subject)`)

  const hasRoom = ({ accountId, layer, subject }: Place, content: string) =>
    Effect.flatMap(
      sql<{ readonly subjects: number | string; readonly characters: number | string }>`
        select count(*) as subjects, coalesce(sum(length(content)), 0) as characters from policies
        where account_id = ${accountId} and layer = ${layer} and subject <> ${subject} and ${kept}`,
      ([others]) =>
        content !== "" &&
        (Number(others?.subjects) >= most.subjects ||
          Number(others?.characters) + content.length > most.characters)
          ? new PoliciesError({
              reason: "full",
              message: `an account has at most ${most.subjects} policies and lists, of ${most.characters} characters together`
            })
          : Effect.void
    )

  return {
    put: (entry, expected) =>
      asked(
        Store.locking(sql, [turn])(
          Effect.gen(function* () {
            const { content, subject } = entry
            const newest = yield* newestOf(entry)
            const version = Number(newest?.version ?? 0)
            const mismatch = newest?.content == null ? 0 : version
            if ((expected ?? mismatch) !== mismatch || (content === null && mismatch === 0))
              return { mismatch }
            const encoded =
              content === null ? null : JSON.stringify(Schema.encodeSync(Subject.contentOf(subject))(content))
            if (newest !== undefined && newest.content === encoded) return yield* versionOf(newest)
            yield* hasRoom(entry, encoded ?? "")
            const made = { ...entry, version: version + 1, countedAs: newest?.countedAs ?? subject }
            yield* add(sql, made, encoded)
            return made
          })
        )
      ),
    current: (accountId) => read(sql`account_id = ${accountId} and ${kept} order by layer, subject`),
    history: (accountId, layer, subject) => read(newestFirst({ accountId, layer, subject })),
    changes: (after) =>
      asked(
        Effect.map(
          sql<{ readonly accountId: AccountId; readonly latest: number | string }>`
            select account_id as "accountId", max(change_no) as latest from policies
            where change_no > ${after} group by account_id`,
          (rows) => ({
            latest: Math.max(after, ...rows.map(({ latest }) => Number(latest))),
            accounts: rows.map(({ accountId }) => accountId)
          })
        )
      )
  }
})

/** Spending rules in the database, as the port `Policies`. The database refuses to change its rows. */
export const layer: Migrations.StoredLayer<Policies> = Layer.effect(Policies, make)
