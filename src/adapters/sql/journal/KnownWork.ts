import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Records from "../../../application/ports/journal/Records.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type { Lane } from "../../../application/ports/journal/Transactions.js"
import * as Rows from "../Rows.js"
import * as Store from "../Store.js"
import * as NewOps from "./tables/NewOps.js"
import * as RequestRows from "./tables/RequestRows.js"

/** Nonce keys in use and wei held by open ops, for preparation, and for acceptance to check. */

/** Wei that other requests' open ops hold, by wallet and request. */
export type Held = Map<string, Map<string, bigint>>

const hold = (held: Held, name: string, requestId: string, wei: bigint): void => {
  const own = held.get(name) ?? new Map<string, bigint>()
  held.set(name, own)
  own.set(requestId, (own.get(requestId) ?? 0n) + wei)
}

interface UnderWay {
  readonly wallet: string
  readonly entry_point: string
  readonly nonce_key: string
  readonly request_id: string
  readonly reserve: string
}

/** Open ops of these wallets, all of one lane. */
const underWay = (store: Store.Store, lane: Lane, wallets: ReadonlyArray<string>) =>
  Rows.statement<UnderWay>(
    store,
    `select wallet, entry_point, nonce_key, request_id, reserve from ops
     where authority = ? and chain_id = ? and ${Rows.among(store, "wallet")} and state in ('accepted', 'sent')`,
    [lane.signer, lane.chainId.toString(), Rows.listOf(store, wallets)]
  )

export const readHeld = (store: Store.Store, lane: Lane, parts: ReadonlyArray<Records.Opening>) => {
  const wallets = parts.flatMap(({ ops }) =>
    ops.filter((op) => !NewOps.isDirect(op)).map(({ space }) => space.wallet)
  )
  const held: Held = new Map()
  if (wallets.length === 0) return Effect.succeed(held)
  const { chainId, signer } = lane
  return Effect.map(underWay(store, lane, Store.distinct(wallets)), (rows) => {
    for (const row of rows)
      hold(held, `${signer} ${chainId} ${row.wallet}`, row.request_id, BigInt(row.reserve))
    return held
  })
}

/**
 * A deposit serves one EntryPoint, a balance serves all. Wei held at any EntryPoint counts against the funds at each:
 * the sum may be too high, never too low. Null: the funds cover the request's ops, which now hold them.
 */
export const uncovered = (
  held: Held,
  { funds, ops, requestId }: Records.Opening
): Extract<Records.AcceptanceResult, { readonly _tag: "reserved" }> | null => {
  const available = new Map(funds.map((entry) => [NewOps.spaceName(entry.space), entry.available]))
  const wanted = new Map<string, bigint>()
  for (const op of ops) {
    if (NewOps.isDirect(op)) continue
    const name = NewOps.walletName(op.space)
    const holders = held.get(name)
    const before = holders?.get(requestId) ?? 0n
    let others = -before
    for (const wei of holders?.values() ?? []) others += wei
    const own = (wanted.get(name) ?? before) + op.reserve
    wanted.set(name, own)
    if (others > 0n && others + own > (available.get(NewOps.spaceName(op.space)) ?? 0n))
      return { _tag: "reserved", index: op.index, reserved: others }
  }
  for (const op of ops)
    if (!NewOps.isDirect(op)) hold(held, NewOps.walletName(op.space), requestId, op.reserve)
  return null
}

export const read =
  (store: Store.Store): RequestJournal["Service"]["read"] =>
  ({ idempotency, spaces }) =>
    store.reading(
      Effect.gen(function* () {
        const known = (yield* RequestRows.byKeys(store, idempotency)).map(RequestRows.keptIn)
        const now = yield* Clock.currentTimeMillis
        const keys = new Map<string, Set<bigint>>()
        const held = new Map<string, bigint>()
        const use = (name: string, key: string) => {
          const own = keys.get(name) ?? new Set<bigint>()
          keys.set(name, own)
          own.add(BigInt(key))
        }
        for (const [lane, own] of Map.groupBy(
          spaces,
          ({ authority, chainId }) => `${authority} ${chainId}`
        )) {
          const [space] = own
          if (space === undefined) continue
          const at: Lane = { chainId: space.chainId, signer: space.authority }
          const wallets = Store.distinct(own.map(({ wallet }) => wallet))
          for (const row of yield* underWay(store, at, wallets)) {
            use(`${lane} ${row.wallet} ${row.entry_point}`, row.nonce_key)
            const name = `${lane} ${row.wallet}`
            held.set(name, (held.get(name) ?? 0n) + BigInt(row.reserve))
          }
          const leases = yield* Rows.statement<Omit<UnderWay, "request_id" | "reserve">>(
            store,
            `select wallet, entry_point, nonce_key from leases
             where authority = ? and chain_id = ? and ${Rows.among(store, "wallet")} and expires_at > ?`,
            [at.signer, at.chainId.toString(), Rows.listOf(store, wallets), now]
          )
          for (const row of leases) use(`${lane} ${row.wallet} ${row.entry_point}`, row.nonce_key)
        }
        return {
          known,
          spaces: spaces.map((space) => ({
            keys: keys.get(NewOps.spaceName(space)) ?? new Set<bigint>(),
            held: held.get(NewOps.walletName(space)) ?? 0n
          }))
        }
      })
    )
