import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import * as Postgres from "../../../../src/adapters/sql/postgres/Postgres.js"
import * as SqlWatches from "../../../../src/adapters/sql/watches/Watches.js"
import * as SqlWebhooks from "../../../../src/adapters/sql/webhooks/Webhooks.js"
import { Watches } from "../../../../src/application/ports/Watches.js"
import * as Following from "../../../application/watches/Following.js"
import { options } from "../../../support/journal/Layers.js"
import * as Meanwhile from "../../../support/postgres/Meanwhile.js"
import * as PostgresServer from "../../../support/postgres/Postgres.js"

const databases = PostgresServer.perFile()

describe("watches that owe too much or little again, in PostgreSQL", () => {
  it.effect("a watch paused while a process reads it stays paused", () =>
    Effect.gen(function* () {
      const address = yield* databases.fresh
      const client = Effect.provide(Postgres.make(address), Reactivity.layer)
      const [sql, other] = [yield* client, yield* client]
      const layers = Layer.merge(SqlWatches.layer(options), SqlWebhooks.layer(options))
      const context = yield* Layer.build(Layer.provide(layers, Layer.succeed(SqlClient.SqlClient, other)))
      const id = yield* Effect.provide(Following.add(), context)
      const [source] = yield* sql<{ readonly source_no: number }>`select source_no from watch_sources`
      const balanced = Effect.provide(
        Effect.flatMap(Watches, (watches) => watches.balance(source?.source_no ?? 0)),
        context
      )
      const stateOf = Effect.provide(
        Effect.map(
          Effect.flatMap(Watches, (watches) => watches.get(id)),
          (watch) => watch?.state
        ),
        context
      )
      const hold = sql`update watches set state = 'held'`
      const pause = sql`update watches set state = 'paused'`
      yield* hold
      // As `setState` does it: the source first.
      const lock = sql`update watch_sources set revision = revision + 1`
      expect(yield* Meanwhile.changed(sql, other, { lock, method: balanced, change: pause })).toBe(0)
      expect(yield* stateOf).toBe("paused")
      yield* hold
      expect(yield* balanced).toBe(1)
      expect(yield* stateOf).toBe("enabled")
    })
  )
})

describe("the watches of an account, in PostgreSQL", () => {
  it.effect("are 10,000 at most, and another account's do not count", () =>
    Effect.gen(function* () {
      const sql = yield* Effect.provide(Postgres.make(yield* databases.fresh), Reactivity.layer)
      const layers = Layer.merge(SqlWatches.layer(options), SqlWebhooks.layer(options))
      const context = yield* Layer.build(Layer.provide(layers, Layer.succeed(SqlClient.SqlClient, sql)))
      const add = Effect.provide(Following.add({ isBroad: false }), context)
      yield* add
      yield* sql`
        insert into watches (watch_id, account_id, webhook_no, source_no, cursor_no, state, spec, is_broad,
          confirmations, from_block, sequence, revision, created_at)
        select watch_id || n, case when n < 9999 then account_id else 'bob' end, webhook_no, source_no, cursor_no,
          state, spec, is_broad, confirmations, from_block, sequence, revision, created_at
        from watches cross join generate_series(1, 9999) as n`
      yield* add
      const { message, reason } = yield* Effect.flip(add)
      expect([reason, message]).toEqual(["tooMany", "an account has at most 10000 watches; remove one first"])
    })
  )
})
