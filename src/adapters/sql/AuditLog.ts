import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Fragment } from "effect/sql/Statement"
import { type Act, AuditLog, AuditLogError, type Entry, withheld } from "../../application/ports/AuditLog.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"
import * as Store from "./Store.js"
import * as GroupCommit from "./sqlite/GroupCommit.js"

interface Row extends Omit<Entry, "chainId" | "nonce" | "number"> {
  readonly number: number | string
  readonly chainId: string | null
  readonly nonce: string | null
}

interface Job {
  readonly act: Act
  readonly at: number
  readonly done: Deferred.Deferred<void, AuditLogError>
}

const entryOf = (row: Row): Entry => ({
  ...row,
  number: BigInt(row.number),
  chainId: row.chainId === null ? null : BigInt(row.chainId),
  nonce: row.nonce === null ? null : BigInt(row.nonce)
})

const failed = (error: unknown): AuditLogError =>
  new AuditLogError({ message: `the audit log's store failed${ErrorCode.suffix(error)}` })

const stopped = new AuditLogError({ message: "the service stops" })

/** Later calls have no effect. */
const tell = (jobs: ReadonlyArray<Job>, outcome: Effect.Effect<void, AuditLogError>): void => {
  for (const { done } of jobs) Deferred.doneUnsafe(done, outcome)
}

/** Acts that arrive during a write share the next commit. */
export const make: Migrations.Stored<AuditLog["Service"], Scope.Scope> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const scope = yield* Effect.scope
  const waiting: Array<Job> = []
  let writing = false
  const durable = Effect.mapError(Store.durable(sql), failed)
  const context = yield* Effect.context<never>()

  const rowOf = ({ act, at }: Job) => ({
    at,
    kind: act.kind,
    account_id: act.accountId,
    request_id: act.requestId,
    acted_by: act.by,
    signer: act.signer,
    hash: act.hash,
    chain_id: act.chainId === null ? null : act.chainId.toString(),
    nonce: act.nonce === null ? null : act.nonce.toString()
  })

  const write = (jobs: Arr.NonEmptyReadonlyArray<Job>) =>
    sql`insert into audit ${sql.insert(Arr.map(jobs, rowOf))}`.pipe(
      Effect.withTracerEnabled(false),
      Effect.provideService(GroupCommit.answered, "committed"),
      Effect.mapError(failed),
      Effect.match({
        onFailure: (error) => tell(jobs, Effect.fail(error)),
        onSuccess: () => tell(jobs, Effect.void)
      }),
      Effect.ensuring(Effect.sync(() => tell(jobs, Effect.fail(stopped))))
    )

  const drain: Effect.Effect<void> = Effect.suspend(() => {
    const jobs = waiting.splice(0, 50)
    if (Arr.isArrayNonEmpty(jobs)) return Effect.andThen(write(jobs), drain)
    writing = false
    return Effect.void
  })

  /** SQLite indexes the first 18 characters. */
  const begins = (column: "hash" | "request_id" | "signer", value: string): Fragment =>
    sql`${sql(column)} = ${value} and substr(${sql(column)}, 1, 18) = ${value.slice(0, 18)}`

  const when = (condition: Fragment | null): ReadonlyArray<Fragment> =>
    condition === null ? [] : [condition]

  return {
    record: (act) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const done = Deferred.makeUnsafe<void, AuditLogError>()
          waiting.push({ act, at: yield* Clock.currentTimeMillis, done })
          if (!writing) {
            writing = true
            // Uses the layer's context, not the caller's: the writer serves other callers, too.
            const writer = yield* Effect.forkIn(
              Effect.updateContext(drain, (_: Context.Context<never>) => context),
              scope
            )
            // Interrupted by the closed scope: no further writes.
            writer.addObserver((exit) => {
              if (Exit.isSuccess(exit)) return
              writing = false
              tell(waiting.splice(0), Effect.fail(stopped))
            })
          }
          // Transaction acts become durable with the journal, which is in the same database.
          const waits = act.kind !== "transaction" && !(yield* withheld)
          return yield* restore(Effect.andThen(Deferred.await(done), waits ? durable : Effect.void))
        })
      ),
    find: ({ accountId, before, from, hash, limit, requestId, signer, to }) =>
      sql<Row>`
        select entry_no as number, at, kind, account_id as "accountId", request_id as "requestId",
          acted_by as by, signer, hash, chain_id as "chainId", nonce
        from audit
        where ${sql.and([
          sql`entry_no < ${before === undefined ? Number.MAX_SAFE_INTEGER : before.toString()}`,
          ...when(accountId === undefined ? null : sql`account_id = ${accountId}`),
          ...when(signer === undefined ? null : begins("signer", signer)),
          ...when(hash === undefined ? null : begins("hash", hash)),
          ...when(requestId === undefined ? null : begins("request_id", requestId)),
          ...when(from === undefined ? null : sql`at >= ${from}`),
          ...when(to === undefined ? null : sql`at <= ${to}`)
        ])}
        order by entry_no desc limit ${Math.min(Math.max(1, limit), 1_000)}`.pipe(
        Effect.withTracerEnabled(false),
        Effect.mapBoth({ onFailure: failed, onSuccess: (rows) => rows.map(entryOf) })
      )
  }
})

/** The audit log in the database, as the port `AuditLog`. The database refuses to change its entries. */
export const layer: Migrations.StoredLayer<AuditLog> = Layer.effect(AuditLog, make)
