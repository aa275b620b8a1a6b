import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { SqlError } from "effect/sql/SqlError"
import {
  type NewWatch,
  type Watch,
  type Watches,
  WatchesError,
  type WatchNode
} from "../../../application/ports/Watches.js"
import type { EndpointChange } from "../../../application/ports/Webhooks.js"
import * as Seal from "../Seal.js"
import * as Store from "../Store.js"
import * as Limits from "./Limits.js"

/**
 * Adds, lists, pauses and removes watches; `Watches` has the methods of their readers. Each change advances the
 * revision of the watch's source, which makes the source's reader read it again.
 */

/** Logs a change of an existing watch with its endpoint, in the transaction of the change. */
const log = ({ sql }: Store.Store, watchId: string, what: EndpointChange["what"], by: string) =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => sql`
      insert into webhook_changes (at, webhook_id, watch_id, account_id, what, changed_by)
      select cast(${now} as bigint), webhooks.webhook_id, watches.watch_id, watches.account_id,
        cast(${what} as text), cast(${by} as text)
      from watches join webhooks on webhooks.webhook_no = watches.webhook_no
      where watches.watch_id = ${watchId}`
  )

export const rpcName = (sourceId: string): string => `watch rpc ${sourceId}`

type Asked = <A>(effect: Effect.Effect<A, WatchesError | SqlError>) => Effect.Effect<A, WatchesError>

interface Row extends Omit<Watch, "chainId" | "fromBlock" | "nextBlock" | "rpc" | "spec"> {
  readonly sourceId: string
  readonly chainId: string
  readonly rpc: string | null
  readonly spec: string
  readonly fromBlock: number | string
  readonly nextBlock: number | string
}

const toWatch =
  ({ seal }: Store.Store) =>
  ({ sourceId, ...row }: Row): Effect.Effect<Watch> =>
    Effect.map(
      row.rpc === null ? Effect.succeed(null) : Seal.openUrl(seal, rpcName(sourceId), row.rpc),
      (rpc) => ({
        ...row,
        chainId: BigInt(row.chainId),
        rpc,
        spec: JSON.parse(row.spec),
        fromBlock: BigInt(row.fromBlock),
        nextBlock: BigInt(row.nextBlock)
      })
    )

const selected = ({ sql }: Store.Store) => {
  const counts = ["waiting", "dead"].map(
    (state) => `(select count(*) from webhook_deliveries
      where webhook_deliveries.request_no = -watches.watch_no and webhook_deliveries.state = '${state}') as ${state}`
  )
  return sql.literal(`
    select watches.watch_no as number, watches.watch_id as "watchId", watches.account_id as "accountId",
      webhooks.webhook_id as "webhookId", watch_sources.source_id as "sourceId",
      watch_sources.chain_id as "chainId", watch_sources.rpc, watches.state, watches.spec, watches.confirmations,
      watches.from_block as "fromBlock", watch_cursors.next_block as "nextBlock", watches.sequence,
      watch_sources.problem, watches.created_at as "createdAt",
      ${counts.join(", ")}
    from watches
    join webhooks on webhooks.webhook_no = watches.webhook_no
    join watch_sources on watch_sources.source_no = watches.source_no
    join watch_cursors on watch_cursors.cursor_no = watches.cursor_no`)
}

const forgetSources = ({ sql }: Store.Store, owner: string) =>
  Effect.gen(function* () {
    const unread = sql`
      account_id = ${owner} and rpc is not null and not exists (
        select 1 from watches where watches.source_no = watch_sources.source_no)`
    yield* sql`
      delete from watch_cursors where source_no in (select source_no from watch_sources where ${unread})`
    yield* sql`delete from watch_sources where ${unread}`
  })

/** The node's source, created for its first watch. The account's lock prevents duplicates. */
const sourceOf = (store: Store.Store, { accountId, chainId, rpc }: WatchNode) =>
  Effect.gen(function* () {
    const { seal, sql } = store
    const chain = chainId.toString()
    const owner = accountId ?? ""
    const known = yield* sql<{
      readonly source_no: number
      readonly source_id: string
      readonly rpc: string | null
    }>`
      select source_no, source_id, rpc from watch_sources
      where chain_id = ${chain} and account_id = ${owner} order by source_no`
    for (const row of known) {
      const url = row.rpc === null ? null : yield* Effect.option(seal.open(rpcName(row.source_id), row.rpc))
      if (url === null ? rpc === null : rpc !== null && Option.contains(url, Redacted.value(rpc)))
        return row.source_no
    }
    if (rpc !== null) {
      yield* forgetSources(store, owner)
      yield* Limits.checkNodes(store, owner)
    }
    const sourceId = randomUUID()
    const [made] = yield* sql<{ readonly source_no: number }>`
      insert into watch_sources ${sql.insert({
        source_id: sourceId,
        chain_id: chain,
        account_id: owner,
        rpc: rpc === null ? null : seal.close(rpcName(sourceId), Redacted.value(rpc)),
        revision: 0
      })} returning source_no`
    return made?.source_no ?? 0
  })

/** Increments the source's revision, and locks the source until the transaction ends. */
export const revise = ({ sql }: Store.Store, source: number) =>
  Effect.map(
    sql<{ readonly revision: number | string }>`
      update watch_sources set revision = revision + 1 where source_no = ${source} returning revision`,
    ([row]) => Number(row?.revision ?? 0)
  )

/** Most blocks that a new watch waits for a shared cursor. */
const near = 64n

/**
 * Cursor of a new watch: an active one at its block or shortly before it, or a new one. A cursor within a block is not
 * shared: the watch would miss the block's earlier part.
 */
const cursorOf = ({ sql }: Store.Store, source: number, fromBlock: bigint) =>
  Effect.gen(function* () {
    const [shared] = yield* sql<{ readonly cursor_no: number }>`
      select watch_cursors.cursor_no from watch_cursors
      where source_no = ${source} and part is null and next_block <= ${fromBlock.toString()}
        and next_block >= ${(fromBlock - near).toString()} and exists (
        select 1 from watches where watches.cursor_no = watch_cursors.cursor_no and watches.state = 'enabled')
      order by next_block desc limit 1`
    if (shared !== undefined) return shared.cursor_no
    const block = fromBlock.toString()
    const [made] = yield* sql<{ readonly cursor_no: number }>`
      insert into watch_cursors ${sql.insert({ source_no: source, first_block: block, next_block: block, hashes: "" })}
      returning cursor_no`
    return made?.cursor_no ?? 0
  })

const add = (store: Store.Store, watch: NewWatch, by: string) =>
  Effect.gen(function* () {
    const { sql } = store
    const { accountId } = watch
    yield* store.lock(`watches:${watch.node.accountId ?? `chain ${watch.node.chainId}`}`)
    yield* store.lock(`watches of:${accountId}`)
    const [webhook] = yield* sql<{ readonly webhook_no: number }>`
      select webhook_no from webhooks where webhook_id = ${watch.webhookId} and account_id = ${accountId}
      ${Store.forKeyShare(store, "webhooks")}`
    if (webhook === undefined)
      return yield* new WatchesError({ reason: "noWebhook", message: "the account has no such webhook" })
    const spec = JSON.stringify(watch.spec)
    yield* Limits.check(store, watch, spec)
    const source = yield* sourceOf(store, watch.node)
    const revision = yield* revise(store, source)
    const watchId = randomUUID()
    yield* sql`
      insert into watches ${sql.insert({
        watch_id: watchId,
        account_id: accountId,
        webhook_no: webhook.webhook_no,
        source_no: source,
        cursor_no: yield* cursorOf(store, source, watch.fromBlock),
        state: "enabled",
        spec,
        is_broad: watch.isBroad ? 1 : 0,
        confirmations: watch.confirmations,
        from_block: watch.fromBlock.toString(),
        sequence: 0,
        revision,
        created_at: yield* Clock.currentTimeMillis
      })}`
    yield* log(store, watchId, "added", by)
    return watchId
  })

/** Moves a watch to a separate cursor, so that it stays behind. */
export const leave = ({ sql }: Store.Store, watch: number) =>
  Effect.gen(function* () {
    const [made] = yield* sql<{ readonly cursor_no: number }>`
      insert into watch_cursors (source_no, first_block, next_block, hashes, part)
      select watch_cursors.source_no, first_block, next_block, hashes, part from watch_cursors
      join watches on watches.cursor_no = watch_cursors.cursor_no
      where watches.watch_no = ${watch}
      returning cursor_no`
    yield* sql`update watches set cursor_no = ${made?.cursor_no ?? 0} where watch_no = ${watch}`
  })

export const tidy = ({ sql }: Store.Store, source: number) => sql`
  delete from watch_cursors
  where source_no = ${source} and not exists (
    select 1 from watches where watches.cursor_no = watch_cursors.cursor_no)`

const numbersOf = ({ sql }: Store.Store, watchId: string) =>
  Effect.map(
    sql<{ readonly watch_no: number; readonly source_no: number }>`
      select watch_no, source_no from watches where watch_id = ${watchId}`,
    ([row]) => row
  )

const setState = (store: Store.Store, watchId: string, state: "enabled" | "paused", by: string) =>
  Effect.gen(function* () {
    const { sql } = store
    const known = yield* numbersOf(store, watchId)
    if (known === undefined) return false
    const revision = yield* revise(store, known.source_no)
    const [was] = yield* sql<{ readonly state: Watch["state"] }>`
      select state from watches where watch_no = ${known.watch_no}`
    if (was === undefined) return false
    if (state === "paused" && was.state === "enabled") yield* leave(store, known.watch_no)
    yield* sql`update watches set state = ${state}, revision = ${revision} where watch_no = ${known.watch_no}`
    yield* tidy(store, known.source_no)
    yield* log(store, watchId, state, by)
    return true
  })

const remove = (store: Store.Store, watchId: string, by: string) =>
  Effect.gen(function* () {
    const { sql } = store
    const known = yield* numbersOf(store, watchId)
    if (known === undefined) return false
    yield* revise(store, known.source_no)
    yield* log(store, watchId, "removed", by)
    yield* sql`delete from webhook_deliveries where request_no = ${-known.watch_no}`
    yield* sql`delete from watch_events where watch_no = ${known.watch_no}`
    const gone = yield* sql`delete from watches where watch_no = ${known.watch_no} returning watch_no`
    yield* tidy(store, known.source_no)
    return gone.length > 0
  })

export const make = (
  store: Store.Store,
  asked: Asked
): Pick<Watches["Service"], "add" | "get" | "list" | "remove" | "setState"> => {
  const { sql } = store
  const select = selected(store)
  return {
    add: (watch, by) => asked(add(store, watch, by)),
    list: (accountId, { after = 0, limit }) =>
      asked(
        Effect.flatMap(
          sql<Row>`
            ${select} where watches.watch_no > ${after}
              ${accountId === null ? sql.literal("") : sql`and watches.account_id = ${accountId}`}
            order by watches.watch_no limit ${limit}`,
          (rows) => Effect.forEach(rows, toWatch(store))
        )
      ),
    get: (watchId) =>
      asked(
        Effect.flatMap(sql<Row>`${select} where watches.watch_id = ${watchId}`, ([row]) =>
          row === undefined ? Effect.succeed(null) : toWatch(store)(row)
        )
      ),
    setState: (watchId, state, by) => asked(setState(store, watchId, state, by)),
    remove: (watchId, by) => asked(remove(store, watchId, by))
  }
}
