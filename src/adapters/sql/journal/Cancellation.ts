import * as Effect from "effect/Effect"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type * as Store from "../Store.js"
import * as Events from "./Events.js"
import * as Ops from "./tables/Ops.js"
import * as RequestRows from "./tables/RequestRows.js"

/**
 * Whether signed bytes of the request may have left: of an op, even an abandoned one, or in a foreign transaction on the
 * chain.
 */
const wasSigned = ({ sql }: Store.Store, requestId: string) =>
  Effect.map(
    sql`
      select 1 from ops join transaction_ops on transaction_ops.op_id = ops.op_id
      where ops.request_id = ${requestId}
      union all
      select 1 from ops where request_id = ${requestId} and was_public = 1
      limit 1`,
    (rows) => rows.length > 0
  )

/**
 * Not fenced: locks on the request and its ops order a signature and its cancellation, in any process. The journal refuses
 * to sign an abandoned op.
 */
export const cancel =
  (store: Store.Store): RequestJournal["Service"]["cancel"] =>
  (requestId, { code, onlyUnsigned, outcome }) =>
    store.transaction(
      Effect.gen(function* () {
        const { sql } = store
        const row = yield* RequestRows.locked(store, requestId)
        if (row === undefined || row.state === "forgotten") return null
        if (row.state === "final") return "final" as const
        // Another process may have executed a held request: only the operator ends it.
        if ((code === "request_dropped") !== (row.held !== null)) return "kept" as const
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
        yield* Events.append(store, [{ requestId, kind, data: null }])
        return "final" as const
      })
    )
