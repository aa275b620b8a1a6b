import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as Statement from "effect/sql/Statement"
import * as SqlAuditLog from "../../src/adapters/sql/AuditLog.js"
import * as Sqlite from "../../src/adapters/sql/sqlite/Sqlite.js"
import { type Act, AuditLog } from "../../src/application/ports/AuditLog.js"
import type { AccountId } from "../../src/application/ports/Tenants.js"
import * as Address from "../../src/domain/primitives/Address.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import * as Layers from "../support/journal/Layers.js"
import { suite } from "./AuditLog.suite.js"

const clients = Layers.clients()

for (const [name, client] of Object.entries(clients))
  suite(
    name,
    Effect.map(client, (sql) => Layer.orDie(Layer.provide(SqlAuditLog.layer, Layer.fresh(sql))))
  )

const act: Act = {
  kind: "signature",
  accountId: null,
  requestId: null,
  by: null,
  signer: Address.unsafe(`0x${"11".repeat(20)}`),
  hash: Hex.unsafe32(`0x${"22".repeat(32)}`),
  chainId: null,
  nonce: null
}

describe.each(Object.entries(clients))("the table of the audit log in %s", (_, client) => {
  it.effect("refuses every change and every removal", () =>
    Effect.gen(function* () {
      const sql = yield* client
      const ports = Layer.provideMerge(SqlAuditLog.layer, Layer.fresh(sql))
      yield* Effect.gen(function* () {
        const log = yield* AuditLog
        const raw = yield* SqlClient.SqlClient
        yield* log.record(act)
        for (const attempt of [
          raw`update audit set account_id = 'nobody'`,
          raw`delete from audit`,
          ...(raw.onDialectOrElse({ pg: () => true, orElse: () => false }) ? [raw`truncate audit`] : [])
        ]) {
          const refused = yield* Effect.flip(attempt)
          expect(String((refused.reason.cause as Error).message)).toContain("the audit log is append-only")
        }
        expect(yield* log.find({ limit: 10 })).toHaveLength(1)
      }).pipe(Effect.provide(ports))
    })
  )
})

describe("the audit log in SQLite", () => {
  it.effect("answers callers that record while it closes, and after that", () =>
    Effect.gen(function* () {
      const sql = yield* Effect.provide(Sqlite.make({ filename: ":memory:" }), Reactivity.layer)
      const scope = yield* Scope.make()
      const log = yield* SqlAuditLog.make.pipe(
        Effect.provideService(SqlClient.SqlClient, sql),
        Scope.provide(scope)
      )
      yield* log.record(act)
      const record = Effect.forkChild(Effect.flip(log.record(act)), { startImmediately: true })
      const records = yield* sql.withTransaction(
        Effect.gen(function* () {
          // More than one commit holds, so that some wait for the next.
          const before = yield* Effect.forEach(Array.from({ length: 60 }), () => record)
          yield* Scope.close(scope, Exit.void)
          return [...before, yield* record, yield* record]
        })
      )
      const errors = yield* Effect.forEach(records, Fiber.join)
      expect(new Set(errors.map(({ message }) => message))).toEqual(new Set(["the service stops"]))
      expect(yield* log.find({ limit: 100 })).toHaveLength(1)
    })
  )

  it.effect("finds entries by an index, for every filter", () =>
    Effect.gen(function* () {
      const ports = Layer.provideMerge(SqlAuditLog.layer, Layer.fresh(yield* clients.SQLite))
      yield* Effect.gen(function* () {
        const log = yield* AuditLog
        const sql = yield* SqlClient.SqlClient
        const plan = (query: Parameters<typeof log.find>[0]) =>
          Effect.gen(function* () {
            let compiled: readonly [text: string, parameters: ReadonlyArray<unknown>] = ["", []]
            yield* Effect.provideService(log.find(query), Statement.CurrentTransformer, (statement) =>
              Effect.sync(() => {
                compiled = statement.compile()
                return statement
              })
            )
            const [text, parameters] = compiled
            const rows = yield* sql.unsafe<{ readonly detail: string }>(
              `explain query plan ${text}`,
              parameters
            )
            return rows.map(({ detail }) => detail).join("; ")
          })
        const id = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
        for (const [query, index] of [
          [{ accountId: "a" as AccountId }, "audit_account"],
          [{ signer: Address.unsafe(`0x${"11".repeat(20)}`) }, "audit_signer"],
          [{ hash: Hex.unsafe32(`0x${"22".repeat(32)}`) }, "audit_hash"],
          [{ requestId: id }, "audit_request"]
        ] as const)
          expect(yield* plan({ ...query, limit: 1 })).toContain(`USING INDEX ${index} `)
      }).pipe(Effect.provide(ports))
    })
  )
})
