import * as Effect from "effect/Effect"
import type { EventData } from "../../../application/ports/journal/Events.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import * as Compact from "../Compact.js"
import * as Events from "../events/Events.js"
import * as Store from "../Store.js"
import * as GroupCommit from "../sqlite/GroupCommit.js"
import * as Claims from "./tables/Claims.js"
import * as Ops from "./tables/Ops.js"
import * as Requests from "./tables/Requests.js"

/** How requests end: by their final answers, or cancelled. */

/** How far the ops of a request are: whether some are under way, and of how many elements the op is in a transaction of the chain. */
const progressOf = ({ sql }: Store.Store, requestId: string) => sql<{
  readonly under_way: number | boolean
  readonly included: number | string
}>`
  select exists (
      select 1 from ops
      where ops.request_id = ${requestId} and ops.state <> 'abandoned' and ops.state in ('accepted', 'sent'))
    or exists (
      select 1 from transactions
      where direct = ${requestId} and direct is not null and transactions.state = 'signed') as under_way,
    (select count(distinct op_index) from ops
      where ops.request_id = ${requestId} and ops.state = 'settled') as included`

const write = (store: Store.Store, requestId: string, outcome: string, summary: EventData) =>
  Effect.gen(function* () {
    const row = yield* Requests.locked(store, requestId)
    if (row === undefined) return yield* Store.refuse("the request was not accepted")
    yield* Claims.fence(store, Claims.laneOf(row))
    // Of what is forgotten nobody knows any more what it was.
    if (row.state !== "open")
      return { kept: row.outcome === null ? outcome : Compact.read(row.outcome), isOnChain: false }
    const [progress] = yield* progressOf(store, requestId)
    if (progress?.under_way) return { kept: null, isOnChain: false }
    yield* store.sql`
      update requests set state = 'final', outcome = ${outcome} where request_id = ${requestId}`
    yield* Events.tell(store, [{ requestId, kind: "final", data: summary }])
    return { kept: outcome, isOnChain: Number(progress?.included) === row.elements }
  })

/**
 * An answer waits for the disk, but for one in which every element's op is included: were the machine to lose it, the bytes
 * that were signed are on the disk, and the chain has the same answer to them.
 */
export const finish =
  (store: Store.Store): RequestJournal["Service"]["finish"] =>
  (requestId, outcome, summary) =>
    store.transaction(write(store, requestId, outcome, summary)).pipe(
      Effect.provideService(GroupCommit.answered, "committed"),
      Effect.flatMap(({ isOnChain, kept }) => Effect.as(isOnChain ? Effect.void : store.durable, kept))
    )

/**
 * Whether bytes of the request may have left: an op of it, given up or not, or a transaction of its own was signed, or an op
 * was on the chain in a transaction of others.
 */
const wasSigned = ({ sql }: Store.Store, requestId: string) =>
  Effect.map(
    sql`
      select 1 from ops
      join transaction_ops on transaction_ops.op_id = ops.op_id
      join transactions on transactions.chain_id = transaction_ops.chain_id
        and transactions.signer = transaction_ops.signer and transactions.nonce = transaction_ops.nonce
      where ops.request_id = ${requestId} and transactions.state in ('signed', 'mined', 'settled', 'foreign')
      union all
      select 1 from ops where request_id = ${requestId} and was_public = 1
      union all
      select 1 from transactions
      where direct = ${requestId} and direct is not null and state in ('signed', 'mined', 'settled', 'foreign')
      limit 1`,
    (rows) => rows.length > 0
  )

/**
 * Not fenced: whoever works on the lane, the locks of the request and of its ops decide between a signature and its
 * cancellation. What is abandoned here is refused there.
 */
export const cancel =
  (store: Store.Store): RequestJournal["Service"]["cancel"] =>
  (requestId, { code, onlyUnnoted = false, onlyUnsigned, outcome }) =>
    store.transaction(
      Effect.gen(function* () {
        const { sql } = store
        const row = yield* Requests.locked(store, requestId)
        if (row === undefined || row.state === "forgotten") return null
        if (row.state === "final") return "final" as const
        // What of it was done elsewhere is not known: only the operator ends it.
        if ((code === "request_dropped") !== (row.held !== null)) return "kept" as const
        if (onlyUnnoted && row.note !== null) return "kept" as const
        const ops = yield* Ops.locked(store, sql`request_id = ${requestId} and state <> 'abandoned'`)
        const hasLeft = ops.some(({ state }) => state !== "accepted") || (yield* wasSigned(store, requestId))
        if (hasLeft && onlyUnsigned) return "kept" as const
        const held = hasLeft ? yield* Ops.holding(store, requestId) : new Set()
        const unsigned = ops.filter(({ op_id, state }) => state === "accepted" && !held.has(String(op_id)))
        yield* Ops.move(store, unsigned, "abandoned", null)
        const cancelled = code === "request_dropped" ? "request_cancelled" : code
        if (code === "request_dropped")
          yield* sql`update requests set held = null, decision = 'dropped' where request_id = ${requestId}`
        if (hasLeft) {
          yield* sql`update requests set cancelled = ${cancelled} where request_id = ${requestId}`
          return "kept" as const
        }
        yield* sql`
          update requests set cancelled = ${cancelled}, state = 'final', outcome = ${outcome}
          where request_id = ${requestId}`
        const kind = code === "request_expired" ? "expired" : "cancelled"
        yield* Events.tell(store, [{ requestId, kind, data: null }])
        return "final" as const
      })
    )
