import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Entry, OperatorLog, OperatorLogError } from "../../../application/ports/operator/OperatorLog.js"
import * as ErrorCode from "../ErrorCode.js"
import * as Migrations from "../Migrations.js"
import * as Store from "../Store.js"

interface Row extends Omit<Entry, "at" | "number"> {
  readonly number: number | string
  readonly at: number | string
}

const failed = (error: unknown): OperatorLogError =>
  new OperatorLogError({ message: `the operators' log failed${ErrorCode.suffix(error)}` })

export const make: Migrations.Stored<OperatorLog["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  return {
    record: (act) =>
      Effect.gen(function* () {
        const at = yield* Clock.currentTimeMillis
        yield* Store.transaction(sql)(sql`insert into operator_acts ${sql.insert({ ...act, at })}`)
      }).pipe(Effect.mapError(failed)),
    find: ({ before, limit }) =>
      sql<Row>`
        select entry_no as number, at, operator, act, subject, reason from operator_acts
        where entry_no < ${before === undefined ? Number.MAX_SAFE_INTEGER : before.toString()}
        order by entry_no desc limit ${Math.min(Math.max(1, limit), 1_000)}`.pipe(
        Effect.withTracerEnabled(false),
        Effect.mapBoth({
          onFailure: failed,
          onSuccess: (rows) => rows.map((row) => ({ ...row, number: BigInt(row.number), at: Number(row.at) }))
        })
      )
  }
})

export const layer: Migrations.StoredLayer<OperatorLog> = Layer.effect(OperatorLog, make)
