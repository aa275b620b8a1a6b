import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type { RemoteOpJournal } from "../../../application/ports/journal/RemoteOpJournal.js"
import type {
  FoundInclusion,
  RemoteSubmission
} from "../../../application/ports/journal/RemoteSubmissions.js"
import type { LaneAccess } from "../../../application/ports/journal/Transactions.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Rows from "../Rows.js"
import * as Seal from "../Seal.js"
import * as Store from "../Store.js"
import * as Events from "./Events.js"
import * as Claims from "./tables/Claims.js"
import * as Ops from "./tables/Ops.js"
import * as RequestRows from "./tables/RequestRows.js"

/** Ops that a remote bundler submits. */

/** Name bound into sealed text: it does not open in another row. */
const sealName = (opId: Ops.Id): string => `handover ${opId}`

interface Carried extends Ops.State {
  readonly rpc: string | null
}

const handoverColumns: Rows.Columns = {
  op_id: "bigint",
  rpc: "text",
  trust: "text",
  since: "text",
  signed: "text"
}

export const handOver =
  (store: Store.Store): RemoteOpJournal["Service"]["handOver"] =>
  (lane, { node, ops: handed, since }) =>
    Effect.gen(function* () {
      const { seal } = store
      yield* Store.fits(64, [since])
      yield* Claims.fence(store, lane)
      const given = new Map(handed.map((op) => [String(op.opId), op]))
      const ids = Rows.listOf(
        store,
        handed.map(({ opId }) => opId)
      )
      const rows = yield* Rows.statement<Carried>(
        store,
        `select ops.op_id, request_id, op_index, entry_point, user_op_hash, state, tx_hash, handovers.rpc
         from ops left join handovers on handovers.op_id = ops.op_id
         where ${Rows.among(store, "ops.op_id")} and authority = ? and chain_id = ?
         order by ops.op_id ${Store.isPostgres(store.sql) ? "for update of ops" : ""}`,
        [ids, lane.signer, lane.chainId.toString()]
      )
      const hashOf = (op: Ops.State) => given.get(String(op.op_id))?.userOpHash
      const own = rows.filter((op) => (op.user_op_hash ?? hashOf(op)) === hashOf(op))
      const fresh = own.filter((op) => op.state === "accepted")
      yield* Rows.each(
        store,
        `update ops set state = 'sent', tx_hash = null, was_public = 1, user_op_hash = given.user_op_hash
         from (%) as given where ops.op_id = given.op_id`,
        { op_id: "bigint", user_op_hash: "text" },
        fresh.map((op) => [op.op_id, hashOf(op)])
      )
      const rpc = node.rpc === null ? "" : Redacted.value(node.rpc)
      yield* Rows.each(
        store,
        `insert into handovers (op_id, rpc, trust, since, signed, submitted)
         select op_id, rpc, trust, since, signed, 0 from (%) as given`,
        handoverColumns,
        fresh.map((op) => [
          op.op_id,
          seal.close(sealName(op.op_id), rpc),
          node.trust,
          since.toString(),
          given.get(String(op.op_id))?.signed
        ])
      )
      const concerned = Store.distinct(fresh.map((op) => op.request_id))
      if (fresh.length > 0) yield* Events.append(store, Events.ofElements("signed", {}, concerned, fresh))
      // Ops of an earlier call whose answer was lost.
      const known = own.filter((op) => op.state === "sent" && op.rpc !== null)
      return [...fresh, ...known].map((op) => Number(op.op_id))
    }).pipe(Claims.inLane(store, lane))

const forget = ({ sql }: Store.Store, ops: ReadonlyArray<Ops.State>) =>
  Effect.map(
    Store.inChunks(
      Ops.idsOf(ops),
      (ids) => sql<Pick<Ops.State, "op_id">>`
        delete from handovers where ${sql.in("op_id", ids)} returning op_id`
    ),
    (rows) => {
      const watched = new Set(rows.map((row) => String(row.op_id)))
      return ops.filter((op) => watched.has(String(op.op_id)))
    }
  )

export const takeBack =
  (store: Store.Store): RemoteOpJournal["Service"]["takeBack"] =>
  (lane, hashes, isDead) =>
    Effect.gen(function* () {
      yield* Claims.fence(store, lane)
      const rows = yield* named(store, lane.signer, lane.chainId, hashes)
      const inOurs = yield* Ops.carried(store, rows)
      const back = rows.filter((op) => op.state === "sent" && !inOurs.has(String(op.op_id)))
      const failed = isDead ? yield* failedElements(store, back) : new Set()
      const isOver = (op: Ops.State) => failed.has(`${op.op_index} ${op.request_id}`)
      yield* Rows.each(
        store,
        `update ops set state = given.state, tx_hash = null, prepared = null, was_public = given.was_public
         from (%) as given where ops.op_id = given.op_id`,
        { op_id: "bigint", state: "text", was_public: "smallint" },
        back.map((op) => [op.op_id, isOver(op) ? "abandoned" : "accepted", isDead ? 0 : 1])
      )
      yield* forget(store, back)
    }).pipe(Claims.inLane(store, lane))

/** The authority's ops of these hashes that are not abandoned. */
const named = (
  store: Store.Store,
  authority: Address,
  chainId: bigint,
  hashes: ReadonlyArray<Hex.Bytes32>
) => {
  const { sql } = store
  return Store.inChunks(Store.distinct(hashes), (chunk) =>
    Ops.locked(
      store,
      sql`chain_id = ${chainId.toString()} and authority = ${authority} and state <> 'abandoned'
        and ${sql.in("user_op_hash", chunk)}`
    )
  )
}

type Node = Pick<LaneAccess, "rpc" | "trust">

/**
 * Watches ops found on the chain until they reach settled depth. The monitor watches a bundler's ops already: it continues
 * with the hash that landed.
 */
const watch = (
  { seal, sql }: Store.Store,
  ops: ReadonlyArray<Ops.State>,
  found: ReadonlyMap<string | null, FoundInclusion>,
  node: Node
) =>
  Effect.forEach(
    ops.flatMap((op) => {
      const inclusion = found.get(op.user_op_hash)
      return inclusion === undefined ? [] : [{ op, inclusion }]
    }),
    ({ inclusion: { blockNumber, landedAs }, op }) => sql`
      insert into handovers ${sql.insert({
        op_id: op.op_id,
        rpc: seal.close(sealName(op.op_id), node.rpc === null ? "" : Redacted.value(node.rpc)),
        trust: node.trust,
        since: blockNumber.toString(),
        signed: Hex.empty,
        landed_as: landedAs === op.user_op_hash ? null : landedAs
      })}
      on conflict (op_id) do update set landed_as = excluded.landed_as`,
    { discard: true }
  )

/** Marks the ops submitted; returns those without a `submitted` event. */
const unsubmitted = (store: Store.Store, ops: ReadonlyArray<Ops.State>) =>
  Effect.gen(function* () {
    const { sql } = store
    const submitted = new Set<string>()
    for (const chunk of Store.chunks(ops)) {
      const ids = chunk.map((op) => op.op_id)
      const rows = yield* sql<Pick<Ops.State, "op_id">>`
        select op_id from handovers where ${sql.in("op_id", ids)} and submitted = 1`
      for (const row of rows) submitted.add(String(row.op_id))
      yield* sql`update handovers set submitted = 1 where ${sql.in("op_id", ids)} and submitted = 0`
    }
    return ops.filter((op) => !submitted.has(String(op.op_id)))
  })

export const recordTaken =
  (store: Store.Store): RemoteOpJournal["Service"]["recordTaken"] =>
  (authority, chainId, hashes) =>
    store.transaction(
      Effect.gen(function* () {
        const { sql } = store
        yield* Claims.fence(store, { chainId, signer: authority })
        const ops = yield* named(store, authority, chainId, hashes)
        const rows = yield* Store.inChunks(
          Ops.idsOf(ops.filter((op) => op.state === "sent")),
          (ids) => sql<Pick<Ops.State, "op_id">>`
            update handovers set submitted = 1 where submitted = 0 and ${sql.in("op_id", ids)} returning op_id`
        )
        const taken = new Set(rows.map((row) => String(row.op_id)))
        const fresh = ops.filter((op) => taken.has(String(op.op_id)))
        const requests = Store.distinct(fresh.map((op) => op.request_id))
        yield* Events.append(store, Events.ofElements("submitted", {}, requests, fresh))
      })
    )

export const recordInclusions =
  (store: Store.Store): RemoteOpJournal["Service"]["recordInclusions"] =>
  (authority, chainId, outcomes, node) =>
    store.transaction(
      Effect.gen(function* () {
        yield* Claims.fence(store, { chainId, signer: authority })
        const found = new Map<string | null, FoundInclusion>(outcomes.map((it) => [it.userOpHash, it]))
        const hashes = outcomes.map((outcome) => outcome.userOpHash)
        const ops = yield* named(store, authority, chainId, hashes)
        const settled = yield* Ops.settle(store, ops, outcomes)
        const inOurs = yield* Ops.carried(store, settled)
        const own = settled.filter((op) => !inOurs.has(String(op.op_id)))
        const unrecorded = yield* unsubmitted(store, own)
        const over = own.filter((op) => found.get(op.user_op_hash)?.final === true)
        yield* forget(store, over)
        yield* watch(
          store,
          own.filter((op) => !over.includes(op)),
          found,
          node
        )
        yield* Events.append(store, [
          ...Events.ofLanded("submitted", unrecorded, []),
          ...Events.ofLanded("included", settled, outcomes),
          ...Events.ofLanded("settled", over, outcomes)
        ])
        return Store.distinct(ops.map((op) => op.request_id))
      })
    )

export const revertInclusions =
  (store: Store.Store): RemoteOpJournal["Service"]["revertInclusions"] =>
  (authority, chainId, hashes) =>
    store.transaction(
      Effect.gen(function* () {
        const { sql } = store
        yield* Claims.fence(store, { chainId, signer: authority })
        const before = yield* named({ ...store, forUpdate: sql.literal("") }, authority, chainId, hashes)
        yield* RequestRows.lockAll(
          store,
          before.map((op) => op.request_id)
        )
        // Ops stored under these hashes since belong to unlocked requests and have not landed.
        const requests = new Set(before.map((op) => op.request_id))
        const ops = (yield* named(store, authority, chainId, hashes)).filter((op) =>
          requests.has(op.request_id)
        )
        const rows = yield* Store.inChunks(
          Ops.idsOf(ops),
          (ids) => sql<Pick<Row, "op_id" | "signed">>`
            select op_id, signed from handovers where ${sql.in("op_id", ids)}`
        )
        const watched = new Map(rows.map((row) => [String(row.op_id), row.signed]))
        const own = ops.filter((op) => watched.has(String(op.op_id)))
        const landed = own.filter((op) => op.state === "settled")
        const isFound = (op: Ops.State) => watched.get(String(op.op_id)) === Hex.empty
        const found = landed.filter(isFound)
        const offered = landed.filter((op) => !isFound(op))
        yield* Ops.move(store, offered, "sent", null)
        for (const ids of Store.chunks(Ops.idsOf(offered)))
          yield* sql`
            update handovers set landed_as = null where landed_as is not null and ${sql.in("op_id", ids)}`
        yield* Ops.move(store, found, "accepted", null)
        yield* Ops.publish(store, found)
        yield* forget(store, found)
        const concerned = Store.distinct(own.map((op) => op.request_id))
        yield* RequestRows.reopen(store, concerned)
        yield* Events.append(store, Events.ofLanded("reopened", landed, []))
        return concerned
      })
    )

export const finaliseInclusions =
  (store: Store.Store): RemoteOpJournal["Service"]["finaliseInclusions"] =>
  (authority, chainId, landed) =>
    store.transaction(
      Effect.gen(function* () {
        yield* Claims.fence(store, { chainId, signer: authority })
        const hashes = landed.map((op) => op.userOpHash)
        const ops = yield* named(store, authority, chainId, hashes)
        const over = yield* forget(
          store,
          ops.filter((op) => op.state === "settled")
        )
        yield* Events.append(store, Events.ofLanded("settled", over, landed))
      })
    )

interface Row extends Ops.Row {
  readonly account_id: AccountId
  readonly user_op_hash: string
  readonly rpc: string
  readonly trust: LaneAccess["trust"]
  readonly since: string
  readonly signed: string
  readonly landed_as: string | null
}

const toSubmission = (
  seal: Store.Store["seal"],
  failed: ReadonlySet<string>,
  row: Row
): Effect.Effect<RemoteSubmission> =>
  Effect.map(Seal.openUrl(seal, sealName(row.op_id), row.rpc), (rpc) => ({
    requestId: row.request_id,
    index: row.op_index,
    accountId: row.account_id,
    space: Ops.spaceOf(row),
    userOpHash: Hex.unsafe32(row.user_op_hash),
    node: { rpc, trust: row.trust },
    since: BigInt(row.since),
    signed: row.signed === Hex.empty ? null : Hex.unsafe(row.signed),
    isRefused: failed.has(`${row.op_index} ${row.request_id}`),
    includedIn: row.tx_hash === null ? null : Hex.unsafe32(row.tx_hash),
    landedAs: Hex.unsafe32(row.landed_as ?? row.user_op_hash)
  }))

/** Failed elements of these ops' requests, as index and request. */
const failedElements = ({ sql }: Store.Store, ops: ReadonlyArray<Pick<Ops.State, "request_id">>) =>
  Effect.map(
    Store.inChunks(
      Store.distinct(ops.map(({ request_id }) => request_id)),
      (ids) => sql<RequestRows.FailedRow>`
        select request_id, failed from requests where ${sql.in("request_id", ids)} and failed <> '[]'`
    ),
    (rows) =>
      new Set(
        rows.flatMap((row) => RequestRows.failedOf(row).map(({ index }) => `${index} ${row.request_id}`))
      )
  )

/** Ops at remote bundlers, and ops in foreign transactions below settled depth. */
export const remoteSubmissions = (
  store: Store.Store
): Effect.Effect<ReadonlyArray<RemoteSubmission>, JournalError> =>
  store.reading(
    Effect.gen(function* () {
      const { seal, sql } = store
      const rows = yield* sql<Row>`
        select ops.*, requests.account_id, handovers.rpc, handovers.trust, handovers.since, handovers.signed,
          handovers.landed_as
        from handovers
        join ops on ops.op_id = handovers.op_id
        join requests on requests.request_id = ops.request_id
        where handovers.signed <> ${Hex.empty} or ops.state = 'settled'
        order by handovers.op_id`
      const failed = yield* failedElements(store, rows)
      return yield* Effect.forEach(rows, (row) => toSubmission(seal, failed, row))
    })
  )
