import * as Effect from "effect/Effect"
import type { OpRecord } from "../../../application/ports/journal/Requests.js"
import type { Entry } from "../../../application/ports/RequestHistory.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import { type Data, type Missing, placeOf, type View } from "./Data.js"
import { type Html, html } from "./Html.js"
import { code, facts, table, time } from "./Page.js"

const perPage = 50

const states = ["pending", "held", "final", "forgotten"] as const

const stateOf = (text: string | null): Entry["state"] | undefined => states.find((state) => state === text)

const unreadable = ({ message }: { readonly message: string }): Missing => ({
  message: `the journal cannot be read: ${message}`
})

const row = (entry: Entry) => [
  time(entry.acceptedAt),
  html`<a href="/console/requests/${entry.requestId}">${code(entry.requestId)}</a>`,
  entry.accountId,
  code(entry.endpoint),
  entry.chainId.toString(),
  html`<span class="${entry.state === "pending" || entry.state === "held" ? "wrong" : "ok"}">${entry.state}</span>`
]

const filters = (account: string, state: string | undefined): Html =>
  html`<form class="inline" method="get" action="/console/requests">
<div><label for="account">Account</label><input id="account" name="account" value="${account}" maxlength="100"></div>
<div><label for="state">State</label><select id="state" name="state"><option value="">any</option>${states.map(
    (each) => html`<option${each === state ? html` selected` : null}>${each}</option>`
  )}</select></div>
<button class="second">Show</button>
</form>`

export const requests = (data: Data, view: View): Effect.Effect<Html, Missing> => {
  const { query } = view
  // PostgreSQL rejects text with this character, and no id contains it.
  const account = (query.get("account") ?? "").replaceAll("\0", "")
  const state = stateOf(query.get("state"))
  return Effect.map(
    Effect.mapError(
      data.history.find({
        ...(account !== "" && { accountId: account as AccountId }),
        ...(state !== undefined && { state }),
        ...placeOf(view),
        limit: perPage
      }),
      unreadable
    ),
    (entries) => {
      const last = entries.length < perPage ? undefined : entries.at(-1)
      const next = new URLSearchParams({ account, state: state ?? "", before: String(last?.number ?? "") })
      return html`${filters(account, state)}
${table(
  "Accepted requests, the newest first",
  ["Accepted (UTC)", "Request", "Account", "Endpoint", "Chain", "State"],
  entries.map(row),
  "No request fits."
)}
${last === undefined ? null : html`<p><a href="/console/requests?${next.toString()}">Older requests</a></p>`}`
    }
  )
}

const outcomeOf = ({ state, success }: OpRecord): string =>
  state === "settled" ? (success === true ? "settled, succeeded" : "settled, reverted") : state

/** Pretty-prints JSON. */
const pretty = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

export const request = (data: Data, _view: View, requestId: string): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const record = yield* Effect.mapError(data.requests.request(requestId), unreadable)
    if (record === null)
      return yield* Effect.fail<Missing>({
        message: "there is no such request, or it is no longer kept",
        status: 404
      })
    return html`<p>${code(record.requestId)}</p>
${facts([
  ["Account", record.accountId],
  ["Endpoint", code(record.endpoint)],
  [
    "Lane",
    html`<a href="/console/lanes/${record.lane.chainId}/${record.lane.signer}">${record.lane.chainId} ${code(record.lane.signer)}</a>`
  ],
  ["Accepted (UTC)", time(record.acceptedAt)],
  ["State", record.outcome !== null ? "final" : record.held == null ? "pending" : "held"],
  ...(record.held == null
    ? []
    : [
        ["Held", record.held] as const,
        [
          "To decide",
          html`${code(`castellan requests release ${record.requestId}`)} or ${code(`castellan requests drop ${record.requestId}`)}`
        ] as const
      ]),
  ...(record.cancelled === null ? [] : [["Cancelled", record.cancelled] as const])
])}
${table(
  "Operations",
  ["Element", "Wallet", "Nonce", "State", "Op hash", "Transaction", "Revert data"],
  record.ops.map((op) => [
    op.index,
    code(op.space.wallet),
    code(`${op.nonceKey}:${op.sequence}`),
    outcomeOf(op),
    code(op.userOpHash ?? "-"),
    code(op.txHash ?? "-"),
    op.revertData === null ? "-" : code(op.revertData)
  ]),
  "It has none."
)}
${table(
  "Elements that will not be done",
  ["Element", "Code", "Why"],
  record.failed.map((failure) => [failure.index, code(failure.code), failure.message]),
  "None."
)}
${
  record.outcome === null
    ? null
    : html`<section><h2>Answer</h2><pre tabindex="0">${pretty(record.outcome)}</pre></section>`
}`
  })
