import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import {
  nameOf,
  nameOfRole,
  type Provider,
  type SignerRecord,
  systemRoles
} from "../../../application/keys/KeyRingRegistry.js"
import * as Call from "../../../application/keys/RingKeyCall.js"
import type { KeyProvider, KeyProviderError, ProviderKey } from "../../../application/ports/KeyProvider.js"
import * as Secp256k1 from "../../../domain/crypto/Secp256k1.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as AccountSigners from "../../config/AccountSigners.js"
import * as KeyProviders from "../../config/KeyProviders.js"
import type * as OperatorContext from "./OperatorContext.js"

/** A key of the service, for accounts or for the operator. */
interface KnownSigner {
  readonly name: string
  readonly accounts: ReadonlyArray<string>
  readonly source: SignerRecord["source"]
  /** Defines the key. */
  readonly origin: "database" | "file"
}

/** A key with its provider's reply. */
export interface Asked extends KnownSigner {
  readonly type: ProviderKey["type"] | null
  /** The pinned address while the provider does not respond; null: unknown. */
  readonly address: Address | null
  /** Reason why the provider returned no key; null: it did. */
  readonly problem: string | null
}

const ofRecord =
  (origin: KnownSigner["origin"]) =>
  (record: SignerRecord): KnownSigner => ({
    name: nameOf(record),
    accounts: record.accountIds,
    source: record.source,
    origin
  })

/** All keys of file and database. */
export const all = ({ config, content }: OperatorContext.OperatorContext): ReadonlyArray<KnownSigner> => [
  ...config.keys.signers.map(ofRecord("file")),
  ...content.signers.map(AccountSigners.recordOf).map(ofRecord("database")),
  ...systemRoles.flatMap((role): ReadonlyArray<KnownSigner> => {
    const source = config.keys.systemKeys[role]
    return source === undefined ? [] : [{ name: nameOfRole(role), accounts: [], source, origin: "file" }]
  })
]

const withPatience = <A>(call: () => Effect.Effect<A, KeyProviderError>, limits: Provider["limits"]) =>
  Effect.mapError(
    Call.withPatience(call, Call.ofResolving({ ...Call.defaults, ...limits })),
    ({ message, reason }) => `${message} (${reason})`
  )

const addressOf = (open: Effect.Effect<KeyProvider, string>, key: string) =>
  Effect.flatMap(
    Effect.flatMap(open, (provider) => withPatience(() => provider.key(key).publicKey, {})),
    (publicKey) =>
      Secp256k1.isPublicKey(publicKey)
        ? Effect.succeed(Secp256k1.addressOf(publicKey))
        : Effect.fail("its public key is no point of secp256k1")
  )

/**
 * Reads each key from its provider and passes the result on; a failure there ends the loop. A provider that cannot be
 * opened is tried once.
 */
export const askEach = <E>(
  signers: ReadonlyArray<KnownSigner>,
  { providers }: OperatorContext.OperatorContext["config"]["keys"],
  each: (asked: Asked) => Effect.Effect<Asked, E>
): Effect.Effect<ReadonlyArray<Asked>, E, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const doors = new Map<string, readonly [KeyProviders.Kind, Effect.Effect<KeyProvider, string>]>()
    for (const config of providers) {
      const { limits, open } = KeyProviders.provider(config)
      const door = yield* Effect.cached(withPatience(() => Scope.provide(open, scope), limits))
      doors.set(config.name, [config.kind, door])
    }
    return yield* Effect.forEach(
      signers,
      (signer) => {
        const { key, provider } = signer.source
        const [kind, open] = doors.get(provider) ?? [null, Effect.fail("there is no such provider")]
        const type = kind === null ? null : KeyProviders.kinds[kind].keyType
        return Effect.flatMap(
          Effect.match(addressOf(open, key), {
            onFailure: (problem) => ({ address: signer.source.address ?? null, problem }),
            onSuccess: (address) => ({ address, problem: null })
          }),
          (found) => each({ ...signer, type, ...found })
        )
      },
      { concurrency: 16 }
    )
  })

export const ask = (
  signers: ReadonlyArray<KnownSigner>,
  keys: OperatorContext.OperatorContext["config"]["keys"]
): Effect.Effect<ReadonlyArray<Asked>, never, Scope.Scope> => askEach(signers, keys, Effect.succeed)
