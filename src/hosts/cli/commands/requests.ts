import * as Effect from "effect/Effect"
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
    state: Command.choice("state", ["pending", "final", "forgotten"], "in this state"),
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
      state: final === null ? "pending" : "final",
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

export const commands = [list, show, cancel] as const

export const notes = [
  "The commands read the journal; the service need not run. Only cancel changes something: a running service checks for it before it signs, and answers waiting callers within a few seconds.",
  "The content of a request is not shown: it is encrypted, and may have a node's URL with a key in it."
]
