import * as Brand from "effect/Brand"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { limits, limitsOf, mostPerHour, mostPerMinute } from "../../../application/ports/RateLimit.js"
import { type AccountChange, apply, type Content } from "../../../application/ports/TenantStore.js"
import type { AccountId, Tier } from "../../../application/ports/Tenants.js"
import { quote } from "../../../domain/primitives/InvalidValue.js"
import * as AccountNetworks from "../accounts/AccountNetworks.js"
import * as AccountSigners from "../accounts/AccountSigners.js"
import { help, json, optional, report } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"
import * as Keys from "./keys.js"

const accountId = Brand.nominal<AccountId>()

const idShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

const id = Argument.String("ID").pipe(Argument.withDescription("the account"))

const nameOf = (text: string): Effect.Effect<string, string> =>
  text === text.trim() && text.length > 0 && text.length <= 128
    ? Effect.succeed(text)
    : Effect.fail("--name: expected 1 to 128 characters without outer white space")

const tiers = ["free", "pro", "enterprise"] as const satisfies ReadonlyArray<Tier>

const tier = Flag.Literals("tier", tiers).pipe(
  Flag.withDescription(
    tiers
      .map((each) => `${each}: ${limits[each].minute} requests a minute, ${limits[each].hour} an hour`)
      .join("; ")
  ),
  Flag.withDefault(undefined)
)

const name = optional("name", "TEXT", "for people")

const inPlaceOfTier = (name: string, window: string, most: number) =>
  optional(
    name,
    "NUMBER",
    `requests of the account ${window}, instead of its tier's: 1 to ${most}, or "tier" for those of the tier`
  )

const requestsPerMinute = inPlaceOfTier("requests-per-minute", "a minute", mostPerMinute)
const requestsPerHour = inPlaceOfTier("requests-per-hour", "an hour", mostPerHour)

/** Null: the tier's limit. */
const limitOf = (name: string, text: string, most: number): Effect.Effect<number | null, string> => {
  if (text === "tier") return Effect.succeed(null)
  const limit = /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : 0
  return limit >= 1 && limit <= most
    ? Effect.succeed(limit)
    : Effect.fail(`--${name}: expected an integer from 1 to ${most}, or "tier", got ${quote(text)}`)
}

const changeOf = (given: {
  readonly name?: string | undefined
  readonly tier?: Tier | undefined
  readonly requestsPerMinute: string | undefined
  readonly requestsPerHour: string | undefined
}): Effect.Effect<AccountChange, string> =>
  Effect.gen(function* () {
    const { name, requestsPerHour: hour, requestsPerMinute: minute, tier } = given
    return {
      ...(name !== undefined && { name: yield* nameOf(name) }),
      ...(tier !== undefined && { tier }),
      ...(minute !== undefined && {
        requestsPerMinute: yield* limitOf("requests-per-minute", minute, mostPerMinute)
      }),
      ...(hour !== undefined && { requestsPerHour: yield* limitOf("requests-per-hour", hour, mostPerHour) })
    }
  })

const shown = (account: OperatorContext.Account) => ({
  id: account.accountId,
  name: account.name,
  tier: account.tier,
  requestsPerMinute: account.requestsPerMinute ?? null,
  requestsPerHour: account.requestsPerHour ?? null,
  state: account.paused === null ? "active" : "paused",
  pausedSince: typeof account.paused === "number" ? Table.time(account.paused) : null,
  origin: account.origin,
  createdAt: account.createdAt === null ? null : Table.time(account.createdAt)
})

const table = (accounts: ReadonlyArray<OperatorContext.Account>): string =>
  Table.list(accounts, 'there are no accounts; "castellan accounts create" makes one', {
    ACCOUNT: (account) => account.accountId,
    NAME: (account) => account.name,
    TIER: (account) => account.tier,
    "A MINUTE": (account) => limitsOf(account).minute,
    "AN HOUR": (account) => limitsOf(account).hour,
    STATE: ({ paused }) =>
      paused === null ? "active" : paused === "file" ? "paused by the file" : `paused ${Table.time(paused)}`,
    FROM: (account) => account.origin
  }).text

const profile = { name, tier, requestsPerMinute, requestsPerHour }

const create = Command.make("create", { id, ...profile, json }).pipe(
  help(
    "Creates an account in the database. Ids are never used again, since the journal refers to them.",
    'acme --name "Acme Ltd" --tier pro'
  ),
  report(function* ({ id, name = id, tier = "free", ...own }) {
    if (!idShape.test(id))
      return yield* Effect.fail(
        "an id is 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first"
      )
    const change = yield* changeOf({ name, ...own })
    const context = yield* OperatorContext.open
    if (context.accounts.some((account) => account.accountId === id))
      return yield* Effect.fail(`another account has the id ${id}; run "castellan accounts show ${id}"`)
    const account = apply({ accountId: accountId(id), name, tier, createdAt: context.now }, change)
    yield* context.store.createAccount(account)
    return {
      text: `account ${id} is made; "castellan keys create ${id}" issues its first key`,
      json: shown({ ...account, origin: "database", paused: null })
    }
  })
)

const list = Command.make("list", { json }).pipe(
  help("Lists all accounts, of the configuration file and of the database.", "", "--json"),
  report(function* () {
    const { accounts } = yield* OperatorContext.open
    return { text: table(accounts), json: accounts.map(shown) }
  })
)

/** A database account's networks and signers; empty for an account of the file, which lists them. */
const ownOf = ({ accountId, origin }: OperatorContext.Account, { networks, signers }: Content) => {
  const isIts = (each: { readonly accountId: AccountId }) =>
    origin === "database" && each.accountId === accountId
  return {
    networks: networks.filter(isIts).map(({ settings }): unknown => JSON.parse(settings)),
    signers: signers
      .filter(isIts)
      .map(({ address, key, provider, ref }) => ({ ...ref, provider, key, address }))
  }
}

const show = Command.make("show", { id, json }).pipe(
  help("Shows one account: its keys, and its networks and signers in the database.", "acme"),
  report(function* ({ id }) {
    const { account, content, now, ...context } = yield* OperatorContext.openFor(id)
    const keys = Keys.listed(
      context.keys.filter((key) => key.accountId === account.accountId),
      now
    )
    const { networks, signers } = ownOf(account, content)
    const section = (title: string, entries: ReadonlyArray<unknown>) =>
      entries.length === 0 ? [] : ["", title, ...entries.map((entry) => JSON.stringify(entry))]
    return {
      text: [
        table([account]),
        "",
        keys.text,
        ...section("NETWORKS", networks),
        ...section("SIGNERS", signers)
      ].join("\n"),
      json: { ...shown(account), keys: keys.json, networks, signers }
    }
  })
)

const set = Command.make("set", { id, ...profile, json }).pipe(
  help(
    "Changes name, tier or limits of an account of the database. Requests counted so far remain counted.",
    "acme --tier enterprise",
    "acme --requests-per-minute 6000 --requests-per-hour 200000"
  ),
  report(function* ({ id, json: _, ...given }) {
    if (Object.values(given).every((each) => each === undefined))
      return yield* Effect.fail(
        "nothing to set: expected --name or --tier, --requests-per-minute or --requests-per-hour"
      )
    const change = yield* changeOf(given)
    const { account, store } = yield* OperatorContext.openForOwn(id)
    yield* store.changeAccount(account.accountId, change)
    const after = apply(account, change)
    return { text: table([after]), json: shown(after) }
  })
)

const pause = Command.make("pause", { id, ...OperatorContext.logged, json }).pipe(
  help(
    "Answers all requests of an account with 401 account_paused, until it is resumed. Transactions already sent are still settled.",
    "acme"
  ),
  report(function* ({ id, ...logged }) {
    const { account, now, ports, store } = yield* OperatorContext.openFor(id)
    yield* OperatorContext.record({ ports }, "pause", `account ${id}`, logged)
    yield* store.pause({ kind: "account", subject: id, since: now })
    return { text: `account ${id} is paused`, json: shown({ ...account, paused: account.paused ?? now }) }
  })
)

const resume = Command.make("resume", { id, ...OperatorContext.logged, json }).pipe(
  help("Undoes pause.", "acme"),
  report(function* ({ id, ...logged }) {
    const { account, ports, store } = yield* OperatorContext.openFor(id)
    yield* OperatorContext.record({ ports }, "resume", `account ${id}`, logged)
    yield* store.resume("account", id)
    if (account.paused === "file")
      return yield* Effect.fail(
        `the configuration file pauses account ${id}: change it there and start the service again`
      )
    return { text: `account ${id} is active`, json: shown({ ...account, paused: null }) }
  })
)

export const commands = [
  create,
  list,
  show,
  set,
  pause,
  resume,
  ...AccountNetworks.commands,
  ...AccountSigners.commands
]

export const notes = [
  "All changes take effect within a second, on all replicas, without a restart.",
  "An account is defined in the database or in the configuration file. An account of the file can only be changed in the file, but it can be paused and resumed here, and keys can be issued for it.",
  "An account of the database needs its own factory: the factory of the chain serves accounts of the file."
]
