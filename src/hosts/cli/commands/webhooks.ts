import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { type EventKind, kinds } from "../../../application/ports/journal/Events.js"
import {
  type Webhook,
  WebhookSender,
  Webhooks,
  type WebhooksError
} from "../../../application/ports/Webhooks.js"
import * as Wiring from "../../Wiring.js"
import * as Command from "../support/Command.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

const messageOf = ({ message }: WebhooksError): string => message

const open = Effect.gen(function* () {
  const operator = yield* OperatorContext.open
  const context = yield* Effect.mapError(
    Layer.build(Wiring.webhooks(operator.config)),
    ({ message }) => message
  )
  return { operator, store: Context.get(context, Webhooks), sender: Context.get(context, WebhookSender) }
})

/** Keys sit in paths: no more than where it leads. */
const originOf = ({ url }: Webhook): string =>
  url === null ? "sealed under another key" : new URL(Redacted.value(url)).origin

const shown = (webhook: Webhook) => ({
  webhookId: webhook.webhookId,
  account: webhook.accountId,
  origin: originOf(webhook),
  kinds: webhook.kinds,
  state: webhook.state,
  waiting: webhook.waiting,
  dead: webhook.dead,
  createdAt: Table.time(webhook.createdAt)
})

const unknown = (webhookId: string): string =>
  `there is no webhook ${webhookId}; "castellan webhooks list" tells which there are`

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
  run: (given) =>
    Effect.gen(function* () {
      const { operator, sender, store } = yield* open
      const { accountId } = yield* OperatorContext.accountOf(operator, given.account)
      const refusal = sender.refusal(accountId, given.url)
      if (refusal !== null) return yield* Effect.fail(`URL: ${refusal}`)
      const made = yield* Effect.mapError(
        store.add(accountId, Redacted.make(given.url), yield* kindsOf(given.kinds)),
        messageOf
      )
      const secret = Redacted.value(made.secret)
      return {
        json: { webhookId: made.webhookId, secret },
        text: `webhook ${made.webhookId}\nsecret  ${secret}\nThe secret is shown this once.`
      }
    })
})

const list = Command.make({
  name: "list",
  about: "Webhooks, with what is owed to them.",
  examples: ["--account acme --json"],
  flags: { account: Command.optional("account", "ID", "of this account") },
  run: ({ account }) =>
    Effect.gen(function* () {
      const { operator, store } = yield* open
      const accountId =
        account === undefined ? null : (yield* OperatorContext.accountOf(operator, account)).accountId
      const rows = (yield* Effect.mapError(store.list(accountId), messageOf)).map(shown)
      return {
        json: rows,
        text:
          rows.length === 0
            ? "no webhook"
            : Table.aligned([
                ["WEBHOOK", "ACCOUNT", "ORIGIN", "STATE", "WAITING", "DEAD"],
                ...rows.map((row) => [
                  row.webhookId,
                  row.account,
                  row.origin,
                  row.state,
                  String(row.waiting),
                  String(row.dead)
                ])
              ])
      }
    })
})

const show = Command.make({
  name: "show",
  about: "One webhook.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"],
  operands: { webhook },
  run: (given) =>
    Effect.gen(function* () {
      const { store } = yield* open
      const all = yield* Effect.mapError(store.list(null), messageOf)
      const found = all.find(({ webhookId }) => webhookId === given.webhook)
      if (found === undefined) return yield* Effect.fail(unknown(given.webhook))
      const it = shown(found)
      return {
        json: it,
        text: Table.aligned([
          ["webhook", it.webhookId],
          ["account", it.account],
          ["origin", it.origin],
          ["kinds", it.kinds.length === 0 ? "all" : it.kinds.join(", ")],
          ["state", it.state],
          ["waiting", String(it.waiting)],
          ["dead", String(it.dead)],
          ["created", it.createdAt]
        ])
      }
    })
})

const changing = (
  name: string,
  about: string,
  change: (store: Webhooks["Type"], webhookId: string) => Effect.Effect<boolean, WebhooksError>,
  done: string
) =>
  Command.make({
    name,
    about,
    examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"],
    operands: { webhook },
    run: (given) =>
      Effect.gen(function* () {
        const { store } = yield* open
        if (!(yield* Effect.mapError(change(store, given.webhook), messageOf)))
          return yield* Effect.fail(unknown(given.webhook))
        return {
          json: { webhookId: given.webhook, state: done },
          text: `webhook ${given.webhook} is ${done}`
        }
      })
  })

const pause = changing(
  "pause",
  "Sends it nothing until it is resumed; what is owed to it waits.",
  (store, webhookId) => store.setState(webhookId, "paused"),
  "paused"
)
const resume = changing(
  "resume",
  "Goes on where it was paused, by you or by the service.",
  (store, webhookId) => store.setState(webhookId, "enabled"),
  "enabled"
)
const remove = changing(
  "remove",
  "Removes it, with all that is owed to it.",
  (store, webhookId) => store.remove(webhookId),
  "removed"
)

const rotate = Command.make({
  name: "rotate",
  about: "A new secret, told once; for a while messages are signed with both.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --overlap 24"],
  operands: { webhook },
  flags: {
    overlap: Command.optional("overlap", "HOURS", "how long the old one counts, 24 unless told; 0 to 720")
  },
  run: ({ overlap = "24", webhook: webhookId }) =>
    Effect.gen(function* () {
      if (!/^[0-9]{1,3}$/.test(overlap) || Number(overlap) > 720)
        return yield* Effect.fail("--overlap: expected 0 to 720 hours")
      const { store } = yield* open
      const until = (yield* Clock.currentTimeMillis) + Number(overlap) * 3_600_000
      const secret = yield* Effect.mapError(store.rotate(webhookId, until), messageOf)
      if (secret === null) return yield* Effect.fail(unknown(webhookId))
      const text = Redacted.value(secret)
      return {
        json: { webhookId, secret: text, oldUntil: Table.time(until) },
        text: `secret  ${text}\nThe secret is shown this once. The one before it counts until ${Table.time(until)}.`
      }
    })
})

const dead = Command.make({
  name: "dead",
  about: "Events that were given up after three days.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --json"],
  operands: { webhook },
  run: (given) =>
    Effect.gen(function* () {
      const { store } = yield* open
      const found = yield* Effect.mapError(store.dead(given.webhook, 1_000), messageOf)
      const rows = found.map(({ attempts, event, lastError, requestId }) => ({
        requestId,
        sequence: event.sequence,
        kind: event.kind,
        attempts,
        lastError
      }))
      return {
        json: rows,
        text:
          rows.length === 0
            ? "none was given up"
            : Table.aligned([
                ["REQUEST", "EVENT", "KIND", "ATTEMPTS", "LAST"],
                ...rows.map((row) => [
                  row.requestId,
                  String(row.sequence),
                  row.kind,
                  String(row.attempts),
                  row.lastError ?? ""
                ])
              ])
      }
    })
})

const redeliver = Command.make({
  name: "redeliver",
  about: "Sends once more what was given up, of one request or of all.",
  examples: ["5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --request 7d1f9c52-8f53-44e6-9b43-1d0d6d1b4c11"],
  operands: { webhook },
  flags: { request: Command.optional("request", "ID", "of this request alone") },
  run: (given) =>
    Effect.gen(function* () {
      const { store } = yield* open
      const count = yield* Effect.mapError(store.redeliver(given.webhook, given.request ?? null), messageOf)
      return { json: { owed: count }, text: `${count} events are sent once more` }
    })
})

export const commands = [add, list, show, pause, resume, rotate, remove, dead, redeliver] as const

export const notes = [
  "Takes effect within seconds, on all replicas, without a restart. A secret is shown when it is made, and never again.",
  "Of a URL its origin alone is shown: keys sit in paths."
]
