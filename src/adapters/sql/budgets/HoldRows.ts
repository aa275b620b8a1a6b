import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Budgets, Part } from "../../../application/ports/Budgets.js"
import * as Rows from "../Rows.js"
import * as Store from "../Store.js"
import * as Holds from "./Holds.js"

/** Reads and writes the rows of holds. */

const holdColumns: Rows.Columns = {
  chain_id: "text",
  id: "text",
  owner: "text",
  parts: "text",
  day: "integer",
  hour: "integer",
  state: "text",
  note: "text",
  expires_at: "bigint"
}

const raisedColumns: Rows.Columns = { hold_no: "bigint", owner: "text", parts: "text", expires_at: "bigint" }
const landedColumns: Rows.Columns = { hold_no: "bigint", landed: "text" }
const boundColumns: Rows.Columns = { hold_no: "bigint", note: "text", due: "bigint" }
const firstColumns: Rows.Columns = {
  chain_id: "text",
  id: "text",
  parts: "text",
  note: "text",
  due: "bigint",
  bound_at: "bigint"
}

/** Notes of a hold that is bound now, and the number of a block before which it cannot end. */
export interface Terms {
  readonly notes: ReadonlySet<string>
  readonly due: bigint
}

export const make = (store: Pick<Store.Store, "sql">) => {
  const forUpdate = Store.isPostgres(store.sql) ? "for update" : ""

  const find = (
    chainId: bigint,
    ids: ReadonlyArray<string>,
    {
      isLocking = true,
      withSettled = false
    }: { readonly isLocking?: boolean; readonly withSettled?: boolean } = {}
  ) =>
    Effect.map(
      Rows.statement<Holds.Row>(
        store,
        `select * from holds where chain_id = ? and ${Rows.among(store, "id")} ${withSettled ? "" : "and state <> 'settled'"}
         order by hold_no ${isLocking ? forUpdate : ""}`,
        [chainId.toString(), Rows.listOf(store, ids)]
      ),
      (rows) => rows.map(Holds.heldOf)
    )

  const ofHolds = (text: string, holds: ReadonlyArray<Holds.Held>) =>
    holds.length === 0
      ? Effect.void
      : Rows.statement(store, `${text} where ${Rows.among(store, "hold_no")}`, [
          Rows.listOf(
            store,
            holds.map(({ holdNo }) => Number(holdNo))
          )
        ])

  const remove = (holds: ReadonlyArray<Holds.Held>) => ofHolds("delete from holds", holds)

  /** Stores what a call holds. */
  const keep = (changed: ReadonlyArray<Holds.Held>) =>
    Effect.gen(function* () {
      yield* Rows.each(
        store,
        `update holds set owner = given.owner, parts = given.parts, expires_at = given.expires_at
         from (%) as given where holds.hold_no = given.hold_no`,
        raisedColumns,
        changed.flatMap((held) =>
          held.holdNo === null
            ? []
            : [[held.holdNo, Holds.ownerOf(held), Holds.partsText(held.parts.values()), held.expiresAt]]
        )
      )
      yield* Rows.insert(
        store,
        "holds",
        holdColumns,
        changed.flatMap((held) => {
          const { chainId, day, expiresAt, holdNo, hour, id } = held
          const parts = [Holds.ownerOf(held), Holds.partsText(held.parts.values())]
          return holdNo === null
            ? [[chainId.toString(), id, ...parts, day, hour, "reserved", "", expiresAt]]
            : []
        })
      )
    })

  /** Stores what holds have cost so far. */
  const land = (costs: ReadonlyArray<readonly [Holds.Held, bigint | null]>): Effect.Effect<void, SqlError> =>
    Rows.each(
      store,
      "update holds set landed = given.landed from (%) as given where holds.hold_no = given.hold_no",
      landedColumns,
      costs.map(([{ holdNo }, cost]) => [holdNo, cost?.toString() ?? null])
    )

  const settle = (holds: ReadonlyArray<Holds.Held>) =>
    ofHolds("update holds set state = 'settled', landed = null", holds)

  /** Binds reservations that hold exactly this at that instant; returns the ids of those. */
  const bindFirst = (
    all: ReadonlyArray<{
      readonly hold: Parameters<Budgets["Service"]["bind"]>[0]
      readonly parts: ReadonlyArray<Part>
      readonly note: string
    }>,
    now: number
  ): Effect.Effect<ReadonlyArray<string>, SqlError> =>
    Effect.map(
      Rows.returning<{ readonly id: string }>(
        store,
        `update holds set state = 'bound', note = given.note, due = given.due from (%) as given
         where holds.chain_id = given.chain_id and holds.id = given.id and holds.parts = given.parts
           and state = 'reserved' and expires_at > given.bound_at
         returning holds.id`,
        firstColumns,
        all.map(({ hold: { chainId, due = 0n, id }, note, parts }) => [
          chainId.toString(),
          id,
          Holds.partsText(parts),
          note,
          Number(due),
          now
        ])
      ),
      (rows) => rows.map(({ id }) => id)
    )

  const bind = (all: ReadonlyArray<readonly [Holds.Held, Terms]>): Effect.Effect<void, SqlError> =>
    Rows.each(
      store,
      `update holds set state = 'bound', note = given.note,
         due = case when holds.state = 'bound' and holds.due < given.due then holds.due else given.due end
       from (%) as given where holds.hold_no = given.hold_no`,
      boundColumns,
      all.map(([{ holdNo }, { due, notes }]) => [holdNo, [...notes].join("\n"), Number(due)])
    )

  return { bind, bindFirst, find, keep, land, remove, settle }
}
