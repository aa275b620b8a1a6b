import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import * as Refusals from "../../../application/ports/operator/Refusals.js"
import * as Migrations from "../Migrations.js"
import * as Store from "../Store.js"
import * as GroupCommit from "../sqlite/GroupCommit.js"

interface Row extends Omit<Refusals.Refusal, "at" | "chainId"> {
  readonly chainId: string | null
  readonly at: number | string
}

/** Refusals that wait for the next write; more are dropped. */
const mostWaiting = 256

/** Writes after which those beyond `mostKept` are deleted. */
const writesPerCleaning = 64

const refusalOf = ({ at, chainId, ...row }: Row): Refusals.Refusal => ({
  ...row,
  chainId: chainId === null ? null : BigInt(chainId),
  at: Number(at)
})

export const make: Migrations.Stored<Refusals.Kept, Scope.Scope> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const transaction = Store.transaction(sql)
  const columns = sql.literal(
    'request_id as "requestId", account_id as "accountId", endpoint, chain_id as "chainId", code, message, answer, at'
  )
  let waiting: ReadonlyArray<Refusals.Refusal> = []
  let writes = 0

  const write: Effect.Effect<void, SqlError> = Effect.suspend(() => {
    const refusals = waiting
    if (!Arr.isReadonlyArrayNonEmpty(refusals)) return Effect.void
    writes += 1
    return Effect.tap(
      transaction(
        Effect.gen(function* () {
          yield* sql`
          insert into refusals ${sql.insert(
            Arr.map(refusals, ({ accountId, answer, at, chainId, code, endpoint, message, requestId }) => ({
              request_id: requestId,
              account_id: accountId,
              endpoint,
              chain_id: chainId === null ? null : chainId.toString(),
              code,
              message,
              answer,
              at
            }))
          )} on conflict do nothing`
          if (writes % writesPerCleaning === 0)
            yield* sql`
            delete from refusals
            where refusal_no <= (select max(refusal_no) from refusals) - ${Refusals.mostKept}`
        })
      ),
      () =>
        Effect.sync(() => {
          waiting = waiting.slice(refusals.length)
        })
    )
  })

  yield* Effect.ignore(write).pipe(
    // No answer waits for the disk: a crash of the machine may lose refusals.
    Effect.provideService(GroupCommit.answered, "committed"),
    Effect.repeat(Schedule.spaced("1 second")),
    Effect.forkScoped
  )

  return {
    note: (refusal) => {
      if (waiting.length < mostWaiting && !waiting.some((each) => each.requestId === refusal.requestId))
        waiting = [...waiting, refusal]
    },
    find: (requestId) => {
      const fresh = waiting.find((each) => each.requestId === requestId)
      if (fresh !== undefined) return Effect.succeed(fresh)
      return sql<Row>`select ${columns} from refusals where request_id = ${requestId}`.pipe(
        Effect.withTracerEnabled(false),
        Effect.match({
          onFailure: () => null,
          onSuccess: ([row]) => (row === undefined ? null : refusalOf(row))
        })
      )
    },
    latest: (limit) =>
      sql<Row>`select ${columns} from refusals order by refusal_no desc limit ${limit}`.pipe(
        Effect.withTracerEnabled(false),
        Effect.orElseSucceed((): ReadonlyArray<Row> => []),
        Effect.map((rows) => {
          const fresh = new Set(waiting.map(({ requestId }) => requestId))
          const stored = rows.map(refusalOf).filter(({ requestId }) => !fresh.has(requestId))
          return [...waiting.toReversed(), ...stored].slice(0, limit)
        })
      )
  }
})

export const layer: Migrations.StoredLayer<never> = Layer.effect(Refusals.Refusals, make)
