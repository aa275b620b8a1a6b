import * as Effect from "effect/Effect"
import { direct } from "../../../application/ports/journal/Requests.js"
import type { TransactionJournal } from "../../../application/ports/journal/TransactionJournal.js"
import type { Lane, TransactionSettlement } from "../../../application/ports/journal/Transactions.js"
import * as Store from "../Store.js"
import * as Events from "./Events.js"
import * as Claims from "./tables/Claims.js"
import * as Ops from "./tables/Ops.js"
import * as RequestRows from "./tables/RequestRows.js"
import * as Transactions from "./tables/Transactions.js"

/**
 * Changes the state of a transaction as nodes show it: mined, settled, back to signed, or its nonce used by another.
 * `Journal` offers it.
 *
 * Gotchas: the monitor may repeat a call, which then appends no second event.
 */

const sent = (ops: ReadonlyArray<Ops.State>): ReadonlyArray<Ops.State> =>
  ops.filter((op) => op.state === "sent")

type Found = Effect.Success<ReturnType<typeof Transactions.find>> & {}

const eventsOf = (
  kind: "submitted" | "included" | "settled" | "reopened",
  { concerned, ops }: Found,
  data: {
    readonly txHash: string | null
    readonly blockNumber?: string | null
    readonly confirmations?: number
    readonly success?: boolean
  }
): ReadonlyArray<Events.NewEvent> => Events.ofElements(kind, data, concerned, ops)

const elsewhere = (ops: ReadonlyArray<Ops.State>, txHash: string | null): ReadonlyArray<Ops.State> =>
  ops.filter((op) => op.state === "settled" && op.tx_hash !== txHash)

const reopenedEvents = (found: Found): ReadonlyArray<Events.NewEvent> => {
  const { tx_hash: txHash } = found.row
  return [
    ...eventsOf("reopened", found, { txHash }),
    ...Events.ofLanded("reopened", elsewhere(found.ops, txHash), [])
  ]
}

/** Moves a mined transaction back to `signed`; returns its ops. */
const withdraw = (store: Store.Store, lane: Lane, nonce: bigint, found: Found) =>
  Effect.gen(function* () {
    const { sql } = store
    const at = Transactions.at(store, lane, nonce)
    yield* sql`
      update transactions set state = 'signed', tx_hash = null, success = null, block_number = null,
        block_hash = null
      where ${at}`
    const newest = yield* Transactions.newest(store, lane, nonce)
    const ops = found.ops.filter((op) => op.state !== "abandoned")
    yield* Ops.move(store, ops, "sent", newest)
    yield* RequestRows.reopen(store, found.concerned)
    return ops.map((op): Ops.State => ({ ...op, state: "sent" }))
  })

const isDirect = (op: Ops.State): boolean => op.entry_point === direct

/** A direct transaction emits no EntryPoint event: its op takes the transaction's outcome. */
const settleDirect = (
  { sql }: Store.Store,
  ops: ReadonlyArray<Ops.State>,
  { success, txHash }: TransactionSettlement
) =>
  Store.forChunks(
    Ops.idsOf(ops.filter((op) => isDirect(op) && op.state === "sent")),
    (ids) => sql`
      update ops set state = 'settled', prepared = null, tx_hash = ${txHash}, success = ${success ? 1 : 0}
      where ${sql.in("op_id", ids)}`
  )

export const settle =
  (store: Store.Store): TransactionJournal["Service"]["settle"] =>
  (mined, outcomes, final) =>
    Effect.gen(function* () {
      const { sql } = store
      const { blockHash, blockNumber, nonce, txHash } = mined
      yield* Store.fits(64, [blockNumber])
      const found = yield* Transactions.find(store, mined, nonce, txHash)
      const at = Transactions.at(store, mined, nonce)
      const { row } = found ?? {}
      const isOpen = row?.state === "signed" || row?.state === "mined"
      const isSettled = row?.state === "settled" && row.tx_hash === txHash
      if (found === null || !found.hasVersion || (!isOpen && !isSettled))
        return yield* Store.refuse("only the one transaction that was signed for a nonce can settle it")
      if (isSettled) return found.concerned
      const moved = row?.state === "mined" && (row.tx_hash !== txHash || row.block_hash !== blockHash)
      const ops = moved ? yield* withdraw(store, mined, nonce, found) : found.ops
      yield* sql`
        update transactions set state = ${final ? "settled" : "mined"}, tx_hash = ${txHash},
          success = ${mined.success ? 1 : 0}, block_number = ${blockNumber.toString()},
          block_hash = ${blockHash}, submitted = 1
        where ${at}`
      const settled = yield* Ops.settle(store, ops, outcomes)
      yield* settleDirect(store, ops, mined)
      if (final) {
        const landed = new Set<string | null>(outcomes.map((outcome) => outcome.userOpHash))
        const left = sent(ops).filter((op) => !isDirect(op) && !landed.has(op.user_op_hash))
        yield* Ops.move(store, left, "accepted", null)
      }
      const depth = Events.ofDepth(mined)
      // Once for this transaction; for an op that another transaction included, each time.
      const others = elsewhere(settled, txHash)
      const before = elsewhere(ops, txHash)
      yield* Events.append(store, [
        ...(moved ? reopenedEvents(found) : []),
        ...(found.row.submitted === 0 ? eventsOf("submitted", found, { txHash }) : []),
        ...(moved || found.row.state === "signed"
          ? eventsOf("included", found, { txHash, ...depth, success: mined.success })
          : []),
        ...Events.ofLanded("included", others, outcomes),
        ...(final ? eventsOf("settled", found, { txHash, ...depth }) : []),
        ...(final ? Events.ofLanded("settled", [...before, ...others], outcomes) : [])
      ])
      return found.concerned
    }).pipe(Claims.inLane(store, mined))

export const finalise =
  (store: Store.Store): TransactionJournal["Service"]["finalise"] =>
  (lane, nonce, confirmations) =>
    Effect.gen(function* () {
      const found = yield* Transactions.find(store, lane, nonce)
      if (found?.row.state === "settled") return found.concerned
      if (found?.row.state !== "mined")
        return yield* Store.refuse("only a mined transaction reaches settled depth")
      yield* store.sql`update transactions set state = 'settled' where ${Transactions.at(store, lane, nonce)}`
      yield* Ops.move(store, sent(found.ops), "accepted", null)
      const { block_number: blockNumber, tx_hash: txHash } = found.row
      yield* Events.append(store, [
        ...eventsOf("settled", found, { txHash, blockNumber, confirmations }),
        ...Events.ofLanded("settled", elsewhere(found.ops, txHash), [])
      ])
      return found.concerned
    }).pipe(Claims.inLane(store, lane))

export const unsettle =
  (store: Store.Store): TransactionJournal["Service"]["unsettle"] =>
  (lane, nonce) =>
    Effect.gen(function* () {
      const found = yield* Transactions.find(store, lane, nonce)
      if (found?.row.state === "signed") return found.concerned
      if (found?.row.state !== "mined")
        return yield* Store.refuse("only a mined transaction that is not settled vanishes")
      yield* withdraw(store, lane, nonce, found)
      yield* Events.append(store, reopenedEvents(found))
      return found.concerned
    }).pipe(Claims.inLane(store, lane))

export const recordExternalUse =
  (store: Store.Store): TransactionJournal["Service"]["recordExternalUse"] =>
  (lane, nonce, outcomes) =>
    Effect.gen(function* () {
      const found = yield* Transactions.find(store, lane, nonce)
      if (found?.row.state === "foreign") return found.concerned
      if (found?.row.state !== "signed")
        return yield* Store.refuse("only a signed transaction that is not mined loses its nonce")
      yield* store.sql`update transactions set state = 'foreign' where ${Transactions.at(store, lane, nonce)}`
      const settled = yield* Ops.settle(store, found.ops, outcomes)
      const landed = new Set(settled.map((op) => op.op_id))
      const back = sent(found.ops).filter((op) => !landed.has(op.op_id))
      yield* Ops.move(store, back, "accepted", null)
      yield* Events.append(store, [
        ...(found.row.submitted === 0 ? Events.ofLanded("submitted", settled, []) : []),
        ...Events.ofLanded("included", settled, outcomes),
        ...Events.ofLanded("settled", settled, outcomes)
      ])
      return found.concerned
    }).pipe(Claims.inLane(store, lane))
