import { dirname, resolve } from "node:path"
import { text as textOf } from "node:stream/consumers"
import * as Argument from "effect/cli/Argument"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { Scope } from "../../../application/ports/Tenants.js"
import { allScopes } from "../../../application/tenants/FileAccounts.js"
import * as Secrets from "../../config/Secrets.js"
import * as Wiring from "../../Wiring.js"
import * as Command from "../support/Command.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Table from "../support/Table.js"

const scopesOf = (text: string): Effect.Effect<ReadonlyArray<Scope>, string> => {
  const named = new Set(text.split(",").map((part) => part.trim()))
  const scopes = allScopes.filter((scope) => named.has(scope))
  return scopes.length === named.size
    ? Effect.succeed(scopes)
    : Effect.fail(`--scopes: expected some of ${allScopes.join(",")}`)
}

const units = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

const isUnit = (text: string | undefined): text is keyof typeof units => text !== undefined && text in units

const durationOf = (text: string): Effect.Effect<number, string> => {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  return isUnit(unit)
    ? Effect.succeed(Number(count) * units[unit])
    : Effect.fail("--overlap: expected a number and its unit, for example 90s, 30m, 24h or 7d; 0s for none")
}

type State = "active" | "ending" | "ended"

const stateOf = ({ endsAt }: OperatorContext.KnownKey, now: number): State =>
  endsAt === null ? "active" : endsAt > now ? "ending" : "ended"

/** A key as programs read it. */
export const shown = (key: OperatorContext.KnownKey, now: number) => ({
  id: key.id,
  account: key.accountId,
  scopes: key.scopes,
  state: stateOf(key, now),
  origin: key.origin === "file" ? "file" : "database",
  issuedAt: key.issuedAt === 0 ? null : Table.time(key.issuedAt),
  endsAt: key.endsAt === null ? null : Table.time(key.endsAt),
  lastUsedAt: key.usedAt === null ? null : Table.time(key.usedAt)
})

/** Keys as people read them. */
export const table = (keys: ReadonlyArray<OperatorContext.KnownKey>, now: number): string =>
  Table.listed(
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

/** Makes a key and keeps its hash; the key itself is in what is said, and nowhere else. */
const issue = (
  context: OperatorContext.OperatorContext,
  accountId: OperatorContext.Account["accountId"],
  scopes: ReadonlyArray<Scope>,
  replaced?: { readonly key: OperatorContext.KnownKey; readonly endsAt: number }
) =>
  Effect.gen(function* () {
    const { hash, key } = yield* Wiring.issueKey(context.config.keyPepper)
    const fresh = { hash, accountId, scopes, origin: "command", issuedAt: context.now, endsAt: null } as const
    yield* context.store.addKey(fresh, replaced)
    const said = { key: Redacted.value(key), id: OperatorContext.idOf(hash), account: accountId, scopes }
    return {
      said,
      lines: [
        `API key (shown once): ${said.key}`,
        `id:      ${said.id}`,
        `account: ${accountId}`,
        `scopes:  ${scopes.join(",")}`
      ]
    }
  })

const keyOperand = Command.operand("KEY", "the id of a key, never the key itself")

const create = Command.make({
  name: "create",
  about:
    "Issues a key for an account of the database or of the file. Prints it once; only its hash is stored.",
  examples: ["acme --scopes read,write"],
  operands: { id: Command.operand("ACCOUNT", "of the database or of the file") },
  flags: {
    named: Command.optional(
      "scopes",
      "LIST",
      "some of read,write,sign,webhooks, separated by commas; default all"
    )
  },
  run: function* ({ id, named }) {
    const context = yield* OperatorContext.open
    const { accountId } = yield* OperatorContext.accountOf(context, id)
    const scopes = named === undefined ? allScopes : yield* scopesOf(named)
    const { lines, said } = yield* issue(context, accountId, scopes)
    return { text: lines.join("\n"), json: said }
  }
})

const list = Command.make({
  name: "list",
  about: "Lists all keys, or those of one account: scopes, state, last use. Uses are recorded once a minute.",
  examples: ["", "acme"],
  operands: { id: Command.operand("ACCOUNT", "whose keys; all unless told").pipe(Argument.optional) },
  run: function* ({ id }) {
    const context = yield* OperatorContext.open
    const account = Option.isNone(id) ? null : yield* OperatorContext.accountOf(context, id.value)
    const keys = context.keys.filter(({ accountId }) => account === null || accountId === account.accountId)
    return { text: table(keys, context.now), json: keys.map((key) => shown(key, context.now)) }
  }
})

const show = Command.make({
  name: "show",
  about: "Shows one key.",
  examples: ["21ca2b88d8bd"],
  operands: { id: keyOperand },
  run: function* ({ id }) {
    const context = yield* OperatorContext.open
    const key = yield* OperatorContext.keyOf(context, id)
    return { text: table([key], context.now), json: shown(key, context.now) }
  }
})

const identify = Command.make({
  name: "identify",
  about: "Tells which key is on standard input, for example one that was leaked.",
  examples: ["< found.txt"],
  run: function* () {
    const context = yield* OperatorContext.open
    const text = yield* Effect.tryPromise({
      try: () => textOf(process.stdin),
      catch: () => "standard input can not be read"
    })
    const hash = Wiring.hashOfKey(context.config.keyPepper, Redacted.make(text.trim()))
    const key = context.keys.find((each) => each.hash === hash)
    if (key === undefined) return yield* Effect.fail("standard input has no key of this service")
    return { text: table([key], context.now), json: shown(key, context.now) }
  }
})

const living = (context: OperatorContext.OperatorContext, id: string) =>
  Effect.filterOrFail(
    OperatorContext.keyOf(context, id),
    (key) => stateOf(key, context.now) !== "ended",
    () => `key ${id} has ended; "castellan keys create ACCOUNT" issues another one`
  )

const rotate = Command.make({
  name: "rotate",
  about:
    "Issues a key that replaces another one, with the same scopes. The old one is invalid once the overlap is over.",
  examples: ["21ca2b88d8bd --overlap 24h"],
  operands: { id: keyOperand },
  flags: {
    overlap: Command.required("overlap", "TIME", "how long both are valid, for example 90s, 30m, 24h, 7d")
  },
  run: function* ({ id, overlap }) {
    const context = yield* OperatorContext.open
    const key = yield* living(context, id)
    const endsAt = context.now + (yield* durationOf(overlap))
    const { lines, said } = yield* issue(context, key.accountId, key.scopes, { key, endsAt })
    const last = Math.min(endsAt, key.endsAt ?? endsAt)
    return {
      text: [...lines, `the old key ${key.id} is good until ${Table.time(last)}`].join("\n"),
      json: { ...said, replaces: key.id, replacedEndsAt: Table.time(last) }
    }
  }
})

const revoke = Command.make({
  name: "revoke",
  about:
    "Revokes a key permanently, within a second on all replicas. Keys of the configuration file can be revoked too.",
  examples: ["21ca2b88d8bd"],
  operands: { id: keyOperand },
  run: function* ({ id }) {
    const context = yield* OperatorContext.open
    const key = yield* OperatorContext.keyOf(context, id)
    yield* context.store.endKey(key, context.now)
    return {
      text: `key ${key.id} of account ${key.accountId} is revoked`,
      json: { id: key.id, account: key.accountId, state: "ended" }
    }
  }
})

const scopes = Command.make({
  name: "scopes",
  about: "Sets the scopes of a key.",
  examples: ["21ca2b88d8bd --scopes read"],
  operands: { id: keyOperand },
  flags: {
    named: Command.required("scopes", "LIST", "some of read,write,sign,webhooks, separated by commas")
  },
  run: function* ({ id, named }) {
    const context = yield* OperatorContext.open
    const key = yield* OperatorContext.keyOf(context, id)
    const set = yield* scopesOf(named)
    if (key.origin === "file")
      return yield* Effect.fail(
        `key ${key.id} is of the configuration file: change its scopes there and start the service again`
      )
    yield* context.store.setScopes(key.hash, set)
    return {
      text: `key ${key.id} has the scopes ${set.join(",")}`,
      json: { id: key.id, account: key.accountId, scopes: set }
    }
  }
})

const hash = Command.make({
  name: "hash",
  about: 'Generates a key for the configuration file: prints it once, and the hash for "accounts[].keys[]".',
  examples: ["--pepper-env CASTELLAN_PEPPER", "--pepper-file /run/secrets/castellan-pepper"],
  flags: {
    variable: Command.optional("pepper-env", "NAME", 'the variable that "keyPepper" names'),
    file: Command.optional("pepper-file", "PATH", 'the file that "keyPepper" names')
  },
  run: function* ({ file, variable }) {
    const { env } = yield* Command.Operator
    const reference =
      variable !== undefined && file === undefined
        ? { env: variable }
        : file !== undefined && variable === undefined
          ? { file: resolve(file) }
          : null
    if (reference === null) return yield* Effect.fail("expected either --pepper-env or --pepper-file")
    const folder = "file" in reference ? dirname(reference.file) : "."
    const pepper = yield* Effect.fromResult(
      Result.mapError(
        Secrets.read(reference, { env, folder, allowInline: false }),
        (why) => `no pepper: ${why}`
      )
    )
    const issued = yield* Wiring.issueKey(pepper)
    const key = Redacted.value(issued.key)
    return {
      text: [`API key (shown once): ${key}`, `for the configuration: { "hash": "${issued.hash}" }`].join(
        "\n"
      ),
      json: { key, hash: issued.hash }
    }
  }
})

export const commands = [create, list, show, identify, rotate, revoke, scopes, hash] as const

export const notes = [
  "A key's id is the first 12 digits of its keyed hash (8 are enough if they are unique).",
  "All changes take effect within a second, on all replicas, without a restart.",
  "Scopes of keys of the configuration file can only be changed in the file; any key can be rotated and revoked here."
]
