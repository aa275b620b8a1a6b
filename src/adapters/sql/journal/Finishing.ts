import * as Effect from "effect/Effect"
import type { EventData } from "../../../application/ports/journal/Events.js"
import * as Holding from "../../../application/ports/journal/Holding.js"
import { JournalError } from "../../../application/ports/journal/JournalError.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import * as Compact from "../Compact.js"
import * as Events from "../events/Events.js"
import * as Gathered from "../Gathered.js"
import * as Store from "../Store.js"
import * as GroupCommit from "../sqlite/GroupCommit.js"
import * as Claims from "./Claims.js"
import * as Ops from "./Ops.js"
import * as Requests from "./Requests.js"

/** How requests end: by their final answers, of which those of a bundle come at one moment and are stored together, or cancelled. */

interface Answer {
  readonly requestId: string
  readonly outcome: string
  readonly summary: EventData
  /** Of the fiber that has it stored: others may store it together with their own. */
  readonly begun: Holding.Holding | null
}

interface Stored {
  readonly kept: string | null
  /** Every element's op is in a transaction of the chain. */
  readonly isOnChain: boolean
}

interface Row {
  readonly request_id: string
  readonly chain_id: string
  readonly signer: string | null
  readonly state: "open" | "final" | "forgotten"
  readonly outcome: Compact.Column | null
  readonly elements: number
}

/** How far the ops of a request are. */
interface Progress {
  readonly request_id: string
  readonly under_way: number | boolean
  /** Elements whose op is in a transaction of the chain. */
  readonly included: number | string
}

/** The requests, kept from others until the transaction ends, in one order. */
const locked = ({ forUpdate, sql }: Store.Store, ids: ReadonlyArray<string>) => sql<Row>`
  select request_id, chain_id, signer, state, outcome, elements from requests
  where ${sql.in("request_id", ids)} order by request_id ${forUpdate}`

const progressOf = ({ sql }: Store.Store, ids: ReadonlyArray<string>) => sql<Progress>`
  select request_id, exists (
      select 1 from ops
      where ops.request_id = requests.request_id and ops.state <> 'abandoned' and ops.state in ('accepted', 'sent'))
    or exists (
      select 1 from transactions
      where direct = requests.request_id and direct is not null and transactions.state = 'signed') as under_way,
    (select count(distinct op_index) from ops
      where ops.request_id = requests.request_id and ops.state = 'settled') as included
  from requests where ${sql.in("request_id", ids)}`

const laneName = ({ chain_id, signer }: Row): string => `${chain_id} ${signer}`

/** Asks for the fences of the rows' lanes, and gives what waits for them: their epochs by name, or why one is not this process's. */
const epochsOf = (store: Store.Store, rows: Iterable<Row>) =>
  Effect.gen(function* () {
    const lanes = new Map([...rows].map((row) => [laneName(row), Claims.laneOf(row)]))
    const looks = yield* Effect.forEach(lanes, ([name, lane]) =>
      Effect.map(Claims.fenceAhead(store, lane), (fence) => ({ name, fence }))
    )
    return Effect.gen(function* () {
      const epochs = new Map<string, number | JournalError>()
      for (const { fence, name } of looks)
        epochs.set(name, yield* Effect.catchTag(fence, "JournalError", Effect.succeed))
      return epochs
    })
  })

/** Why the answer is not stored; null: nothing stands in its way. */
const refusalOf = (row: Row, { begun }: Answer, epochs: ReadonlyMap<string, number | JournalError>) => {
  const epoch = epochs.get(laneName(row)) ?? unknown
  return typeof epoch === "number" ? Claims.outdated(begun, Claims.laneOf(row), epoch) : epoch
}

const unknown = new JournalError({ message: "the request was not accepted" })

/** In one transaction; what is wrong with one is told of that one alone. */
const storeAll = (store: Store.Store, answers: ReadonlyArray<Answer>) =>
  Effect.gen(function* () {
    const { send, sql } = store
    const ids = Store.distinct(answers.map(({ requestId }) => requestId))
    const rows = new Map((yield* locked(store, ids)).map((row) => [row.request_id, row]))
    const asked = yield* epochsOf(store, rows.values())
    const progress = new Map((yield* progressOf(store, ids)).map((row) => [row.request_id, row]))
    const epochs = yield* asked
    const told: Array<Events.Told> = []
    const stored: Array<Effect.Effect<Stored, JournalError>> = []
    for (const answer of answers) {
      const { outcome, requestId, summary } = answer
      const row = rows.get(requestId)
      const refusal = row === undefined ? unknown : refusalOf(row, answer, epochs)
      if (row === undefined || refusal !== null) {
        stored.push(Effect.fail(refusal ?? unknown))
        continue
      }
      // Of what is forgotten nobody knows any more what it was.
      if (row.state !== "open") {
        const kept = row.outcome === null ? outcome : Compact.read(row.outcome)
        stored.push(Effect.succeed({ kept, isOnChain: false }))
        continue
      }
      const { included, under_way } = progress.get(requestId) ?? { included: 0, under_way: false }
      if (under_way) {
        stored.push(Effect.succeed({ kept: null, isOnChain: false }))
        continue
      }
      const column = store.column(outcome)
      yield* send(sql`
        update requests set state = 'final', outcome = ${column} where request_id = ${requestId}`)
      rows.set(requestId, { ...row, state: "final", outcome: column })
      told.push({ requestId, kind: "final", data: summary })
      stored.push(Effect.succeed({ kept: outcome, isOnChain: Number(included) === row.elements }))
    }
    yield* Events.tell(store, told)
    return stored
  })

/**
 * An answer waits for the disk, but for one in which every element's op is included: were the machine to lose it, the bytes
 * that were signed are on the disk, and the chain has the same answer to them.
 */
export const finish = (store: Store.Store): RequestJournal["Service"]["finish"] => {
  const stored = Gathered.make((answers: ReadonlyArray<Answer>) =>
    store
      .transaction(storeAll(store, answers))
      .pipe(Effect.provideService(GroupCommit.answered, "committed"), Holding.outliving)
  )
  return (requestId, outcome, summary) =>
    Holding.begun.pipe(
      Effect.flatMap(({ holding }) => stored({ requestId, outcome, summary, begun: holding })),
      Effect.flatMap(({ isOnChain, kept }) => Effect.as(isOnChain ? Effect.void : store.durable, kept))
    )
}

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
          update requests set cancelled = ${cancelled}, state = 'final', outcome = ${store.column(outcome)}
          where request_id = ${requestId}`
        const kind = code === "request_expired" ? "expired" : "cancelled"
        yield* Events.tell(store, [{ requestId, kind, data: null }])
        return "final" as const
      })
    )
