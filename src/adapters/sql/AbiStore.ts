import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import { AbiStore, AbiStoreError, refusal } from "../../application/ports/AbiStore.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as EventLoop from "../../application/runtime/EventLoop.js"
import * as ErrorDefinition from "../../domain/abi/ErrorDefinition.js"
import * as Event from "../../domain/abi/Event.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import { Lru } from "../../domain/primitives/Lru.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"
import * as Store from "./Store.js"

interface Row {
  readonly ordinal: number
  readonly kind: "event" | "error"
  readonly canonical: string
}

/** Cache of an account's first `ordinal` definitions; never stale, since rows never change. */
interface Known {
  readonly turn: Semaphore.Semaphore
  /** Reads begun, and the count of the first ones that a refresh covers. */
  asked: number
  answered: number
  readonly canonical: Set<string>
  ordinal: number
  characters: number
  events: ReadonlyArray<Event.EventDefinition>
  errors: ReadonlyArray<ErrorDefinition.ErrorDefinition>
}

/** Size of the cache of parsed definitions, in characters of canonical text, over all accounts. */
const maxHeldCharacters = 16_777_216

/** Definitions parsed before other work gets its turn. */
const parsedAtOnce = 200

const failed = (error: SqlError): AbiStoreError =>
  new AbiStoreError({
    reason: "unavailable",
    message: `the store of definitions failed${ErrorCode.suffix(error)}`
  })

const nothing = (): Known => ({
  turn: Semaphore.makeUnsafe(1),
  asked: 0,
  answered: 0,
  canonical: new Set<string>(),
  ordinal: 0,
  characters: 0,
  events: [],
  errors: []
})

const read = <A>(parsed: Result.Result<A, unknown>): ReadonlyArray<A> =>
  // Skips definitions that only a newer version of the program can parse.
  Result.match(parsed, { onFailure: () => [], onSuccess: (definition) => [definition] })

const learn = (known: Known, rows: ReadonlyArray<Row>): void => {
  const texts = (kind: Row["kind"]) =>
    rows.filter((row) => row.kind === kind).map(({ canonical }) => canonical)
  const events = texts("event").flatMap((text) => read(Event.parse(text, { canonical: true })))
  const errors = texts("error").flatMap((text) => read(ErrorDefinition.parse(text, { canonical: true })))
  if (events.length > 0) known.events = [...known.events, ...events]
  if (errors.length > 0) known.errors = [...known.errors, ...errors]
  for (const { canonical, ordinal } of rows) {
    known.ordinal = ordinal
    known.characters += canonical.length
    known.canonical.add(canonical)
  }
}

/**
 * Stores definitions in the client's database; migrates its schema first. Repeated reads of an account query only
 * definitions that any process has registered since.
 */
export const make: Migrations.Stored<AbiStore["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const lock = Store.lock(sql)
  // An account without definitions occupies the cache, too.
  const held = new Lru<AccountId, Known>(maxHeldCharacters, ({ characters }) => characters + 1_024)

  const refresh = (account: AccountId, known: Known): Effect.Effect<void, SqlError> =>
    Effect.gen(function* () {
      const rows = yield* sql<Row>`
        select ordinal, kind, canonical from abi_definitions
        where account_id = ${account} and ordinal > ${known.ordinal} order by ordinal`
      for (const [index, chunk] of Store.chunks(rows, parsedAtOnce).entries()) {
        if (index > 0) yield* EventLoop.breathe
        learn(known, chunk)
      }
      if (rows.length > 0) held.set(account, known)
    })

  const knownOf = (account: AccountId): Known => {
    const known = held.get(account) ?? nothing()
    held.set(account, known)
    return known
  }

  /** Serialises readers and writers of an account, so that new rows are parsed once. */
  const inTurn = <A, E>(
    account: AccountId,
    use: (known: Known) => Effect.Effect<A, E | SqlError>
  ): Effect.Effect<A, Exclude<E, SqlError> | AbiStoreError> =>
    Effect.suspend(() => {
      const known = knownOf(account)
      return known.turn.withPermits(1)(use(known))
    }).pipe(
      Effect.withTracerEnabled(false),
      Effect.mapError((error) => (Store.isSqlError(error) ? failed(error) : (error as Exclude<E, SqlError>)))
    )

  /** A read needs no query when another one started since it began to wait. */
  const list = <A>(account: AccountId, of: (known: Known) => A) =>
    Effect.suspend(() => {
      const asked = ++knownOf(account).asked
      return inTurn(account, (known) =>
        Effect.gen(function* () {
          if (known.answered < asked) {
            const upTo = known.asked
            yield* refresh(account, known)
            known.answered = upTo
          }
          return of(known)
        })
      )
    })

  const add = (account: AccountId, kind: Row["kind"], canonical: string) =>
    inTurn(account, (known) => {
      if (known.canonical.has(canonical)) return Effect.void
      const insert = Effect.gen(function* () {
        yield* lock(`abi:${account}`)
        yield* refresh(account, known)
        if (known.canonical.has(canonical)) return
        const refused = refusal(known.ordinal, known.characters + canonical.length)
        if (refused !== null) return yield* Effect.fail(refused)
        const row = { account_id: account, ordinal: known.ordinal + 1, kind, canonical }
        yield* sql`insert into abi_definitions ${sql.insert({ ...row, digest: Keccak.hashText(canonical) })}`
      })
      // First outside of the transaction: an account's first read may take long.
      const first = known.ordinal === 0 ? refresh(account, known) : Effect.void
      return Effect.andThen(first, Store.transaction(sql)(insert))
    })

  return {
    events: (account) => list(account, ({ events }) => events),
    errors: (account) => list(account, ({ errors }) => errors),
    definitions: (account) => list(account, ({ errors, events }) => ({ errors, events })),
    addEvent: (account, { canonical }) => add(account, "event", canonical),
    addError: (account, { canonical }) => add(account, "error", canonical)
  }
})

/** Registered events and errors in the database, as the port `AbiStore`. */
export const layer: Migrations.StoredLayer<AbiStore> = Layer.effect(AbiStore, make)
