import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { AccountId } from "../../../application/ports/Tenants.js"
import { type Watch, Watches, WatchesError } from "../../../application/ports/Watches.js"
import type { Caller } from "../../../application/request/Caller.js"
import type { Failure } from "../../../application/request/Failure.js"
import { allScopes } from "../../../application/tenants/FileAccounts.js"
import * as AddWatch from "../../../application/usecases/watches/AddWatch.js"
import * as WatchEndpoints from "../../../application/usecases/watches/Watch.js"
import * as Changes from "../../../application/watches/Changes.js"
import type { Actor } from "../../../application/webhooks/Endpoints.js"
import * as SchemaProblems from "../../config/SchemaProblems.js"
import * as Wiring from "../../Wiring.js"
import * as Command from "../support/Command.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

const anyone: Actor = { accountId: null, by: "operator" }

const open = Effect.gen(function* () {
  const operator = yield* OperatorContext.open
  const context = yield* Layer.build(Wiring.watches(operator.config))
  const within = <A>(use: Effect.Effect<A, WatchesError | Changes.UnknownWatch, Watches>) =>
    Effect.mapError(Effect.provide(use, context), (error) =>
      error instanceof WatchesError
        ? error.message
        : `${error.message}; "castellan watches list" tells which there are`
    )
  return { operator, context, within, store: Context.get(context, Watches) }
})

const shown = (watch: Watch) => {
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
}

const watch = Command.operand("WATCH", "the id that watches list shows")

const refusalOf = ({ details, message }: Failure): string =>
  details.length === 0
    ? message
    : details.map(({ message: why, path }) => (path === "" ? why : `${path}: ${why}`)).join("\n")

const json = (flag: string, text: string | undefined): Effect.Effect<unknown, string> =>
  text === undefined
    ? Effect.succeed(undefined)
    : Effect.try({ try: () => JSON.parse(text), catch: () => `--${flag}: expected JSON` })

const whole = (flag: string, text: string | undefined): Effect.Effect<number | undefined, string> =>
  text === undefined || /^[0-9]{1,15}$/.test(text)
    ? Effect.succeed(text === undefined ? undefined : Number(text))
    : Effect.fail(`--${flag}: expected a number`)

const decode = SchemaProblems.decoder(AddWatch.Request)

const requestOf = (fields: Readonly<Record<string, unknown>>): Effect.Effect<AddWatch.Request, string> => {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Effect.fromResult(
    Result.mapError(decode(Object.fromEntries(given)), (problems) =>
      SchemaProblems.lines(problems).join("\n")
    )
  )
}

const add = Command.make({
  name: "add",
  about: "Has a webhook told of events of contracts.",
  examples: [
    'acme --webhook 5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77 --chain 8453 --event "event Transfer(address indexed from, address indexed to, uint256 value)" --contract 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
  ],
  operands: { account: Command.operand("ACCOUNT", "the account whose webhook it is") },
  flags: {
    webhook: Command.required("webhook", "ID", "the webhook that is told"),
    event: Command.required("event", "DEFINITION", "the event, as Solidity declares it"),
    contracts: Command.repeated(
      "contract",
      "ADDRESS",
      "of this contract, once for each; every one unless told"
    ),
    fields: Command.optional("fields", "JSON", "values of the event's fields, as in /filterEvent"),
    chain: Command.optional("chain", "ID", "the operator's node of this chain"),
    rpc: Command.optional("rpc", "URL", "the account's own node"),
    from: Command.optional("from", "BLOCK", "the first block; the next one unless told"),
    confirmations: Command.optional("confirmations", "N", "blocks, the event's own counted; 1 unless told")
  },
  run: function* (given) {
    const { context, operator } = yield* open
    const account = yield* OperatorContext.accountOf(operator, given.account)
    const request = yield* requestOf({
      webhookId: given.webhook,
      eventDef: given.event,
      contracts: given.contracts,
      fields: yield* json("fields", given.fields),
      chainId: yield* whole("chain", given.chain),
      rpc: given.rpc,
      fromBlock: given.from,
      confirmations: yield* whole("confirmations", given.confirmations)
    })
    const caller: Caller = {
      principal: {
        accountId: account.accountId,
        name: account.name,
        tier: account.tier,
        scopes: new Set(allScopes),
        paused: false
      },
      requestId: anyone.by
    }
    const { watchId } = yield* AddWatch.run(caller, request).pipe(
      Effect.provide(context),
      Effect.mapError(refusalOf),
      Effect.catchDefect(() => Effect.fail("the database can not be used"))
    )
    return { json: { watchId }, text: `watch ${watchId}` }
  }
})

/** Watches that are read at once. */
const page = 1_000

const all = (
  store: Watches["Service"],
  accountId: AccountId | null,
  after = 0
): Effect.Effect<ReadonlyArray<Watch>, WatchesError> =>
  Effect.flatMap(store.list(accountId, { after, limit: page }), (found) => {
    const last = found.at(-1)
    return last === undefined || found.length < page
      ? Effect.succeed(found)
      : Effect.map(all(store, accountId, last.number), (rest) => [...found, ...rest])
  })

const list = Command.make({
  name: "list",
  about: "Watches, how far each has read, and what is owed of it.",
  examples: ["--account acme --json"],
  flags: { account: Command.optional("account", "ID", "of this account") },
  run: function* ({ account }) {
    const { operator, store } = yield* open
    const accountId =
      account === undefined ? null : (yield* OperatorContext.accountOf(operator, account)).accountId
    const rows = (yield* all(store, accountId)).map(shown)
    return Command.listed(rows, "no watch", {
      WATCH: (row) => row.watchId,
      ACCOUNT: (row) => row.account,
      CHAIN: (row) => row.chainId,
      STATE: (row) => row.state,
      "NEXT BLOCK": (row) => row.nextBlock,
      TOLD: (row) => row.told,
      WAITING: (row) => row.waiting,
      DEAD: (row) => row.dead
    })
  }
})

const show = Command.make({
  name: "show",
  about: "One watch.",
  examples: ["0f5c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"],
  operands: { watch },
  run: function* (given) {
    const { within } = yield* open
    const it = shown(yield* within(Changes.find(anyone, given.watch)))
    return {
      json: it,
      text: Table.aligned([
        ["watch", it.watchId],
        ["account", it.account],
        ["webhook", it.webhookId],
        ["chain", it.chainId],
        ["node", it.node],
        ...it.events.map((text) => ["event", text]),
        ["contracts", it.contracts.length === 0 ? "all" : it.contracts.join(", ")],
        ["fields", JSON.stringify(it.fields)],
        ["confirmations", it.confirmations],
        ["from block", it.fromBlock],
        ["next block", it.nextBlock],
        ["state", it.state],
        ["told", it.told],
        ["waiting", it.waiting],
        ["dead", it.dead],
        ["problem", it.problem ?? "none"],
        ["created", it.createdAt]
      ])
    }
  }
})

const changing = (
  name: string,
  about: string,
  change: (watchId: string) => Effect.Effect<unknown, WatchesError | Changes.UnknownWatch, Watches>,
  done: string
) =>
  Command.make({
    name,
    about,
    examples: ["0f5c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"],
    operands: { watch },
    run: function* ({ watch: watchId }) {
      const { within } = yield* open
      yield* within(change(watchId))
      return { json: { watchId, state: done }, text: `watch ${watchId} is ${done}` }
    }
  })

const pause = changing(
  "pause",
  "Reads no further until it is resumed; what it was told is delivered.",
  (watchId) => Changes.setState(anyone, watchId, "paused"),
  "paused"
)
const resume = changing(
  "resume",
  "Reads on from where it was paused.",
  (watchId) => Changes.setState(anyone, watchId, "enabled"),
  "enabled"
)
const remove = changing(
  "remove",
  "Removes it, with all that is owed of it.",
  (watchId) => Changes.remove(anyone, watchId),
  "removed"
)

export const commands = [add, list, show, pause, resume, remove] as const

export const notes = [
  "Takes effect within seconds, on all replicas, without a restart. Of a URL its origin alone is shown: keys sit in paths.",
  "A webhook that is removed takes its watches with it."
]
