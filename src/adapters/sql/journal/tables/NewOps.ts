import * as Effect from "effect/Effect"
import type { JournalError } from "../../../../application/ports/journal/JournalError.js"
import type { PreparedOp } from "../../../../application/ports/journal/Records.js"
import type { Space } from "../../../../application/ports/journal/Requests.js"
import * as Rows from "../../Rows.js"
import * as Store from "../../Store.js"
import * as Ops from "./Ops.js"
import * as StoredOp from "./StoredOp.js"

/** Writes prepared ops as rows of ready ops, and finds the nonces that are not free for them. */

export const walletName = ({ authority, chainId, wallet }: Space): string =>
  `${authority} ${chainId} ${wallet}`
export const spaceName = (space: Space): string => `${walletName(space)} ${space.entryPoint}`

/** The signer pays for a direct transaction: the worker checks its money with the transaction. */
export const isDirect = ({ kind }: PreparedOp): boolean => kind === "direct"

/** Fails when a figure of an op does not fit its column. */
export const fits = (ops: ReadonlyArray<PreparedOp>): Effect.Effect<void, JournalError> => {
  const of = (bits: number, figure: (op: PreparedOp) => bigint) => Store.fits(bits, ops.map(figure))
  return Effect.andThen(
    of(256, ({ reserve }) => reserve),
    Effect.andThen(
      of(192, ({ nonceKey }) => nonceKey),
      of(64, ({ sequence }) => sequence)
    )
  )
}

const opColumns: Rows.Columns = {
  request_id: "text",
  op_index: "integer",
  authority: "text",
  chain_id: "text",
  entry_point: "text",
  wallet: "text",
  nonce_key: "text",
  sequence: "text",
  user_op_hash: "text",
  reserve: "text",
  returned: "text",
  state: "text",
  accepted_at: "bigint",
  prepared: "bytea",
  good_until: "bigint",
  was_public: "smallint"
}

export const rowOf = (op: PreparedOp, now: number, isExposed = false) => [
  op.requestId,
  op.index,
  op.space.authority,
  op.space.chainId.toString(),
  op.space.entryPoint,
  op.space.wallet,
  Store.nonceKey(op.nonceKey),
  Store.uint64(op.sequence),
  op.userOpHash,
  op.reserve.toString(),
  op.returned,
  "accepted",
  now,
  StoredOp.encode(op),
  op.goodUntil,
  isExposed ? 1 : null
]

export const writeRows = (store: Store.Store, rows: ReadonlyArray<ReadonlyArray<unknown>>) =>
  Rows.insert(store, "ops", opColumns, rows)

/** Rows of direct transactions use the request number as nonce key. */
const writeDirect = (store: Store.Store, rows: ReadonlyArray<ReadonlyArray<unknown>>) => {
  const names = Object.keys(opColumns)
  const key = store.sql.onDialectOrElse({
    pg: () => "lpad(requests.request_no::text, 58, '0')",
    orElse: () => `substr('${"0".repeat(58)}' || requests.request_no, -58)`
  })
  const values = names.map((name) => (name === "nonce_key" ? key : `given.${name}`))
  return Rows.each(
    store,
    `insert into ops (${names.join(", ")}) select ${values.join(", ")}
     from (%) as given join requests on requests.request_id = given.request_id`,
    opColumns,
    rows
  )
}

export const writeOps = (
  store: Store.Store,
  parts: ReadonlyArray<{ readonly ops: ReadonlyArray<PreparedOp> }>,
  now: number
) => {
  const ops = parts.flatMap((part) => part.ops)
  const row = (op: PreparedOp) => rowOf(op, now)
  return Effect.andThen(
    writeRows(store, ops.filter((op) => !isDirect(op)).map(row)),
    writeDirect(store, ops.filter(isDirect).map(row))
  )
}

/** State of the op that holds this op's nonce or hash. */
const ownerOf = ({ sql }: Store.Store, { nonceKey, sequence, space, userOpHash }: PreparedOp) =>
  Effect.map(
    sql<Pick<Ops.State, "state">>`
      select state from ops
      where authority = ${space.authority} and chain_id = ${space.chainId.toString()}
        and entry_point = ${space.entryPoint} and wallet = ${space.wallet}
        and (${Ops.nonceColumns(sql)}) = ${Ops.nonceOf(sql, nonceKey, sequence)}
        and state <> 'abandoned'
      union all
      select state from ops
      where chain_id = ${space.chainId.toString()} and user_op_hash = ${userOpHash}
        and authority = ${space.authority} and state <> 'abandoned'
      limit 1`,
    ([owner]) => owner ?? null
  )

/** The first op whose nonce another row, or an earlier op of the list, has. */
export const firstTaken = (
  store: Store.Store,
  ops: ReadonlyArray<PreparedOp>,
  claimed: ReadonlySet<string>
) =>
  Effect.gen(function* () {
    const names = new Set<string>()
    for (const op of ops) {
      if (isDirect(op)) continue
      const name = `${spaceName(op.space)} ${op.nonceKey} ${op.sequence}`
      const owner = yield* ownerOf(store, op)
      if (owner !== null || claimed.has(name) || names.has(name))
        return { op, isSettled: owner?.state === "settled", names }
      names.add(name)
    }
    return { op: null, isSettled: false, names }
  })

/** The first op whose nonce another op has; null: none. */
export const taken = (store: Store.Store, ops: ReadonlyArray<PreparedOp>) =>
  Effect.map(firstTaken(store, ops, new Set()), ({ op }) =>
    op === null ? null : { requestId: op.requestId, index: op.index }
  )
