import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type { Lane } from "../../../application/ports/journal/Transactions.js"
import * as Store from "../Store.js"

/** Bound up to which the journal knows the uses of a lane's nonces; a restored older journal does not know all. */

const ofLane = ({ sql }: Store.Store, { chainId, signer }: Lane) =>
  sql`chain_id = ${chainId.toString()} and signer = ${signer}`

/** Null: it knows none. */
export const knownTo = (store: Store.Store, lane: Lane) =>
  Effect.gen(function* () {
    const { sql } = store
    const [row] = yield* sql<{ readonly explained: string | null; readonly unread: string | null }>`
      select explained, unread from lanes where ${ofLane(store, lane)}`
    if (row?.unread != null) return BigInt(row.unread) || null
    const [highest] = yield* sql<{ readonly nonce: string }>`
      select nonce from transactions
      where ${ofLane(store, lane)} and state in ('signed', 'mined', 'settled', 'foreign')
      order by nonce desc limit 1`
    const nonces = [
      ...(row?.explained == null ? [] : [BigInt(row.explained)]),
      ...(highest === undefined ? [] : [BigInt(highest.nonce) + 1n])
    ]
    return nonces.length === 0 ? null : nonces.reduce(BigInts.max)
  })

/** Records the bound. Nonces above it count as unknown until they are read, whatever is signed or found meanwhile. */
export const keep = (store: Store.Store, lane: Lane) =>
  Effect.gen(function* () {
    const known = yield* knownTo(store, lane)
    yield* store.sql`
      update lanes set unread = ${Store.uint64(known ?? 0n)} where ${ofLane(store, lane)} and unread is null`
  })

/** Records that the journal assigns a nonce above unknown ones, which may belong to earlier requests other than these. */
export const skip = (store: Store.Store, lane: Lane, nonce: bigint, requestIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { sql } = store
    const own = Store.distinct(requestIds)
    const others = yield* sql`
      select request_id from requests
      where state = 'open' and ${ofLane(store, lane)} ${own.length === 0 ? sql.literal("") : sql`and not ${sql.in("request_id", own)}`}
      limit 1`
    if (others.length > 0 && ((yield* knownTo(store, lane)) ?? 0n) < nonce) yield* keep(store, lane)
  })
