import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import {
  ClockConfirmations,
  ClockConfirmationsError,
  type Confirmation
} from "../../application/ports/clock/ClockConfirmations.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"
import * as Store from "./Store.js"

interface Row {
  readonly confirmation_no: number | string
  readonly confirmed_at: number | string
}

const toConfirmation = ({ confirmation_no, confirmed_at }: Row): Confirmation => ({
  number: BigInt(confirmation_no),
  at: Number(confirmed_at)
})

const failed = (error: SqlError): ClockConfirmationsError =>
  new ClockConfirmationsError({
    message: `the store of the clock's confirmations failed${ErrorCode.suffix(error)}`
  })

export const make: Migrations.Stored<ClockConfirmations["Service"]> = Effect.map(
  Migrations.client,
  (sql) => ({
    confirm: Effect.gen(function* () {
      const at = yield* Clock.currentTimeMillis
      const [row] = yield* sql<Row>`
      insert into clock_confirmations ${sql.insert({ confirmed_at: at })} returning confirmation_no, confirmed_at`
      return toConfirmation(row ?? { confirmation_no: 0, confirmed_at: at })
    }).pipe(Store.transaction(sql), Effect.mapError(failed)),
    latest: sql<Row>`
    select confirmation_no, confirmed_at from clock_confirmations order by confirmation_no desc limit 1`.pipe(
      Effect.map(([row]) => (row === undefined ? null : toConfirmation(row))),
      Effect.mapError(failed),
      Effect.withTracerEnabled(false)
    )
  })
)

export const layer: Migrations.StoredLayer<ClockConfirmations> = Layer.effect(ClockConfirmations, make)
