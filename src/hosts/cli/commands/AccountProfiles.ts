import * as Brand from "effect/Brand"
import * as Effect from "effect/Effect"
import { limits, limitsOf, mostPerHour, mostPerMinute } from "../../../application/ports/RateLimit.js"
import { type AccountChange, changed } from "../../../application/ports/TenantStore.js"
import type { AccountId, Tier } from "../../../application/ports/Tenants.js"
import { given } from "../../../domain/primitives/InvalidValue.js"
import * as Command from "../support/Command.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"
import * as Keys from "./keys.js"

const accountId = Brand.nominal<AccountId>()

const idShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

const id = Command.operand("ID", "the account")

const nameOf = (text: string): Effect.Effect<string, string> =>
  text === text.trim() && text.length > 0 && text.length <= 128
    ? Effect.succeed(text)
    : Effect.fail("--name: expected 1 to 128 characters without outer white space")

const tiers = ["free", "pro", "enterprise"] as const satisfies ReadonlyArray<Tier>

const tier = Command.choice(
  "tier",
  tiers,
  tiers
    .map((each) => `${each}: ${limits[each].minute} requests a minute, ${limits[each].hour} an hour`)
    .join("; ")
)

const name = Command.optional("name", "TEXT", "for people")

const inPlaceOfTier = (name: string, window: string, most: number) =>
  Command.optional(
    name,
    "NUMBER",
    `requests of the account ${window}, in the place of its tier's: 1 to ${most}, or "tier" for those of the tier`
  )

const requestsPerMinute = inPlaceOfTier("requests-per-minute", "a minute", mostPerMinute)
const requestsPerHour = inPlaceOfTier("requests-per-hour", "an hour", mostPerHour)

/** Null: the tier's. */
const limitOf = (
  name: string,
  text: string | undefined,
  most: number
): Effect.Effect<number | null | undefined, string> => {
  if (text === undefined) return Effect.succeed(undefined)
  if (text === "tier") return Effect.succeed(null)
  const limit = /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : 0
  return limit >= 1 && limit <= most
    ? Effect.succeed(limit)
    : Effect.fail(`--${name}: expected an integer from 1 to ${most}, or "tier", got ${given(text)}`)
}

const ownLimitsOf = (
  minute: string | undefined,
  hour: string | undefined
): Effect.Effect<Pick<AccountChange, "requestsPerMinute" | "requestsPerHour">, string> =>
  Effect.gen(function* () {
    const requestsPerMinute = yield* limitOf("requests-per-minute", minute, mostPerMinute)
    const requestsPerHour = yield* limitOf("requests-per-hour", hour, mostPerHour)
    return {
      ...(requestsPerMinute !== undefined && { requestsPerMinute }),
      ...(requestsPerHour !== undefined && { requestsPerHour })
    }
  })

const stateOf = ({ paused }: OperatorContext.Account): string => {
  if (paused === null) return "active"
  return paused === "file" ? "paused by the file" : `paused ${Table.time(paused)}`
}

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
  Table.listed(accounts, 'there are no accounts; "castellan accounts create" makes one', {
    ACCOUNT: (account) => account.accountId,
    NAME: (account) => account.name,
    TIER: (account) => account.tier,
    "A MINUTE": (account) => limitsOf(account).minute,
    "AN HOUR": (account) => limitsOf(account).hour,
    STATE: (account) => stateOf(account),
    FROM: (account) => account.origin
  })

const create = Command.make({
  name: "create",
  about: "Creates an account in the database. Ids are never used again, since the journal refers to them.",
  examples: ['acme --name "Acme Ltd" --tier pro'],
  operands: { id },
  flags: { name, tier, requestsPerMinute, requestsPerHour },
  run: function* ({ id, name = id, requestsPerHour, requestsPerMinute, tier = "free" }) {
    if (!idShape.test(id))
      return yield* Effect.fail(
        "an id is 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first"
      )
    yield* nameOf(name)
    const own = yield* ownLimitsOf(requestsPerMinute, requestsPerHour)
    const context = yield* OperatorContext.open
    if (context.accounts.some((account) => account.accountId === id))
      return yield* Effect.fail(`another account is called ${id}; "castellan accounts show ${id}" tells more`)
    const account = changed({ accountId: accountId(id), name, tier, createdAt: context.now }, own)
    yield* context.store.createAccount(account)
    return {
      text: `account ${id} is made; "castellan keys create ${id}" issues its first key`,
      json: shown({ ...account, origin: "database", paused: null })
    }
  }
})

const list = Command.make({
  name: "list",
  about: "Lists all accounts, of the configuration file and of the database.",
  examples: ["", "--json"],
  run: function* () {
    const { accounts } = yield* OperatorContext.open
    return { text: table(accounts), json: accounts.map(shown) }
  }
})

/** What the account has of its own: of the database it is shown, of the file it is there to be read. */
const ownOf = (
  { content }: OperatorContext.OperatorContext,
  { accountId, origin }: OperatorContext.Account
) => ({
  networks:
    origin === "file"
      ? []
      : content.networks
          .filter((network) => network.accountId === accountId)
          .map(({ settings }): unknown => JSON.parse(settings)),
  signers:
    origin === "file"
      ? []
      : content.signers
          .filter((signer) => signer.accountId === accountId)
          .map(({ address, key, provider, ref }) => ({ ...ref, provider, key, address }))
})

const show = Command.make({
  name: "show",
  about: "Shows one account: its keys, and its networks and signers in the database.",
  examples: ["acme"],
  operands: { id },
  run: function* ({ id }) {
    const context = yield* OperatorContext.open
    const { now } = context
    const account = yield* OperatorContext.accountOf(context, id)
    const keys = context.keys.filter((key) => key.accountId === account.accountId)
    const { networks, signers } = ownOf(context, account)
    const section = (title: string, entries: ReadonlyArray<unknown>) =>
      entries.length === 0 ? [] : ["", title, ...entries.map((entry) => JSON.stringify(entry))]
    return {
      text: [
        table([account]),
        "",
        Keys.table(keys, now),
        ...section("NETWORKS", networks),
        ...section("SIGNERS", signers)
      ].join("\n"),
      json: { ...shown(account), keys: keys.map((key) => Keys.shown(key, now)), networks, signers }
    }
  }
})

const set = Command.make({
  name: "set",
  about:
    "Changes name, tier or limits of an account of the database. Requests counted so far remain counted.",
  examples: ["acme --tier enterprise", "acme --requests-per-minute 6000 --requests-per-hour 200000"],
  operands: { id },
  flags: { name, tier, requestsPerMinute, requestsPerHour },
  run: function* ({ id, name, requestsPerHour, requestsPerMinute, tier }) {
    if ([name, tier, requestsPerMinute, requestsPerHour].every((each) => each === undefined))
      return yield* Effect.fail(
        "nothing to set: expected --name or --tier, --requests-per-minute or --requests-per-hour"
      )
    const change = {
      ...(yield* ownLimitsOf(requestsPerMinute, requestsPerHour)),
      ...(name !== undefined && { name: yield* nameOf(name) }),
      ...(tier !== undefined && { tier })
    }
    const context = yield* OperatorContext.open
    const account = yield* OperatorContext.ownOf(context, id)
    yield* context.store.changeAccount(account.accountId, change)
    const after = changed(account, change)
    return { text: table([after]), json: shown(after) }
  }
})

const pause = Command.make({
  name: "pause",
  about:
    "Answers all requests of an account with 401 account_paused, until it is resumed. Transactions already sent are still settled.",
  examples: ["acme"],
  operands: { id },
  run: function* ({ id }) {
    const context = yield* OperatorContext.open
    const account = yield* OperatorContext.accountOf(context, id)
    yield* context.store.pause({ kind: "account", subject: id, since: context.now })
    const paused = { ...account, paused: account.paused ?? context.now }
    return { text: `account ${id} is paused`, json: shown(paused) }
  }
})

const resume = Command.make({
  name: "resume",
  about: "Undoes pause.",
  examples: ["acme"],
  operands: { id },
  run: function* ({ id }) {
    const context = yield* OperatorContext.open
    const account = yield* OperatorContext.accountOf(context, id)
    yield* context.store.resume("account", id)
    if (account.paused === "file")
      return yield* Effect.fail(
        `the configuration file pauses account ${id}: change it there and start the service again`
      )
    return { text: `account ${id} is active`, json: shown({ ...account, paused: null }) }
  }
})

/** Accounts themselves. */
export const commands = [create, list, show, set, pause, resume] as const
