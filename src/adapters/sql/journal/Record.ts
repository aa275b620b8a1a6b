import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Records from "../../../application/ports/journal/Records.js"
import * as Requests from "../../../application/ports/journal/Requests.js"
import type { TransactionJournal } from "../../../application/ports/journal/TransactionJournal.js"
import type { Lane } from "../../../application/ports/journal/Transactions.js"
import * as Rows from "../Rows.js"
import * as KnownNonces from "../recovery/KnownNonces.js"
import * as Store from "../Store.js"
import * as Events from "./Events.js"
import * as Claims from "./tables/Claims.js"
import * as Ops from "./tables/Ops.js"
import * as Transactions from "./tables/Transactions.js"

/** Stores signed bytes together with their nonce, which no other method assigns. */

type Method<K extends keyof TransactionJournal["Service"]> = (
  store: Store.Store
) => TransactionJournal["Service"][K]

export const nextNonce: Method<"nextNonce"> = (store) => (lane, chainNonce) =>
  store.query(
    Effect.andThen(Store.fits(64, [chainNonce]), Transactions.nextNonce(store, { ...lane, chainNonce }))
  )

/** Whether the nonce's transaction has these bytes; null: it has none. */
const standing = (store: Store.Store, { chainId, nonce, signer, txHash }: Records.Recording) =>
  Effect.map(
    Rows.statement<{ readonly is_same: number | boolean }>(
      store,
      `select exists (
         select 1 from transaction_versions
         where transaction_versions.chain_id = transactions.chain_id
           and transaction_versions.signer = transactions.signer
           and transaction_versions.nonce = transactions.nonce and transaction_versions.tx_hash = ?) as is_same
       from transactions where chain_id = ? and signer = ? and nonce = ?`,
      [txHash, chainId.toString(), signer, Store.uint64(nonce)]
    ),
    ([row]) => row ?? null
  )

interface Carried extends Ops.State {
  readonly authority: string
  readonly chain_id: string
}

/** Locks in the order of ids, which prevents deadlocks. */
const carriedOf = (store: Store.Store, { ops }: Records.Recording) =>
  ops.length === 0
    ? Effect.succeed([])
    : Rows.statement<Carried>(
        store,
        `select op_id, request_id, op_index, entry_point, authority, chain_id, user_op_hash, state, tx_hash from ops
         where ${Rows.among(store, "op_id")} order by op_id
         ${Store.isPostgres(store.sql) ? "for update" : ""}`,
        [
          Rows.listOf(
            store,
            ops.map(({ opId }) => opId)
          )
        ]
      )

const write = (
  store: Store.Store,
  recording: Records.Recording,
  epoch: number,
  direct: string | null,
  rows: ReadonlyMap<number, Carried>
) =>
  Effect.gen(function* () {
    const { access, chainId, nonce, ops, signer } = recording
    const { account_id, key_asset, key_client, key_version, rpc, trust } = Transactions.accessColumns(
      store,
      recording,
      nonce,
      access
    )
    const now = yield* Clock.currentTimeMillis
    const at = [chainId.toString(), signer, Store.uint64(nonce)]
    const transaction = [
      ...at,
      "signed",
      epoch,
      account_id,
      key_client,
      key_version,
      key_asset,
      rpc,
      trust,
      direct,
      recording.maxCost.toString(),
      0,
      now
    ]
    const version = [...at, ...versionOf(recording), now]
    const opIds = Rows.listOf(
      store,
      ops.map(({ opId }) => opId)
    )
    // One statement on PostgreSQL, where each costs a round trip.
    yield* Rows.together(store, [
      [insertInto("transactions", transactionColumns), transaction],
      [insertInto("transaction_versions", versionColumns), version],
      [
        `insert into transaction_ops (chain_id, signer, nonce, op_id, position) ${store.sql.onDialectOrElse({
          pg: () =>
            "select ?, ?, ?, op_id, place - 1 from unnest(?::bigint[]) with ordinality as given(op_id, place)",
          orElse: () => "select ?, ?, ?, value, key from json_each(?)"
        })}`,
        [...at, opIds]
      ],
      [
        `update ops set state = 'sent', tx_hash = ?, was_public = 1 where ${Rows.among(store, "op_id")}`,
        [recording.txHash, opIds]
      ]
    ])
    // Hashes that depend on the new signature.
    yield* Rows.each(
      store,
      "update ops set user_op_hash = given.user_op_hash from (%) as given where ops.op_id = given.op_id",
      { op_id: "bigint", user_op_hash: "text" },
      ops.flatMap(({ opId, userOpHash }) =>
        userOpHash !== null && rows.get(opId)?.user_op_hash === null ? [[opId, userOpHash]] : []
      )
    )
  })

const insertInto = (table: string, columns: Rows.Columns): string => {
  const names = Object.keys(columns)
  return `insert into ${table} (${names.join(", ")}) values (${names.map(() => "?").join(", ")})`
}

const transactionColumns: Rows.Columns = {
  chain_id: "text",
  signer: "text",
  nonce: "text",
  state: "text",
  epoch: "bigint",
  account_id: "text",
  key_client: "text",
  key_version: "text",
  key_asset: "text",
  rpc: "text",
  trust: "text",
  direct: "text",
  max_cost: "text",
  submitted: "smallint",
  allocated_at: "bigint"
}

const versionColumns: Rows.Columns = {
  chain_id: "text",
  signer: "text",
  nonce: "text",
  tx_hash: "text",
  raw: "text",
  max_fee_per_gas: "text",
  max_priority_fee_per_gas: "text",
  signed_at: "bigint"
}

type Version = Pick<Records.Recording, "maxFeePerGas" | "maxPriorityFeePerGas" | "raw" | "txHash">

const versionOf = ({ maxFeePerGas, maxPriorityFeePerGas, raw, txHash }: Version) => [
  txHash,
  raw,
  maxFeePerGas.toString(),
  maxPriorityFeePerGas.toString()
]

const pricesOf = ({ maxFeePerGas, maxPriorityFeePerGas }: Version) => ({
  maxFeePerGas: maxFeePerGas.toString(),
  maxPriorityFeePerGas: maxPriorityFeePerGas.toString()
})

/** Refuses a bundle with ops of another lane or of several EntryPoints. */
const checkCarried = ({ chainId, signer }: Lane, rows: ReadonlyArray<Carried>) => {
  if (rows.some((row) => row.authority !== signer || row.chain_id !== chainId.toString()))
    return Store.refuse("an op is of another lane")
  if (new Set(rows.map((row) => row.entry_point)).size > 1)
    return Store.refuse("a transaction carries ops of one EntryPoint")
  if (rows.length > 1 && rows[0]?.entry_point === Requests.direct)
    return Store.refuse("a direct transaction carries one op")
  return Effect.void
}

const recorded = (store: Store.Store, recording: Records.Recording) =>
  Effect.gen(function* () {
    const { chainNonce, nonce, ops } = recording
    const epoch = yield* Claims.fence(store, recording)
    const there = yield* standing(store, recording)
    const refused = (result: Records.RecordResult) => ({ result, concerned: [] as ReadonlyArray<string> })
    if (there !== null) return refused({ _tag: there.is_same ? "recorded" : "nonceUsed" })
    const next = yield* Transactions.nextNonce(store, { ...recording, chainNonce })
    if (next.nonce !== nonce) return refused({ _tag: "nonceUsed" })
    const rows = yield* carriedOf(store, recording)
    yield* checkCarried(recording, rows)
    const signed = yield* Transactions.inFlight(store, recording)
    const entryPoint = rows[0]?.entry_point ?? null
    if (!Transactions.admits(entryPoint, signed)) return refused({ _tag: "otherRoute" })
    const reserved = signed.reduce((sum, row) => sum + BigInt(row.max_cost), 0n)
    if (reserved + recording.maxCost > recording.balance)
      return refused({ _tag: "insufficientFunds", reserved })
    const byId = new Map(rows.map((row) => [Number(row.op_id), row]))
    const givenUp = ops.filter(({ opId, userOpHash }) => {
      const row = byId.get(opId)
      return row?.state !== "accepted" || (row.user_op_hash ?? userOpHash) !== userOpHash
    })
    if (givenUp.length > 0) return refused({ _tag: "givenUp", opIds: givenUp.map(({ opId }) => opId) })
    if (entryPoint !== Requests.direct && ops.some(({ userOpHash }) => userOpHash === null))
      return yield* Store.refuse("an op without a hash was not signed")
    const concerned = Store.distinct(rows.map((row) => row.request_id))
    if (next.isGap) yield* KnownNonces.skip(store, recording, nonce, concerned)
    const direct = entryPoint === Requests.direct ? (concerned[0] ?? null) : null
    yield* write(store, recording, epoch, direct, byId)
    const data = { txHash: recording.txHash, ...pricesOf(recording) }
    yield* Events.append(store, Events.ofElements("signed", data, concerned, rows))
    const result: Records.RecordResult = { _tag: "recorded" }
    return { result, concerned }
  })

export const record: Method<"record"> = (store) => (recording) => {
  const { chainId, nonce, ops, signer } = recording
  if (new Set(ops.map(({ opId }) => opId)).size < ops.length)
    return Store.refuse("a transaction carries an op only once")
  return Effect.all(
    [
      Store.fits(256, [
        chainId,
        recording.maxCost,
        recording.balance,
        recording.maxFeePerGas,
        recording.maxPriorityFeePerGas
      ]),
      Store.fits(64, [nonce, recording.chainNonce])
    ],
    { discard: true }
  ).pipe(
    Effect.andThen(recorded(store, recording)),
    Claims.inLane(store, recording),
    Effect.map(({ concerned, result }) => {
      const [requestId] = concerned
      // A transaction that only fills a nonce has no request.
      if (requestId !== undefined) store.lineage.store({ chainId, signer, nonce, requestId })
      return result
    })
  )
}

export const replace: Method<"replace"> = (store) => (replacement) =>
  Effect.gen(function* () {
    const { addedCost, chainId, nonce, signer, txHash } = replacement
    yield* Store.fits(256, [addedCost, replacement.maxFeePerGas, replacement.maxPriorityFeePerGas])
    const found = yield* Transactions.find(store, replacement, nonce, txHash)
    if (found?.row.state !== "signed") return false
    if (found.hasVersion) return true
    const replaces = yield* Transactions.newest(store, replacement, nonce)
    const now = yield* Clock.currentTimeMillis
    yield* Rows.insert(store, "transaction_versions", versionColumns, [
      [chainId.toString(), signer, Store.uint64(nonce), ...versionOf(replacement), now]
    ])
    if (addedCost > 0n)
      yield* store.sql`
        update transactions set max_cost = ${(BigInt(found.row.max_cost) + addedCost).toString()}
        where ${Transactions.at(store, replacement, nonce)}`
    yield* Ops.move(
      store,
      found.ops.filter((op) => op.state === "accepted" || op.state === "sent"),
      "sent",
      txHash
    )
    const data = { txHash, replaces, ...pricesOf(replacement) }
    yield* Events.append(store, Events.ofElements("replaced", data, found.concerned, found.ops))
    return true
  }).pipe(Claims.inLane(store, replacement))
