import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { RecoveryJournal } from "../../../application/ports/journal/RecoveryJournal.js"
import { direct } from "../../../application/ports/journal/Requests.js"
import type { TransactionJournal } from "../../../application/ports/journal/TransactionJournal.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as KnownNonces from "../recovery/KnownNonces.js"
import * as Store from "../Store.js"
import * as Events from "./Events.js"
import * as Claims from "./tables/Claims.js"
import * as Ops from "./tables/Ops.js"
import * as RequestRows from "./tables/RequestRows.js"
import * as Transactions from "./tables/Transactions.js"

/** Repairs a journal that is older than the chain. */

type Method<K extends keyof RecoveryJournal["Service"]> = (
  store: Store.Store
) => RecoveryJournal["Service"][K]

export const knownTo: Method<"knownTo"> = (store) => (lane) => store.reading(KnownNonces.knownTo(store, lane))

export const keepUnread: Method<"keepUnread"> = (store) => (lane) =>
  Effect.andThen(Claims.fence(store, lane), KnownNonces.keep(store, lane)).pipe(Claims.inLane(store, lane))

export const explain: Method<"explain"> = (store) => (lane, below) =>
  Effect.gen(function* () {
    const { chainId, signer } = lane
    yield* Store.fits(64, [below])
    yield* Claims.fence(store, lane)
    const explained = Store.uint64(below)
    yield* store.sql`
      update lanes set unread = null,
        explained = case when explained is null or explained < ${explained} then ${explained} else explained end
      where chain_id = ${chainId.toString()} and signer = ${signer}`
  }).pipe(Claims.inLane(store, lane))

export const provenAt: Method<"provenAt"> =
  ({ reading, sql }) =>
  ({ chainId, signer }) =>
    reading(
      Effect.map(
        sql<{ readonly proven_at: number | string | null }>`
          select proven_at from lanes where chain_id = ${chainId.toString()} and signer = ${signer}`,
        ([row]) => (row?.proven_at == null ? null : Number(row.proven_at))
      )
    )

export const openIn: Method<"openIn"> =
  ({ reading, sql }) =>
  ({ chainId, signer }) =>
    reading(
      Effect.map(
        sql<{ readonly request_id: string; readonly accepted_at: number }>`
          select request_id, accepted_at from requests
          where state = 'open' and chain_id = ${chainId.toString()} and signer = ${signer} and held is null
          order by request_no`,
        (rows) => rows.map((row) => ({ requestId: row.request_id, acceptedAt: row.accepted_at }))
      )
    )

export const known: Method<"known"> =
  ({ reading, sql }) =>
  (chainId, entryPoint, userOpHashes) =>
    reading(
      Effect.map(
        Store.inChunks(
          Store.distinct(userOpHashes),
          (chunk) => sql<{ readonly user_op_hash: string }>`
            select user_op_hash from ops
            where chain_id = ${chainId.toString()} and entry_point = ${entryPoint}
              and ${sql.in("user_op_hash", chunk)}`
        ),
        (rows) => new Set(rows.map((row) => Hex.unsafe32(row.user_op_hash)))
      )
    )

const accepted = (store: Store.Store, requestId: string, indexes: ReadonlyArray<number>) =>
  Effect.map(Ops.lockElements(store, requestId, indexes), (ops) =>
    ops.filter(({ state }) => state === "accepted")
  )

export const identifyAnew: Method<"identifyAnew"> = (store) => (lane, requestId, ops) =>
  store.transaction(
    Effect.gen(function* () {
      yield* Claims.fence(store, lane)
      const hashes = new Map(ops.map(({ index, userOpHash }) => [index, userOpHash]))
      for (const { op_id, op_index } of yield* accepted(store, requestId, [...hashes.keys()]))
        yield* store.sql`
          update ops set user_op_hash = ${hashes.get(op_index) ?? null}, was_public = 1 where op_id = ${op_id}`
    })
  )

export const hold: Method<"hold"> = (store) => (lane, requestId, why) =>
  store.transaction(
    Effect.gen(function* () {
      const row = yield* RequestRows.locked(store, requestId)
      if (row?.state !== "open" || row.decision !== null) return false
      yield* Claims.fence(store, lane)
      yield* store.sql`update requests set held = ${why} where request_id = ${requestId}`
      return true
    })
  )

/** Not fenced, like a cancellation: the lane's process finds the request among its work. */
export const unhold: Method<"unhold"> = (store) => (requestId) =>
  store.transaction(
    Effect.gen(function* () {
      const row = yield* RequestRows.locked(store, requestId)
      if (row?.state !== "open" || row.held === null) return false
      yield* store.sql`
        update requests set held = null, decision = 'released' where request_id = ${requestId}`
      return true
    })
  )

type Adopted = Parameters<TransactionJournal["Service"]["adopt"]>[0]

const carry = (store: Store.Store, { chainId, nonce, requestId, signer, transaction }: Adopted) =>
  Effect.gen(function* () {
    const { sql } = store
    const rows = yield* sql<{ readonly op_id: number | string }>`
      update ops set state = 'sent', tx_hash = ${transaction.txHash}, was_public = 1
      where request_id = ${requestId} and entry_point = ${direct} and state in ('accepted', 'sent')
      returning op_id`
    for (const row of rows)
      yield* sql`
        insert into transaction_ops (chain_id, signer, nonce, op_id, position)
        values (${chainId.toString()}, ${signer}, ${Store.uint64(nonce)}, ${row.op_id}, 0)
        on conflict do nothing`
  })

/** Writes the nonce's row as if the service had signed the transaction. */
const write = (store: Store.Store, adopted: Adopted, epoch: number) =>
  Effect.gen(function* () {
    const { sql } = store
    const { access, chainId, nonce, requestId, signer } = adopted
    yield* Transactions.checkDirect(store, adopted, requestId)
    yield* sql`
      insert into transactions ${sql.insert({
        chain_id: chainId.toString(),
        signer,
        nonce: Store.uint64(nonce),
        state: "signed",
        epoch,
        ...Transactions.accessColumns(store, adopted, nonce, access),
        direct: requestId,
        // Mined: it reserves no balance.
        max_cost: "0",
        submitted: 0,
        allocated_at: yield* Clock.currentTimeMillis
      })}`
  })

export const adopt =
  (store: Store.Store): TransactionJournal["Service"]["adopt"] =>
  (adopted) =>
    Effect.gen(function* () {
      const { sql } = store
      const { nonce, requestId, transaction } = adopted
      yield* Store.fits(64, [nonce])
      const epoch = yield* Claims.fence(store, adopted)
      const [row] = yield* sql<Pick<Transactions.State, "state"> & { readonly direct: string | null }>`
        select direct, state from transactions where ${Transactions.at(store, adopted, nonce)}`
      const isNew = row === undefined
      if (isNew) yield* write(store, adopted, epoch)
      else if (row.state !== "signed" || row.direct !== requestId)
        return yield* Store.refuse("the nonce is another transaction's")
      yield* carry(store, adopted)
      const prices = {
        max_fee_per_gas: transaction.maxFeePerGas.toString(),
        max_priority_fee_per_gas: transaction.maxPriorityFeePerGas.toString()
      }
      // Without signed bytes: the transaction is in a block, and nodes have it.
      const added = yield* sql`
        insert into transaction_versions ${sql.insert({
          chain_id: adopted.chainId.toString(),
          signer: adopted.signer,
          nonce: Store.uint64(nonce),
          tx_hash: transaction.txHash,
          raw: Hex.empty,
          ...prices,
          signed_at: yield* Clock.currentTimeMillis
        })}
        on conflict (chain_id, signer, nonce, tx_hash) do nothing
        returning tx_hash`
      if (added.length > 0 && isNew)
        yield* Events.append(
          store,
          Events.ofElements(
            "signed",
            {
              txHash: transaction.txHash,
              maxFeePerGas: prices.max_fee_per_gas,
              maxPriorityFeePerGas: prices.max_priority_fee_per_gas
            },
            [requestId],
            []
          )
        )
    }).pipe(Claims.inLane(store, adopted))
