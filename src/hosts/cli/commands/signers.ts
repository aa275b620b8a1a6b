import { parseArgs } from "node:util"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Scope from "effect/Scope"
import {
  nameOf,
  nameOfRole,
  type Provider,
  type SignerRecord,
  systemRoles
} from "../../../application/keys/KeyRingRegistry.js"
import * as Call from "../../../application/keys/RingKeyCall.js"
import * as RingKeyLimits from "../../../application/keys/RingKeyLimits.js"
import type { KeyProvider, KeyProviderError, ProviderKey } from "../../../application/ports/KeyProvider.js"
import * as Secp256k1 from "../../../domain/crypto/Secp256k1.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Config from "../../config/Config.js"
import type { ProviderConfig } from "../../config/KeysConfig.js"
import type * as Secrets from "../../config/Secrets.js"
import * as Wiring from "../../Wiring.js"
import * as Command from "../support/Command.js"
import * as Switch from "../support/Switch.js"
import * as Table from "../support/Table.js"

export const usage = `castellan signers list

Asks every provider of the configuration for its keys: address, type, and whether it can be reached.

castellan signers create --provider NAME --key LABEL [--account ID] [--client-id ID]

Makes a key that can not be extracted on the token of a provider of kind pkcs11. Prints its address, its public key and
what goes into the configuration's "signers".

Both read the configuration that CASTELLAN_CONFIG names; PINs and other secrets come from where it says.

castellan signers pause ADDRESS
castellan signers resume ADDRESS
castellan signers paused

Stop and let go on new writes by a key, within a second: "castellan signers pause --help" tells more.`

const switches = Command.run({
  name: "signers",
  about: "pause and resume writes by a key",
  commands: Switch.commands({
    kind: "signer",
    operand: "ADDRESS",
    what: "by",
    subjectOf: (text) => Either.mapLeft(Address.from(text), (why) => `${text}: ${why}`)
  }),
  notes: [
    "A key is named by its address: one of an account, or one of the operator's own (systemKeys).",
    "Takes effect within a second, on all replicas, without a restart. /sign is refused as well; reading goes on."
  ]
})

type Keys = Config.Config["keys"]
type Limits = Provider["limits"]

/** Where keys of the other kinds are made. */
const elsewhere: Readonly<Record<Exclude<ProviderConfig["kind"], "pkcs11">, string>> = {
  "aws-kms": "docs/signers/aws-kms.md",
  "azure-kv": "docs/signers/azure-kv.md",
  fireblocks: "docs/signers/fireblocks.md",
  "gcp-kms": "docs/signers/gcp-kms.md",
  "private-key": "docs/signers.md"
}

/** Known without asking. */
const types: Readonly<Record<ProviderConfig["kind"], ProviderKey["type"]>> = {
  "aws-kms": "KMS",
  "azure-kv": "KMS",
  fireblocks: "MPC",
  "gcp-kms": "KMS",
  pkcs11: "HSM",
  "private-key": "PRIVATE_KEY"
}

/** One more than the largest number that is a version of this client. */
const nextVersion = (signers: ReadonlyArray<SignerRecord>, clientId: string): string => {
  const versions = signers.flatMap((record) =>
    record.clientId === clientId && /^\d{1,9}$/.test(record.versionId ?? "") ? [Number(record.versionId)] : []
  )
  return String(Math.max(0, ...versions) + 1)
}

const create = (args: ReadonlyArray<string>, { accounts, keys }: Config.Config) =>
  Effect.gen(function* () {
    const { values } = yield* Effect.try({
      try: () =>
        parseArgs({
          args: [...args],
          options: {
            provider: { type: "string" },
            key: { type: "string" },
            account: { type: "string" },
            "client-id": { type: "string" }
          }
        }),
      catch: () => usage
    })
    const { key, provider: name } = values
    if (name === undefined || key === undefined) return yield* Effect.fail(usage)
    if (key === "" || key !== key.trim() || key.length > 512)
      return yield* Effect.fail("--key: expected 1 to 512 characters without outer white space")
    const provider = keys.providers.find((each) => each.name === name)
    if (provider === undefined) return yield* Effect.fail(`the configuration has no provider called ${name}`)
    if (provider.kind !== "pkcs11")
      return yield* Effect.fail(
        `keys of kind ${provider.kind} are not made by this command: see ${elsewhere[provider.kind]}`
      )
    if (values.account !== undefined && !accounts.some(({ accountId }) => accountId === values.account))
      return yield* Effect.fail(`the configuration has no account called ${values.account}`)
    const account =
      values.account ?? (accounts.length === 1 ? accounts[0]?.accountId : undefined) ?? "ACCOUNT"
    const publicKey = yield* Effect.mapError(
      Wiring.createKey(provider, key),
      ({ message }) => `no key was made: ${message}`
    )
    const address = Secp256k1.addressOf(publicKey)
    const clientId = values["client-id"] ?? account
    const entry = {
      accounts: [account],
      clientId,
      versionId: nextVersion(keys.signers, clientId),
      provider: name,
      key,
      address
    }
    return [
      `address:    ${address}`,
      `public key: ${publicKey}`,
      'for "signers" in the configuration:',
      JSON.stringify(entry, null, 2)
    ].join("\n")
  })

/** A key of the configuration, by what messages call it. */
interface Listed {
  readonly name: string
  readonly source: SignerRecord["source"]
}

const listed = ({ signers, systemKeys }: Keys): ReadonlyArray<Listed> => [
  ...signers.map((record) => ({ name: nameOf(record), source: record.source })),
  ...systemRoles.flatMap((role) => {
    const source = systemKeys[role]
    return source === undefined ? [] : [{ name: nameOfRole(role), source }]
  })
]

/** The provider's key: its address, or why there is none. */
const ask = (open: Effect.Effect<KeyProvider, string>, { key, address: pinned }: SignerRecord["source"]) =>
  Effect.gen(function* () {
    const provider = yield* open
    const publicKey = yield* bounded(() => provider.key(key).publicKey)
    if (!Secp256k1.isPublicKey(publicKey))
      return yield* Effect.fail("its public key is no point of secp256k1")
    const address = Secp256k1.addressOf(publicKey)
    return pinned === undefined || pinned === address
      ? [address, "reachable"]
      : [address, `reachable, but configured is ${pinned}`]
  }).pipe(Effect.catchAll((why) => Effect.succeed([pinned ?? "unknown", `not reachable: ${why}`])))

const bounded = <A>(call: () => Effect.Effect<A, KeyProviderError>, limits: Limits = {}) =>
  Effect.mapError(
    Call.bounded(call, RingKeyLimits.ofResolving({ ...RingKeyLimits.defaults, ...limits })),
    ({ message, reason }) => `${message} (${reason})`
  )

const list = ({ keys }: Config.Config) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const doors = new Map<string, readonly [ProviderConfig["kind"], Effect.Effect<KeyProvider, string>]>()
    for (const config of keys.providers) {
      const { limits, open } = Wiring.provider(config)
      const door = yield* Effect.cached(bounded(() => Scope.extend(open, scope), limits))
      doors.set(config.name, [config.kind, door])
    }
    const rows = yield* Effect.forEach(
      listed(keys),
      ({ name, source }) => {
        const [kind, open] = doors.get(source.provider) ?? [null, Effect.fail("there is no such provider")]
        const place = `key ${JSON.stringify(source.key)} of provider ${JSON.stringify(source.provider)}`
        return Effect.map(ask(open, source), ([address = "", state = ""]) => [
          name,
          address,
          kind === null ? "" : types[kind],
          place,
          state
        ])
      },
      { concurrency: 16 }
    )
    return rows.length === 0 ? "the configuration has no signers" : Table.aligned(rows)
  }).pipe(Effect.scoped)

/** The lines that the command prints, or why it can not. */
export const run = (
  args: ReadonlyArray<string>,
  env: Secrets.Sources["env"]
): Effect.Effect<string, string> =>
  Effect.gen(function* () {
    const [command = "", ...rest] = args
    if (["pause", "resume", "paused"].includes(command)) return yield* switches(args, env)
    const known = command === "create" || (command === "list" && rest.length === 0)
    if (args.includes("--help") || args[0] === "help") return usage
    if (!known) return yield* Effect.fail(usage)
    const config = yield* Effect.mapError(Config.load(env), ({ message }) => message)
    return yield* command === "create" ? create(rest, config) : list(config)
  })
