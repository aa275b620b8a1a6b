import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { OpJournal } from "../../../application/ports/journal/OpJournal.js"
import type { LeaseRequest, NonceSpace } from "../../../application/ports/journal/Requests.js"
import * as Store from "../Store.js"

/** The lowest `count` free integers of the range; null: fewer are free. */
const lowestFree = (
  keys: LeaseRequest["keys"],
  count: number,
  taken: ReadonlySet<bigint>
): ReadonlyArray<bigint> | null => {
  const free: Array<bigint> = []
  for (let key = keys.from; key <= keys.to && free.length < count; key++) if (!taken.has(key)) free.push(key)
  return free.length === count ? free : null
}

/** Leases the lowest free keys of the range; null: too few are free. */
const leaseOne = (
  { sql }: Store.Store,
  { authority, chainId, count, entryPoint, holder, keys, ttlMillis, wallet }: LeaseRequest,
  now: number
) =>
  Effect.gen(function* () {
    const space = { authority, chain_id: chainId.toString(), entry_point: entryPoint, wallet }
    const ofWallet = sql`authority = ${authority} and chain_id = ${space.chain_id} and entry_point = ${entryPoint} and wallet = ${wallet}`
    const [from, to] = [Store.nonceKey(keys.from), Store.nonceKey(keys.to)]
    const rows = yield* sql<{ readonly nonce_key: string; readonly is_over: number }>`
      select nonce_key, case when expires_at <= ${now} then 1 else 0 end as is_over from leases
      where ${ofWallet} and (expires_at <= ${now} or nonce_key between ${from} and ${to})
      union all
      select nonce_key, 0 as is_over from ops
      where ${ofWallet} and state in ('accepted', 'sent') and nonce_key between ${from} and ${to}`
    if (rows.some((row) => row.is_over === 1))
      yield* sql`delete from leases where ${ofWallet} and expires_at <= ${now}`
    const taken = rows.filter((row) => row.is_over === 0).map((row) => BigInt(row.nonce_key))
    const free = lowestFree(keys, count, new Set(taken))
    yield* Store.forChunks(free ?? [], (chunk) => {
      const leased = { ...space, holder, expires_at: now + ttlMillis }
      return sql`insert into leases ${sql.insert(
        Arr.map(chunk, (key) => ({ ...leased, nonce_key: Store.nonceKey(key) }))
      )}`
    })
    return free
  })

export const lease =
  (store: Store.Store): OpJournal["Service"]["lease"] =>
  (requests) =>
    requests.length === 0
      ? Effect.succeed([])
      : Effect.gen(function* () {
          yield* Store.fits(
            192,
            requests.flatMap(({ keys }) => [keys.from, keys.to])
          )
          const now = yield* Clock.currentTimeMillis
          const leased: Array<ReadonlyArray<bigint>> = []
          for (const request of requests) {
            const keys = yield* leaseOne(store, request, now)
            if (keys === null) break
            leased.push(keys)
          }
          return leased
        }).pipe(
          store.locking(
            requests.map(({ authority, chainId, wallet }) => `wallet:${authority}:${chainId}:${wallet}`)
          )
        )

/** Leases of keys that accepted ops use have no rows: the op holds its key. */
export const release =
  ({ sql, transaction }: Store.Store): OpJournal["Service"]["release"] =>
  (holder) =>
    transaction(Effect.asVoid(sql`delete from leases where holder = ${holder}`))

/** Ends the leases: the ops now hold their keys. */
export const end = (
  { sql }: Store.Store,
  ops: ReadonlyArray<{ readonly nonceKey: bigint; readonly space: NonceSpace }>
) =>
  Effect.forEach(
    Map.groupBy(ops, ({ space }) => `${space.authority} ${space.chainId} ${space.entryPoint}`).values(),
    (group) =>
      Store.forChunks(group, (chunk) => {
        const { authority, chainId, entryPoint } = chunk[0].space
        const keys = sql.csv(
          chunk.map(({ nonceKey, space }) => sql`(${space.wallet}, ${Store.nonceKey(nonceKey)})`)
        )
        return sql`
          delete from leases
          where authority = ${authority} and chain_id = ${chainId.toString()} and entry_point = ${entryPoint}
            and (wallet, nonce_key) in (values ${keys})`
      }),
    { discard: true }
  )

/** Key of a lease, in the order of its index. */
const place = ["authority", "chain_id", "entry_point", "wallet", "nonce_key"] as const
type Place = Readonly<Record<(typeof place)[number], string>>

const step = 500

/**
 * Deletes those of the next `step` leases that ended before that time: their ops never came. Returns the last lease read;
 * null: no further lease.
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
