import * as Context from "effect/Context"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as ChainFacts from "../../../application/chain/ChainFacts.js"
import * as Evaluate from "../../../application/endpoints/policies/Evaluate.js"
import * as Endpoint from "../../../application/endpoints/policies/Policies.js"
import * as Payer from "../../../application/payers/Payer.js"
import * as Usage from "../../../application/policies/Usage.js"
import { Budgets } from "../../../application/ports/Budgets.js"
import {
  Policies,
  type Layer as PolicyLayer,
  type PolicyVersion
} from "../../../application/ports/Policies.js"
import * as Subject from "../../../domain/policy/Subject.js"
import * as Wiring from "../../Wiring.js"
import { decode, decodeFile, help, json, optional, refusalOf, report, whole } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

const account = Argument.String("ACCOUNT").pipe(Argument.withDescription("of the database or of the file"))

const subject = Argument.String("SUBJECT").pipe(
  Argument.withDescription(
    "account, key: and a key's id, signer: or wallet: and an address, wallet:* for each wallet without its own, or list: and a name"
  )
)

const layer = optional(
  "layer",
  "LAYER",
  "account: policies that the account has set; default: operator, set by these commands"
)

const layerOf = (text = "operator"): Effect.Effect<PolicyLayer, string> =>
  text === "operator" || text === "account"
    ? Effect.succeed(text)
    : Effect.fail("--layer: expected operator or account")

/** The account, and a subject of it in canonical form; a key must be of the account. */
const open = (id: string, text: string) =>
  Effect.gen(function* () {
    const context = yield* OperatorContext.openFor(id)
    const { accountId } = context.account
    const store = Context.get(context.ports, Policies)
    if (!text.startsWith("key:"))
      return { ...context, accountId, store, subject: yield* Effect.fromResult(Subject.from(text)) }
    const key = yield* OperatorContext.keyOf(context, text.slice("key:".length))
    return key.accountId === accountId
      ? { ...context, accountId, store, subject: `key:${key.id}` }
      : yield* Effect.fail(`key ${key.id} belongs to account ${key.accountId}, not to ${id}`)
  })

const encoded = ({ content, subject: named }: PolicyVersion): unknown =>
  content === null ? null : Schema.encodeSync(Subject.contentOf(named))(content)

const shown = (version: PolicyVersion) => ({
  subject: version.subject,
  layer: version.layer,
  version: version.version,
  policy: encoded(version),
  at: Table.time(version.at * 1_000),
  by: version.by,
  requestId: version.requestId
})

const one = (version: PolicyVersion) => {
  const { at, by, layer, policy, subject, version: number } = shown(version)
  return {
    json: shown(version),
    text: `${Table.card({ subject, layer, version: number, content: Usage.summaryOf(version.content), at, by })}\n${JSON.stringify(policy, null, 2)}`
  }
}

const listed = (versions: ReadonlyArray<PolicyVersion>, nothing: string) => ({
  ...Table.list(versions, nothing, {
    SUBJECT: (each) => each.subject,
    VERSION: (each) => each.version,
    CONTENT: (each) => Usage.summaryOf(each.content),
    SET: (each) => Table.time(each.at * 1_000),
    BY: (each) => each.by
  }),
  json: versions.map(shown)
})

/** Sets a subject's policy in the operator's layer to a file's, with all problems of the file; null removes it. */
const put = (id: string, text: string, logged: OperatorContext.Logged, file: string | null) =>
  Effect.gen(function* () {
    const context = yield* open(id, text)
    const { accountId, now, store, subject: named } = context
    const content = file === null ? null : yield* decodeFile(file, Subject.contentOf(named))
    yield* OperatorContext.record(
      context,
      content === null ? "remove" : "set",
      `policy ${named} of ${id}`,
      logged
    )
    const put = yield* store.put(
      {
        accountId,
        layer: "operator",
        subject: named,
        content,
        at: Math.floor(now / 1_000),
        by: "command line",
        requestId: null
      },
      null
    )
    return "version" in put ? put : yield* Effect.fail(`the operator has set no policy for ${named}`)
  })

const set = Command.make("set", {
  account,
  subject,
  file: Argument.String("FILE").pipe(
    Argument.withDescription("JSON of a policy, or for list: of an object with addresses")
  ),
  ...OperatorContext.logged,
  json
}).pipe(
  help(
    "Sets the operator's policy of a key, a signer or a wallet, or a list of addresses. The account's own policies apply as well.",
    "acme key:21ca2b88d8bd policy.json",
    "acme list:suppliers suppliers.json"
  ),
  report(function* ({ account, file, subject, ...logged }) {
    const version = yield* put(account, subject, logged, file)
    const { config, ports } = yield* OperatorContext.openFor(account)
    const warnings = yield* Endpoint.warningsOf(version).pipe(
      Effect.provide(Wiring.callers(config)),
      Effect.provide(ports)
    )
    const text = `version ${version.version} of ${version.subject} is in force within a second: ${Usage.summaryOf(version.content)}`
    return {
      json: { ...shown(version), warnings },
      text: [text, ...warnings.map((each) => `warning: ${each}`)].join("\n")
    }
  })
)

const remove = Command.make("remove", { account, subject, ...OperatorContext.logged, json }).pipe(
  help("Removes the operator's policy. Its versions stay in the history.", "acme wallet:*"),
  report(function* ({ account, subject, ...logged }) {
    const version = yield* put(account, subject, logged, null)
    return { json: shown(version), text: `${version.subject} has no policy of the operator any more` }
  })
)

const show = Command.make("show", {
  account,
  subject,
  version: optional("version", "NUMBER", "default: the version in force"),
  layer,
  json
}).pipe(
  help("Shows a policy or a list.", "acme key:21ca2b88d8bd", "acme account --version 3 --layer account"),
  report(function* ({ account, layer, subject, version }) {
    const { accountId, store, subject: named } = yield* open(account, subject)
    const number = yield* whole("version", version)
    const versions = yield* store.history(accountId, yield* layerOf(layer), named)
    const found = versions.find((each, place) =>
      number === undefined ? place === 0 && each.content !== null : each.version === number
    )
    return found === undefined
      ? yield* Effect.fail(`there is no such policy of ${named}; "castellan policies history" lists versions`)
      : one(found)
  })
)

const list = Command.make("list", { account, layer, json }).pipe(
  help("Lists the policies and lists in force.", "acme", "acme --layer account"),
  report(function* ({ account, layer }) {
    const context = yield* OperatorContext.openFor(account)
    const wanted = yield* layerOf(layer)
    const versions = yield* Context.get(context.ports, Policies).current(context.account.accountId)
    return listed(
      versions.filter((each) => each.layer === wanted),
      "there are no policies"
    )
  })
)

const history = Command.make("history", { account, subject, layer, json }).pipe(
  help("Lists all versions of a policy or a list, the newest first.", "acme key:21ca2b88d8bd"),
  report(function* ({ account, layer, subject }) {
    const { accountId, store, subject: named } = yield* open(account, subject)
    return listed(yield* store.history(accountId, yield* layerOf(layer), named), "there are no versions")
  })
)

type Evaluated = Effect.Success<ReturnType<typeof Evaluate.evaluate>>["elements"][number]

/** One line for each policy that refuses, or the policies that allow. */
const grounds = ({ policies }: Evaluated): string => {
  const nameOf = ({ layer, subject, version }: Evaluated["policies"][number]) =>
    `${subject} ${version === null ? "draft" : `version ${version}`} (${layer})`
  const against = policies.filter(({ verdict }) => verdict === "refuse")
  return (against.length === 0 ? policies : against)
    .map((each) => {
      const what =
        each.limit === null ? (each.rule === null ? "" : `rule ${each.rule}: `) : `limit ${each.limit}: `
      const mode = each.mode === "observe" ? "observed, " : ""
      return `${mode}${nameOf(each)}${each.reason === null ? "" : `, ${what}${each.reason}`}`
    })
    .join("; ")
}

/** Payers that pay for nothing: the request is only read. */
const noPayers = Layer.succeed(Payer.Payers, {
  of: (_account, _connection, { paymaster = null }) => Effect.succeed({ ...Payer.wallet, paymaster })
})

const facts = Layer.sync(ChainFacts.ChainFacts, ChainFacts.make)

const evaluate = Command.make("evaluate", {
  account,
  file: Argument.String("FILE").pipe(Argument.withDescription("JSON: the body that would be posted")),
  key: optional("key", "ID", "the key that would post it"),
  endpoint: Flag.Literals("endpoint", Evaluate.endpoints).pipe(
    Flag.withDescription("where it would be posted; default: /execute"),
    Flag.withDefault("/execute" as const)
  ),
  drafts: optional("drafts", "FILE", "JSON of policies by subject, in place of the operator's; null: none"),
  json
}).pipe(
  help(
    "Shows what the policies of both layers, or drafts, say to a request, as if it were posted now. Holds, signs and sends nothing. Limits of fees are not evaluated.",
    "acme payout.json --key 21ca2b88d8bd",
    "acme payout.json --key 21ca2b88d8bd --drafts policies.json"
  ),
  report(function* ({ account: id, drafts, endpoint, file, key }) {
    const context = yield* open(id, key === undefined ? "account" : `key:${key}`)
    const given = {
      endpoint,
      request: yield* decodeFile(file, Schema.Unknown),
      ...(drafts !== undefined && { policies: yield* decodeFile(drafts, Schema.Unknown) })
    }
    const request = yield* decode(given, Evaluate.Request)
    const keyId = key === undefined ? null : context.subject.slice("key:".length)
    const caller = { principal: OperatorContext.principalOf(context.account, keyId), requestId: "" }
    const { elements } = yield* Evaluate.evaluate(caller, request, "operator").pipe(
      Effect.mapError(refusalOf),
      Effect.provide(Layer.mergeAll(Wiring.readers(context.config), noPayers, facts)),
      Effect.provide(context.ports)
    )
    const rows = elements.flatMap((element) =>
      (element.movements.length === 0 ? [null] : element.movements).map((movement) => ({ element, movement }))
    )
    const table = Table.list(rows, "the request has no elements", {
      ELEMENT: ({ element }) => element.index,
      MOVEMENT: ({ movement }) =>
        movement === null
          ? "-"
          : [movement.kind, movement.amount ?? "without bound", movement.token, movement.to]
              .filter((each) => each !== null)
              .join(" "),
      VERDICT: ({ element }) => element.verdict,
      BY: ({ element }) => grounds(element)
    })
    return { ...table, json: Schema.encodeSync(Evaluate.Response)({ elements }).elements }
  })
)

const usage = Command.make("usage", { account, subject, layer, json }).pipe(
  help(
    "Shows what the limits of a policy have counted. For wallet:*, name a wallet: each is counted for itself.",
    "acme key:21ca2b88d8bd"
  ),
  report(function* ({ account, layer, subject }) {
    const { accountId, ports, store, subject: named } = yield* open(account, subject)
    const binding = Usage.bindingOf(yield* store.current(accountId), yield* layerOf(layer), named)
    if (binding === undefined) return yield* Effect.fail(`there is no policy of ${named}`)
    const uses = yield* Usage.of(Context.get(ports, Budgets), binding, named)
    const { limits } = Schema.encodeSync(Endpoint.Usage)(Endpoint.shownUsage(binding, uses))
    return Table.list(limits, `version ${binding.version} of ${binding.subject} has no limits`, {
      LIMIT: (each) => each.limit,
      CHAIN: (each) => each.chain,
      ASSET: (each) => each.asset,
      WINDOW: (each) => each.window,
      HELD: (each) => each.held ?? "-",
      BOOKED: (each) => each.booked ?? "-",
      MAX: (each) => each.max
    })
  })
)

export const commands = [set, show, list, history, usage, evaluate, remove]

export const notes = [
  "set and remove write the operator's layer, which binds in addition to the account's own. Accounts cannot read it.",
  "All changes take effect within a second, on all replicas, without a restart."
]
