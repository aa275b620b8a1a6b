import * as Effect from "effect/Effect"
import type * as Records from "../../../application/ports/journal/Records.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import * as Rows from "../Rows.js"
import * as Store from "../Store.js"
import * as GroupCommit from "../sqlite/GroupCommit.js"
import * as Events from "./Events.js"
import * as RequestRows from "./tables/RequestRows.js"

/** Reads requests for their answers, and ends requests. */

type Method<K extends keyof RequestJournal["Service"]> = (store: Store.Store) => RequestJournal["Service"][K]

type BodyRow = RequestRows.Row & { readonly request_id: string; readonly context: string | null }

export const bodies: Method<"bodies"> = (store) => (requestIds) =>
  store.query(
    Effect.gen(function* () {
      const ids = Rows.listOf(store, requestIds)
      const rows = yield* Rows.statement<BodyRow>(
        store,
        `select request_id, account_id, endpoint, context, body, elements, failed, cancelled, decision from requests
         where ${Rows.among(store, "request_id")} and state <> 'forgotten' order by request_no`,
        [ids]
      )
      const ops = yield* Rows.statement<{ readonly request_id: string; readonly op_index: number }>(
        store,
        `select request_id, op_index from ops where ${Rows.among(store, "request_id")} and state <> 'abandoned'
         order by request_id, op_index`,
        [ids]
      )
      const opened = Map.groupBy(ops, (op) => op.request_id)
      return yield* Effect.forEach(rows, (row) =>
        Effect.map(
          Effect.orElseSucceed(store.seal.open(RequestRows.sealName(row.request_id), row.body), () => null),
          (body): Records.Body => ({
            requestId: row.request_id,
            accountId: row.account_id,
            endpoint: row.endpoint,
            contextDigest: row.context,
            body,
            elements: row.elements,
            failed: RequestRows.failedOf(row),
            cancelled: RequestRows.cancelledOf(row),
            opened: (opened.get(row.request_id) ?? []).map((op) => op.op_index)
          })
        )
      )
    })
  )

/** Condition on a row of `requests`: an element has no outcome yet. */
const underWay = `(exists (
    select 1 from ops
    where ops.request_id = requests.request_id and ops.state <> 'abandoned' and ops.state in ('accepted', 'sent'))
  or (requests.cancelled is null and requests.unopened > 0))`

const atTheirEnd = (store: Store.Store, where: string, values: ReadonlyArray<unknown>, order: string) =>
  store.query(
    Effect.map(
      Rows.statement<{ readonly request_id: string }>(
        store,
        `select request_id from requests where ${where} and state = 'open' and not ${underWay} order by ${order}`,
        values
      ),
      (rows) => rows.map((row) => row.request_id)
    )
  )

export const ended: Method<"ended"> = (store) => (requestIds) =>
  atTheirEnd(store, Rows.among(store, "request_id"), [Rows.listOf(store, requestIds)], "request_id")

export const unanswered: Method<"unanswered"> =
  (store) =>
  ({ chainId, signer }, limit) =>
    atTheirEnd(
      store,
      "chain_id = ? and signer = ?",
      [chainId.toString(), signer],
      `request_no limit ${Rows.bound(limit)}`
    )

interface Row {
  readonly request_id: string
  readonly state: "open" | "final" | "forgotten"
  readonly outcome: string | null
  readonly elements: number
}

interface Progress {
  readonly request_id: string
  readonly under_way: number | boolean
  readonly included: number | string
  readonly newest: number | null
}

const storeAll = (store: Store.Store, answers: ReadonlyArray<Records.Final>) =>
  Effect.gen(function* () {
    const ids = Rows.listOf(store, Store.distinct(answers.map(({ requestId }) => requestId)))
    const found = yield* Rows.statement<Row>(
      store,
      `select request_id, state, outcome, elements from requests
       where ${Rows.among(store, "request_id")} order by request_id
       ${Store.isPostgres(store.sql) ? "for update" : ""}`,
      [ids]
    )
    const rows = new Map(found.map((row) => [row.request_id, row]))
    // Reads under the lock: it must see events of concurrent writers.
    const states = yield* Rows.statement<Progress>(
      store,
      `select request_id, ${underWay} as under_way, (
           select count(distinct op_index) from ops
           where ops.request_id = requests.request_id and ops.state = 'settled') as included,
         (select max(sequence) from request_events
           where request_events.request_no = requests.request_no) as newest
       from requests where ${Rows.among(store, "request_id")}`,
      [ids]
    )
    const progress = new Map(states.map((row) => [row.request_id, row]))
    const fresh = new Map<string, string>()
    const events: Array<Events.NewEvent> = []
    let isOnChain = true
    const kept = answers.map(({ outcome, requestId, sequence, summary }) => {
      const row = rows.get(requestId)
      if (row === undefined) return null
      const own = fresh.get(requestId)
      if (own !== undefined) return own
      // A forgotten request no longer has an outcome.
      if (row.state !== "open") {
        isOnChain = false
        return row.outcome ?? outcome
      }
      const state = progress.get(requestId)
      if (state === undefined || state.under_way || (state.newest ?? 0) !== sequence) return null
      fresh.set(requestId, outcome)
      events.push({ requestId, kind: "final", data: summary })
      if (Number(state.included) !== row.elements) isOnChain = false
      return outcome
    })
    yield* Rows.each(
      store,
      `update requests set state = 'final', outcome = given.outcome
       from (%) as given where requests.request_id = given.request_id`,
      { request_id: "text", outcome: "text" },
      [...fresh]
    )
    yield* Events.append(store, events)
    return { kept, isOnChain }
  })

/**
 * Answers wait for the disk, except when every element's op is included: after a crash of the machine, the signed bytes are
 * on the disk and the chain gives the same answer.
 */
export const answer: Method<"answer"> = (store) => (answers) =>
  answers.length === 0
    ? Effect.succeed([])
    : store.transaction(storeAll(store, answers)).pipe(
        Effect.provideService(GroupCommit.answered, "committed"),
        Effect.flatMap(({ isOnChain, kept }) => Effect.as(isOnChain ? Effect.void : store.durable, kept))
      )
