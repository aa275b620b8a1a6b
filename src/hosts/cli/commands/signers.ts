import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SignerRecord } from "../../../application/keys/KeyRingRegistry.js"
import * as Secp256k1 from "../../../domain/crypto/Secp256k1.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as KeyProviders from "../../config/KeyProviders.js"
import * as KnownSigners from "../support/KnownSigners.js"
import { help, json, Operator, optional, report, required } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Switch from "../support/Switch.js"
import * as Table from "../support/Table.js"

const shown = (signer: KnownSigners.Asked) => ({
  signer: signer.name,
  accounts: signer.accounts,
  address: signer.address,
  pinned: signer.source.address ?? null,
  type: signer.type,
  provider: signer.source.provider,
  key: signer.source.key,
  origin: signer.origin,
  reachable: signer.problem === null,
  problem: signer.problem
})
type Row = ReturnType<typeof shown>

const stateOf = ({ address, pinned, problem }: Row): string => {
  if (problem !== null) return `not reachable: ${problem}`
  return pinned === null || pinned === address ? "reachable" : `reachable, but configured is ${pinned}`
}

const placeOf = ({ key, provider }: Row): string =>
  `${JSON.stringify(key)} of provider ${JSON.stringify(provider)}`

const accountsOf = ({ accounts }: Row): string => (accounts.length === 0 ? "-" : accounts.join(","))

const list = Command.make("list", { json }).pipe(
  help(
    "Asks every provider for the keys of the configuration file and the database: address, type, and whether it can be reached.",
    "",
    "--json"
  ),
  report(function* () {
    const context = yield* OperatorContext.open
    const signers = yield* KnownSigners.ask(KnownSigners.all(context), context.config.keys)
    return Table.list(signers.map(shown), "there are no signers", {
      SIGNER: (row) => row.signer,
      ADDRESS: (row) => row.address ?? "unknown",
      TYPE: (row) => row.type ?? "",
      KEY: placeOf,
      ACCOUNTS: accountsOf,
      FROM: (row) => row.origin,
      STATE: stateOf
    })
  })
)

const operand = Argument.String("ADDRESS").pipe(Argument.withDescription("the key's address"))
const example = "0x7842e753F6A682A7907939a0855E0c72eD0c6cB9"

const subjectOf = (text: string) =>
  Effect.fromResult(Result.mapError(Address.from(text), ({ message }) => `${text}: ${message}`))

const noneAt = (address: string, asked: ReadonlyArray<KnownSigners.Asked>) => {
  const known = asked.map(({ address, name }) => `${address ?? "unknown"} (${name})`)
  return Effect.fail(
    `no key of the service has the address ${address}; ${OperatorContext.thereAre(known, "it has no keys")}`
  )
}

const show = Command.make("show", { text: operand, json }).pipe(
  help(
    "Shows a key by its address: every signer and system key that it is, in the configuration file and in the database, and whether it is paused. Also a pinned address whose provider does not answer.",
    example
  ),
  report(function* ({ text }) {
    const address = yield* subjectOf(text)
    const context = yield* OperatorContext.open
    const asked = yield* KnownSigners.ask(KnownSigners.all(context), context.config.keys)
    const rows = asked.map(shown).filter((row) => row.address === address || row.pinned === address)
    if (rows.length === 0) return yield* noneAt(address, asked)
    const since = OperatorContext.pausedSince(context.content, "signer", address)
    const paused = since === null ? null : Table.time(since)
    return {
      text: [
        ...rows.map((row) =>
          Table.card({
            signer: row.signer,
            address: row.address ?? "unknown",
            "configured as": row.pinned,
            type: row.type ?? "unknown",
            key: placeOf(row),
            accounts: accountsOf(row),
            from: row.origin,
            state: stateOf(row)
          })
        ),
        paused === null ? "it may sign" : `it is paused since ${paused}`
      ].join("\n\n"),
      json: { address, paused, signers: rows }
    }
  })
)

/** The client's highest numeric version plus one. */
const nextVersion = (signers: ReadonlyArray<SignerRecord>, clientId: string): string => {
  const versions = signers.flatMap((record) =>
    record.clientId === clientId && /^\d{1,9}$/.test(record.versionId ?? "") ? [Number(record.versionId)] : []
  )
  return String(Math.max(0, ...versions) + 1)
}

const create = Command.make("create", {
  name: required("provider", "NAME", 'of "providers" in the configuration'),
  key: required("key", "LABEL", "label of the key on the token"),
  owner: optional("account", "ID", "the account that gets the key; default: the only account"),
  client: optional("client-id", "ID", "clientId in requests; default: the account's id"),
  json
}).pipe(
  help(
    'Makes a non-extractable key on the token of a provider of kind pkcs11. Prints its address, its public key and its entry for "signers" of the configuration.',
    "--provider hsm --key acme-1 --account acme"
  ),
  report(function* ({ client, key, name, owner }) {
    const { accounts, keys } = yield* OperatorContext.config
    if (key === "" || key !== key.trim() || key.length > 512)
      return yield* Effect.fail("--key: expected 1 to 512 characters without outer white space")
    const provider = keys.providers.find((each) => each.name === name)
    if (provider === undefined) return yield* Effect.fail(`the configuration has no provider called ${name}`)
    const creation = KeyProviders.createKey(provider, key)
    if (creation === null)
      return yield* Effect.fail(
        `keys of kind ${provider.kind} are not made by this command: see ${KeyProviders.kinds[provider.kind].help.page}`
      )
    if (owner !== undefined && !accounts.some(({ accountId }) => accountId === owner))
      return yield* Effect.fail(`the configuration has no account called ${owner}`)
    const account = owner ?? (accounts.length === 1 ? accounts[0]?.accountId : undefined) ?? "ACCOUNT"
    const publicKey = yield* Effect.mapError(creation, ({ message }) => `no key was made: ${message}`)
    const address = Secp256k1.addressOf(publicKey)
    const clientId = client ?? account
    const entry = {
      accounts: [account],
      clientId,
      versionId: nextVersion(keys.signers, clientId),
      provider: name,
      key,
      address
    }
    return {
      text: [
        `address:    ${address}`,
        `public key: ${publicKey}`,
        'for "signers" in the configuration:',
        JSON.stringify(entry, null, 2)
      ].join("\n"),
      json: { address, publicKey, signer: entry }
    }
  })
)

/** An unavailable key provider must not prevent a pause: the command continues with a warning. */
const exists = (subject: string, context: OperatorContext.OperatorContext) =>
  Effect.gen(function* () {
    const known = KnownSigners.all(context)
    if (known.some(({ source }) => source.address === subject)) return
    const asked = yield* KnownSigners.askEach(known, context.config.keys, (each) =>
      each.address === subject ? Effect.fail("found") : Effect.succeed(each)
    ).pipe(Effect.catch(() => Effect.succeed(null)))
    if (asked === null) return
    const silent = asked.filter(({ address }) => address === null)
    if (silent.length > 0) {
      const { tell } = yield* Operator
      return yield* tell(
        `it is unknown whether ${subject} is a key of the service; unavailable: ${silent.map(({ name }) => name).join(", ")}`
      )
    }
    return yield* noneAt(subject, asked)
  })

export const commands = [
  list,
  show,
  create,
  ...Switch.commands({
    kind: "signer",
    operand,
    what: "by",
    anyWhat: "that a key would sign",
    example,
    subjectOf,
    exists
  })
]

export const notes = [
  "PINs and other secrets are read as the configuration says, never from the command line.",
  "A key is paused by its address: one of an account, or one of the operator's own (systemKeys).",
  "Pauses take effect within a second, on all replicas, without a restart. /sign is refused as well; reading is still possible."
]
