import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as AddWatch from "../../../application/endpoints/subscriptions/AddWatch.js"
import * as WatchEndpoints from "../../../application/endpoints/subscriptions/Watch.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import { type Watch, Watches, type WatchesError } from "../../../application/ports/Watches.js"
import * as Changes from "../../../application/watches/Changes.js"
import * as Wiring from "../../Wiring.js"
import {
  decode,
  help,
  json,
  optional,
  refusalOf,
  report,
  required,
  text,
  whole
} from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"
import { commands as common, operator } from "./Subscriptions.js"

const page = 1_000

const all = (
  accountId: AccountId | null,
  after = 0
): Effect.Effect<ReadonlyArray<Watch>, WatchesError, Watches> =>
  Effect.gen(function* () {
    const found = yield* (yield* Watches).list(accountId, { after, limit: page })
    const last = found.at(-1)
    return last === undefined || found.length < page
      ? found
      : [...found, ...(yield* all(accountId, last.number))]
  })

const { list, pause, remove, resume, show } = common({
  name: "watch",
  example: "0f5c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77",
  about: {
    list: "Lists watches with their next block and their undelivered events.",
    show: "Shows one watch.",
    pause: "Pauses a watch; the service delivers the events that it has read.",
    resume: "Resumes a watch at the same position.",
    remove: "Removes it together with its undelivered events."
  },
  all,
  find: (id) => Changes.find(operator, id),
  setState: (id, state) => Changes.setState(operator, id, state),
  remove: (id) => Changes.remove(operator, id),
  shown: (watch: Watch) => {
    const { chainId, origin, watchId, webhookId, ...told } = WatchEndpoints.shown(watch)
    return {
      watchId,
      account: watch.accountId,
      webhookId,
      chainId,
      node: origin ?? "the operator's",
      ...told,
      problem: watch.problem,
      createdAt: Table.time(watch.createdAt)
    }
  },
  columns: {
    WATCH: (row) => row.watchId,
    ACCOUNT: (row) => row.account,
    CHAIN: (row) => row.chainId,
    STATE: (row) => row.state,
    "NEXT BLOCK": (row) => row.nextBlock,
    TOLD: (row) => row.told,
    WAITING: (row) => row.waiting,
    DEAD: (row) => row.dead
  },
  card: (row) => ({
    watch: row.watchId,
    account: row.account,
    webhook: row.webhookId,
    chain: row.chainId,
    node: row.node,
    event: row.events,
    contracts: row.contracts.length === 0 ? "all" : row.contracts.join(", "),
    fields: JSON.stringify(row.fields),
    confirmations: row.confirmations,
    "from block": row.fromBlock,
    "next block": row.nextBlock,
    state: row.state,
    told: row.told,
    waiting: row.waiting,
    dead: row.dead,
    problem: row.problem ?? "none",
    created: row.createdAt
  })
})

const requestOf = (fields: Readonly<Record<string, unknown>>): Effect.Effect<AddWatch.Request, string> => {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return decode(Object.fromEntries(given), AddWatch.Request)
}

const add = Command.make("add", {
  account: Argument.String("ACCOUNT").pipe(Argument.withDescription("the account whose webhook it is")),
  webhook: required("webhook", "ID", "the webhook that receives the events"),
  event: required("event", "DEFINITION", "the event, as Solidity declares it"),
  contracts: text("contract", "ADDRESS", "only of this contract (repeatable); default: every contract").pipe(
    Flag.atLeast(0)
  ),
  fields: optional("fields", "JSON", "values of the event's fields, as in /filterEvent"),
  chain: optional("chain", "ID", "the operator's node of this chain"),
  rpc: optional("rpc", "URL", "the account's own node"),
  from: optional("from", "BLOCK", "the first block; default: the next block"),
  confirmations: optional("confirmations", "N", "blocks, the event's own included; default: 1"),
  json
}).pipe(
  help(
    "Delivers events of contracts to a webhook.",
    'acme --webhook 5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --chain 8453 --event "event Transfer(address indexed from, address indexed to, uint256 value)" --contract 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
  ),
  report(function* ({ fields, ...given }) {
    const { config, ports, ...context } = yield* OperatorContext.open
    const account = yield* OperatorContext.accountOf(context, given.account)
    const request = yield* requestOf({
      webhookId: given.webhook,
      eventDef: given.event,
      contracts: given.contracts,
      fields:
        fields === undefined
          ? undefined
          : yield* Effect.try({
              try: (): unknown => JSON.parse(fields),
              catch: () => "--fields: expected JSON"
            }),
      chainId: yield* whole("chain", given.chain, "a number"),
      rpc: given.rpc,
      fromBlock: given.from,
      confirmations: yield* whole("confirmations", given.confirmations, "a number")
    })
    const principal = OperatorContext.principalOf(account, null)
    const { watchId } = yield* AddWatch.run({ principal, requestId: operator.by }, request).pipe(
      Effect.mapError(refusalOf),
      Effect.catchDefect(() => Effect.fail("the database cannot be used")),
      Effect.provide(Wiring.callers(config)),
      Effect.provide(ports)
    )
    return { json: { watchId }, text: `watch ${watchId}` }
  })
)

export const commands = [add, list, show, pause, resume, remove]

export const notes = [
  "Changes take effect within seconds, on all replicas, without a restart. The commands show only a URL's origin, because its path may contain a key.",
  "The removal of a webhook removes its watches."
]
