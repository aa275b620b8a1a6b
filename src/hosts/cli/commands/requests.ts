import * as Context from "effect/Context"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Answer from "../../../application/answers/Answer.js"
import * as Cancellations from "../../../application/answers/Cancellations.js"
import * as CancelRequest from "../../../application/endpoints/operations/CancelRequest.js"
import { RecoveryJournal } from "../../../application/ports/journal/RecoveryJournal.js"
import { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type { RequestRecord } from "../../../application/ports/journal/Requests.js"
import { type Entry, RequestHistory } from "../../../application/ports/operator/RequestHistory.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import { help, json, optional, report, whole } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

const shown = (entry: Entry) => ({
  number: entry.number.toString(),
  requestId: entry.requestId,
  account: entry.accountId,
  endpoint: entry.endpoint,
  chainId: Number(entry.chainId),
  state: entry.state,
  acceptedAt: Table.time(entry.acceptedAt)
})

const bigint = (value: number | undefined) => (value === undefined ? undefined : BigInt(value))

const list = Command.make("list", {
  account: optional("account", "ID", "of this account"),
  chain: optional("chain", "CHAIN", "on this chain"),
  endpoint: optional("endpoint", "PATH", "only requests of this endpoint, for example /execute"),
  state: Flag.Literals("state", ["pending", "held", "final", "forgotten"]).pipe(
    Flag.withDescription("in this state"),
    Flag.withDefault(undefined)
  ),
  before: optional("before", "NUMBER", "with numbers below this one: the next page"),
  limit: optional("limit", "COUNT", "number of requests: default 100, at most 1000"),
  json
}).pipe(
  help("Lists accepted requests, the newest first.", "--state pending", "--account acme --limit 20 --json"),
  report(function* ({ account, before, chain, endpoint, limit, state }) {
    const question = {
      accountId: account as AccountId | undefined,
      chainId: bigint(yield* whole("chain", chain)),
      endpoint,
      state,
      before: bigint(yield* whole("before", before)),
      limit: (yield* whole("limit", limit)) ?? 100
    }
    if (question.limit < 1 || question.limit > 1_000) return yield* Effect.fail("--limit: expected 1 to 1000")
    const { ports } = yield* OperatorContext.open
    const rows = (yield* Context.get(ports, RequestHistory).find(question)).map(shown)
    return Table.list(rows, "no request", {
      NUMBER: (row) => row.number,
      REQUEST: (row) => row.requestId,
      ACCOUNT: (row) => row.account,
      ENDPOINT: (row) => row.endpoint,
      CHAIN: (row) => row.chainId,
      STATE: (row) => row.state,
      ACCEPTED: (row) => row.acceptedAt
    })
  })
)

/** Leaves out the request's content: it names the caller's node, whose URL may contain a key. */
const detailed = (record: RequestRecord) =>
  Effect.gen(function* () {
    const final =
      record.outcome === null ? null : yield* Answer.toHttpResponse(record.outcome, record.requestId)
    return {
      requestId: record.requestId,
      account: record.accountId,
      endpoint: record.endpoint,
      chainId: Number(record.lane.chainId),
      signer: record.lane.signer,
      state: final === null ? (record.held == null ? "pending" : "held") : "final",
      held: record.held ?? null,
      acceptedAt: Table.time(record.acceptedAt),
      idempotencyKey: record.idempotency?.key ?? null,
      txHashes: record.txHashes,
      ops: record.ops.map(({ index, space, state, success, txHash, userOpHash }) => ({
        index,
        state,
        wallet: space.wallet,
        entryPoint: space.entryPoint,
        userOpHash,
        txHash,
        success
      })),
      failed: record.failed.map(({ code, index, message }) => ({ index, code, message })),
      httpStatus: final?.httpStatus ?? null,
      answer: final?.answer ?? null
    }
  })

const example = "5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"

const requestId = Argument.String("REQUEST").pipe(
  Argument.withDescription("the requestId of an answer, or of requests list")
)

const find = (requestId: string) =>
  Effect.gen(function* () {
    const { ports } = yield* OperatorContext.open
    const journal = Context.get(ports, RequestJournal)
    const record = yield* journal.request(requestId)
    if (record !== null) return { journal, ports, record }
    return yield* Effect.fail(
      `no accepted request ${requestId}, or it is no longer kept; run "castellan requests list"`
    )
  })

const show = Command.make("show", { requestId, json }).pipe(
  help("Shows one request: its transactions, its ops and its final answer.", example),
  report(function* ({ requestId }) {
    const { record } = yield* find(requestId)
    const shown = yield* detailed(record)
    return {
      json: shown,
      text: `request ${shown.requestId}\n${Table.card(
        {
          "  account": shown.account,
          "  endpoint": shown.endpoint,
          "  chain": shown.chainId,
          "  signer": shown.signer ?? "-",
          "  state": shown.state,
          "  held": shown.held,
          "  accepted": shown.acceptedAt,
          "  transaction": shown.txHashes
        },
        ...shown.ops.map(({ index, state, userOpHash, wallet }) => ({
          [`  op ${index}`]: `${state}, ${userOpHash ?? "no hash yet"}, wallet ${wallet}`
        })),
        ...shown.failed.map(({ code, index, message }) => ({
          [`  refused ${index}`]: `${code}: ${message}`
        })),
        {
          "  answer": shown.httpStatus === null ? null : `${shown.httpStatus} ${JSON.stringify(shown.answer)}`
        }
      )}`
    }
  })
)

const cancel = Command.make("cancel", { requestId, ...OperatorContext.logged, json }).pipe(
  help("Cancels the unsigned elements of a request permanently.", example),
  report(function* ({ requestId, ...logged }) {
    const { journal, ports, record } = yield* find(requestId)
    yield* OperatorContext.record({ ports }, "cancel", requestId, logged)
    const cancelled = yield* CancelRequest.cancel(journal, record)
    const of = (elements: ReadonlyArray<number>) => (elements.length === 0 ? "none" : elements.join(", "))
    return {
      json: cancelled,
      text: `request ${requestId} is ${cancelled.state}\n${Table.card({
        "  elements cancelled": of(cancelled.cancelled),
        "  elements that were signed before": of(cancelled.kept)
      })}`
    }
  })
)

/** The held request with this id; fails when the request is not held. */
const findHeld = (requestId: string) =>
  Effect.filterOrFail(
    find(requestId),
    ({ record }) => record.held != null,
    () => `request ${requestId} is not held; run "castellan requests list --state held"`
  )

const release = Command.make("release", { requestId, ...OperatorContext.logged, json }).pipe(
  help(
    "Releases a held request: its open elements are executed, even if a transaction that the database lacks has executed them before.",
    example
  ),
  report(function* ({ requestId, ...logged }) {
    const { ports } = yield* findHeld(requestId)
    yield* OperatorContext.record({ ports }, "release", requestId, logged)
    if (!(yield* Context.get(ports, RecoveryJournal).unhold(requestId)))
      return yield* Effect.fail(`request ${requestId} is not held any more`)
    return {
      json: { requestId, state: "pending" },
      text: `request ${requestId} is released: a running service continues it within a few seconds`
    }
  })
)

const drop = Command.make("drop", { requestId, ...OperatorContext.logged, json }).pipe(
  help(
    "Ends a held request permanently: its open elements are never executed, and its answer says so (request_dropped).",
    example
  ),
  report(function* ({ requestId, ...logged }) {
    const { journal, ports } = yield* findHeld(requestId)
    yield* OperatorContext.record({ ports }, "drop", requestId, logged)
    const became = yield* Cancellations.cancel(journal, requestId, "request_dropped", { onlyUnsigned: false })
    const state = became === "final" ? "final" : "pending"
    return {
      json: { requestId, state },
      text:
        state === "final"
          ? `request ${requestId} is dropped`
          : `request ${requestId} is dropped but for what was signed before, which goes on to its end`
    }
  })
)

export const commands = [list, show, cancel, release, drop]

export const notes = [
  "The commands read the journal; the service need not run. Only cancel, release and drop change something: a running service checks for it before it signs, and answers waiting callers within a few seconds.",
  "A request is held when a transaction that the database lacks has executed its work, or may have, for example after a restored backup: show gives the reason. Check the chain, then release or drop the request.",
  "The content of a request is not shown: it is encrypted, and may have a node's URL with a key in it."
]
