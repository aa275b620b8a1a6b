import { dirname, resolve } from "node:path"
import { text as textOf } from "node:stream/consumers"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { idOf } from "../../../application/ports/TenantStore.js"
import type { Scope } from "../../../application/ports/Tenants.js"
import { conflict, defaultScopes, knownScopes } from "../../../application/tenants/FileAccounts.js"
import type { KnownKey } from "../../../application/tenants/KnownKeys.js"
import * as Secrets from "../../config/Secrets.js"
import * as Wiring from "../../Wiring.js"
import { help, json, Operator, optional, report, required } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

const scopesOf = (text: string): Effect.Effect<ReadonlyArray<Scope>, string> => {
  const named = new Set(text.split(",").map((part) => part.trim()))
  const scopes = knownScopes.filter((scope) => named.has(scope))
  const problem =
    scopes.length === named.size ? conflict(scopes) : `expected some of ${knownScopes.join(",")}`
  return problem === null ? Effect.succeed(scopes) : Effect.fail(`--scopes: ${problem}`)
}

const units = new Map([
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000]
])

const durationOf = (text: string): Effect.Effect<number, string> => {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const millis = units.get(unit)
  return millis === undefined
    ? Effect.fail("--overlap: expected a number and its unit, for example 90s, 30m, 24h or 7d; 0s for none")
    : Effect.succeed(Number(count) * millis)
}

const stateOf = ({ endsAt }: KnownKey, now: number): "active" | "ending" | "ended" =>
  endsAt === null ? "active" : endsAt > now ? "ending" : "ended"

export const shown = (key: KnownKey, now: number) => ({
  id: key.id,
  account: key.accountId,
  scopes: key.scopes,
  state: stateOf(key, now),
  origin: key.origin === "file" ? "file" : "database",
  issuedAt: key.issuedAt === 0 ? null : Table.time(key.issuedAt),
  endsAt: key.endsAt === null ? null : Table.time(key.endsAt),
  lastUsedAt: key.usedAt === null ? null : Table.time(key.usedAt)
})

export const listed = (keys: ReadonlyArray<KnownKey>, now: number) =>
  Table.list(
    keys.map((key) => shown(key, now)),
    "there are no keys",
    {
      KEY: ({ id }) => id,
      ACCOUNT: ({ account }) => account,
      SCOPES: ({ scopes }) => scopes.join(","),
      STATE: ({ endsAt, state }) => (state === "active" ? state : `${state} ${endsAt}`),
      ISSUED: ({ issuedAt }) => issuedAt ?? "-",
      "LAST USED": ({ lastUsedAt }) => lastUsedAt ?? "never",
      FROM: ({ origin }) => origin
    }
  )

const one = (key: KnownKey, now: number) => ({
  text: listed([key], now).text,
  json: shown(key, now)
})

/** Creates a key and stores its hash. Only the output contains the key. */
const issue = (
  context: OperatorContext.OperatorContext,
  accountId: OperatorContext.Account["accountId"],
  scopes: ReadonlyArray<Scope>,
  replaced?: { readonly key: KnownKey; readonly endsAt: number }
) =>
  Effect.gen(function* () {
    const { hash, key } = yield* Wiring.issueKey(context.config.keyPepper)
    const fresh = { hash, accountId, scopes, origin: "command", issuedAt: context.now, endsAt: null } as const
    yield* context.store.addKey(fresh, replaced)
    const json = { key: Redacted.value(key), id: idOf(hash), account: accountId, scopes }
    return {
      json,
      text: [
        `API key (shown once): ${json.key}`,
        `id:      ${json.id}`,
        `account: ${accountId}`,
        `scopes:  ${scopes.join(",")}`
      ].join("\n")
    }
  })

const key = Argument.String("KEY").pipe(Argument.withDescription("the id of a key, never the key itself"))

const find = (id: string) =>
  Effect.gen(function* () {
    const context = yield* OperatorContext.open
    return { context, found: yield* OperatorContext.keyOf(context, id) }
  })

const create = Command.make("create", {
  id: Argument.String("ACCOUNT").pipe(Argument.withDescription("of the database or of the file")),
  named: optional("scopes", "LIST", `some of ${knownScopes.join(",")}; default ${defaultScopes.join(",")}`),
  json
}).pipe(
  help(
    "Issues a key for an account of the database or of the file. Prints it once; only its hash is stored.",
    "acme --scopes read,write"
  ),
  report(function* ({ id, named }) {
    const context = yield* OperatorContext.openFor(id)
    return yield* issue(
      context,
      context.account.accountId,
      named === undefined ? defaultScopes : yield* scopesOf(named)
    )
  })
)

const list = Command.make("list", {
  id: Argument.String("ACCOUNT").pipe(
    Argument.withDescription("account whose keys are listed; default: all"),
    Argument.withDefault(undefined)
  ),
  json
}).pipe(
  help(
    "Lists all keys, or those of one account: scopes, state, last use. Uses are recorded once a minute.",
    "",
    "acme"
  ),
  report(function* ({ id }) {
    const context = yield* OperatorContext.open
    if (id !== undefined) yield* OperatorContext.accountOf(context, id)
    const keys = context.keys.filter(({ accountId }) => id === undefined || accountId === id)
    return listed(keys, context.now)
  })
)

const show = Command.make("show", { key, json }).pipe(
  help("Shows one key.", "21ca2b88d8bd"),
  report(function* ({ key }) {
    const { context, found } = yield* find(key)
    return one(found, context.now)
  })
)

const identify = Command.make("identify", { json }).pipe(
  help("Identifies the key on standard input, for example a leaked key.", "< found.txt"),
  report(function* () {
    const context = yield* OperatorContext.open
    const text = yield* Effect.tryPromise({
      try: () => textOf(process.stdin),
      catch: () => "standard input cannot be read"
    })
    const hash = Wiring.hashOfKey(context.config.keyPepper, Redacted.make(text.trim()))
    const found = context.keys.find((each) => each.hash === hash)
    if (found === undefined) return yield* Effect.fail("standard input has no key of this service")
    return one(found, context.now)
  })
)

const rotate = Command.make("rotate", {
  key,
  overlap: required("overlap", "TIME", "how long both are valid, for example 90s, 30m, 24h, 7d"),
  json
}).pipe(
  help(
    "Issues a key that replaces another one, with the same scopes and spending rules. The old one is invalid once the overlap is over.",
    "21ca2b88d8bd --overlap 24h"
  ),
  report(function* ({ key, overlap }) {
    const { context, found } = yield* find(key)
    if (stateOf(found, context.now) === "ended")
      return yield* Effect.fail(`key ${key} has ended; "castellan keys create ACCOUNT" issues another one`)
    const endsAt = context.now + (yield* durationOf(overlap))
    const { json, text } = yield* issue(context, found.accountId, found.scopes, { key: found, endsAt })
    const last = Table.time(Math.min(endsAt, found.endsAt ?? endsAt))
    return {
      text: `${text}\nthe old key ${found.id} is good until ${last}`,
      json: { ...json, replaces: found.id, replacedEndsAt: last }
    }
  })
)

const revoke = Command.make("revoke", { key, ...OperatorContext.logged, json }).pipe(
  help(
    "Revokes a key permanently, within a second on all replicas. Keys of the configuration file can be revoked too.",
    "21ca2b88d8bd"
  ),
  report(function* ({ key, ...logged }) {
    const { context, found } = yield* find(key)
    yield* OperatorContext.record(context, "revoke", `key ${found.id} of ${found.accountId}`, logged)
    yield* context.store.endKey(found, context.now)
    return {
      text: `key ${found.id} of account ${found.accountId} is revoked`,
      json: { id: found.id, account: found.accountId, state: "ended" }
    }
  })
)

const scopes = Command.make("scopes", {
  key,
  named: required("scopes", "LIST", `some of ${knownScopes.join(",")}`),
  json
}).pipe(
  help("Sets the scopes of a key.", "21ca2b88d8bd --scopes read"),
  report(function* ({ key, named }) {
    const { context, found } = yield* find(key)
    const set = yield* scopesOf(named)
    if (found.origin === "file")
      return yield* Effect.fail(
        `key ${found.id} is of the configuration file: change its scopes there and start the service again`
      )
    yield* context.store.setScopes(found.hash, set)
    return {
      text: `key ${found.id} has the scopes ${set.join(",")}`,
      json: { id: found.id, account: found.accountId, scopes: set }
    }
  })
)

const hash = Command.make("hash", {
  variable: optional("pepper-env", "NAME", 'the variable that "keyPepper" names'),
  file: optional("pepper-file", "PATH", 'the file that "keyPepper" names'),
  json
}).pipe(
  help(
    'Generates a key for the configuration file: prints it once, and the hash for "accounts[].keys[]".',
    "--pepper-env CASTELLAN_PEPPER",
    "--pepper-file /run/secrets/castellan-pepper"
  ),
  report(function* ({ file, variable }) {
    const { env } = yield* Operator
    if ((variable === undefined) === (file === undefined))
      return yield* Effect.fail("expected either --pepper-env or --pepper-file")
    const path = resolve(file ?? "")
    const pepper = yield* Effect.fromResult(
      Result.mapError(
        Secrets.read(variable === undefined ? { file: path } : { env: variable }, {
          env,
          folder: dirname(path),
          allowInline: false
        }),
        (why) => `no pepper: ${why}`
      )
    )
    const issued = yield* Wiring.issueKey(pepper)
    const key = Redacted.value(issued.key)
    return {
      text: `API key (shown once): ${key}\nfor the configuration: { "hash": "${issued.hash}" }`,
      json: { key, hash: issued.hash }
    }
  })
)

export const commands = [create, list, show, identify, rotate, revoke, scopes, hash]

export const notes = [
  "A key's id is the first 12 digits of its keyed hash (8 are enough if they are unique).",
  "All changes take effect within a second, on all replicas, without a restart.",
  "Scopes of keys of the configuration file can only be changed in the file; any key can be rotated and revoked here."
]
