import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as PostgresClient from "../../../src/adapters/sql/postgres/Postgres.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { accept } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Layers from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

const databases = Postgres.perFile()

/** Two instances of the journal, the client of the first, and an observer. */
const setup = Effect.gen(function* () {
  const address = yield* databases.fresh
  const client = Layer.orDie(PostgresClient.layer(address))
  const journalOn = SqlJournal.layer(Layers.options).pipe(Layer.orDie)
  const first = yield* Layer.build(Layer.fresh(Layer.provideMerge(journalOn, client)))
  const second = yield* Layer.build(Layer.fresh(Layers.postgresAt(address)))
  const onlooker = yield* Layer.build(Layer.fresh(client))
  return {
    sql: Context.get(first, SqlClient.SqlClient),
    one: Journals.methodsOf(first),
    other: Journals.methodsOf(second),
    look: Context.get(onlooker, SqlClient.SqlClient)
  }
})

/** Waits until this many statements of the database wait for another transaction to end. */
const someoneWaits = (look: SqlClient.SqlClient, count = 1): Effect.Effect<void, unknown> =>
  Effect.flatMap(
    look`select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    (rows) => (rows.length >= count ? Effect.void : someoneWaits(look, count))
  )

const key = { accountId: Make.alice, endpoint: "/execute", key: "key" }

const acceptanceOf = (requestId: string) =>
  Make.acceptance(requestId, [Make.op({ userOpHash: Make.word(1) })], {
    idempotency: { key: key.key, bodyHash: Make.word(1) },
    arrivedAt: 0
  })

const acceptance = acceptanceOf("r1")

describe("an acceptance whose end is not known, on PostgreSQL", () => {
  for (const end of ["committed", "rolled back"] as const)
    it.live(`ends as ${end} for callers that wait for it`, () =>
      Effect.gen(function* () {
        const { look, one, other, sql } = yield* setup
        const written = yield* Deferred.make<void>()
        const goOn = yield* Deferred.make<void>()
        // Its statements run in the open transaction around it.
        const open = sql.withTransaction(
          Effect.gen(function* () {
            yield* accept(one, acceptance)
            yield* Deferred.succeed(written, undefined)
            yield* Deferred.await(goOn)
            if (end === "rolled back") return yield* new JournalError({ message: "the connection broke" })
          })
        )
        const accepting = yield* Effect.forkChild(Effect.exit(open))
        yield* Deferred.await(written)
        expect(yield* other.request("r1")).toBeNull()
        const asking = yield* Effect.forkChild(
          Effect.all([other.decline("r1"), other.refuse("r2", key)], { concurrency: "unbounded" })
        )
        yield* someoneWaits(look, 2)
        yield* Deferred.succeed(goOn, undefined)
        expect(Exit.isSuccess(yield* Fiber.join(accepting))).toBe(end === "committed")
        expect(yield* Fiber.join(asking)).toEqual(end === "committed" ? [Make.lane, "r1"] : [null, null])
        expect((yield* other.request("r1")) !== null).toBe(end === "committed")
        if (end === "rolled back")
          for (const each of [acceptance, acceptanceOf("r3")])
            expect(yield* accept(one, each)).toEqual({ _tag: "over" })
      })
    )

  it.live("is over when its decline is, even if it reaches the database meanwhile", () =>
    Effect.gen(function* () {
      const { look, one, other, sql } = yield* setup
      const written = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const declining = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            const lane = yield* one.decline("r1")
            yield* Deferred.succeed(written, undefined)
            yield* Deferred.await(goOn)
            return lane
          })
        )
      )
      yield* Deferred.await(written)
      const accepting = yield* Effect.forkChild(accept(other, acceptance))
      yield* someoneWaits(look)
      yield* Deferred.succeed(goOn, undefined)
      expect(yield* Fiber.join(declining)).toBeNull()
      expect(yield* Fiber.join(accepting)).toEqual({ _tag: "over" })
      expect(yield* accept(one, acceptanceOf("r2"))).toEqual({ _tag: "accepted" })
    })
  )
})
