import * as Effect from "effect/Effect"
import * as Endpoints from "../../../application/webhooks/Endpoints.js"
import type { Data, Missing, View } from "./Data.js"
import * as Figures from "./Figures.js"
import { type Html, html } from "./Html.js"
import { age, code, facts, table, time } from "./Page.js"

/** Most undeliverable events, and most changes, shown. */
const most = 100

const marked = (count: number) => (count === 0 ? 0 : html`<span class="wrong">${count}</span>`)

/** Endpoints of all accounts, with pending and undeliverable events and the changes to the endpoints. */
export const webhooks = (data: Data, { now }: View): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const all = yield* data.webhooks.list(null)
    const oldest = yield* data.webhooks.oldest
    const changes = yield* data.webhooks.changes(null, most)
    const given = yield* Effect.forEach(
      all.filter(({ dead }) => dead > 0),
      ({ webhookId }) =>
        Effect.map(data.webhooks.dead(webhookId, most), (events) =>
          events.map((event) => ({ ...event, webhookId }))
        )
    )
    const attempts = (yield* Figures.read).get("webhook_deliveries_total") ?? []
    const count = (outcome: string) =>
      attempts.reduce((sum, { labels, value }) => (labels.outcome === outcome ? sum + value : sum), 0)
    return html`${facts([
      ["Oldest undelivered event", oldest === null ? "none" : age((now - oldest) / 1_000)],
      ["Delivered since this process started", count("delivered")],
      ["Failed attempts", count("failed")],
      ["Undeliverable events", marked(count("dead"))]
    ])}
${table(
  "Endpoints",
  ["Webhook", "Account", "Origin", "Kinds", "State", "Waiting", "Dead"],
  all.map((webhook) => [
    code(webhook.webhookId),
    code(webhook.accountId),
    Endpoints.originOf(webhook) ?? "sealed under another key",
    webhook.kinds.length === 0 ? "all" : webhook.kinds.join(", "),
    webhook.state === "failing" ? html`<span class="wrong">failing</span>` : webhook.state,
    webhook.waiting,
    marked(webhook.dead)
  ]),
  "No account has a webhook."
)}
${table(
  "Undeliverable events",
  ["Webhook", "Request or watch", "Event", "Kind", "Attempts", "Last"],
  given
    .flat()
    .slice(0, most)
    .map((each) => [
      code(each.webhookId),
      "watchId" in each
        ? code(each.watchId)
        : html`<a href="/console/requests/${each.requestId}">${code(each.requestId)}</a>`,
      each.event.sequence,
      each.event.kind,
      each.attempts,
      each.lastError ?? ""
    ]),
  "None."
)}
${table(
  "Changes, the newest first",
  ["Time (UTC)", "Webhook", "Watch", "Account", "Change", "By"],
  changes.map(({ accountId, at, by, watchId, webhookId, what }) => [
    time(at),
    code(webhookId),
    watchId === null ? "" : code(watchId),
    code(accountId),
    what,
    by
  ]),
  "None."
)}`
  }).pipe(Effect.mapError(({ message }) => ({ message: `webhooks cannot be read: ${message}` })))
