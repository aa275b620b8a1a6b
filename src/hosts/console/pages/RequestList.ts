import * as Effect from "effect/Effect"
import type { Entry, Result as Outcome } from "../../../application/ports/operator/RequestHistory.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import * as Calls from "../Calls.js"
import * as Chains from "../Chains.js"
import { type Data, type Failure, type Missing, placeOf, type View } from "../Data.js"
import { type Html, html, type Part } from "../Html.js"
import * as Page from "../Page.js"
import { unreadable } from "./Lanes.js"

const perPage = 50

const filters = [
  ["", "All"],
  ["pending", "Waiting"],
  ["held", "Held"],
  ["final", "Ended"],
  ["failed", "Failed lately"]
] as const

const outcomes = {
  succeeded: ["ok", "Succeeded"],
  partly: ["part", "Partly failed"],
  failed: ["bad", "Failed"],
  cancelled: ["pause", "Cancelled"],
  expired: ["bad", "Expired"]
} as const satisfies Readonly<Record<Outcome, readonly [Page.Tone, string]>>

/** A request that waits longer than this is late, milliseconds. */
const late = 60_000

export const statusOf = (
  { acceptedAt, result, state }: Pick<Entry, "acceptedAt" | "result" | "state">,
  now: number
): Html => {
  if (result !== null) {
    const [tone, word] = outcomes[result]
    return Page.status(tone, word)
  }
  if (state === "held") return Page.status("late", "Held")
  if (state === "pending") return Page.status(now - acceptedAt > late ? "late" : "wait", "Waiting")
  return Page.status("wait", state === "final" ? "Ended" : "Forgotten")
}

/** The list says of larger requests how large they are: their bodies have megabytes. */
const mostElements = 32

export const listed = (
  data: Data,
  { now }: View,
  entries: ReadonlyArray<Entry>,
  caption: string,
  none: string
): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const bodies = new Map(
      (yield* Effect.mapError(
        data.requests.bodies(
          entries.flatMap(({ elements, requestId }) => (elements > mostElements ? [] : [requestId]))
        ),
        unreadable
      )).map((body) => [body.requestId, body])
    )
    const rows = yield* Effect.forEach(
      entries,
      (entry) =>
        Effect.gen(function* () {
          const body = bodies.get(entry.requestId)
          const [call] = body === undefined ? [] : yield* Calls.of(data, entry.chainId, body, 1, Page.brief)
          const more = entry.elements - 1
          return [
            html`<a href="${Page.path}/requests/${entry.requestId}" title="${entry.requestId}">${call?.text ?? `Request ${entry.requestId.slice(0, 8)}…`}</a><small>${Page.code(entry.endpoint)}${more > 0 ? ` and ${more} more` : ""}</small>`,
            statusOf(entry, now),
            Chains.of(entry.chainId).name,
            Page.accountLink(entry.accountId),
            Page.ago(entry.acceptedAt, now)
          ] satisfies ReadonlyArray<Part>
        }),
      { concurrency: 8 }
    )
    return Page.table(caption, ["What", "Status", "Chain", "Account", "Accepted"], rows, none)
  })

/** Recent failures and refusals, each kind of an account once. */
export const failed = (failures: ReadonlyArray<Failure>, now: number): Html =>
  Page.table(
    "Recent failures",
    ["When", "Where", "Endpoint", "Why", { name: "Times", isRight: true }],
    failures.map(({ accountId, at, chainId, code, endpoint, message, requestId, times }) => [
      html`<a href="${Page.path}/requests/${requestId}">${Page.ago(at, now)}</a>`,
      `${chainId === null ? "" : `${Chains.of(chainId).name} · `}${accountId}`,
      Page.code(endpoint),
      html`${message}<small>${Page.code(code)}</small>`,
      times
    ]),
    "None."
  )

const choose = (data: Data, account: string, chain: string, state: string): Html => {
  const option = (value: string, name: string, chosen: string) =>
    html`<option value="${value}"${value === chosen ? html` selected` : null}>${name}</option>`
  return html`<form class="filters" method="get" action="${Page.path}/requests"><input type="hidden" name="state" value="${state}"><div><label for="f-c">Chain</label><select id="f-c" name="chain">${option("", "any", chain)}${data.profiles.map(
    ({ chainId }) => option(chainId.toString(), Chains.of(chainId).name, chain)
  )}</select></div><div><label for="f-a">Account</label><input id="f-a" name="account" value="${account}" maxlength="100" size="12"></div><button>Show</button></form>`
}

const states = ["pending", "held", "final"] as const

export const requests = (data: Data, view: View): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const { query } = view
    // PostgreSQL rejects text with this character, and no id contains it.
    const account = (query.get("account") ?? "").replaceAll("\0", "")
    const [chain = ""] = /^[1-9][0-9]{0,15}$/.exec(query.get("chain") ?? "") ?? []
    const given = query.get("state") ?? ""
    const [chosen] = filters.find(([state]) => state === given) ?? filters[0]
    const state = states.find((each) => each === chosen)
    const link = (fields: Readonly<Record<string, string>>) =>
      `${Page.path}/requests?${new URLSearchParams({ state: chosen, chain, account, ...fields }).toString()}`
    const question = {
      ...(account !== "" && { accountId: account as AccountId }),
      ...(chain !== "" && { chainId: BigInt(chain) }),
      limit: perPage
    }
    const find = (more: Partial<Parameters<Data["history"]["find"]>[0]>) =>
      Effect.mapError(data.history.find({ ...question, ...more }), unreadable)
    const isFirst = query.get("before") === null
    // Pending requests first, the oldest on top.
    const waiting =
      isFirst && chosen === "" ? yield* find({ state: "pending", isOldestFirst: true, limit: 20 }) : []
    const entries =
      chosen === "failed"
        ? []
        : yield* find({
            ...(state !== undefined && { state }),
            ...(state === "pending" && { isOldestFirst: true }),
            ...placeOf(view)
          })
    const rest = entries.filter(({ requestId }) => !waiting.some((each) => each.requestId === requestId))
    const last = entries.length < perPage ? undefined : entries.at(-1)
    const content =
      chosen === "failed"
        ? failed(
            (yield* data.failures).filter(
              (each) =>
                (account === "" || each.accountId === account) &&
                (chain === "" || each.chainId?.toString() === chain)
            ),
            view.now
          )
        : yield* listed(data, view, [...waiting, ...rest], "Accepted requests", "No request fits.")
    return html`${Page.head(
      "Requests",
      "Pending requests first, the oldest on top; then the newest.",
      choose(data, account, chain, chosen)
    )}
<nav class="chips" aria-label="By status">${filters.map(
      ([each, name]) =>
        html`<a href="${link({ state: each })}"${each === chosen ? html` aria-current="true"` : null}>${name}</a>`
    )}</nav>
${Page.box("List", content, null, isFirst)}
${last === undefined ? null : html`<p><a href="${link({ before: last.number.toString() })}">${state === "pending" ? "Newer requests" : "Older requests"}</a></p>`}`
  })

/** Requests that a text names, in whichever way. */
export const search = (data: Data, view: View): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const text = (view.query.get("q") ?? "").replaceAll("\0", "").trim().slice(0, 200)
    const found =
      text === ""
        ? []
        : yield* Effect.mapError(data.history.search(text, perPage, data.walletsOf(text)), unreadable)
    const refusal = text === "" ? null : yield* data.refusal(text)
    return html`${Page.head(
      "Search",
      text === ""
        ? "Type a request's id, a wallet's address, the hash of an operation or a transaction, a salt, or a value of the metadata."
        : html`Requests for ${Page.code(text)}, the newest first.`
    )}
${refusal === null ? null : Page.box("Refused before acceptance", failed([{ ...refusal, times: 1 }], view.now))}
${text === "" ? null : Page.box("Found", yield* listed(data, view, found, "Found requests", "No request fits. Salts and metadata are compared whole."))}`
  })
