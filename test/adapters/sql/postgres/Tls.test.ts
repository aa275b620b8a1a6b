import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Reactivity from "effect/reactivity/Reactivity"
import pg from "pg"
import * as Postgres from "../../../../src/adapters/sql/postgres/Postgres.js"
import * as Store from "../../../../src/adapters/sql/Store.js"
import * as Certificate from "../../../support/kms/Certificate.js"
import * as PostgresServer from "../../../support/postgres/Postgres.js"

const databases = PostgresServer.alone()

const clientOf = (url: string, options: { readonly answerTimeoutMillis?: number } = {}) =>
  Effect.provide(Postgres.make({ url: Redacted.make(url), maxConnections: 2, ...options }), Reactivity.layer)

/** A server that takes encrypted connections, under the name `localhost`: a database, and where its certificate is. */
const encrypted = Effect.gen(function* () {
  const { url } = yield* databases.fresh
  const { cert, key } = Certificate.selfSigned(["localhost"])
  yield* Effect.promise(async () => {
    const admin = new pg.Client({ connectionString: Redacted.value(url) })
    await admin.connect()
    for (const [file, pem] of [
      ["server.key", key],
      ["server.crt", cert]
    ] as const) {
      const lines = admin.escapeLiteral(pem.trim())
      await admin.query(
        `copy (select regexp_split_to_table(${lines}, '\n')) to program 'umask 077; cat > ${file}'`
      )
    }
    await admin.query("alter system set ssl = on")
    await admin.query("select pg_reload_conf()")
    await admin.end()
  })
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "castellan-tls-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true }))
  )
  const authority = join(folder, "ca.crt")
  writeFileSync(authority, cert)
  const at = (host: string, parameters: string) => {
    const address = new URL(Redacted.value(url))
    address.hostname = host
    return `${address.href}?${parameters}`
  }
  return { at, verified: at("localhost", `sslmode=verify-full&sslrootcert=${authority}`), authority }
})

const eventually = <A, E>(
  open: Effect.Effect<A, E, import("effect/Scope").Scope>
): Effect.Effect<A, E, import("effect/Scope").Scope> => Effect.retry(open, { times: 20 })

describe("a connection of PostgreSQL that is encrypted", () => {
  it.live("sends, receives in order, is interrupted and ends as a plain connection does", () =>
    Effect.gen(function* () {
      const { verified } = yield* encrypted
      const sql = yield* eventually(clientOf(verified))
      if (!Store.isPostgres(sql)) return expect.fail("no client of PostgreSQL")
      expect(yield* sql`select ssl, version from pg_stat_ssl where pid = pg_backend_pid()`).toEqual([
        { ssl: true, version: "TLSv1.3" }
      ])
      yield* sql`create table t (n integer unique, text text)`
      const long = "x".repeat(300_000)
      const rows = yield* sql.locking(["a", "b"])(
        Effect.gen(function* () {
          for (let n = 0; n < 50; n++) yield* sql`insert into t (n, text) values (${n}, ${long})`
          return yield* sql`select count(*) as n, sum(length(text)) as size from t`
        })
      )
      expect(rows).toEqual([{ n: 50, size: 50 * long.length }])
      const begun = performance.now()
      const slow = yield* Effect.forkChild(sql.withTransaction(sql`select pg_sleep(20)`))
      yield* Effect.sleep("100 millis")
      yield* Fiber.interrupt(slow)
      expect(performance.now() - begun).toBeLessThan(10_000)
      expect(yield* sql`select count(*) as n from t`).toEqual([{ n: 50 }])
    })
  )

  it.live("is cut when a statement is not answered in time, and the next one has another", () =>
    Effect.gen(function* () {
      const { verified } = yield* encrypted
      const sql = yield* eventually(clientOf(verified, { answerTimeoutMillis: 2_000 }))
      const server = yield* databases.server
      yield* Effect.acquireUseRelease(
        Effect.sync(server.freeze),
        () => Effect.map(Effect.exit(sql`select 1`), (exit) => expect(Exit.isFailure(exit)).toBe(true)),
        () => Effect.sync(server.thaw)
      )
      expect(yield* sql`select 1 as n`).toEqual([{ n: 1 }])
    })
  )

  it.live("rejects a server with another identity", () =>
    Effect.gen(function* () {
      const { at, authority, verified } = yield* encrypted
      yield* eventually(clientOf(verified))
      const other = at("127.0.0.1", `sslmode=verify-full&sslrootcert=${authority}`)
      expect((yield* Effect.flip(clientOf(other))).message).toContain("ERR_TLS_CERT_ALTNAME_INVALID")
      const unknown = at("localhost", "sslmode=verify-full")
      expect((yield* Effect.flip(clientOf(unknown))).message).toContain("DEPTH_ZERO_SELF_SIGNED_CERT")
    })
  )
})
