import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { OpJournal } from "../../../application/ports/journal/OpJournal.js"
import type * as Records from "../../../application/ports/journal/Records.js"
import { type Lane, type LaneAccess, laneKey } from "../../../application/ports/journal/Transactions.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Rows from "../Rows.js"
import * as Store from "../Store.js"
import * as Claims from "./tables/Claims.js"
import * as NewOps from "./tables/NewOps.js"
import * as Ops from "./tables/Ops.js"
import * as RequestRows from "./tables/RequestRows.js"
import * as StoredOp from "./tables/StoredOp.js"

/** Ready ops, as the lane's worker reads and changes them before it signs. */

type Method<K extends keyof OpJournal["Service"]> = (store: Store.Store) => OpJournal["Service"][K]

interface ReadyRow extends Omit<Ops.OwnedRow, "returned"> {
  readonly prepared: Uint8Array | null
  readonly endpoint: string
  readonly lane_key: string | null
  readonly context: string | null
  readonly asked_at: number | string
  readonly not_before: number | string | null
}

const columns = `ops.op_id, ops.request_id, ops.op_index, ops.authority, ops.chain_id, ops.entry_point, ops.wallet,
  ops.nonce_key, ops.sequence, ops.user_op_hash, ops.state, ops.was_public, ops.prepared, ops.tx_hash, ops.success,
  ops.revert_data, requests.account_id, requests.endpoint, requests.lane_key, requests.context,
  requests.accepted_at as asked_at, requests.not_before`

const preparedOf = (row: ReadyRow): Records.PreparedOp | null => {
  const prepared = row.prepared === null ? null : StoredOp.decode(row.prepared)
  // The journal has chosen the key of a direct transaction's nonce.
  return prepared?.kind === "direct" ? { ...prepared, nonceKey: BigInt(row.nonce_key) } : prepared
}

/** Caches the key, which ops of a request and requests of a lane share. */
const toOps = (rows: ReadonlyArray<ReadyRow>): ReadonlyArray<Records.Op> => {
  const keys = new Map<string, LaneAccess["key"] | null>()
  const keyOf = (text: string | null) => {
    if (text === null) return null
    const known = keys.get(text)
    if (known !== undefined) return known
    const key = RequestRows.laneKeyOf(text)
    keys.set(text, key)
    return key
  }
  return rows.map((row) => ({
    ...Ops.opOf(row),
    opId: Number(row.op_id),
    endpoint: row.endpoint,
    key: keyOf(row.lane_key),
    contextDigest: row.context,
    acceptedAt: Number(row.asked_at),
    notBefore: row.not_before === null ? null : Number(row.not_before),
    exposed: row.was_public === 1,
    prepared: preparedOf(row)
  }))
}

/** `cross join` makes SQLite begin with the lane's ops. */
const inLane = `from ops cross join requests
  where ops.authority = ? and ops.chain_id = ? and ops.state = 'accepted' and ops.op_id > ?
    and requests.request_id = ops.request_id and requests.held is null`

export const ready: Method<"ready"> =
  (store) =>
  ({ chainId, signer }, limit, { after = 0, perAccount } = {}) => {
    const lane = [signer, chainId.toString(), after]
    const rows =
      perAccount === undefined
        ? Rows.statement<ReadyRow>(
            store,
            `select ${columns} ${inLane} order by ops.op_id limit ${Rows.bound(limit)}`,
            lane
          )
        : Rows.statement<ReadyRow>(
            store,
            `select ${columns} from (
               select op_id, place from (
                 select ops.op_id, row_number() over (partition by requests.account_id order by ops.op_id) as place
                 ${inLane}) as placed
               where place <= ? order by place, op_id limit ${Rows.bound(limit)}) as chosen
             cross join ops cross join requests
             where ops.op_id = chosen.op_id and requests.request_id = ops.request_id
             order by ops.op_id`,
            [...lane, perAccount]
          )
    return store.query(Effect.map(rows, toOps))
  }

export const versions: Method<"versions"> = (store) => (opIds) =>
  opIds.length === 0
    ? Effect.succeed([])
    : store.query(
        Effect.map(
          Rows.statement<{ readonly op_id: Ops.Id; readonly user_op_hash: string }>(
            store,
            `select ops.op_id, version.user_op_hash from ops
             join ops as version on version.request_id = ops.request_id and version.op_index = ops.op_index
               and version.entry_point = ops.entry_point and version.wallet = ops.wallet
               and version.nonce_key = ops.nonce_key and version.sequence = ops.sequence
             where ${Rows.among(store, "ops.op_id")} and version.state = 'abandoned' and version.was_public = 1
               and version.user_op_hash is not null
             order by ops.op_id, version.op_id`,
            [Rows.listOf(store, opIds)]
          ),
          (rows) =>
            rows.map((row) => ({ opId: Number(row.op_id), userOpHash: Hex.unsafe32(row.user_op_hash) }))
        )
      )

const nameOf = ({ index, requestId }: { readonly index: number; readonly requestId: string }): string =>
  `${index} ${requestId}`

type Live = Omit<Ops.Row, "returned" | "revert_data" | "success" | "tx_hash">

/** Locks the elements' rows until the transaction ends; by element. */
export const live = (
  store: Store.Store,
  elements: ReadonlyArray<{ readonly index: number; readonly requestId: string }>
) =>
  Effect.gen(function* () {
    const { forUpdate, sql } = store
    const found = new Map<string, Live>()
    const inOrder = elements.toSorted((one, other) => (one.requestId < other.requestId ? -1 : 1))
    for (const chunk of Store.chunks(inOrder)) {
      const refs = sql.csv(
        chunk.map(({ index, requestId }) => sql`(${requestId}, cast(${index} as integer))`)
      )
      const rows = yield* sql<Live>`
        select op_id, request_id, op_index, authority, chain_id, entry_point, wallet, nonce_key, sequence, state,
          user_op_hash, was_public
        from ops where (request_id, op_index) in (values ${refs}) and state <> 'abandoned'
        order by op_id ${forUpdate}`
      for (const row of rows) found.set(nameOf({ requestId: row.request_id, index: row.op_index }), row)
    }
    return found
  })

const isSpace = (row: Live, { space }: Records.PreparedOp): boolean =>
  row.entry_point === space.entryPoint && row.wallet === space.wallet

const isNonce = (row: Live, op: Records.PreparedOp): boolean =>
  isSpace(row, op) &&
  (op.kind === "direct" ||
    (row.nonce_key === Store.nonceKey(op.nonceKey) && row.sequence === Store.uint64(op.sequence)))

const isOfLane = ({ chainId, signer }: Lane, row: Live): boolean =>
  row.authority === signer && row.chain_id === chainId.toString()

const preparedColumns: Rows.Columns = {
  op_id: "bigint",
  user_op_hash: "text",
  reserve: "text",
  returned: "text",
  prepared: "bytea",
  good_until: "bigint",
  nonce_key: "text",
  sequence: "text"
}

/** Overwrites rows with prepared ops; direct transactions keep their nonces. */
const overwrite = (
  store: Store.Store,
  some: ReadonlyArray<{ readonly row: Live; readonly op: Records.PreparedOp }>
) =>
  Rows.each(
    store,
    `update ops set state = 'accepted', user_op_hash = given.user_op_hash, reserve = given.reserve,
       returned = given.returned, prepared = given.prepared, good_until = given.good_until,
       nonce_key = given.nonce_key, sequence = given.sequence
     from (%) as given where ops.op_id = given.op_id`,
    preparedColumns,
    some.map(({ op, row }) => [
      row.op_id,
      op.userOpHash,
      op.reserve.toString(),
      op.returned,
      StoredOp.encode(op),
      op.goodUntil,
      op.kind === "direct" ? row.nonce_key : Store.nonceKey(op.nonceKey),
      op.kind === "direct" ? row.sequence : Store.uint64(op.sequence)
    ])
  )

const abandon = (store: Store.Store, rows: ReadonlyArray<Live>) =>
  Rows.each(
    store,
    "update ops set state = 'abandoned', prepared = null from (%) as given where ops.op_id = given.op_id",
    { op_id: "bigint" },
    rows.map((row) => [row.op_id])
  )

/** Inserts new rows for the elements, whose old rows are abandoned, and returns them by element. */
const replace = (store: Store.Store, ops: ReadonlyArray<Records.PreparedOp>, isExposed: boolean) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    yield* NewOps.writeRows(
      store,
      ops.map((op) => NewOps.rowOf(op, now, isExposed))
    )
    return yield* live(store, ops)
  })

/** Extends authorisations of creations to the deadline of their signatures. */
const authoriseLonger = ({ sql }: Store.Store, prepared: ReadonlyArray<Records.PreparedOp>) =>
  Effect.gen(function* () {
    const until = new Map<string, number>()
    for (const { kind, requestId, window } of prepared)
      if (kind === "creation" && window !== null)
        until.set(requestId, Math.max(until.get(requestId) ?? 0, window.validUntil))
    for (const [requestId, deadline] of until)
      yield* sql`
        update deployments set deadline = ${deadline}
        where request_id = ${requestId} and deadline < ${deadline}`
  })

export const renew: Method<"renew"> = (store) => (lane, prepared) =>
  Effect.gen(function* () {
    yield* NewOps.fits(prepared)
    yield* Claims.fence(store, lane)
    const rows = yield* live(store, prepared)
    const some = prepared.flatMap((op) => {
      const row = rows.get(nameOf(op))
      return row !== undefined && row.state === "accepted" && isOfLane(lane, row) && isNonce(row, op)
        ? { row, op }
        : []
    })
    // The same op again does not count as another version.
    const isVersion = ({ op, row }: (typeof some)[number]) =>
      row.was_public === 1 && row.user_op_hash !== op.userOpHash
    const fresh = some.filter(isVersion)
    yield* overwrite(
      store,
      some.filter((it) => !isVersion(it))
    )
    yield* abandon(
      store,
      fresh.map(({ row }) => row)
    )
    const replaced = yield* replace(
      store,
      fresh.map(({ op }) => op),
      true
    )
    yield* authoriseLonger(
      store,
      some.map(({ op }) => op)
    )
    const written = new Map([...some.map(({ op, row }) => [nameOf(op), row] as const), ...replaced])
    return prepared.map((op) => {
      const row = written.get(nameOf(op))
      return row === undefined ? null : Number(row.op_id)
    })
  }).pipe(Claims.inLane(store, lane))

class Refused extends Data.TaggedError("Refused")<{ readonly result: Records.RenumberResult }> {}

export const renumber: Method<"renumber"> = (store) => (lane, prepared) =>
  Effect.gen(function* () {
    yield* NewOps.fits(prepared)
    yield* Claims.fence(store, lane)
    const rows = yield* live(store, prepared)
    const some: Array<{ readonly row: Live; readonly op: Records.PreparedOp }> = []
    for (const op of prepared) {
      const row = rows.get(nameOf(op))
      const { index, requestId } = op
      const isReady = row?.state === "accepted" && isOfLane(lane, row) && isSpace(row, op)
      if (!isReady || op.kind === "direct")
        return yield* new Refused({ result: { _tag: "notReady", requestId, index } })
      some.push({ row, op })
    }
    // All nonces first: elements may swap them.
    yield* abandon(
      store,
      some.map(({ row }) => row)
    )
    const index = yield* NewOps.taken(store, prepared)
    if (index !== null) return yield* new Refused({ result: { _tag: "nonceTaken", ...index } })
    yield* overwrite(
      store,
      some.filter(({ row }) => row.was_public !== 1)
    )
    const replaced = yield* replace(
      store,
      some.flatMap(({ op, row }) => (row.was_public === 1 ? op : [])),
      false
    )
    const opIds = some.map(({ op, row }) => Number((replaced.get(nameOf(op)) ?? row).op_id))
    const renumbered: Records.RenumberResult = { _tag: "renumbered", opIds }
    return renumbered
  }).pipe(
    store.locking([
      `lane:${laneKey(lane)}`,
      ...prepared.map(({ space }) => `wallet:${space.authority}:${space.chainId}:${space.wallet}`)
    ]),
    Effect.catchTag("Refused", ({ result }) => Effect.succeed(result))
  )

interface FailedRequest extends RequestRows.FailedRow {
  readonly state: string
  readonly unopened: number
}

export const fail: Method<"fail"> = (store) => (lane, failures) =>
  Effect.gen(function* () {
    yield* Claims.fence(store, lane)
    const { forUpdate, sql } = store
    const ids = Store.distinct(failures.map(({ requestId }) => requestId))
    const requests = yield* Store.inChunks(
      ids,
      (chunk) => sql<FailedRequest>`
        select request_id, failed, state, unopened from requests
        where ${sql.in("request_id", chunk)} and chain_id = ${lane.chainId.toString()} and signer = ${lane.signer}
        order by request_id ${forUpdate}`
    )
    const open = new Map(requests.flatMap((row) => (row.state === "open" ? [[row.request_id, row]] : [])))
    const reported = failures.filter(({ requestId }) => open.has(requestId))
    const elements = reported.flatMap(({ done = [], failed, requestId }) =>
      [...failed.map(({ index }) => index), ...done].map((index) => ({ requestId, index }))
    )
    const rows = yield* live(store, elements)
    yield* abandon(
      store,
      [...rows.values()].filter(({ state }) => state === "accepted")
    )
    for (const [requestId, row] of open) {
      const before = RequestRows.failedOf(row)
      const known = new Set(before.map(({ index }) => index))
      const events = reported
        .filter((it) => it.requestId === requestId)
        .flatMap(({ failed }) => failed)
        .filter(({ index }) => rows.get(nameOf({ requestId, index }))?.state !== "settled")
      const done = reported.filter((it) => it.requestId === requestId).flatMap((it) => it.done ?? [])
      const opened = [...events.map(({ index }) => index), ...done].filter(
        (index) => !rows.has(nameOf({ requestId, index })) && !known.has(index)
      )
      yield* RequestRows.writeFailed(store, requestId, RequestRows.merged(before, events))
      const left = row.unopened - new Set(opened).size
      if (left !== row.unopened)
        yield* sql`update requests set unopened = ${Math.max(0, left)} where request_id = ${requestId}`
    }
  }).pipe(Claims.inLane(store, lane))

export const publish: Method<"publish"> = (store) => (lane, opIds) =>
  Effect.gen(function* () {
    yield* Claims.fence(store, lane)
    yield* store.sql`
      update lanes set proven_at = ${yield* Clock.currentTimeMillis}
      where chain_id = ${lane.chainId.toString()} and signer = ${lane.signer}`
    yield* Store.forChunks(
      opIds,
      (chunk) => store.sql`
        update ops set was_public = 1
        where ${store.sql.in("op_id", chunk)} and authority = ${lane.signer}
          and chain_id = ${lane.chainId.toString()} and state = 'accepted'`
    )
  }).pipe(Claims.inLane(store, lane))
