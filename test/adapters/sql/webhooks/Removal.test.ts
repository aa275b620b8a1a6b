import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlJournal from "../../../../src/adapters/sql/journal/Journal.js"
import * as SqlPostgres from "../../../../src/adapters/sql/postgres/Postgres.js"
import * as SqlWebhooks from "../../../../src/adapters/sql/webhooks/Webhooks.js"
import { Webhooks } from "../../../../src/application/ports/Webhooks.js"
import { acceptOp } from "../../../support/journal/Facts.js"
import { options } from "../../../support/journal/Layers.js"
import * as Make from "../../../support/journal/Make.js"
import * as Postgres from "../../../support/postgres/Postgres.js"

const databases = Postgres.perFile()

/** A database, the stores on it, and what another process does there meanwhile. */
const beside = Effect.gen(function* () {
  const client = SqlPostgres.layer(yield* databases.fresh)
  const stores = yield* Layer.build(
    Layer.provide(Layer.mergeAll(SqlJournal.layer(options), SqlWebhooks.layer(options)), client)
  )
  const sql = Context.get(yield* Layer.build(Layer.fresh(client)), SqlClient.SqlClient)
  /** Waits until a statement waits for another transaction's lock. */
  const waits: Effect.Effect<void, unknown> = Effect.flatMap(
    sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    (rows) => (rows.length > 0 ? Effect.void : waits)
  )
  /** Does one while the other's transaction is open, which ends as soon as it is in the way. */
  const during = <A, E, R>(transaction: Effect.Effect<unknown, unknown>, work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const end = yield* Deferred.make<void>()
      const other = yield* Effect.forkChild(
        sql.withTransaction(
          transaction.pipe(
            Effect.andThen(Deferred.succeed(begun, undefined)),
            Effect.andThen(Deferred.await(end))
          )
        )
      )
      yield* Deferred.await(begun)
      const own = yield* Effect.forkChild(work)
      yield* waits
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.join(other)
      return yield* Fiber.join(own)
    })
  return { during, sql, stores }
})

const hook = Redacted.make("https://example.com/hook")

describe("a webhook that is removed", () => {
  it.live("fails no write whose event it would have been owed at that moment", () =>
    Effect.gen(function* () {
      const { during, sql, stores } = yield* beside
      const webhooks = Context.get(stores, Webhooks)
      const { webhookId } = yield* webhooks.add(Make.alice, hook, [], "operator")
      const removal = sql`delete from webhooks where webhook_id = ${webhookId}`
      yield* during(removal, Effect.provide(acceptOp("r1", 1), stores))
      expect(yield* webhooks.list(Make.alice)).toEqual([])
      expect(yield* webhooks.oldest).toBe(null)
    })
  )

  it.live("takes its pending events with it, and is removed once", () =>
    Effect.gen(function* () {
      const { during, sql, stores } = yield* beside
      const webhooks = Context.get(stores, Webhooks)
      const { webhookId } = yield* webhooks.add(Make.alice, hook, ["expired"], "operator")
      yield* Effect.provide(acceptOp("r1", 1), stores)
      const owing = sql`
        insert into webhook_deliveries (request_no, sequence, webhook_no, state, attempts, owed_at, due_at)
        select request_events.request_no, request_events.sequence, webhooks.webhook_no, 'waiting', 0, 0, 0
        from request_events, webhooks`
      expect(yield* during(owing, webhooks.remove(webhookId, "operator"))).toBe(true)
      expect(yield* sql`select 1 from webhook_deliveries`).toEqual([])
      const another = yield* webhooks.add(Make.alice, hook, [], "operator")
      const twice = sql`delete from webhooks where webhook_id = ${another.webhookId}`
      expect(yield* during(twice, webhooks.remove(another.webhookId, "operator"))).toBe(false)
      const changes = yield* webhooks.changes(another.webhookId, 10)
      expect(changes.map(({ what }) => what)).toEqual(["added"])
    })
  )
})
