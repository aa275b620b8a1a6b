import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import * as Statement from "effect/sql/Statement"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import * as SqlBudgets from "../../../src/adapters/sql/budgets/Budgets.js"
import * as Migrations from "../../../src/adapters/sql/Migrations.js"
import * as PostgresAdapter from "../../../src/adapters/sql/postgres/Postgres.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import {
  Budgets,
  type Cost,
  dayOf,
  hourOf,
  type Lack,
  type Reservation
} from "../../../src/application/ports/Budgets.js"
import { temporaryFolder } from "../../support/journal/Layers.js"
import { alice } from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

/** Running totals are what the sum of all reservations is, whatever happened before. */

const databases = Postgres.perFile()
const chainId = 31_337n
const minute = 60_000
const hour = 3_600_000
const day = 24 * hour
const cap = 100n

type Client = Layer.Layer<SqlClient.SqlClient, unknown>

const sqlite: Client = Layer.unwrap(
  Effect.map(temporaryFolder, (folder) => Sqlite.layer({ filename: join(folder, "castellan.db") }))
)

const databasesOf: ReadonlyArray<{
  readonly name: string
  readonly client: Client
  readonly numRuns: number
}> = [
  { name: "SQLite", client: sqlite, numRuns: 40 },
  { name: "PostgreSQL", client: databases.layer, numRuns: 6 }
]

const budgetsOn = (client: Client) => Layer.provideMerge(SqlBudgets.layer, Layer.fresh(client))

/** Budgets of each window; one has a bound of open reservations. */
const pots: ReadonlyArray<
  Pick<Reservation, "accountId" | "books" | "chainId" | "maxOpen" | "name" | "window">
> = [
  { accountId: null, chainId, name: "deposit", window: "open", maxOpen: null },
  { accountId: alice, chainId, name: "sponsor", window: "day", maxOpen: 3 },
  { accountId: alice, chainId, name: "hours", window: "24h", maxOpen: null, books: "held" },
  { accountId: alice, chainId, name: "month", window: "30d", maxOpen: null, books: "cost" }
]

type Item = readonly [pot: number, id: number, wei: number]

type Command =
  | { readonly do: "reserve"; readonly groups: ReadonlyArray<ReadonlyArray<Item>>; readonly minutes: number }
  | { readonly do: "bind"; readonly id: number; readonly wei: number }
  | { readonly do: "release"; readonly ids: ReadonlyArray<number> }
  | { readonly do: "land"; readonly id: number; readonly wei: number | null }
  | { readonly do: "settle"; readonly id: number; readonly wei: Cost | number | null }
  | { readonly do: "pass"; readonly minutes: number }

const item = fc.tuple(fc.nat(pots.length - 1), fc.nat(4), fc.nat(60))
const cost = fc.option(fc.nat(60))
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("reserve" as const),
      groups: fc.array(fc.array(item, { maxLength: 3 }), { minLength: 1, maxLength: 3 }),
      minutes: fc.constantFrom(10, 90, 3_000)
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("bind" as const), id: fc.nat(4), wei: fc.nat(20) })
  },
  fc.record({ do: fc.constant("release" as const), ids: fc.array(fc.nat(4), { maxLength: 2 }) }),
  fc.record({ do: fc.constant("land"), id: fc.nat(4), wei: cost }),
  fc.record({
    do: fc.constant("settle"),
    id: fc.nat(4),
    wei: fc.oneof(
      cost,
      fc.constant("held"),
      fc.record({ cost: fc.bigInt({ min: 0n, max: 60n }), success: fc.boolean() })
    )
  }),
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("pass" as const),
      minutes: fc.constantFrom(1, 20, 60, 300, 1_440, 2_880)
    })
  }
) as fc.Arbitrary<Command>

interface ModelHold {
  readonly pot: number
  readonly id: number
  readonly madeAt: number
  readonly wei: bigint
  readonly landed: bigint | null
  readonly state: "reserved" | "bound" | "settled"
  readonly expiresAt: number
}

/** Sums all reservations each time; forgets none. */
class Model {
  holds: ReadonlyArray<ModelHold> = []
  now = 0
  private readonly deleted = new Set<ModelHold>()
  private deletedAt = Number.NEGATIVE_INFINITY

  private alive(): ReadonlyArray<ModelHold> {
    return this.holds.filter(({ expiresAt, state }) => state !== "reserved" || expiresAt > this.now)
  }

  private within(pot: number, end: number): ReadonlyArray<ModelHold> {
    const own = this.alive().filter((each) => each.pot === pot)
    const spans = {
      open: ({ landed, state }: ModelHold) => state !== "settled" && landed === null,
      day: ({ madeAt }: ModelHold) => dayOf(madeAt) === dayOf(end),
      "24h": ({ madeAt }: ModelHold) => hourOf(madeAt) <= hourOf(end) && hourOf(madeAt) >= hourOf(end) - 24,
      "30d": ({ madeAt }: ModelHold) => dayOf(madeAt) <= dayOf(end) && dayOf(madeAt) >= dayOf(end) - 30
    }
    return own.filter(spans[pots[pot]?.window ?? "open"])
  }

  figures(pot: number, end = this.now) {
    const sum = (holds: ReadonlyArray<ModelHold>) =>
      holds.reduce((total, { landed, wei }) => total + (landed ?? wei), 0n)
    const [booked, held] = [true, false].map((isBooked) =>
      sum(this.within(pot, end).filter(({ state }) => (state === "settled") === isBooked))
    )
    return { booked: booked ?? 0n, held: held ?? 0n }
  }

  /** The fullest window that has an instant in it. */
  private fullest(pot: number, at: number): bigint {
    const lengths = { open: 0, day: 0, "24h": 24, "30d": 30 * 24 }
    const sums = Array.from({ length: lengths[pots[pot]?.window ?? "open"] + 1 }, (_, hours) => {
      const { booked, held } = this.figures(pot, at + hours * hour)
      return booked + held
    })
    return sums.reduce(BigInts.max)
  }

  private one([pot, id, given]: Item, expiresAt: number): Lack | null {
    const { maxOpen, name, window } = pots[pot] ?? expect.fail("it is there")
    const same = this.holds.filter((each) => each.id === id)
    const ended = same.some(
      (each) => each.state === "settled" && each.landed !== 0n && !this.deleted.has(each)
    )
    if (ended) return { budget: name, reason: "ended", available: 0n }
    const before = this.holds
    const parts = same.filter(({ state }) => state !== "settled")
    const own = parts.find((each) => each.pot === pot)
    this.holds = before.filter((each) => each !== own)
    const madeAt = parts[0]?.madeAt ?? this.now
    const others = this.fullest(pot, madeAt)
    const wei = own !== undefined && own.wei > BigInt(given) ? own.wei : BigInt(given)
    const open = this.holds.filter(
      (each) => each.pot === pot && each.landed === null && each.state !== "settled"
    )
    const counted = own === undefined ? 0n : (own.landed ?? own.wei)
    const isTooMuch = others + wei > cap && (window === "open" || wei > counted)
    if (isTooMuch || (maxOpen !== null && open.length >= maxOpen)) {
      this.holds = before
      return isTooMuch
        ? { budget: name, reason: "limit", available: cap > others ? cap - others : 0n }
        : { budget: name, reason: "maxOpen", available: 0n }
    }
    const shared = { madeAt, landed: null, state: "reserved" as const, ...parts[0] }
    const last = Math.max(expiresAt, ...parts.map((each) => each.expiresAt))
    this.holds = [
      // A hold that cost nothing is replaced.
      ...this.holds
        .filter((each) => each.id !== id || each.state !== "settled" || each.landed !== 0n)
        .map((each) => (parts.includes(each) ? { ...each, expiresAt: last } : each)),
      { ...shared, pot, id, wei, expiresAt: last }
    ]
    return null
  }

  reserve(groups: ReadonlyArray<ReadonlyArray<Item>>, expiresAt: number): ReadonlyArray<Lack | null> {
    if (groups.flat().length > 0) {
      this.holds = this.alive()
      if (this.now - this.deletedAt >= minute) {
        this.deletedAt = this.now
        for (const each of this.holds)
          if (each.state === "settled" && dayOf(each.madeAt) < dayOf(this.now) - 2) this.deleted.add(each)
      }
    }
    return groups.map((group) => {
      const before = this.holds
      for (const each of group) {
        const lack = this.one(each, expiresAt)
        if (lack === null) continue
        this.holds = before
        return lack
      }
      return null
    })
  }

  bind(id: number, wei: number): boolean {
    const own = this.alive().filter((each) => each.id === id && each.state !== "settled")
    if (own.length === 0 || own.some((each) => each.wei < BigInt(wei))) return false
    this.change(own, (each) => ({ ...each, state: "bound" }))
    return true
  }

  release(ids: ReadonlyArray<number>): void {
    this.holds = this.holds.filter(({ id, state }) => state !== "reserved" || !ids.includes(id))
  }

  settle(id: number, cost: Cost | null): void {
    const landedOf = ({ landed, pot, wei }: ModelHold) => {
      const sum = cost ?? landed ?? 0n
      if (typeof sum === "bigint") return sum
      if (sum !== "held" && pots[pot]?.books === "cost") return sum.cost
      return sum === "held" || sum.success ? wei : 0n
    }
    this.change(this.of(id), (hold) => ({ ...hold, state: "settled", landed: landedOf(hold) }))
  }

  /** Expired ones, too, as long as they are stored. */
  of(id: number): ReadonlyArray<ModelHold> {
    return this.holds.filter((each) => each.id === id && each.state !== "settled")
  }

  change(some: ReadonlyArray<ModelHold>, to: (hold: ModelHold) => ModelHold): void {
    this.holds = this.holds.map((each) => (some.includes(each) ? to(each) : each))
  }

  open() {
    return this.alive()
      .filter(({ state }) => state !== "settled")
      .map(({ id, landed, pot, state, wei }) => [pots[pot]?.name, `id ${id}`, wei, landed, state === "bound"])
      .map((each) => each.join(" "))
      .sort()
  }
}

const entryOf = ([pot, id, wei]: Item, expiresAt: number): Reservation => {
  const of = pots[pot] ?? expect.fail("it is there")
  return { ...of, id: `id ${id}`, wei: BigInt(wei), limit: cap, expiresAt }
}

const play = (budgets: Budgets["Service"], model: Model, each: Command) =>
  Effect.gen(function* () {
    model.now = yield* Clock.currentTimeMillis
    const named = (id: number) => `id ${id}`
    switch (each.do) {
      case "reserve": {
        const expiresAt = model.now + each.minutes * minute
        expect(
          yield* budgets.reserve(each.groups.map((group) => group.map((one) => entryOf(one, expiresAt))))
        ).toEqual(model.reserve(each.groups, expiresAt))
        break
      }
      case "bind":
        expect(yield* budgets.bind({ chainId, id: named(each.id), wei: BigInt(each.wei) }, "note")).toBe(
          model.bind(each.id, each.wei)
        )
        break
      case "release":
        yield* budgets.release(chainId, each.ids.map(named))
        model.release(each.ids)
        break
      case "land": {
        const landed = each.wei === null ? null : BigInt(each.wei)
        yield* budgets.land(chainId, named(each.id), landed)
        model.change(model.of(each.id), (hold) => ({ ...hold, landed }))
        break
      }
      case "settle": {
        const cost = typeof each.wei === "number" ? BigInt(each.wei) : each.wei
        yield* budgets.settle(chainId, named(each.id), cost)
        model.settle(each.id, cost)
        break
      }
      case "pass":
        yield* TestClock.adjust(each.minutes * minute)
        model.now = yield* Clock.currentTimeMillis
    }
  })

const compare = (budgets: Budgets["Service"], model: Model) =>
  Effect.gen(function* () {
    for (const [place, pot] of pots.entries())
      expect([pot.name, yield* budgets.figures(pot, model.now, pot.window)]).toEqual([
        pot.name,
        model.figures(place)
      ])
    const open = (yield* budgets.open(chainId)).map(({ bound, id, landed, name, wei }) =>
      [name, id, wei, landed, bound].join(" ")
    )
    expect(open.sort()).toEqual(model.open())
  })

const previousRow = (now: number) => ({
  account_id: alice,
  chain_id: chainId.toString(),
  pot: "sponsor",
  day: dayOf(now),
  note: "",
  expires_at: now + 10 * minute
})

const keyOfDay = (now: number) => ({
  account_id: alice,
  chain_id: chainId.toString(),
  pot: "sponsor",
  day: dayOf(now)
})

/** The schema up to that migration. */
const writeOf = (last: number) =>
  Migrator.make({})({
    loader: Migrator.fromRecord(
      Object.fromEntries(
        Object.entries(Migrations.migrations).filter(([name]) => Number.parseInt(name, 10) <= last)
      )
    ),
    table: "castellan_migrations"
  })

const ended = "the process ended here"

/** Ends the effect at that one of its statements; those before it were sent. */
const endedAt = <A, E>(effect: Effect.Effect<A, E>, number: number) => {
  let count = 0
  return Effect.exit(
    Effect.provideService(effect, Statement.CurrentTransformer, (statement) =>
      Effect.suspend(() => {
        count += 1
        return count === number ? Effect.die(ended) : Effect.succeed(statement)
      })
    )
  ).pipe(Effect.map((exit) => ({ exit, isOver: count < number })))
}

/** Begins on a day of this century, so that windows reach back. */
const begin = TestClock.setTime(20_000 * day + 5 * hour)

describe("running totals of budgets", { timeout: 300_000 }, () => {
  for (const { client, name, numRuns } of databasesOf)
    it.effect(`are the sums of all reservations after any history, in ${name}`, () =>
      Effect.gen(function* () {
        const histories = fc.sample(fc.array(command, { minLength: 25, maxLength: 60 }), {
          numRuns,
          seed: 42
        })
        for (const history of histories)
          yield* Effect.gen(function* () {
            yield* begin
            const budgets = yield* Budgets
            const model = new Model()
            for (const each of history) {
              yield* play(budgets, model, each)
              yield* compare(budgets, model)
            }
          }).pipe(Effect.provide(budgetsOn(client)), Effect.scoped)
      })
    )

  for (const { client, name } of databasesOf) {
    it.effect(`take over what was open before there were any, in ${name}`, () =>
      Effect.gen(function* () {
        yield* begin
        const sql = yield* SqlClient.SqlClient
        yield* writeOf(34)
        const now = yield* Clock.currentTimeMillis
        const rows = [
          { id: "id 0", wei: "30", landed: null, state: "bound" },
          { id: "id 1", wei: "40", landed: "5", state: "bound" },
          { id: "id 2", wei: "20", landed: null, state: "reserved" },
          { id: "id 3", wei: "50", landed: "7", state: "settled" }
        ]
        for (const row of rows)
          yield* sql`insert into budget_holds ${sql.insert({ ...previousRow(now), ...row })}`
        yield* sql`insert into budget_days ${sql.insert({ ...keyOfDay(now), booked: "7" })}`
        const budgets = yield* Effect.map(Layer.build(SqlBudgets.layer), Context.get(Budgets))
        const sponsor = pots[1] ?? expect.fail("it is there")
        expect(yield* budgets.figures(sponsor, now, "day")).toEqual({ held: 55n, booked: 7n })
        // Their hour is not known: windows of hours count them until the last of their day leaves.
        expect(yield* budgets.figures(sponsor, now + 42 * hour, "24h")).toEqual({ held: 55n, booked: 0n })
        expect(yield* budgets.figures(sponsor, now + 43 * hour, "24h")).toEqual({ held: 0n, booked: 0n })
        expect(yield* budgets.owners(chainId, "sponsor", now)).toEqual([alice])
        const asked = (wei: number, id: number) =>
          Effect.map(budgets.reserve([[entryOf([1, id, wei], now + minute)]]), ([lack]) => lack)
        expect(yield* asked(39, 4)).toEqual({ budget: "sponsor", reason: "limit", available: 38n })
        expect(yield* asked(38, 4)).toBeNull()
        expect(yield* asked(0, 9)).toMatchObject({ reason: "maxOpen" })
        yield* budgets.settle(chainId, "id 0", 10n)
        expect(yield* budgets.figures(sponsor, now, "day")).toEqual({ held: 63n, booked: 17n })
      }).pipe(Effect.provide(Layer.fresh(client)), Effect.scoped)
    )

    it.effect(`count holds that were a row for each budget, whatever had landed, in ${name}`, () =>
      Effect.gen(function* () {
        yield* begin
        const sql = yield* SqlClient.SqlClient
        yield* writeOf(40)
        const now = yield* Clock.currentTimeMillis
        const rows = [
          { pot: "sponsor", id: "id 0", wei: "30", landed: "5", state: "bound", note: "one" },
          { pot: "hours", id: "id 0", wei: "40", landed: null, state: "reserved", note: "two\none" },
          { pot: "hours", id: "id 1", wei: "20", landed: null, state: "reserved" },
          { pot: "month", id: "id 1", wei: "50", landed: "7", state: "settled" }
        ]
        for (const row of rows)
          yield* sql`insert into budget_reservations ${sql.insert({ ...previousRow(now), hour: hourOf(now), ...row })}`
        const budgets = yield* Effect.map(Layer.build(SqlBudgets.layer), Context.get(Budgets))
        expect(
          (yield* budgets.open(chainId)).map(({ bound, id, landed, name, notes, wei }) =>
            [id, name, wei, landed, bound, ...notes].join(" ")
          )
        ).toEqual(["id 0 sponsor 30 5 true one two", "id 0 hours 40 5 true one two", "id 1 hours 20  false"])
        const figures = Effect.forEach(pots, (pot) =>
          Effect.map(budgets.figures(pot, now, pot.window), ({ booked, held }) => [booked, held].join(" "))
        )
        expect(yield* figures).toEqual(["0 0", "0 5", "0 25", "0 0"])
        yield* budgets.land(chainId, "id 0", null)
        expect(yield* figures).toEqual(["0 0", "0 30", "0 60", "0 0"])
        yield* budgets.settle(chainId, "id 0", 1n)
        yield* budgets.release(chainId, ["id 1"])
        expect(yield* figures).toEqual(["0 0", "1 0", "1 0", "0 0"])
      }).pipe(Effect.provide(Layer.fresh(client)), Effect.scoped)
    )

    it.effect(`change with the reservations or not at all, wherever a process ends, in ${name}`, () =>
      Effect.gen(function* () {
        yield* begin
        const sql = yield* SqlClient.SqlClient
        const budgets = yield* Budgets
        const now = yield* Clock.currentTimeMillis
        const items = (id: number, wei: number) => pots.map((_, pot) => entryOf([pot, id, wei], now + hour))
        const stored = Effect.forEach(["holds", "budget_totals", "budget_days"], (table) =>
          Effect.map(sql`select * from ${sql(table)}`, (rows) =>
            rows.map((row) => JSON.stringify(row)).sort()
          )
        )
        const methods: ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown>]> = [
          ["reserve", budgets.reserve([items(0, 20), items(1, 30), items(2, 90)])],
          ["raise", budgets.reserve([items(1, 40)])],
          ["bind", budgets.bind({ chainId, id: "id 0", wei: 20n }, "note")],
          ["land", budgets.land(chainId, "id 0", 15n)],
          ["release", budgets.release(chainId, ["id 1"])],
          ["settle", budgets.settle(chainId, "id 0", 10n)]
        ]
        for (const [method, call] of methods) {
          const before = yield* stored
          let number = 1
          for (; ; number++) {
            const { exit, isOver } = yield* endedAt(call, number)
            if (isOver) {
              expect([method, exit._tag]).toEqual([method, "Success"])
              break
            }
            expect([method, number, exit._tag]).toEqual([method, number, "Failure"])
            expect([method, number, yield* stored]).toEqual([method, number, before])
          }
          expect([method, number > 1]).toEqual([method, true])
        }
        for (const pot of pots)
          expect([pot.name, yield* budgets.figures(pot, now, pot.window)]).toEqual([
            pot.name,
            { held: 0n, booked: pot.window === "open" ? 0n : 10n }
          ])
      }).pipe(Effect.provide(budgetsOn(client)), Effect.scoped)
    )
  }

  it.live(
    "never exceed a limit while two processes write, and are the sums of the stored rows, in PostgreSQL",
    () =>
      Effect.gen(function* () {
        const client = PostgresAdapter.layer(yield* databases.fresh)
        const process = Effect.map(Layer.build(budgetsOn(client)), Context.get(Budgets))
        const both = [yield* process, yield* process] as const
        const sql = yield* Effect.map(Layer.build(client), Context.get(SqlClient.SqlClient))
        const histories = fc.sample(fc.array(command, { minLength: 60, maxLength: 60 }), {
          numRuns: 4,
          seed: 3
        })
        const now = Date.now()
        const isMade = yield* Effect.forEach(
          histories,
          (history, place) =>
            Effect.forEach(history, (each) =>
              Effect.gen(function* () {
                const budgets = place % 2 === 0 ? both[0] : both[1]
                switch (each.do) {
                  case "reserve":
                    yield* budgets.reserve(
                      each.groups.map((group) => group.map((one) => entryOf(one, now + day)))
                    )
                    break
                  case "bind":
                    yield* budgets.bind({ chainId, id: `id ${each.id}`, wei: BigInt(each.wei) }, "note")
                    break
                  case "release":
                    yield* budgets.release(
                      chainId,
                      each.ids.map((id) => `id ${id}`)
                    )
                    break
                  case "land":
                    // A landing that the chain undoes holds its sum again, whatever was held meanwhile.
                    yield* budgets.land(chainId, `id ${each.id}`, 0n)
                    break
                  case "settle":
                    // At most what is held: a limit bounds what may be spent.
                    yield* budgets.settle(chainId, `id ${each.id}`, each.wei === null ? null : 0n)
                }
                const figures = yield* Effect.forEach(pots, (pot) => budgets.figures(pot, now, pot.window))
                return figures.every(({ booked, held }) => booked + held <= cap)
              })
            ),
          { concurrency: "unbounded" }
        )
        expect(isMade.flat().every((each) => each)).toBe(true)
        const rows = yield* sql<{ readonly pot: string; readonly sum: string }>`
        select part->>1 as pot, sum(coalesce(landed, part->>2)::numeric)::text as sum
        from holds cross join json_array_elements(parts::json) as part
        where state <> 'settled' group by part->>1`
        const sums = new Map(rows.map(({ pot, sum }) => [pot, BigInt(sum)]))
        for (const pot of pots.slice(1))
          expect([pot.name, (yield* both[0].figures(pot, now, pot.window)).held]).toEqual([
            pot.name,
            sums.get(pot.name) ?? 0n
          ])
      }).pipe(Effect.scoped)
  )
})
