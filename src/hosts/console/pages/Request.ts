import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Answer from "../../../application/answers/Answer.js"
import * as CancelRequest from "../../../application/endpoints/operations/CancelRequest.js"
import type { EventKind, RequestEvent } from "../../../application/ports/journal/Events.js"
import type { OpRecord, RequestRecord } from "../../../application/ports/journal/Requests.js"
import type { Refusal } from "../../../application/ports/operator/Refusals.js"
import type { Result as Outcome } from "../../../application/ports/operator/RequestHistory.js"
import * as Token from "../../../domain/evm/Token.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Keccak from "../../../domain/primitives/Keccak.js"
import * as Calls from "../Calls.js"
import * as Chains from "../Chains.js"
import type { Data, Missing, View } from "../Data.js"
import { type Html, html, type Part } from "../Html.js"
import * as Page from "../Page.js"
import * as BalanceChanges from "./BalanceChanges.js"
import { unreadable } from "./Lanes.js"
import { statusOf } from "./RequestList.js"

/** One request: calls, progress, moved tokens and cost; printed, it is a receipt. */

const Log = Schema.Struct({
  address: Address.schema,
  topics: Schema.Array(Hex.schema32),
  data: Hex.schema
})

const AnswerBody = Schema.Struct({
  status: Schema.optional(Schema.Number),
  code: Schema.optional(Schema.String),
  gasUsed: Schema.optional(Schema.Number),
  effectiveGasPrice: Schema.optional(Schema.String),
  returnData: Schema.optional(
    Schema.Array(
      Schema.Record(
        Schema.String,
        Schema.Struct({
          success: Schema.optional(Schema.Boolean),
          error: Schema.optional(Schema.NullOr(Schema.String)),
          result: Schema.optional(Schema.Unknown),
          wallet: Schema.optional(Schema.String)
        })
      )
    )
  ),
  logs: Schema.optional(Schema.Array(Log)),
  txHashes: Schema.optional(Schema.Array(Schema.String))
})
type AnswerBody = typeof AnswerBody.Type

const decodeAnswerBody = Schema.decodeUnknownOption(AnswerBody)

interface Final {
  readonly httpStatus: number
  readonly json: unknown
  readonly body: AnswerBody
}

const resultOf = ({ httpStatus, body: { code, status } }: Final): Outcome => {
  if (httpStatus === 200)
    return status === 0 ? "failed" : status === 3 || status === 4 ? "partly" : "succeeded"
  if (code === "request_cancelled" || code === "request_dropped") return "cancelled"
  return code === "request_expired" ? "expired" : "failed"
}

const words: Readonly<Record<EventKind, readonly [icon: Page.Icon, word: string, tone: string]>> = {
  accepted: ["tick", "Accepted", "ok"],
  scheduled: ["wait", "Scheduled", ""],
  signed: ["tick", "Signed", "ok"],
  submitted: ["tick", "Submitted", "ok"],
  replaced: ["again", "Replaced", "part"],
  included: ["tick", "Included", "ok"],
  reopened: ["again", "Block undone", "part"],
  settled: ["tick", "Settled", "ok"],
  final: ["tick", "Final", "ok"],
  cancelled: ["pause", "Cancelled", "part"],
  expired: ["some", "Expired", "part"]
}

/** Milliseconds are part of a time here: much of a request's life takes less than a second. */
const exact = (millis: number): Html => {
  const iso = new Date(millis).toISOString()
  return html`<time datetime="${iso}" title="${iso.replace("T", " ").replace("Z", " UTC")}">${iso.slice(11, 23)}</time>`
}

const about = ({ data, kind }: RequestEvent, chainId: bigint): Part => {
  const { blockNumber, notBefore, txHash } = data
  if (kind === "included" && typeof blockNumber === "string")
    return `block ${Page.count(BigInt(blockNumber))}`
  if (kind === "scheduled" && typeof notBefore === "number") return html`until ${exact(notBefore * 1_000)}`
  return typeof txHash === "string" ? Page.transaction(txHash, chainId) : null
}

/** The events by kind, each where it happened first. */
const timeline = (events: ReadonlyArray<RequestEvent>, chainId: bigint): Html => {
  const kinds = [...Map.groupBy(events, ({ kind }) => kind)]
  return html`<div class="in"><ol class="tl">${kinds.map(([kind, own]) => {
    const [icon, word, tone] = words[kind]
    const [first] = own
    const last = own.at(-1)
    if (first === undefined || last === undefined) return null
    return html`<li class="${tone}">${Page.icon(icon)}<b>${word}${own.length > 1 ? html` <small>× ${own.length}</small>` : null}</b><small>${exact(first.at)}${own.length > 1 ? html` to ${exact(last.at)}` : null}</small><small>${about(last, chainId)}</small></li>`
  })}</ol></div>`
}

const tones: Readonly<Record<string, readonly [Page.Tone, string]>> = {
  accepted: ["wait", "Waiting"],
  sent: ["wait", "Sent"],
  abandoned: ["pause", "Given up"]
}

const opStatus = ({ state, success }: OpRecord): Html => {
  const [tone, word] =
    tones[state] ?? (success === true ? (["ok", "Succeeded"] as const) : (["bad", "Reverted"] as const))
  return Page.status(tone, word)
}

const elementOf = ({ returnData = [] }: AnswerBody, index: number) =>
  returnData.find((each) => String(index) in each)?.[String(index)]

const short = (value: unknown): string => {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "")
  return text.length > 120 ? `${text.slice(0, 120)}…` : text
}

const operations = (record: RequestRecord, calls: ReadonlyArray<Calls.Call>, final: Final | null): Html => {
  const { chainId } = record.lane
  const shown = Math.min(record.elements, Calls.mostShown)
  const elements = Array.from({ length: shown }, (_, index) => {
    const op = record.ops.find((each) => each.index === index)
    const failure = record.failed.find((each) => each.index === index)
    const element = final === null ? undefined : elementOf(final.body, index)
    const wallet = op?.space.wallet ?? element?.wallet
    const call = calls[index]
    const status =
      failure !== undefined
        ? Page.status("bad", "Not sent")
        : op !== undefined
          ? opStatus(op)
          : final === null
            ? Page.status("wait", "Waiting")
            : element?.error == null && resultOf(final) !== "failed"
              ? Page.status("ok", "Done")
              : Page.status("bad", "Failed")
    const why = failure?.message ?? element?.error ?? null
    return html`<li><span class="no">${index}</span><strong>${call?.text ?? "an operation"}</strong>${status}<small>${
      wallet === undefined
        ? null
        : html`wallet ${call?.salt == null ? null : html`<b>${call.salt}</b> `}${Page.address(wallet, chainId)}`
    }${op?.userOpHash == null ? null : html` · op ${Page.hash(op.userOpHash, "op hash")}`}${failure === undefined ? null : " · costs nothing"}</small>${
      why === null
        ? element?.result === undefined || element.result === "0x"
          ? null
          : html`<span>returned ${Page.code(short(element.result))}</span>`
        : html`<span class="t-bad">${short(why)}</span>${failure === undefined ? null : html`<small>${Page.code(failure.code)}</small>`}`
    }</li>`
  })
  return html`<ol class="ops">${elements}</ol>${record.elements > shown ? html`<p class="in dim">and ${Page.count(record.elements - shown)} more</p>` : null}`
}

const operationTopic = Keccak.hashText(
  "UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)"
)

const wordAt = (data: string, at: number): bigint => {
  const word = data.slice(2 + 64 * at, 66 + 64 * at)
  return word.length === 64 ? BigInt(`0x${word}`) : 0n
}

const fees = (record: RequestRecord, { body }: Final): Html => {
  const { chainId, signer } = record.lane
  const { effectiveGasPrice = "0", gasUsed = 0, logs = [], txHashes = [] } = body
  const own = new Set(record.ops.flatMap(({ userOpHash }) => userOpHash ?? []))
  const costs = logs.flatMap(({ data, topics: [topic, opHash = "", , paymaster = ""] }) =>
    topic === operationTopic && [...own].some((each) => each === opHash)
      ? [{ cost: wordAt(data, 2), isSponsored: BigInt(paymaster) !== 0n }]
      : []
  )
  const sum = (isSponsored: boolean) =>
    costs.reduce((total, each) => (each.isSponsored === isSponsored ? total + each.cost : total), 0n)
  const price = /^[0-9]+$/.test(effectiveGasPrice) ? BigInt(effectiveGasPrice) : 0n
  if (txHashes.length === 0) return html`<p class="in dim">Nothing was sent, and it costs nothing.</p>`
  return Page.rows([
    ["Transactions", txHashes.slice(0, 10).map((each) => html`${Page.transaction(each, chainId)} `)],
    ["Gas used", `${Page.count(gasUsed)} at ${Page.gwei(price)}`],
    ["Submitting EOA", Page.address(signer, chainId)],
    ["Cost of the transactions", Page.coins(BigInt(gasUsed) * price, chainId)],
    ["Paid by the wallets", Page.coins(sum(false), chainId)],
    ["Sponsored", sum(true) === 0n ? "nothing" : Page.coins(sum(true), chainId)]
  ])
}

const policies = ({ policies: bound = [] }: RequestRecord): Part =>
  bound.length === 0
    ? null
    : Page.box(
        "Spending rules",
        Page.table(
          "Spending rules",
          ["Subject", "Layer", { name: "Version", isRight: true }],
          bound.map(({ layer, subject, version }) => [
            html`<a href="${Page.path}/rules#spending-rules">${Page.code(subject)}</a>`,
            layer,
            version.toString()
          ]),
          ""
        ),
        html`<small>that bound it at its acceptance</small>`
      )

const folded = (title: string, value: unknown): Html =>
  html`<div class="box noprint">${Page.folded(title, value, "the HTTP interface has it")}</div>`

const stays = "Operations that were signed before continue to their end."

const fieldsOf = ({ formToken }: View, requestId: string) => ({ formToken, request: requestId })

/** Actions on a held request. */
export const decide = (view: View, requestId: string): Part => {
  const fields = fieldsOf(view, requestId)
  return [
    Page.act({
      id: `release-${requestId}`,
      button: "Release…",
      question: "Release this request?",
      effects: [
        "Its open operations are executed, even if a transaction that the database lacks has executed them before."
      ],
      stays: "Look first for its calls in the block explorer: a payment may have been made.",
      action: "/release",
      fields,
      confirm: "Release",
      isStop: false
    }),
    Page.act({
      id: `drop-${requestId}`,
      button: "Drop…",
      question: "Drop this request?",
      effects: ["Its open operations are never executed; its answer says request_dropped."],
      stays,
      action: "/drop",
      fields,
      confirm: "Drop",
      isStop: true
    })
  ]
}

const acts = (view: View, { cancelled, endpoint, held, outcome, requestId }: RequestRecord): Part => {
  if (outcome !== null) return null
  if (held != null) return decide(view, requestId)
  if (cancelled !== null || !CancelRequest.isCancellable(endpoint)) return null
  return Page.act({
    id: "cancel",
    button: "Cancel…",
    question: "Cancel this request?",
    effects: ["Unsigned work is never executed; its answer says request_cancelled."],
    stays,
    action: "/cancel",
    fields: fieldsOf(view, requestId),
    confirm: "Cancel the request",
    isStop: true
  })
}

const crumb = (requestId: string): Html =>
  html`<a href="${Page.path}/requests">Requests</a> › ${Page.hash(requestId, "request id")}`

const refused = ({ accountId, answer, at, chainId, code, endpoint, message, requestId }: Refusal): Html =>
  html`${Page.head(
    html`Refused before acceptance ${Page.status("bad", "Refused")}`,
    html`${chainId === null ? "" : `${Chains.of(chainId).name} · `}account <b>${accountId}</b> · ${Page.code(endpoint)} · ${exact(at)} UTC`,
    null,
    crumb(requestId)
  )}
${Page.box("Why", html`<p class="in">${message} <small>${Page.code(code)}</small></p><p class="in dim">Nothing was signed or sent. A repeat of the request runs anew.</p>`)}
${answer === null ? null : folded("Answer as JSON", JSON.parse(answer) as unknown)}`

const missing: Missing = {
  message: "There is no such request, or it is not kept any more.",
  status: 404
}

const mostEvents = 1_000

export const request = (data: Data, view: View, requestId: string): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const record = yield* Effect.mapError(data.requests.request(requestId), unreadable)
    if (record === null) {
      const refusal = yield* data.refusal(requestId)
      return refusal === null ? yield* Effect.fail(missing) : refused(refusal)
    }
    const { accountId, endpoint, lane, metadata } = record
    const { chainId } = lane
    const events = yield* Effect.mapError(data.requests.events(requestId, 0, mostEvents), unreadable)
    const calls = yield* Calls.of(data, chainId, record, Calls.mostShown, (text) =>
      Page.hash(text, "address", chainId, text.length === 42 ? "address" : null)
    )
    const final: Final | null =
      record.outcome === null
        ? null
        : yield* Effect.map(Answer.toHttpResponse(record.outcome, requestId), ({ answer, httpStatus }) => ({
            httpStatus,
            json: answer,
            body: Option.getOrElse(decodeAnswerBody(answer), () => ({}))
          }))
    const state = final !== null ? ("final" as const) : record.held == null ? "pending" : "held"
    const status = statusOf(
      { acceptedAt: record.acceptedAt, state, result: final === null ? null : resultOf(final) },
      view.now
    )
    const delay = final === null ? data.delayOf(record) : null
    const [call] = calls
    const more = record.elements - 1
    const ended = events.findLast(({ kind }) => ["final", "cancelled", "expired"].includes(kind))?.at
    const took = ((ended ?? view.now) - record.acceptedAt) / 1_000
    const names = new Map(
      record.ops.map(({ index, space: { wallet } }) => [wallet as string, calls[index]?.salt ?? wallet])
    )
    const hash = record.txHashes.at(-1)
    const { explorer, name: chain } = Chains.of(chainId)
    const entries = Object.entries(metadata).map(([key, value]) => html` · ${key} <b>${value}</b>`)
    const meta = html`${chain} · account <b>${accountId}</b> · ${Page.code(endpoint)}${entries}`
    return html`<div class="paper"><h2>Receipt</h2><p>Account ${accountId} · ${chain} (${chainId})</p><p>Request ${requestId} · accepted ${exact(record.acceptedAt)}, printed ${new Date(view.now).toISOString().slice(0, 19).replace("T", " ")} UTC</p></div>
${Page.head(
  html`${call?.text ?? `Request ${requestId.slice(0, 8)}…`}${more > 0 ? `, and ${Page.count(more)} more` : ""} ${status}`,
  meta,
  html`<button type="button" data-print hidden>Print receipt</button>${explorer === null || hash === undefined ? null : html`<a class="btn" href="${explorer}/tx/${hash}" rel="noreferrer">${Page.icon("ext")}Explorer</a>`}${acts(view, record)}`,
  crumb(requestId)
)}
${delay === null ? null : html`<p class="t-part">${Page.icon("late")} Delayed: ${delay}.</p>`}
${record.held == null ? null : Page.problem(html`Held: ${record.held}. It waits for Release or Drop.`)}
${Page.box(
  "Timeline",
  timeline(events, chainId),
  html`<small>${took < 1 ? `${Math.max(0, Math.round(took * 1_000))} ms` : Page.age(took)} ${ended === undefined ? "since acceptance" : "from acceptance to the end"}, ${new Date(record.acceptedAt).toISOString().slice(0, 10)}, UTC</small>`,
  true
)}
${Page.box(
  "Operations",
  operations(record, calls, final),
  html`<small>${Page.count(record.elements)}, on ${Page.laneLink(chainId, lane.signer, "lane ")}</small>`,
  true
)}
${policies(record)}
${
  final === null
    ? yield* BalanceChanges.expected(data, chainId, record, names)
    : html`<div class="two">${Page.box("What moved", yield* BalanceChanges.table(data, chainId, (final.body.logs ?? []).flatMap(Token.transfersIn), names), html`<small>as the tokens' logs say</small>`)}
${Page.box("Fees", fees(record, final))}</div>
${folded(`Answer as JSON, HTTP ${final.httpStatus}`, final.json)}`
}
${events.length === 0 ? null : folded("Events as JSON", events)}
${hash === undefined || explorer === null ? null : html`<p class="paper">The transaction can be verified at ${explorer}/tx/${hash}.</p>`}`
  })
