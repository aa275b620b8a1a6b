import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type { LeaseRequest } from "../../../application/ports/journal/Requests.js"
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

export const lease =
  ({ lock, sql, transaction }: Store.Store) =>
  (request: LeaseRequest): Effect.Effect<ReadonlyArray<bigint> | null, JournalError> =>
    transaction(
      Effect.gen(function* () {
        const { authority, count, entryPoint, holder, keys, ttlMillis, wallet } = request
        yield* Store.fits(192, [keys.from, keys.to])
        const chainId = request.chainId.toString()
        const now = yield* Clock.currentTimeMillis
        yield* lock(`wallet:${authority}:${chainId}:${wallet}`)
        const ofWallet = sql`
          authority = ${authority} and chain_id = ${chainId} and entry_point = ${entryPoint} and wallet = ${wallet}`
        const from = Store.nonceKey(keys.from)
        const to = Store.nonceKey(keys.to)
        const rows = yield* sql<{ readonly nonce_key: string; readonly is_over: number }>`
          select nonce_key, case when expires_at <= ${now} then 1 else 0 end as is_over from leases
          where ${ofWallet} and (expires_at <= ${now} or nonce_key between ${from} and ${to})
          union all
          select nonce_key, 0 as is_over from ops
          where ${ofWallet} and state in ('accepted', 'sent') and nonce_key between ${from} and ${to}`
        if (rows.some((row) => row.is_over === 1))
          yield* sql`delete from leases where ${ofWallet} and expires_at <= ${now}`
        const taken = rows.filter((row) => row.is_over === 0).map((row) => BigInt(row.nonce_key))
        const chosen = lowestFree(keys, count, new Set(taken))
        if (chosen === null) return null
        for (const chunk of Store.chunks(chosen))
          yield* sql`insert into leases ${sql.insert(
            chunk.map((key) => ({
              authority,
              chain_id: chainId,
              entry_point: entryPoint,
              wallet,
              nonce_key: Store.nonceKey(key),
              holder,
              expires_at: now + ttlMillis
            }))
          )}`
        return chosen
      })
    )

/** Leases of keys that accepted ops use are no rows any more: such a key is held by its op. */
export const release =
  ({ sql, transaction }: Store.Store) =>
  (holder: string): Effect.Effect<void, JournalError> =>
    transaction(Effect.asVoid(sql`delete from leases where holder = ${holder}`))
