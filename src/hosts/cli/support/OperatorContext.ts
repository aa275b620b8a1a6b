import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import {
  maxReason,
  type OperatorAct,
  OperatorLog,
  reasonOfCommand
} from "../../../application/ports/operator/OperatorLog.js"
import { type Content, type Pause, TenantStore } from "../../../application/ports/TenantStore.js"
import type { AccountId, OwnLimits, Principal, Tier } from "../../../application/ports/Tenants.js"
import { defaultScopes } from "../../../application/tenants/FileAccounts.js"
import * as KnownKeys from "../../../application/tenants/KnownKeys.js"
import * as Config from "../../config/Config.js"
import * as Wiring from "../../Wiring.js"
import { Operator, optional, type Why } from "./Operator.js"

export interface Account extends OwnLimits {
  readonly accountId: AccountId
  readonly name: string
  readonly tier: Tier
  /** Defines the account. */
  readonly origin: "database" | "file"
  /** `file`: paused in the configuration file; a number: paused in the database since then, Unix milliseconds. */
  readonly paused: "file" | number | null
  readonly createdAt: number | null
}

/** Configuration and database of a service, with the accounts and keys of both. */
export interface OperatorContext {
  readonly config: Config.Config
  readonly ports: Context.Context<Wiring.Stored>
  readonly store: TenantStore["Service"]
  readonly content: Content
  readonly accounts: ReadonlyArray<Account>
  readonly keys: ReadonlyArray<KnownKeys.KnownKey>
  /** Time of reading, Unix milliseconds. */
  readonly now: number
}

/** Start of a pause in the database, Unix milliseconds; null: not paused. */
export const pausedSince = ({ pauses }: Content, kind: Pause["kind"], subject: string): number | null =>
  pauses.find((pause) => pause.kind === kind && pause.subject === subject)?.since ?? null

const accountsOf = ({ accounts }: Config.Config, content: Content): ReadonlyArray<Account> => {
  const listed = new Set(accounts.map(({ accountId }) => accountId))
  const since = (id: AccountId) => pausedSince(content, "account", id)
  return [
    ...accounts.map(
      ({ keys: _, paused, ...account }): Account => ({
        ...account,
        origin: "file",
        paused: paused ? "file" : since(account.accountId),
        createdAt: null
      })
    ),
    ...content.accounts
      .filter(({ accountId }) => !listed.has(accountId))
      .map((account): Account => ({ ...account, origin: "database", paused: since(account.accountId) }))
  ]
}

/** The configuration that --config or CASTELLAN_CONFIG names, or that of the folder's development stack. */
export const config: Effect.Effect<Config.Config, Why, Operator> = Effect.flatMap(
  Operator,
  ({ devConfig, env }) =>
    Effect.fromResult(Config.load({ ...env, CASTELLAN_CONFIG: env.CASTELLAN_CONFIG ?? devConfig }))
)

export const open: Effect.Effect<OperatorContext, Why, Operator | Scope.Scope> = Effect.gen(function* () {
  const read = yield* config
  const ports = yield* Layer.build(Wiring.stores(read))
  const store = Context.get(ports, TenantStore)
  const content = yield* store.content
  const uses = yield* store.uses
  return {
    config: read,
    ports,
    store,
    content,
    accounts: accountsOf(read, content),
    keys: KnownKeys.of(read.accounts, content, uses),
    now: yield* Clock.currentTimeMillis
  }
})

/** Flags of commands that act, for their entries in the log of operators. */
export const logged = {
  operator: optional("operator", "NAME", "your name, for the log of operators"),
  reason: optional("reason", "TEXT", "the reason, for the log of operators: at most 500 characters")
}

export interface Logged {
  readonly operator: string | undefined
  readonly reason: string | undefined
}

/** Records a command in the log of operators, before it acts. No token proves the name. */
export const record = (
  { ports }: Pick<OperatorContext, "ports">,
  act: OperatorAct["act"],
  subject: string,
  { operator, reason = reasonOfCommand }: Logged
): Effect.Effect<void, Why> =>
  reason.length > maxReason
    ? Effect.fail(`--reason: expected at most ${maxReason} characters`)
    : Context.get(ports, OperatorLog).record({
        operator: operator === undefined ? "command line" : `command line: ${operator}`,
        act,
        subject,
        reason
      })

/** The operator of the configuration with this name; an error lists the existing ones. */
export const operatorOf = ({ operations: { admin } }: Config.Config, name: string) => {
  const operators = admin?.operators ?? []
  const found = operators.find((each) => each.name === name)
  const names = operators.map((each) => each.name)
  return found === undefined
    ? Effect.fail(`--operator: no operator is called ${name}; ${thereAre(names, "set admin.operators")}`)
    : Effect.succeed(found)
}

/** Most names listed in an error. */
const maxNames = 20

/** The end of an error: the existing names. */
export const thereAre = (names: ReadonlyArray<string>, nothing: string): string => {
  const more = names.length - maxNames
  if (names.length === 0) return nothing
  return `there are: ${names.slice(0, maxNames).join(", ")}${more > 0 ? ` and ${more} more` : ""}`
}

/** The account with this name; an error lists the existing ones. */
export const accountOf = (
  { accounts }: Pick<OperatorContext, "accounts">,
  id: string
): Effect.Effect<Account, string> => {
  const account = accounts.find(({ accountId }) => accountId === id)
  const names = accounts.map(({ accountId }) => accountId)
  return account === undefined
    ? Effect.fail(
        `there is no account called ${id}; ${thereAre(names, 'there are none, "castellan accounts create" makes one')}`
      )
    : Effect.succeed(account)
}

/** The account, for use cases that the operator runs as it. */
export const principalOf = ({ accountId, name, tier }: Account, keyId: string | null): Principal => ({
  accountId,
  name,
  tier,
  scopes: new Set(defaultScopes),
  paused: false,
  keyId
})

/** The database, and an account of the database or the file. */
export const openFor = (id: string) =>
  Effect.gen(function* () {
    const context = yield* open
    return { ...context, account: yield* accountOf(context, id) }
  })

/** Like `openFor`, but refuses accounts of the file, which commands cannot change. */
export const openForOwn = (id: string) =>
  Effect.filterOrFail(
    openFor(id),
    ({ account }) => account.origin === "database",
    () => `account ${id} is of the configuration file: change it there and start the service again`
  )

/** The key whose hash starts with these digits, at least eight. */
export const keyOf = ({ keys }: OperatorContext, id: string): Effect.Effect<KnownKeys.KnownKey, string> => {
  const remedy = 'run "castellan keys list"'
  if (!/^[0-9a-f]{8,64}$/.test(id))
    return Effect.fail(`a key is named by its id, 8 or more hex digits, and never by itself; ${remedy}`)
  const [key, other] = keys.filter(({ hash }) => hash.startsWith(id))
  if (key === undefined) return Effect.fail(`there is no key ${id}; ${remedy}`)
  return other === undefined ? Effect.succeed(key) : Effect.fail(`${id} may be two keys: say more digits`)
}
