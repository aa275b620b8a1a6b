import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { OpRef } from "../../../../application/ports/journal/OpRef.js"
import type { TransactionJournal } from "../../../../application/ports/journal/TransactionJournal.js"
import type {
  AllocationRequest,
  AllocationResult,
  Lane,
  LaneAccess
} from "../../../../application/ports/journal/Transactions.js"
import * as Events from "../../events/Events.js"
import * as KnownNonces from "../../recovery/KnownNonces.js"
import * as Store from "../../Store.js"
import * as Claims from "./Claims.js"
import * as Ops from "./Ops.js"
import * as Requests from "./Requests.js"

/** Rows of transactions. */

/** The condition that names a row of a nonce in any of the tables that have one. */
export const at = ({ sql }: Store.Store, { chainId, signer }: Lane, nonce: bigint) =>
  sql`chain_id = ${chainId.toString()} and signer = ${signer} and nonce = ${Store.uint64(nonce)}`

export const sealName = ({ chainId, signer }: Lane, nonce: bigint): string =>
  `transaction ${chainId} ${signer} ${nonce}`

/** How the lane is signed for and sent with. */
export const accessColumns = (
  { seal }: Store.Store,
  lane: Lane,
  nonce: bigint,
  { accountId, key, rpc, trust }: LaneAccess
) => ({
  account_id: accountId,
  key_client: key === "serviceEoa" ? null : key.clientId,
  key_version: key === "serviceEoa" ? null : (key.versionId ?? null),
  key_asset: key === "serviceEoa" ? null : (key.assetId ?? null),
  rpc: seal.close(sealName(lane, nonce), rpc === null ? "" : Redacted.value(rpc)),
  trust
})

/**
 * The states of a signed transaction as they are stored: `foreign` is `external` in the port. The stored word stays,
 * since processes of the version before read it.
 */
export type Signed = "signed" | "mined" | "settled" | "foreign"

export interface State {
  readonly state: "free" | "allocated" | Signed
  readonly epoch: number | string
  readonly direct: string | null
  readonly max_cost: string
  readonly tx_hash: string | null
  readonly block_number: string | null
  readonly block_hash: string | null
  /** 1: `submitted` was told of it. */
  readonly submitted: number
}

/**
 * For a transaction in the lane: the nonce's row and its ops, and whether that hash is of one of its versions. What is
 * mined may be taken back: its requests are locked before its ops.
 */
export const find = (store: Store.Store, lane: Lane, nonce: bigint, txHash: string | null = null) =>
  Effect.gen(function* () {
    const { sql } = store
    yield* Store.fits(64, [nonce])
    const epoch = yield* Claims.fence(store, lane)
    const nonceAt = at(store, lane, nonce)
    const [row] = yield* sql<State & { readonly has_version: number | boolean }>`
      select state, epoch, direct, max_cost, tx_hash, block_number, block_hash, submitted, exists (
        select 1 from transaction_versions where ${nonceAt} and transaction_versions.tx_hash = ${txHash}
      ) as has_version
      from transactions where ${nonceAt}`
    if (row === undefined) return null
    const carried = sql`op_id in (select op_id from transaction_ops where ${nonceAt})`
    if (row.state === "mined") {
      const of = yield* sql<Pick<Ops.State, "request_id">>`select request_id from ops where ${carried}`
      const direct = row.direct === null ? [] : [row.direct]
      yield* Requests.lockAll(store, [...of.map((op) => op.request_id), ...direct])
    }
    const ops = yield* Ops.locked(store, carried)
    const requests = ops.map((op) => op.request_id)
    return {
      row,
      ops,
      hasVersion: Boolean(row.has_version),
      isOfThisEpoch: Number(row.epoch) === epoch,
      concerned: Store.distinct(row.direct === null ? requests : [...requests, row.direct])
    }
  })

/** The hash of the newest version that was signed for the nonce. */
export const newest = (store: Store.Store, lane: Lane, nonce: bigint) =>
  Effect.map(
    store.sql<{ readonly tx_hash: string }>`
      select tx_hash from transaction_versions where ${at(store, lane, nonce)} order by version_id desc limit 1`,
    ([row]) => row?.tx_hash ?? null
  )

interface RouteRow {
  readonly direct: string | null
  readonly entry_point: string | null
}

const routeOf = ({ direct, entry_point }: RouteRow): string | null =>
  entry_point ?? (direct === null ? null : "direct")

/** Whether none of these signed transactions has another route. */
export const admits = (route: string | null, signed: ReadonlyArray<RouteRow>): boolean =>
  route === null ||
  signed.every((row) => {
    const other = routeOf(row)
    return other === null || other === route
  })

/** The EntryPoint of a transaction's ops, which all have the same. */
const entryPointOf = ({ sql }: Store.Store) =>
  sql.literal(`(
  select ops.entry_point from transaction_ops join ops on ops.op_id = transaction_ops.op_id
  where transaction_ops.chain_id = transactions.chain_id and transaction_ops.signer = transactions.signer
    and transaction_ops.nonce = transactions.nonce
  limit 1) as entry_point`)

interface LockedOp extends Pick<Ops.State, "op_id" | "request_id" | "op_index" | "state" | "user_op_hash"> {
  readonly authority: string
  readonly chain_id: string
  readonly entry_point: string
}

const name = ({ index, requestId }: OpRef): string => `${requestId} ${index}`

/** The ops that a transaction will carry, in their order, and their EntryPoint; refuses those that it may not carry. */
const lockOps = (store: Store.Store, { chainId, ops, signer }: AllocationRequest) =>
  Effect.gen(function* () {
    const { forUpdate, sql } = store
    const found = new Map<string, Ops.Id>()
    const hashes = new Map(ops.map((op) => [name(op), op.userOpHash]))
    const entryPoints = new Set<string>()
    if (new Set(ops.map(name)).size < ops.length)
      return yield* Store.refuse("a transaction carries an op only once")
    // In one order, so that two methods cannot block each other.
    for (const chunk of Store.chunks(ops.toSorted((one, other) => (name(one) < name(other) ? -1 : 1)))) {
      const refs = sql.csv(
        chunk.map(({ index, requestId }) => sql`(${requestId}, cast(${index} as integer))`)
      )
      // By its element alone: asked for its authority as well, SQLite reads every op that this ever had.
      const rows = yield* sql<LockedOp>`
        select op_id, request_id, op_index, entry_point, authority, chain_id, state, user_op_hash from ops
        where (request_id, op_index) in (values ${refs}) and state <> 'abandoned'
        order by op_id ${forUpdate}`
      for (const row of rows) {
        if (row.state !== "accepted" || row.authority !== signer || row.chain_id !== chainId.toString())
          continue
        const element = name({ requestId: row.request_id, index: row.op_index })
        // Whoever has lost the lane and got it back may have an op in mind that another process has replaced since.
        if ((hashes.get(element) ?? row.user_op_hash) !== row.user_op_hash)
          return yield* Store.refuse("an op of the transaction was accepted anew since it was prepared")
        found.set(element, row.op_id)
        entryPoints.add(row.entry_point)
      }
    }
    const ids = ops.flatMap((op) => found.get(name(op)) ?? [])
    if (ids.length < ops.length)
      return yield* Store.refuse("an op is not accepted, or is of another chain or authority")
    const [entryPoint = null, ...others] = entryPoints
    if (others.length > 0) return yield* Store.refuse("a transaction carries ops of one EntryPoint")
    return { ids, entryPoint }
  })

/** Refuses a request that may not have a transaction of its own in this lane. */
export const checkDirect = (store: Store.Store, { chainId }: Lane, requestId: string) =>
  Effect.gen(function* () {
    const row = yield* Requests.locked(store, requestId)
    if (row?.chain_id !== chainId.toString())
      return yield* Store.refuse("the request was not accepted on this chain")
    if (row.state !== "open") return yield* Store.refuse("the request is final")
    const signed = yield* store.sql`
      select nonce from transactions
      where direct = ${requestId} and direct is not null and state in ('signed', 'mined', 'settled')`
    if (signed.length > 0) return yield* Store.refuse("the request has a signed transaction already")
  })

const page = 100

/**
 * The lowest nonce from the chain's on for which nothing was ever signed. `isGap`: the journal does not know what the one
 * before the chain's was used for.
 */
export const nextNonce = (
  { sql }: Store.Store,
  { chainId, chainNonce, signer }: Pick<AllocationRequest, "chainId" | "chainNonce" | "signer">
) =>
  Effect.gen(function* () {
    const before = chainNonce - 1n
    let isGap = before >= 0n
    for (let nonce = chainNonce, from = BigInts.max(before, 0n); ; from = nonce) {
      yield* Store.fits(64, [nonce])
      const rows = yield* sql<{ readonly nonce: string }>`
        select nonce from transactions
        where chain_id = ${chainId.toString()} and signer = ${signer} and nonce >= ${Store.uint64(from)}
          and state in ('signed', 'mined', 'settled', 'foreign')
        order by nonce limit ${sql.literal(String(page))}`
      for (const row of rows) {
        const found = BigInt(row.nonce)
        if (found === before) isGap = false
        else if (found !== nonce) return { nonce, isGap }
        else nonce++
      }
      if (rows.length < page) {
        yield* Store.fits(64, [nonce])
        return { nonce, isGap }
      }
    }
  })

/** The lane's transactions that are signed and not mined. */
export const inFlight = (store: Store.Store, { chainId, signer }: Lane) =>
  store.sql<RouteRow & { readonly nonce: string; readonly max_cost: string }>`
    select nonce, direct, max_cost, ${entryPointOf(store)} from transactions
    where chain_id = ${chainId.toString()} and signer = ${signer} and state in ('signed', 'mined')
      and state = 'signed'`

const write = (
  store: Store.Store,
  request: AllocationRequest,
  epoch: number,
  nonce: bigint,
  ids: ReadonlyArray<Ops.Id>
) =>
  Effect.gen(function* () {
    const { sql } = store
    const lane = {
      chain_id: request.chainId.toString(),
      signer: request.signer,
      nonce: Store.uint64(nonce)
    }
    // Nonces up to this one for which nothing was signed: handed back, left behind by a dead process, or used by others.
    yield* sql`
      delete from transactions
      where chain_id = ${lane.chain_id} and signer = ${lane.signer} and nonce <= ${lane.nonce}
        and state in ('free', 'allocated')`
    yield* sql`
      insert into transactions ${sql.insert({
        ...lane,
        state: "allocated",
        epoch,
        ...accessColumns(store, request, nonce, request.access),
        direct: request.direct,
        max_cost: request.maxCost.toString(),
        submitted: 0,
        allocated_at: yield* Clock.currentTimeMillis
      })}`
    const rows = ids.map((op_id, position) => ({ ...lane, op_id, position }))
    for (const chunk of Store.chunks(rows)) yield* sql`insert into transaction_ops ${sql.insert(chunk)}`
  })

export const allocate =
  (store: Store.Store): TransactionJournal["Service"]["allocate"] =>
  (request) =>
    Effect.gen(function* () {
      yield* Store.fits(256, [request.chainId, request.maxCost, request.balance])
      yield* Store.fits(64, [request.chainNonce, request.drainedTo])
      if (request.direct !== null && request.ops.length > 0)
        return yield* Store.refuse("a request's own transaction carries no ops")
      // Who has lost the lane is told so, whatever else there is to refuse.
      const epoch = yield* Claims.fence(store, request)
      const signed = yield* inFlight(store, request)
      const { entryPoint, ids } = yield* lockOps(store, request)
      if (request.direct !== null) yield* checkDirect(store, request, request.direct)
      const { isGap, nonce } = yield* nextNonce(store, request)
      const reserved = signed.reduce((sum, row) => sum + BigInt(row.max_cost), 0n)
      const route = routeOf({ direct: request.direct, entry_point: entryPoint })
      const open = signed.filter((row) => BigInt(row.nonce) >= request.drainedTo)
      const result: AllocationResult = !admits(route, open)
        ? { _tag: "otherRoute" }
        : reserved + request.maxCost > request.balance
          ? { _tag: "insufficientFunds", reserved }
          : { _tag: "allocated", nonce }
      if (result._tag !== "allocated") return result
      if (isGap) {
        const own = request.ops.map(({ requestId }) => requestId)
        yield* KnownNonces.skip(
          store,
          request,
          nonce,
          request.direct === null ? own : [request.direct, ...own]
        )
      }
      yield* write(store, request, epoch, nonce, ids)
      return result
    }).pipe(Claims.inLane(store, request))

export const unallocate =
  (store: Store.Store): TransactionJournal["Service"]["unallocate"] =>
  (lane, nonce) =>
    Effect.gen(function* () {
      const { sql } = store
      yield* Store.fits(64, [nonce])
      yield* Claims.fence(store, lane)
      const rows = yield* sql`
          update transactions set state = 'free', direct = null
          where ${at(store, lane, nonce)} and state in ('free', 'allocated')
          returning nonce`
      if (rows.length === 0)
        return yield* Store.refuse("only a nonce that is handed out and not signed can be handed back")
      yield* sql`delete from transaction_ops where ${at(store, lane, nonce)}`
    }).pipe(Claims.inLane(store, lane))

export const recordSigned =
  (store: Store.Store): TransactionJournal["Service"]["recordSigned"] =>
  (signed) =>
    Effect.gen(function* () {
      const { sql } = store
      yield* Store.fits(256, [signed.addedCost, signed.maxFeePerGas, signed.maxPriorityFeePerGas])
      const found = yield* find(store, signed, signed.nonce)
      if (found?.row.state !== "allocated" && found?.row.state !== "signed")
        return yield* Store.refuse("only for a nonce that is handed out and open can bytes be stored")
      const { isOfThisEpoch, ops, row } = found
      if (signed.replaces !== (row.state === "signed")) {
        const stored = yield* sql`
            select tx_hash from transaction_versions
            where ${at(store, signed, signed.nonce)} and tx_hash = ${signed.txHash}`
        if (stored.length > 0) return
        return yield* Store.refuse("the nonce has a transaction that these bytes do not know of")
      }
      if (row.state === "allocated") {
        if (!isOfThisEpoch)
          return yield* Store.refuse("the lane has had another owner since the nonce was handed out")
        if (ops.some((op) => op.state === "abandoned"))
          return yield* Store.refuse("the transaction carries an op that was given up")
        if (ops.some((op) => op.state === "sent"))
          return yield* Store.refuse("the transaction carries an op that is sent some other way")
        if (ops.some((op) => op.user_op_hash === null))
          return yield* Store.refuse("the transaction carries an op without a hash")
        if (row.direct !== null) yield* checkDirect(store, signed, row.direct)
        const route = routeOf({ direct: row.direct, entry_point: ops[0]?.entry_point ?? null })
        const others = yield* inFlight(store, signed)
        if (
          !admits(
            route,
            others.filter((other) => BigInt(other.nonce) >= signed.drainedTo)
          )
        )
          return yield* Store.refuse("a transaction of another route was signed since the allocation")
        yield* sql`update transactions set state = 'signed' where ${at(store, signed, signed.nonce)}`
      }
      const replaced = row.state === "signed" ? yield* newest(store, signed, signed.nonce) : null
      const added = yield* sql`
          insert into transaction_versions ${sql.insert({
            chain_id: signed.chainId.toString(),
            signer: signed.signer,
            nonce: Store.uint64(signed.nonce),
            tx_hash: signed.txHash,
            raw: signed.raw,
            max_fee_per_gas: signed.maxFeePerGas.toString(),
            max_priority_fee_per_gas: signed.maxPriorityFeePerGas.toString(),
            signed_at: yield* Clock.currentTimeMillis
          })}
          on conflict (chain_id, signer, nonce, tx_hash) do nothing
          returning tx_hash`
      if (added.length === 0) return
      if (signed.addedCost > 0n)
        yield* sql`
            update transactions set max_cost = ${(BigInt(row.max_cost) + signed.addedCost).toString()}
            where ${at(store, signed, signed.nonce)}`
      yield* Ops.move(
        store,
        ops.filter((op) => op.state === "accepted" || op.state === "sent"),
        "sent",
        signed.txHash
      )
      const prices = {
        maxFeePerGas: signed.maxFeePerGas.toString(),
        maxPriorityFeePerGas: signed.maxPriorityFeePerGas.toString()
      }
      const told =
        replaced === null
          ? Events.ofElements("signed", { txHash: signed.txHash, ...prices }, found.concerned, ops)
          : Events.ofElements(
              "replaced",
              { txHash: signed.txHash, replaces: replaced, ...prices },
              found.concerned,
              ops
            )
      yield* Events.tell(store, told)
      return found.concerned[0]
    }).pipe(
      Claims.inLane(store, signed),
      Effect.flatMap((requestId) =>
        Effect.sync(() => {
          const { chainId, nonce, signer } = signed
          // What only fills a nonce is nobody's work.
          if (requestId !== undefined) store.lineage.store({ chainId, signer, nonce, requestId })
        })
      )
    )

interface Submitted extends Pick<Ops.State, "request_id" | "op_index"> {
  readonly nonce: string
}

export const recordSubmitted =
  (store: Store.Store): TransactionJournal["Service"]["recordSubmitted"] =>
  (lane, transactions) =>
    Effect.gen(function* () {
      const { sql } = store
      yield* Claims.fence(store, lane)
      const hashes = new Map(transactions.map(({ nonce, txHash }) => [Store.uint64(nonce), txHash]))
      const inLane = sql`chain_id = ${lane.chainId.toString()} and signer = ${lane.signer}`
      for (const chunk of Store.chunks([...hashes.keys()])) {
        const nonces = sql.in("nonce", chunk)
        const fresh = yield* sql<{ readonly nonce: string; readonly direct: string | null }>`
            update transactions set submitted = 1
            where ${inLane} and ${nonces} and state = 'signed' and submitted = 0
            returning nonce, direct`
        if (fresh.length === 0) continue
        const carried = yield* sql<Submitted>`
            select carried.nonce, ops.request_id, ops.op_index
            from (select nonce, op_id from transaction_ops where ${inLane} and ${sql.in(
              "nonce",
              fresh.map((row) => row.nonce)
            )}) as carried
            join ops on ops.op_id = carried.op_id`
        yield* Events.tell(
          store,
          fresh
            .toSorted((one, other) => (one.nonce < other.nonce ? -1 : 1))
            .flatMap(({ direct, nonce }) => {
              const ops = carried.filter((op) => op.nonce === nonce)
              const of = ops.map((op) => op.request_id)
              const concerned = Store.distinct(direct === null ? of : [...of, direct])
              return Events.ofElements("submitted", { txHash: hashes.get(nonce) }, concerned, ops)
            })
        )
      }
    }).pipe(Claims.inLane(store, lane))
