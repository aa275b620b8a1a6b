import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import {
  type Budget,
  Budgets,
  BudgetsError,
  dayOf,
  type Hold,
  type Lack,
  lackOf,
  type Reservation
} from "../../application/ports/Budgets.js"
import { ClockTrust } from "../../application/ports/clock/ClockTrust.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"
import * as Store from "./Store.js"

interface Row {
  readonly hold_no: number | string
  readonly account_id: string
  readonly chain_id: string
  readonly pot: string
  readonly id: string
  readonly day: number
  readonly wei: string
  readonly landed: string | null
  readonly state: "reserved" | "bound" | "settled"
  readonly note: string
  readonly expires_at: number | string
}

/** How many days what has ended is still known. */
const keptDays = 2

const columns = ({ accountId, chainId, name }: Budget) => ({
  account_id: accountId ?? "",
  chain_id: chainId.toString(),
  pot: name
})

const lockName = (budget: Budget): string => `budget:${JSON.stringify(Object.values(columns(budget)))}`

const holdOf = (row: Row): Hold => ({
  accountId: row.account_id === "" ? null : (row.account_id as AccountId),
  chainId: BigInt(row.chain_id),
  name: row.pot,
  id: row.id,
  wei: BigInt(row.wei),
  bound: row.state === "bound",
  landed: row.landed === null ? null : BigInt(row.landed),
  expiresAt: Number(row.expires_at),
  note: row.note
})

/** Budgets in the database of the client. */
export const make: Migrations.Stored<Budgets["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const lock = Store.lock(sql)
  const { mayDelete } = yield* ClockTrust
  /** This instance among the holders of a reservation. */
  const self = `${randomUUID()} `

  const answered =
    (run: ReturnType<typeof Store.transaction>) =>
    <A, E>(effect: Effect.Effect<A, E>) =>
      run(effect).pipe(
        Effect.retry({ times: 3, while: Store.isBroken }),
        Effect.catchIf(Store.isSqlError, (error) =>
          Effect.fail(new BudgetsError({ message: `the store of budgets failed${ErrorCode.suffix(error)}` }))
        )
      )
  const transaction = answered(Store.transaction(sql))
  const reading = answered(Store.reading(sql))

  /** Locks the budgets in one order, so that no two calls wait for each other. */
  const lockAll = (budgets: ReadonlyArray<Budget>) =>
    Effect.forEach([...new Set(budgets.map(lockName))].sort(), lock, { discard: true })

  const of = (budget: Budget) => {
    const { account_id, chain_id, pot } = columns(budget)
    return sql`chain_id = ${chain_id} and pot = ${pot} and account_id = ${account_id}`
  }

  const bookedOf = (budget: Budget, day: number) =>
    Effect.map(
      sql<{ readonly booked: string }>`
        select booked from budget_days where ${of(budget)} and day = ${day}`,
      ([row]) => BigInt(row?.booked ?? 0)
    )

  /** What is held of a budget. */
  const openOf = (budget: Budget, now: number) => sql<Row>`
    select * from budget_holds
    where ${of(budget)} and state <> 'settled' and (state = 'bound' or expires_at > ${now})`

  const hold = (entry: Reservation, now: number): Effect.Effect<Lack | null, SqlError> =>
    Effect.gen(function* () {
      yield* sql`
        delete from budget_holds
        where ${of(entry)} and state <> 'settled' and state = 'reserved' and expires_at <= ${now}`
      const [ended] = yield* sql`
        select id from budget_holds where ${of(entry)} and id = ${entry.id} and state = 'settled'`
      if (ended !== undefined) return { budget: entry.name, reason: "ended", available: 0n }
      const rows = yield* openOf(entry, now)
      const own = rows.find(({ id }) => id === entry.id)
      const day = own?.day ?? dayOf(now)
      const wei = own !== undefined && BigInt(own.wei) > entry.wei ? BigInt(own.wei) : entry.wei
      const others = rows.flatMap((row) => (row === own ? [] : [{ ...holdOf(row), day: row.day }]))
      const lack = lackOf(entry, wei, day, others, entry.daily ? yield* bookedOf(entry, day) : 0n)
      if (lack !== null) return lack
      const raised =
        own === undefined
          ? []
          : yield* sql`
              update budget_holds
              set wei = ${wei.toString()}, note = ${entry.note}, expires_at = ${entry.expiresAt},
                holders = replace(holders, ${self}, '') || ${self}
              where hold_no = ${own.hold_no} and state <> 'settled'
              returning hold_no`
      // Its other holder may have given it back in the meantime.
      if (raised.length === 0)
        yield* sql`insert into budget_holds ${sql.insert({
          ...columns(entry),
          id: entry.id,
          day,
          wei: wei.toString(),
          landed: null,
          state: "reserved",
          note: entry.note,
          expires_at: entry.expiresAt,
          holders: self
        })}`
      return null
    })

  const reserve = (entries: ReadonlyArray<Reservation>) =>
    transaction(
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        yield* lockAll(entries)
        if (yield* mayDelete)
          yield* sql`
            delete from budget_holds where state = 'settled' and day < ${dayOf(now) - keptDays}`
        for (const entry of entries) {
          const lack = yield* hold(entry, now)
          // Failing undoes what was held before.
          if (lack !== null) return yield* Effect.fail({ lack })
        }
        return null
      })
    ).pipe(
      Effect.catchIf(
        (error) => "lack" in error,
        ({ lack }) => Effect.succeed(lack)
      )
    )

  const settle = (chainId: bigint, id: string, wei: bigint | null) =>
    transaction(
      Effect.gen(function* () {
        const found = yield* sql<Row>`
          select * from budget_holds
          where chain_id = ${chainId.toString()} and id = ${id} and state <> 'settled'`
        const holds = found.map(holdOf)
        yield* lockAll(holds)
        for (const [place, { hold_no, day }] of found.entries()) {
          const budget = holds[place]
          const [ended] = yield* sql<Pick<Row, "landed">>`
            update budget_holds set state = 'settled'
            where hold_no = ${hold_no} and state <> 'settled' returning landed`
          if (budget === undefined || ended === undefined) continue
          const cost = wei ?? BigInt(ended.landed ?? 0)
          const booked = ((yield* bookedOf(budget, day)) + cost).toString()
          yield* sql`
            insert into budget_days ${sql.insert({ ...columns(budget), day, booked })}
            on conflict (account_id, chain_id, pot, day) do update set booked = ${booked}`
        }
      })
    )

  return {
    reserve,
    settle,
    bind: (chainId, id) =>
      transaction(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const rows = yield* sql`
            update budget_holds set state = 'bound'
            where chain_id = ${chainId.toString()} and id = ${id} and state <> 'settled'
              and (state = 'bound' or expires_at > ${now})
            returning id`
          return rows.length > 0
        })
      ),
    release: (chainId, ids) =>
      transaction(
        Effect.forEach(
          Store.chunks(ids),
          (chunk) => {
            const given = sql`chain_id = ${chainId.toString()} and ${sql.in("id", chunk)} and state = 'reserved'`
            return Effect.andThen(
              sql`update budget_holds set holders = replace(holders, ${self}, '') where ${given}`,
              sql`delete from budget_holds where ${given} and holders = ''`
            )
          },
          { discard: true }
        )
      ),
    land: (chainId, id, wei) =>
      transaction(
        Effect.asVoid(sql`
          update budget_holds set landed = ${wei?.toString() ?? null}
          where chain_id = ${chainId.toString()} and id = ${id} and state <> 'settled'`)
      ),
    open: (chainId) =>
      transaction(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const rows = yield* sql<Row>`
            select * from budget_holds
            where chain_id = ${chainId.toString()} and state <> 'settled'
              and (state = 'bound' or expires_at > ${now})
            order by hold_no`
          return rows.map(holdOf)
        })
      ),
    figures: (budget, at) =>
      reading(
        Effect.gen(function* () {
          const rows = yield* openOf(budget, yield* Clock.currentTimeMillis)
          const held = rows
            .filter(({ day }) => day === dayOf(at))
            .reduce((sum, { landed, wei }) => sum + BigInt(landed ?? wei), 0n)
          return { held, booked: yield* bookedOf(budget, dayOf(at)) }
        })
      ),
    handOut: (accountId, chainId, userOpHash, until) =>
      transaction(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          if (yield* mayDelete) yield* sql`delete from budget_ops where until < ${Math.floor(now / 1_000)}`
          yield* sql`
            insert into budget_ops ${sql.insert({
              account_id: accountId,
              chain_id: chainId.toString(),
              user_op_hash: userOpHash,
              until
            })}
            on conflict (account_id, chain_id, user_op_hash) do update set until = ${until}`
        })
      ),
    handedOut: (accountId, chainId, userOpHash) =>
      transaction(
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const rows = yield* sql<{ readonly until: number | string }>`
            select until from budget_ops
            where account_id = ${accountId} and chain_id = ${chainId.toString()} and user_op_hash = ${userOpHash}`
          return rows.some(({ until }) => Number(until) * 1_000 >= now)
        })
      )
  }
})

export const layer: Migrations.StoredLayer<Budgets> = Layer.effect(Budgets, make)
