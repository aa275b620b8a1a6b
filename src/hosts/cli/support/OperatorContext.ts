import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type Content, type Key, type Pause, TenantStore } from "../../../application/ports/TenantStore.js"
import type { AccountId, OwnLimits, Tier } from "../../../application/ports/Tenants.js"
import { allScopes } from "../../../application/tenants/FileAccounts.js"
import * as Config from "../../config/Config.js"
import * as Wiring from "../../Wiring.js"
import { Operator, type Why } from "./Operator.js"

export interface Account extends OwnLimits {
  readonly accountId: AccountId
  readonly name: string
  readonly tier: Tier
  /** Which of the two says what it is. */
  readonly origin: "database" | "file"
  /** `file`: the configuration file pauses it; a number: since when the database does. */
  readonly paused: "file" | number | null
  readonly createdAt: number | null
}

/** An API key of the file or of the database. */
export interface KnownKey extends Key {
  /** What commands call it: the first digits of its hash, which tell nothing of the key. */
  readonly id: string
  readonly usedAt: number | null
}

/** The configuration and the database of a service, and the accounts and keys of both together. */
export interface OperatorContext {
  readonly config: Config.Config
  /** What is in the database. */
  readonly ports: Context.Context<Wiring.Stored>
  readonly store: TenantStore["Service"]
  readonly content: Content
  readonly accounts: ReadonlyArray<Account>
  readonly keys: ReadonlyArray<KnownKey>
  /** When they were read, Unix milliseconds. */
  readonly now: number
}

export const idOf = (hash: string): string => hash.slice(0, 12)

/** Since when the database pauses it, Unix milliseconds; null: it does not. */
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

const keysOf = (
  { accounts }: Config.Config,
  content: Content,
  uses: ReadonlyMap<string, number>
): ReadonlyArray<KnownKey> => {
  const ends = new Map(content.keys.map(({ endsAt, hash }) => [hash, endsAt]))
  const ofFile = accounts.flatMap(({ accountId, keys }) =>
    keys.map(
      ({ hash, scopes }): Key => ({
        hash,
        accountId,
        scopes: scopes.length === 0 ? allScopes : scopes,
        origin: "file",
        issuedAt: 0,
        endsAt: ends.get(hash) ?? null
      })
    )
  )
  const issued = content.keys.filter(({ origin }) => origin === "command")
  return [...ofFile, ...issued].map((key) => ({
    ...key,
    id: idOf(key.hash),
    usedAt: uses.get(key.hash) ?? null
  }))
}

/** The configuration that CASTELLAN_CONFIG names. */
export const config: Effect.Effect<Config.Config, Why, Operator> = Effect.flatMap(Operator, ({ env }) =>
  Effect.fromResult(Config.load(env))
)

/** That configuration, and its database. */
export const open: Effect.Effect<OperatorContext, Why, Operator | Scope.Scope> = Effect.gen(function* () {
  const read = yield* config
  const ports = yield* Layer.build(Wiring.stored(read))
  const store = Context.get(ports, TenantStore)
  const content = yield* store.content
  const uses = yield* store.uses
  return {
    config: read,
    ports,
    store,
    content,
    accounts: accountsOf(read, content),
    keys: keysOf(read, content, uses),
    now: yield* Clock.currentTimeMillis
  }
})

/** Most names in a refusal. */
const maxNames = 20

/** The end of a refusal: what there is instead. */
export const thereAre = (names: ReadonlyArray<string>, nothing: string): string => {
  const more = names.length - maxNames
  if (names.length === 0) return nothing
  return `there are: ${names.slice(0, maxNames).join(", ")}${more > 0 ? ` and ${more} more` : ""}`
}

/** The account of this name; a refusal says which there are. */
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

/** The database, and the account of this name in it or in the file. */
export const openFor = (id: string) =>
  Effect.gen(function* () {
    const context = yield* open
    return { ...context, account: yield* accountOf(context, id) }
  })

/** `openFor`; refuses an account that commands may not change. */
export const openForOwn = (id: string) =>
  Effect.filterOrFail(
    openFor(id),
    ({ account }) => account.origin === "database",
    () => `account ${id} is of the configuration file: change it there and start the service again`
  )

/** The key that these first digits of its hash name, at least eight. */
export const keyOf = ({ keys }: OperatorContext, id: string): Effect.Effect<KnownKey, string> => {
  const remedy = '"castellan keys list" tells which there are'
  if (!/^[0-9a-f]{8,64}$/.test(id))
    return Effect.fail(`a key is named by its id, 8 or more hex digits, and never by itself; ${remedy}`)
  const [key, other] = keys.filter(({ hash }) => hash.startsWith(id))
  if (key === undefined) return Effect.fail(`there is no key ${id}; ${remedy}`)
  return other === undefined ? Effect.succeed(key) : Effect.fail(`${id} may be two keys: say more digits`)
}
