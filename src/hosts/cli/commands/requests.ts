import * as Effect from "effect/Effect"
import * as Cancellations from "../../../application/lanes/requests/Cancellations.js"
import type { RequestRecord } from "../../../application/ports/journal/Requests.js"
import type { Entry } from "../../../application/ports/RequestHistory.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import * as Answer from "../../../application/request/Answer.js"
import * as CancelRequest from "../../../application/usecases/operations/CancelRequest.js"
import * as Command from "../support/Command.js"
import * as JournalContext from "../support/JournalContext.js"
import * as Table from "../support/Table.js"

const integerOf = (option: string, text: string | undefined): Effect.Effect<bigint | undefined, string> => {
  if (text === undefined) return Effect.succeed(undefined)
  return /^[0-9]{1,15}$/.test(text)
    ? Effect.succeed(BigInt(text))
    : Effect.fail(`--${option}: expected a decimal number`)
}

const shown = (entry: Entry) => ({
  number: entry.number.toString(),
  requestId: entry.requestId,
  account: entry.accountId,
  endpoint: entry.endpoint,
  chainId: Number(entry.chainId),
  state: entry.state,
  acceptedAt: Table.time(entry.acceptedAt)
})

const list = Command.make({
  name: "list",
  about: "Lists accepted requests, the newest first.",
  examples: ["--state pending", "--account acme --limit 20 --json"],
  flags: {
    account: Command.optional("account", "ID", "of this account"),
    chain: Command.optional("chain", "CHAIN", "on this chain"),
    endpoint: Command.optional("endpoint", "PATH", "only requests of this endpoint, for example /execute"),
    state: Command.choice("state", ["pending", "held", "final", "forgotten"], "in this state"),
    before: Command.optional("before", "NUMBER", "with numbers below this one: the next page"),
    limit: Command.optional("limit", "COUNT", "number of requests: default 100, at most 1000")
  },
  run: function* ({ account, before, chain, endpoint, limit, state }) {
    const question = {
      accountId: account as AccountId | undefined,
      chainId: yield* integerOf("chain", chain),
      endpoint,
      state,
      before: yield* integerOf("before", before),
      limit: Number((yield* integerOf("limit", limit)) ?? 100n)
    }
    if (question.limit < 1 || question.limit > 1_000) return yield* Effect.fail("--limit: expected 1 to 1000")
    const { history } = yield* JournalContext.open
    const rows = (yield* history.find(question)).map(shown)
    return Command.listed(rows, "no request", {
      NUMBER: (row) => row.number,
      REQUEST: (row) => row.requestId,
      ACCOUNT: (row) => row.account,
      ENDPOINT: (row) => row.endpoint,
      CHAIN: (row) => row.chainId,
      STATE: (row) => row.state,
      ACCEPTED: (row) => row.acceptedAt
    })
  }
})

/** Without what it asked for: the caller's node is named there, with whatever key its URL has. */
const detailed = (record: RequestRecord) =>
  Effect.gen(function* () {
    const final = record.outcome === null ? null : yield* Answer.told(record.outcome, record.requestId)
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

const requestId = Command.operand("REQUEST", "the requestId of an answer, or of requests list")

/** The journal, and the request of this id in it. */
const find = (requestId: string) =>
  Effect.gen(function* () {
    const { journal } = yield* JournalContext.open
    const record = yield* journal.request(requestId)
    if (record !== null) return { journal, record }
    return yield* Effect.fail(
      `no request ${requestId} was accepted, or it is forgotten; "castellan requests list" tells which there are`
    )
  })

const show = Command.make({
  name: "show",
  about: "Shows one request: its transactions, its ops and its final answer.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"],
  operands: { requestId },
  run: function* ({ requestId }) {
    const { record } = yield* find(requestId)
    const shown = yield* detailed(record)
    const row = (name: string, value: string) => [`  ${name}`, value]
    return {
      json: shown,
      text: [
        `request ${shown.requestId}`,
        Table.aligned([
          row("account", shown.account),
          row("endpoint", shown.endpoint),
          row("chain", String(shown.chainId)),
          row("signer", shown.signer ?? "-"),
          row("state", shown.state),
          ...(shown.held === null ? [] : [row("held", shown.held)]),
          row("accepted", shown.acceptedAt),
          ...shown.txHashes.map((hash) => row("transaction", hash)),
          ...shown.ops.map(({ index, state, userOpHash, wallet }) =>
            row(`op ${index}`, `${state}, ${userOpHash ?? "no hash yet"}, wallet ${wallet}`)
          ),
          ...shown.failed.map(({ code, index, message }) => row(`refused ${index}`, `${code}: ${message}`)),
          ...(shown.httpStatus === null
            ? []
            : [row("answer", `${shown.httpStatus} ${JSON.stringify(shown.answer)}`)])
        ])
      ].join("\n")
    }
  }
})

const cancel = Command.make({
  name: "cancel",
  about: "Cancels the elements of a request that were not signed yet, for good.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"],
  operands: { requestId },
  run: function* ({ requestId }) {
    const { journal, record } = yield* find(requestId)
    const told = yield* CancelRequest.cancel(journal, record)
    const of = (elements: ReadonlyArray<number>) => (elements.length === 0 ? "none" : elements.join(", "))
    return {
      json: told,
      text: [
        `request ${requestId} is ${told.state}`,
        Table.aligned([
          ["  elements cancelled", of(told.cancelled)],
          ["  elements that were signed before", of(told.kept)]
        ])
      ].join("\n")
    }
  }
})

/** The held request of this id; fails of another one. */
const findHeld = (requestId: string) =>
  Effect.filterOrFail(
    find(requestId),
    ({ record }) => record.held != null,
    () => `request ${requestId} is not held; "castellan requests list --state held" tells which are`
  )

const release = Command.make({
  name: "release",
  about:
    "Lets a held request go on: what is not known to be done of it is done, even if it was done before in a transaction that the database does not know of.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"],
  operands: { requestId },
  run: function* ({ requestId }) {
    const { journal } = yield* findHeld(requestId)
    if (!(yield* journal.unhold(requestId)))
      return yield* Effect.fail(`request ${requestId} is not held any more`)
    return {
      json: { requestId, state: "pending" },
      text: `request ${requestId} is released: a running service goes on with it within a few seconds`
    }
  }
})

const drop = Command.make({
  name: "drop",
  about:
    "Ends a held request for good: what is not known to be done of it never will be, and its answer says so (request_dropped).",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"],
  operands: { requestId },
  run: function* ({ requestId }) {
    const { journal } = yield* findHeld(requestId)
    const became = yield* Cancellations.cancel(journal, requestId, "request_dropped", { onlyUnsigned: false })
    const state = became === "final" ? "final" : "pending"
    return {
      json: { requestId, state },
      text:
        state === "final"
          ? `request ${requestId} is dropped`
          : `request ${requestId} is dropped but for what was signed before, which goes on to its end`
    }
  }
})

export const commands = [list, show, cancel, release, drop] as const

export const notes = [
  "The commands read the journal; the service need not run. Only cancel, release and drop change something: a running service checks for it before it signs, and answers waiting callers within a few seconds.",
  "A request is held when the chain has, or may have, its work in a transaction that the database does not know of, as after the restoration of a backup: show tells why. Look on the chain, then release or drop it.",
  "The content of a request is not shown: it is encrypted, and may have a node's URL with a key in it."
]
