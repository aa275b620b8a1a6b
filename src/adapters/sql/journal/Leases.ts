import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { OpJournal } from "../../../application/ports/journal/OpJournal.js"
import type { LeaseRequest } from "../../../application/ports/journal/Requests.js"
import * as Gathered from "../Gathered.js"
import * as Store from "../Store.js"

/** The lowest `count` integers of the range that are not taken; null when there are fewer. */
const lowestFree = (
  keys: LeaseRequest["keys"],
  count: number,
  taken: ReadonlySet<bigint>
): ReadonlyArray<bigint> | null => {
  const free: Array<bigint> = []
  for (let key = keys.from; key <= keys.to && free.length < count; key++) if (!taken.has(key)) free.push(key)
  return free.length === count ? free : null
}

type Row = {
  readonly authority: string
  readonly chain_id: string
  readonly entry_point: string
  readonly wallet: string
  readonly nonce_key: string
  readonly holder: string
  readonly expires_at: number
}

/** Looks for what is taken of the range, and gives what waits for the lowest keys that are free; null: too few are. */
const find = (
  { ahead, send, sql }: Store.Store,
  { authority, chainId, count, entryPoint, holder, keys, ttlMillis, wallet }: LeaseRequest,
  now: number
) => {
  const space = { authority, chain_id: chainId.toString(), entry_point: entryPoint, wallet }
  const ofWallet = sql`authority = ${authority} and chain_id = ${space.chain_id} and entry_point = ${entryPoint} and wallet = ${wallet}`
  const from = Store.nonceKey(keys.from)
  const to = Store.nonceKey(keys.to)
  const look = sql<{ readonly nonce_key: string; readonly is_over: number }>`
    select nonce_key, case when expires_at <= ${now} then 1 else 0 end as is_over from leases
    where ${ofWallet} and (expires_at <= ${now} or nonce_key between ${from} and ${to})
    union all
    select nonce_key, 0 as is_over from ops
    where ${ofWallet} and state in ('accepted', 'sent') and nonce_key between ${from} and ${to}`
  return Effect.map(
    ahead(look),
    (found) => (others: ReadonlyArray<Row>) =>
      Effect.gen(function* () {
        const rows = yield* found
        if (rows.some((row) => row.is_over === 1))
          yield* send(sql`delete from leases where ${ofWallet} and expires_at <= ${now}`)
        const taken = [
          ...rows.filter((row) => row.is_over === 0),
          ...others.filter(
            (row) =>
              row.wallet === wallet &&
              row.entry_point === entryPoint &&
              row.authority === authority &&
              row.chain_id === space.chain_id
          )
        ].map((row) => BigInt(row.nonce_key))
        const chosen = lowestFree(keys, count, new Set(taken))
        return (
          chosen?.map(
            (key): Row => ({ ...space, nonce_key: Store.nonceKey(key), holder, expires_at: now + ttlMillis })
          ) ?? null
        )
      })
  )
}

const nameOf = ({ authority, chainId, wallet }: LeaseRequest): string =>
  `wallet:${authority}:${chainId}:${wallet}`

/** The keys of each call, for as many of its requests as there are enough. */
const leaseAll = (store: Store.Store, calls: ReadonlyArray<ReadonlyArray<LeaseRequest>>) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const looks = yield* Effect.forEach(calls, (requests) =>
      Effect.forEach(requests, (request) => find(store, request, now))
    )
    const rows: Array<Row> = []
    const leased: Array<ReadonlyArray<ReadonlyArray<bigint>>> = []
    for (const requests of looks) {
      const keys: Array<ReadonlyArray<bigint>> = []
      for (const found of requests) {
        const own = yield* found(rows)
        if (own === null) break
        rows.push(...own)
        keys.push(own.map((row) => BigInt(row.nonce_key)))
      }
      leased.push(keys)
    }
    for (const chunk of Store.chunks(rows))
      yield* store.send(store.sql`insert into leases ${store.sql.insert(chunk)}`)
    return leased.map((keys) => Effect.succeed(keys))
  })

export const lease = (store: Store.Store): OpJournal["Service"]["lease"] => {
  const gathered = Gathered.make((calls: ReadonlyArray<ReadonlyArray<LeaseRequest>>) =>
    store.locking(calls.flat().map(nameOf))(leaseAll(store, calls))
  )
  return (requests) =>
    requests.length === 0
      ? Effect.succeed([])
      : Effect.andThen(
          Store.fits(
            192,
            requests.flatMap(({ keys }) => [keys.from, keys.to])
          ),
          gathered(requests)
        )
}

/** Leases of keys that accepted ops use are no rows any more: such a key is held by its op. */
export const release =
  ({ sql, transaction }: Store.Store): OpJournal["Service"]["release"] =>
  (holder) =>
    transaction(Effect.asVoid(sql`delete from leases where holder = ${holder}`))

/** What tells leases apart, in the order of their index. */
const place = ["authority", "chain_id", "entry_point", "wallet", "nonce_key"] as const
type Place = Pick<Row, (typeof place)[number]>

/** Leases that are looked at in one transaction. */
const step = 500

/**
 * Forgets those of the next leases that ended before that time: of keys that were handed out for ops that never came, of
 * wallets that nobody leases again. Gives the last one that was looked at; null: there are no more.
 */
export const forgetSome = ({ sql }: Store.Store, before: number, after: Place | null) =>
  Effect.gen(function* () {
    const columns = sql.literal(place.join(", "))
    const valuesOf = (row: Place | null) => sql`(${sql.csv(place.map((name) => sql`${row?.[name] ?? ""}`))})`
    const rows = yield* sql<Place & { readonly expires_at: number | string }>`
      select ${columns}, expires_at from leases where (${columns}) > ${valuesOf(after)}
      order by ${columns} limit ${step}`
    const ended = Math.min(before, yield* Clock.currentTimeMillis)
    const over = rows.filter((row) => Number(row.expires_at) < ended)
    if (over.length > 0)
      yield* sql`
        delete from leases
        where (${columns}) in (values ${sql.csv(over.map(valuesOf))}) and expires_at < ${ended}`
    return rows.length < step ? null : (rows.at(-1) ?? null)
  })
