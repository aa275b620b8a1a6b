import * as Effect from "effect/Effect"
import * as Holding from "../../../../application/ports/journal/Holding.js"
import { JournalError } from "../../../../application/ports/journal/JournalError.js"
import type { LaneJournal } from "../../../../application/ports/journal/LaneJournal.js"
import { type Lane, laneKey } from "../../../../application/ports/journal/Transactions.js"
import * as Address from "../../../../domain/primitives/Address.js"
import type * as Lineage from "../../recovery/Lineage.js"
import * as Store from "../../Store.js"

interface Row {
  readonly epoch: number | string
  readonly holder: string
  readonly process: string
  readonly is_whole: number | boolean
}

export const inLane = ({ locking }: Pick<Store.Store, "locking">, lane: Lane): Store.Store["transaction"] =>
  locking([`lane:${laneKey(lane)}`])

/** Whether the database has the transaction, or has deleted it with its request. */
const holds = ({ sql }: Store.Store, stored: Lineage.Stored | null) =>
  stored === null
    ? sql.literal("1 = 1")
    : sql`(exists (
        select 1 from transactions
        where chain_id = ${stored.chainId.toString()} and signer = ${stored.signer}
          and nonce = ${Store.uint64(stored.nonce)})
      or exists (select 1 from requests where request_id = ${stored.requestId} and state = 'forgotten'))`

/** `suffix`: the lock clause. */
const read = (store: Store.Store, lane: Lane, suffix: Store.Store["forShare"]) =>
  Effect.map(
    store.sql<Row>`
      select epoch, holder, process, ${holds(store, store.lineage.stored(lane))} as is_whole from lanes
      where chain_id = ${lane.chainId.toString()} and signer = ${lane.signer} ${suffix}`,
    ([row]) => row
  )

/** Fails in a snapshot without this process's earlier writes: the database was replaced by an older one. */
export const checkNewest = (store: Store.Store, newest: Lineage.Stored | null) =>
  newest === null
    ? Effect.void
    : Effect.flatMap(store.sql<Pick<Row, "is_whole">>`select ${holds(store, newest)} as is_whole`, ([row]) =>
        row?.is_whole ? Effect.void : store.lineage.lose
      )

const write = ({ instance, sql }: Store.Store, lane: Lane, epoch: number, process: string) => sql`
  insert into lanes ${sql.insert({
    chain_id: lane.chainId.toString(),
    signer: lane.signer,
    epoch,
    holder: instance,
    process
  })}
  on conflict (chain_id, signer) do update set epoch = excluded.epoch, holder = excluded.holder,
    process = excluded.process
  where lanes.epoch < excluded.epoch`

/** The same instance keeps the lane in a new process: its in-memory state stays valid. */
const rename = ({ sql }: Store.Store, { chainId, signer }: Lane, process: string) => sql`
  update lanes set process = ${process} where chain_id = ${chainId.toString()} and signer = ${signer}`

/**
 * Holds the lane until the transaction ends and returns its epoch; claims a free lane. Fails when another instance holds
 * the lane, or held it since the fiber's work began (`Holding`): this instance's in-memory state is then stale.
 */
export const fence = (store: Store.Store, lane: Lane) =>
  Effect.gen(function* () {
    let row = yield* read(store, lane, store.forShare)
    const isWhole = row === undefined ? store.lineage.stored(lane) === null : Boolean(row.is_whole)
    if (!isWhole) return yield* store.lineage.lose
    if (row === undefined) {
      yield* write(store, lane, 1, "")
      row = yield* read(store, lane, store.forShare)
    }
    if (row?.holder !== store.instance)
      return yield* new JournalError({ message: "another process works on the lane", isFenced: true })
    const epoch = Number(row.epoch)
    const begun = (yield* Holding.begun).holding
    if (
      begun !== null &&
      begun.chainId === lane.chainId &&
      begun.signer === lane.signer &&
      begun.epoch !== epoch
    )
      return yield* new JournalError({
        message: "another process has had the lane since this began",
        isFenced: true
      })
    return epoch
  })

/** Lane of requests that an earlier version stored without one. */
const unknown = Address.unsafe("0x0000000000000000000000000000000000000000")

export const laneOf = (row: { readonly chain_id: string; readonly signer: string | null }): Lane => ({
  chainId: BigInt(row.chain_id),
  signer: row.signer === null ? unknown : Address.unsafe(row.signer)
})

export const claim =
  (store: Store.Store): LaneJournal["Service"]["claim"] =>
  (lane, by) =>
    Effect.gen(function* () {
      // Usually this process has the lane already; otherwise `claimAnew` reads it again, under the lock.
      const known = yield* store.query(read(store, lane, store.sql.literal("")))
      if (known?.holder === store.instance && known.process === by.process) return Number(known.epoch)
      return yield* claimAnew(store, lane, by)
    })

const claimAnew = (
  store: Store.Store,
  lane: Lane,
  by: { readonly process: string; readonly independent: ReadonlyArray<string> }
): Effect.Effect<number | null, JournalError> =>
  Effect.gen(function* () {
    const row = yield* read(store, lane, store.forUpdate)
    if (row?.holder === store.instance) {
      if (row.process !== by.process) yield* rename(store, lane, by.process)
      return Number(row.epoch)
    }
    if (row !== undefined && by.independent.includes(row.process)) return null
    const epoch = Number(row?.epoch ?? 0) + 1
    yield* write(store, lane, epoch, by.process)
    return epoch
  }).pipe(inLane(store, lane))
