import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { type EventKind, kinds } from "../../../application/ports/journal/Events.js"
import {
  type Webhook,
  type WebhookSender,
  Webhooks,
  type WebhooksError
} from "../../../application/ports/Webhooks.js"
import * as Endpoints from "../../../application/webhooks/Endpoints.js"
import * as Wiring from "../../Wiring.js"
import * as Command from "../support/Command.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

/** The configuration's database, and what use cases of webhooks do there. */
const open = Effect.gen(function* () {
  const operator = yield* OperatorContext.open
  const context = yield* Layer.build(Wiring.webhooks(operator.config))
  const within = <A>(
    use: Effect.Effect<A, Endpoints.EndpointError | WebhooksError, Webhooks | WebhookSender>
  ) =>
    Effect.mapError(Effect.provide(use, context), (error) => {
      if (error.reason === "url") return `URL: ${error.message}`
      return error.reason === "unknown"
        ? `${error.message}; "castellan webhooks list" tells which there are`
        : error.message
    })
  return { operator, within, store: Context.get(context, Webhooks) }
})

const anyone: Endpoints.Actor = { accountId: null, by: "operator" }

const shown = (webhook: Webhook) => ({
  webhookId: webhook.webhookId,
  account: webhook.accountId,
  origin: Endpoints.originOf(webhook) ?? "sealed under another key",
  kinds: webhook.kinds,
  state: webhook.state,
  waiting: webhook.waiting,
  dead: webhook.dead,
  createdAt: Table.time(webhook.createdAt)
})

const webhook = Command.operand("WEBHOOK", "the id that webhooks list shows")

const kindsOf = (texts: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<EventKind>, string> =>
  Effect.forEach(texts, (text) => {
    const kind = kinds.find((known) => known === text)
    return kind === undefined
      ? Effect.fail(`--kind: expected one of ${kinds.join(", ")}`)
      : Effect.succeed(kind)
  })

const add = Command.make({
  name: "add",
  about: "A webhook of an account: tells its secret, once.",
  examples: ["acme https://example.com/castellan --kind final --kind reopened"],
  operands: {
    account: Command.operand("ACCOUNT", "the account whose requests it is told of"),
    url: Command.operand("URL", "where events are sent to")
  },
  flags: { kinds: Command.repeated("kind", "KIND", "events of this kind, once for each; all unless told") },
  run: function* ({ account, kinds, url }) {
    const { operator, within } = yield* open
    const { accountId } = yield* OperatorContext.accountOf(operator, account)
    const known = yield* kindsOf(kinds)
    const added = yield* within(Endpoints.add({ accountId, by: anyone.by }, url, known))
    const { webhookId } = added.webhook
    const secret = Redacted.value(added.secret)
    return {
      json: { webhookId, secret },
      text: `webhook ${webhookId}\nsecret  ${secret}\nThe secret is shown this once.`
    }
  }
})

const list = Command.make({
  name: "list",
  about: "Webhooks, with what is owed to them.",
  examples: ["--account acme --json"],
  flags: { account: Command.optional("account", "ID", "of this account") },
  run: function* ({ account }) {
    const { operator, store } = yield* open
    const accountId =
      account === undefined ? null : (yield* OperatorContext.accountOf(operator, account)).accountId
    return Command.listed((yield* store.list(accountId)).map(shown), "no webhook", {
      WEBHOOK: (row) => row.webhookId,
      ACCOUNT: (row) => row.account,
      ORIGIN: (row) => row.origin,
      STATE: (row) => row.state,
      WAITING: (row) => row.waiting,
      DEAD: (row) => row.dead
    })
  }
})

const show = Command.make({
  name: "show",
  about: "One webhook.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"],
  operands: { webhook },
  run: function* (given) {
    const { within } = yield* open
    const it = shown(yield* within(Endpoints.find(anyone, given.webhook)))
    return {
      json: it,
      text: Table.aligned([
        ["webhook", it.webhookId],
        ["account", it.account],
        ["origin", it.origin],
        ["kinds", it.kinds.length === 0 ? "all" : it.kinds.join(", ")],
        ["state", it.state],
        ["waiting", it.waiting],
        ["dead", it.dead],
        ["created", it.createdAt]
      ])
    }
  }
})

const changing = (
  name: string,
  about: string,
  done: string,
  change: (webhookId: string) => Effect.Effect<unknown, Endpoints.EndpointError | WebhooksError, Webhooks>
) =>
  Command.make({
    name,
    about,
    examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"],
    operands: { webhook },
    run: function* ({ webhook: webhookId }) {
      const { within } = yield* open
      yield* within(change(webhookId))
      return { json: { webhookId, state: done }, text: `webhook ${webhookId} is ${done}` }
    }
  })

const pause = changing(
  "pause",
  "Sends it nothing until it is resumed; what is owed to it waits.",
  "paused",
  (webhookId) => Endpoints.change(anyone, webhookId, { state: "paused" })
)
const resume = changing(
  "resume",
  "Goes on where it was paused, by you or by the service.",
  "enabled",
  (webhookId) => Endpoints.change(anyone, webhookId, { state: "enabled" })
)
const remove = changing("remove", "Removes it, with all that is owed to it.", "removed", (webhookId) =>
  Endpoints.remove(anyone, webhookId)
)

const longest = Endpoints.longestOverlapHours

const rotate = Command.make({
  name: "rotate",
  about: "A new secret, told once; for a while messages are signed with the one before it too.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --overlap 24"],
  operands: { webhook },
  flags: {
    overlap: Command.optional(
      "overlap",
      "HOURS",
      "how long the one before it counts, 24 unless told; 0 to 720; with 0 no earlier one counts either"
    )
  },
  run: function* ({ overlap = String(Endpoints.usualOverlapHours), webhook: webhookId }) {
    const { within } = yield* open
    if (!/^[0-9]{1,3}$/.test(overlap) || Number(overlap) > longest)
      return yield* Effect.fail(`--overlap: expected 0 to ${longest} hours`)
    const { oldUntil, secret } = yield* within(Endpoints.rotate(anyone, webhookId, Number(overlap)))
    const [text, until] = [Redacted.value(secret), Table.time(oldUntil)]
    return {
      json: { webhookId, secret: text, oldUntil: until },
      text: `secret  ${text}\nThe secret is shown this once. The one before it counts until ${until}.`
    }
  }
})

const dead = Command.make({
  name: "dead",
  about: "Events that were given up after three days.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --json"],
  operands: { webhook },
  run: function* (given) {
    const { within } = yield* open
    const found = yield* within(Endpoints.dead(anyone, given.webhook, 1_000))
    const rows = found.map(({ attempts, event, lastError, ...of }) => ({
      ...("watchId" in of ? { watchId: of.watchId } : { requestId: of.requestId }),
      sequence: event.sequence,
      kind: event.kind,
      attempts,
      lastError
    }))
    return Command.listed(rows, "none was given up", {
      "REQUEST OR WATCH": (row) => ("watchId" in row ? row.watchId : row.requestId),
      EVENT: (row) => row.sequence,
      KIND: (row) => row.kind,
      ATTEMPTS: (row) => row.attempts,
      LAST: (row) => row.lastError ?? ""
    })
  }
})

const redeliver = Command.make({
  name: "redeliver",
  about: "Sends once more what was given up, of one request or of all.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --request 7d1f9c52-8f53-44e6-9b43-1d0d6d1b4c11"],
  operands: { webhook },
  flags: { request: Command.optional("request", "ID", "of this request alone") },
  run: function* ({ request = null, webhook: webhookId }) {
    const { within } = yield* open
    const owed = yield* within(Endpoints.redeliver(anyone, webhookId, request))
    return { json: { owed }, text: `${owed} events are sent once more` }
  }
})

const history = Command.make({
  name: "history",
  about: "Who changed webhooks and their watches, and how, the newest first; also those that were removed.",
  examples: ["", "--webhook 5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --json"],
  flags: { webhook: Command.optional("webhook", "WEBHOOK", "of this one alone") },
  run: function* ({ webhook: webhookId = null }) {
    const { store } = yield* open
    const found = yield* store.changes(webhookId, 1_000)
    const rows = found.map((each) => ({ ...each, at: Table.time(each.at) }))
    return Command.listed(rows, "no webhook was changed", {
      TIME: ({ at }) => at,
      WEBHOOK: ({ webhookId }) => webhookId,
      WATCH: ({ watchId }) => watchId ?? "",
      ACCOUNT: ({ accountId }) => accountId,
      CHANGE: ({ what }) => what,
      BY: ({ by }) => by
    })
  }
})

export const commands = [add, list, show, pause, resume, rotate, remove, dead, redeliver, history] as const

export const notes = [
  "Takes effect within seconds, on all replicas, without a restart. A secret is shown when it is made, and never again.",
  "Of a URL its origin alone is shown: keys sit in paths."
]
