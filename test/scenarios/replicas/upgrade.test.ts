import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import { id as hashOf } from "ethers"
import { describe, expect, it } from "vitest"
import * as Migrations from "../../../src/adapters/sql/Migrations.js"
import * as PostgresClient from "../../../src/adapters/sql/postgres/Postgres.js"
import * as Ground from "../../replicas/support/Ground.js"
import type * as Rig from "../../replicas/support/Rig.js"
import * as Shape from "../../support/schema/Shape.js"

const { freshUrl, rigOn, world } = Ground.perFile()

const numbers = Object.keys(Migrations.migrations).map((name) => Number.parseInt(name, 10))
const newest = Math.max(...numbers)

const at = <A>(url: string, effect: Effect.Effect<A, unknown, SqlClient.SqlClient>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, PostgresClient.layer({ url: Redacted.make(url) })))

/** Removes the newest migration's additions from the database; every row stays. */
const downgrade = async (url: string): Promise<void> => {
  const { [Object.keys(Migrations.migrations).at(-1) ?? ""]: _, ...earlier } =
    Migrations.migrations as Record<string, (typeof Migrations.migrations)["0033_op_rows"]>
  const before = await at(
    await freshUrl(),
    Effect.andThen(
      Migrator.make({})({ loader: Migrator.fromRecord(earlier), table: "castellan_migrations" }),
      Shape.read
    )
  )
  await at(
    url,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const all = yield* Shape.read
      const own = (name: string) => !name.startsWith("castellan_cluster")
      const after = {
        ...all,
        columns: new Map([...all.columns].filter(([name]) => own(name))),
        indexes: new Set([...all.indexes].filter(own))
      }
      yield* Shape.undo(before, after)
      // The newest migration replaces this table.
      yield* sql`
        create table budget_reservations (
          hold_no bigint generated always as identity primary key, account_id text not null,
          chain_id text not null, pot text not null, id text not null, day integer not null,
          wei text not null, landed text, state text not null, note text not null,
          expires_at bigint not null, holders text not null default '', hour integer
        )`
      yield* sql`delete from castellan_migrations where migration_id = ${newest}`
      expect((yield* Shape.read).columns).toEqual(
        new Map([...before.columns, ...[...all.columns].filter(([name]) => !own(name))])
      )
    })
  )
}

/**
 * A process of the previous version works on the tables all the while: its transactions insert, lock, update and delete
 * rows, and name only columns that it knows.
 */
const earlierVersion = (url: string) => {
  let isOver = false
  let transactions = 0
  const work = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    while (!isOver) {
      const id = `of the version before ${transactions}`
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`insert into requests ${sql.insert({
            request_id: id,
            account_id: "somebody",
            endpoint: "/none",
            chain_id: "1",
            body: "",
            failed: "[]",
            state: "forgotten",
            accepted_at: transactions
          })}`
          const [row] = yield* sql`select * from requests where request_id = ${id} for update`
          expect(row).toMatchObject({ request_id: id, accepted_at: transactions })
          yield* sql`select count(*) from ops where state in ('accepted', 'sent')`
          yield* sql`update requests set failed = '[1]' where request_id = ${id}`
          yield* sql`select * from transactions where state = 'signed' for share`
          yield* sql`delete from requests where request_id = ${id}`
        })
      )
      transactions += 1
    }
  })
  const done = at(url, work)
  return async () => {
    isOver = true
    await done
    return transactions
  }
}

describe("a database of the version before", { timeout: 180_000 }, () => {
  it("is migrated once by three processes that start together, while its work is under way and callers send requests", async () => {
    const url = await freshUrl()
    const rig = await rigOn({ url })
    const first = await rig.begin()
    await rig.prepare(first)
    await world().send("evm_setAutomine", false)
    const accepted = ["accepted-1", "accepted-2", "accepted-3"]
    for (const [n, name] of accepted.entries())
      expect(
        await rig.exchange(first, "/execute", name, rig.hit(n, hashOf(name)), { prefer: "respond-async" })
      ).toMatchObject({ status: 202 })
    await expect.poll(rig.pooled, { timeout: 20_000 }).toBeGreaterThan(0)
    await rig.end(first)
    await downgrade(url)

    const endEarlier = earlierVersion(url)
    await world().send("evm_setAutomine", true)
    await world().send("evm_mine")
    const serving: Array<Rig.Running> = []
    const asked = Array.from({ length: 12 }, (_, n) => `asked-${n}`)
    const answers = Promise.all(
      asked.map(async (name, n) => {
        await expect.poll(() => serving.length, { timeout: 60_000 }).toBeGreaterThan(n % 3)
        return rig.insist(
          () => serving[n % serving.length] as Rig.Running,
          "/execute",
          name,
          rig.hit(n, hashOf(name))
        )
      })
    )
    const begin = async () => void serving.push(await rig.begin())
    await Promise.all([begin(), begin(), begin()])
    for (const answer of await answers) expect(answer).toMatchObject({ status: 200, body: { status: 1 } })
    for (const [n, name] of accepted.entries())
      expect(
        await rig.insist(() => serving[n] as Rig.Running, "/execute", name, rig.hit(n, hashOf(name)))
      ).toMatchObject({ status: 200, body: { status: 1 } })
    expect(await endEarlier()).toBeGreaterThan(0)
    const ids = [...accepted, ...asked].map(hashOf)
    expect(await Promise.all(ids.map(rig.count))).toEqual(ids.map(() => 1))
    const ran = await at(
      url,
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql<{ readonly migration_id: number }>`
          select migration_id from castellan_migrations order by migration_id`
      )
    )
    expect(ran.map(({ migration_id }) => migration_id)).toEqual(numbers)
    await expect.poll(rig.open, { timeout: 20_000 }).toEqual([])
  })
})
