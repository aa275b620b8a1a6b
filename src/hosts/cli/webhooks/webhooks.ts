import * as Context from "effect/Context"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { type EventKind, kinds } from "../../../application/ports/journal/Events.js"
import { type Webhook, Webhooks } from "../../../application/ports/Webhooks.js"
import * as Endpoints from "../../../application/webhooks/Endpoints.js"
import { help, json, optional, report, text } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"
import { commands as common, open, operand, operator } from "./Subscriptions.js"

const webhook = operand("webhook")
const example = "5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"

const { list, pause, remove, resume, show } = common({
  name: "webhook",
  example,
  about: {
    list: "Lists webhooks with their undelivered events.",
    show: "Shows one webhook.",
    pause: "Stops deliveries until it is resumed; undelivered events wait.",
    resume: "Continues deliveries that you or the service paused.",
    remove: "Removes it together with its undelivered events."
  },
  all: (accountId) => Effect.flatMap(Webhooks, (store) => store.list(accountId)),
  find: (id) => Endpoints.find(operator, id),
  setState: (id, state) => Endpoints.change(operator, id, { state }),
  remove: (id) => Endpoints.remove(operator, id),
  shown: (webhook: Webhook) => ({
    webhookId: webhook.webhookId,
    account: webhook.accountId,
    origin: Endpoints.originOf(webhook) ?? "sealed under another key",
    kinds: webhook.kinds,
    state: webhook.state,
    waiting: webhook.waiting,
    dead: webhook.dead,
    createdAt: Table.time(webhook.createdAt)
  }),
  columns: {
    WEBHOOK: (row) => row.webhookId,
    ACCOUNT: (row) => row.account,
    ORIGIN: (row) => row.origin,
    STATE: (row) => row.state,
    WAITING: (row) => row.waiting,
    DEAD: (row) => row.dead
  },
  card: ({ account, createdAt, dead, kinds, origin, state, waiting, webhookId }) => ({
    webhook: webhookId,
    account,
    origin,
    kinds: kinds.length === 0 ? "all" : kinds.join(", "),
    state,
    waiting,
    dead,
    created: createdAt
  })
})

const kindsOf = (texts: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<EventKind>, string> =>
  Effect.forEach(texts, (text) => {
    const kind = kinds.find((known) => known === text)
    return kind === undefined
      ? Effect.fail(`--kind: expected one of ${kinds.join(", ")}`)
      : Effect.succeed(kind)
  })

const add = Command.make("add", {
  account: Argument.String("ACCOUNT").pipe(
    Argument.withDescription("the account whose requests' events it receives")
  ),
  url: Argument.String("URL").pipe(Argument.withDescription("where events are sent to")),
  kinds: text("kind", "KIND", "only events of this kind (repeatable); default: all kinds").pipe(
    Flag.atLeast(0)
  ),
  json
}).pipe(
  help(
    "Adds a webhook to an account and prints its secret once.",
    "acme https://example.com/castellan --kind final --kind reopened"
  ),
  report(function* ({ account, kinds, url }) {
    const context = yield* open
    const { accountId } = yield* OperatorContext.accountOf(context, account)
    const known = yield* kindsOf(kinds)
    const added = yield* context.within(Endpoints.add({ accountId, by: operator.by }, url, known))
    const { webhookId } = added.webhook
    const secret = Redacted.value(added.secret)
    return {
      json: { webhookId, secret },
      text: `webhook ${webhookId}\nsecret  ${secret}\nThe secret is shown this once.`
    }
  })
)

const longest = Endpoints.longestOverlapHours

const rotate = Command.make("rotate", {
  webhook,
  overlap: optional(
    "overlap",
    "HOURS",
    "hours, 0 to 720, for which the previous secret stays active, default 24; 0 also ends all earlier secrets"
  ),
  json
}).pipe(
  help(
    "Prints a new secret once. For a while messages carry a signature of the previous secret, too.",
    `${example} --overlap 24`
  ),
  report(function* ({ overlap = String(Endpoints.usualOverlapHours), webhook: webhookId }) {
    const { within } = yield* open
    if (!/^[0-9]{1,3}$/.test(overlap) || Number(overlap) > longest)
      return yield* Effect.fail(`--overlap: expected 0 to ${longest} hours`)
    const { oldUntil, secret } = yield* within(Endpoints.rotate(operator, webhookId, Number(overlap)))
    const [text, until] = [Redacted.value(secret), Table.time(oldUntil)]
    return {
      json: { webhookId, secret: text, oldUntil: until },
      text: `secret  ${text}\nThe secret is shown this once. The one before it counts until ${until}.`
    }
  })
)

const dead = Command.make("dead", { webhook, json }).pipe(
  help("Lists the events that the service gave up after three days.", `${example} --json`),
  report(function* (given) {
    const { within } = yield* open
    const found = yield* within(Endpoints.dead(operator, given.webhook, 1_000))
    const rows = found.map(({ attempts, event, lastError, ...of }) => ({
      ...("watchId" in of ? { watchId: of.watchId } : { requestId: of.requestId }),
      sequence: event.sequence,
      kind: event.kind,
      attempts,
      lastError
    }))
    return Table.list(rows, "there are no undeliverable events", {
      "REQUEST OR WATCH": (row) => ("watchId" in row ? row.watchId : row.requestId),
      EVENT: (row) => row.sequence,
      KIND: (row) => row.kind,
      ATTEMPTS: (row) => row.attempts,
      LAST: (row) => row.lastError ?? ""
    })
  })
)

const redeliver = Command.make("redeliver", {
  webhook,
  request: optional("request", "ID", "of this request alone"),
  json
}).pipe(
  help(
    "Sends undeliverable events again, of one request or of all.",
    `${example} --request 7d1f9c52-8f53-44e6-9b43-1d0d6d1b4c11`
  ),
  report(function* ({ request = null, webhook: webhookId }) {
    const { within } = yield* open
    const owed = yield* within(Endpoints.redeliver(operator, webhookId, request))
    return { json: { owed }, text: `${owed} events are sent once more` }
  })
)

const history = Command.make("history", {
  webhook: optional("webhook", "WEBHOOK", "only of this webhook"),
  json
}).pipe(
  help(
    "Lists changes of webhooks and their watches with their authors, newest first, removed ones included.",
    "",
    "--webhook 5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --json"
  ),
  report(function* ({ webhook: webhookId = null }) {
    const { ports } = yield* open
    const found = yield* Context.get(ports, Webhooks).changes(webhookId, 1_000)
    const rows = found.map((each) => ({ ...each, at: Table.time(each.at) }))
    return Table.list(rows, "no webhook was changed", {
      TIME: ({ at }) => at,
      WEBHOOK: ({ webhookId }) => webhookId,
      WATCH: ({ watchId }) => watchId ?? "",
      ACCOUNT: ({ accountId }) => accountId,
      CHANGE: ({ what }) => what,
      BY: ({ by }) => by
    })
  })
)

export const commands = [add, list, show, pause, resume, rotate, remove, dead, redeliver, history]

export const notes = [
  "Changes take effect within seconds, on all replicas, without a restart. A secret is shown once, when it is made.",
  "The commands show only a URL's origin, because its path may contain a key."
]
