import * as Effect from "effect/Effect"
import * as Figures from "../../../application/operate/Figures.js"
import * as Endpoints from "../../../application/webhooks/Endpoints.js"
import type { Data, Missing, View } from "../Data.js"
import { type Html, html } from "../Html.js"
import * as Page from "../Page.js"

/** Most undeliverable events, and most changes, shown. */
const most = 100

const marked = (count: number) => (count === 0 ? 0 : html`<span class="t-bad">${count}</span>`)

const states = {
  enabled: Page.status("ok", "Active"),
  paused: Page.status("pause", "Paused"),
  failing: Page.status("bad", "Failing")
}

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
    return html`${Page.head("Webhooks")}
${Page.box(
  "Deliveries",
  Page.facts([
    ["Oldest undelivered event", oldest === null ? "none" : Page.ago(oldest, now)],
    ["Delivered since this process started", Page.count(count("delivered"))],
    ["Failed attempts", Page.count(count("failed"))],
    ["Undeliverable events", marked(count("dead"))]
  ]),
  null,
  true
)}
${Page.box(
  "Endpoints",
  Page.table(
    "Endpoints",
    ["Webhook", "Account", "Origin", "Kinds", "State", "Waiting", "Undeliverable"],
    all.map((webhook) => [
      Page.hash(webhook.webhookId, "webhook id"),
      webhook.accountId,
      Endpoints.originOf(webhook) ?? "sealed under another key",
      webhook.kinds.length === 0 ? "all" : webhook.kinds.join(", "),
      states[webhook.state],
      webhook.waiting,
      marked(webhook.dead)
    ]),
    "No account has a webhook."
  )
)}
${Page.box(
  "Undeliverable events",
  Page.table(
    "Undeliverable events",
    ["Webhook", "Request or watch", "Event", "Kind", "Attempts", "Last answer"],
    given
      .flat()
      .slice(0, most)
      .map((each) => [
        Page.hash(each.webhookId, "webhook id"),
        "watchId" in each ? Page.hash(each.watchId, "watch id") : Page.requestLink(each.requestId),
        each.event.sequence,
        each.event.kind,
        each.attempts,
        each.lastError ?? ""
      ]),
    "None."
  )
)}
${Page.box(
  "Changes",
  Page.table(
    "Changes, the newest first",
    ["When", "Webhook", "Watch", "Account", "Change", "By"],
    changes.map(({ accountId, at, by, watchId, webhookId, what }) => [
      Page.ago(at, now),
      Page.hash(webhookId, "webhook id"),
      watchId === null ? "–" : Page.hash(watchId, "watch id"),
      accountId,
      what,
      by
    ]),
    "None."
  )
)}`
  }).pipe(Effect.mapError(({ message }) => ({ message: `webhooks cannot be read: ${message}` })))
