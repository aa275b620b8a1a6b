import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { Address } from "../../domain/primitives/Address.js"
import { SignerError, type SignerRef, Signers, SystemSigners } from "../ports/Signers.js"
import type { AccountId } from "../ports/Tenants.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import {
  clientKey,
  type KeySource,
  nameOf,
  nameOfRole,
  type Provider,
  type Registry,
  referenceKey,
  referencesOf,
  type SignerRecord,
  type SystemRole,
  systemRoles
} from "./KeyRingRegistry.js"
import * as Rules from "./KeyRingRules.js"
import * as RingKey from "./RingKey.js"
import * as Call from "./RingKeyCall.js"
import * as SingleFlight from "./SingleFlight.js"

/**
 * Resolves the references of requests to keys of any providers, and implements the ports `Signers` and `SystemSigners`.
 * `AccountSigners` admits the keys that commands have added.
 *
 * Gotchas: one faulty key among new ones excludes all of them.
 */

export type { KeySource, Provider, Registry, SignerRecord } from "./KeyRingRegistry.js"

/** Time limit at the start for reading public keys, and the number of concurrent reads. */
const startPatience = Duration.minutes(1)
const startConcurrency = 16

/** Opens a provider once; a failed attempt closes everything it opened. */
const opened = ({ limits, open }: Provider) =>
  Effect.flatMap(Effect.scope, (ring) =>
    SingleFlight.make(
      Call.withPatience(
        () =>
          Effect.flatMap(Scope.fork(ring, "sequential"), (own) =>
            Effect.onError(Scope.provide(open, own), (cause) => Scope.close(own, Exit.failCause(cause)))
          ),
        Call.ofResolving({ ...Call.defaults, ...limits })
      )
    )
  )

/** The key as the configuration names it, for messages. */
const place = ({ key, provider }: KeySource): string =>
  `key ${JSON.stringify(key)} of provider ${JSON.stringify(provider)}`

/** One entry per key, however many names it has; no provider is queried yet. */
const ringOf = Effect.fnUntraced(function* ({ providers }: Registry) {
  const scope = yield* Effect.scope
  const doors = new Map<string, Effect.Success<ReturnType<typeof opened>>>()
  for (const [name, provider] of Object.entries(providers)) doors.set(name, yield* opened(provider))
  const keys = new Map<string, RingKey.RingKey>()
  const idOf = ({ address, key, provider }: KeySource) => JSON.stringify([provider, key, address ?? null])
  return {
    add: (sources: ReadonlyArray<KeySource>) =>
      Effect.gen(function* () {
        for (const source of sources) {
          const door = doors.get(source.provider)
          if (door === undefined || keys.has(idOf(source))) continue
          const options = {
            label: place(source),
            pinned: source.address ?? null,
            limits: { ...Call.defaults, ...providers[source.provider]?.limits }
          }
          keys.set(
            idOf(source),
            yield* RingKey.make(
              Effect.map(door, (provider) => provider.key(source.key)),
              options
            )
          )
        }
      }).pipe(Scope.provide(scope)),
    get: (source: KeySource): RingKey.RingKey => keys.get(idOf(source)) ?? absent
  }
})

const absent: RingKey.RingKey = {
  resolve: new Call.RingKeyError({ reason: "notFound", message: "there is no such provider" }),
  signer: Effect.fail(RingKey.signerError("refused"))
}

interface Wanted {
  readonly name: string
  readonly source: KeySource
}

const remedy = "the service starts without the provider when the signer's address is configured"

/** The key's address, or its problem. A pinned key need not answer now. */
const addressOf = Effect.fnUntraced(function* (
  key: RingKey.RingKey,
  { name, source }: Wanted,
  until: number
) {
  const now = yield* MonotonicTime.millis
  return yield* key.resolve.pipe(
    Effect.timeoutOrElse({
      duration: Math.max(0, until - now),
      orElse: () => new Call.RingKeyError({ reason: "unavailable", message: "no answer in time" })
    }),
    Effect.map(({ address }) => address),
    Effect.catch(({ message, reason }): Effect.Effect<Address, Rules.Problem> => {
      const problem = `${name}: ${place(source)}: ${message}`
      if (reason !== "unavailable") return Effect.fail({ reason, message: problem })
      if (source.address === undefined) return Effect.fail({ reason, message: `${problem} (${remedy})` })
      return Effect.logWarning("key provider down").pipe(
        Effect.annotateLogs({ key: place(source), detail: message }),
        Effect.as(source.address)
      )
    })
  )
})

/** Queries all keys; returns the known addresses, and all problems. */
const ask = Effect.fnUntraced(function* <W extends Wanted>(
  wanted: ReadonlyArray<W>,
  ringKey: (source: KeySource) => RingKey.RingKey,
  patience: Duration.Duration
) {
  const until = (yield* MonotonicTime.millis) + Duration.toMillis(patience)
  const asked = yield* Effect.forEach(
    wanted,
    (each) =>
      Effect.map(Effect.result(addressOf(ringKey(each.source), each, until)), (answer) => ({
        each,
        answer
      })),
    { concurrency: startConcurrency }
  )
  return {
    problems: asked.flatMap(({ answer }) => (Result.isFailure(answer) ? [answer.failure] : [])),
    found: asked.flatMap(({ answer, each }) =>
      Result.isSuccess(answer) ? [{ ...each, address: answer.success }] : []
    )
  }
})

/** Problems of keys, and of accounts that reach them, as far as the providers answer. */
const problemsOf = Effect.fnUntraced(function* (
  signers: ReadonlyArray<SignerRecord>,
  roles: ReadonlyArray<Wanted & { readonly role: SystemRole }>,
  ringKey: (source: KeySource) => RingKey.RingKey,
  patience: Duration.Duration
) {
  const records = signers.map((record) => ({ name: nameOf(record), source: record.source, record }))
  const [ofAccounts, ofSystem] = yield* Effect.all(
    [ask(records, ringKey, patience), ask(roles, ringKey, patience)],
    { concurrency: 2 }
  )
  return [...ofAccounts.problems, ...ofSystem.problems, ...Rules.reach(ofAccounts.found, ofSystem.found)]
})

/** The ports that keys stand behind. */
export interface KeyRing {
  readonly signers: Signers["Service"]
  readonly systemSigners: SystemSigners["Service"]
  /**
   * Replaces the previously admitted keys: requests may name these in addition to the registry's. They are checked
   * against all others first; on any problem nothing changes. One admission at a time.
   */
  readonly admit: (records: ReadonlyArray<SignerRecord>) => Effect.Effect<void, Rules.KeyRingError>
}

interface Index {
  readonly clients: ReadonlySet<string>
  readonly keys: ReadonlyMap<string, RingKey.RingKey>
}

/**
 * A ring, and all its problems; keys without a problem can be used. For commands that report problems and sign nothing.
 * Queries all keys concurrently.
 */
export const examine = Effect.fnUntraced(function* (
  registry: Registry,
  patience: Duration.Duration = startPatience
) {
  const { system } = registry
  const ring = yield* ringOf(registry)
  const roles = systemRoles.flatMap((role) => {
    const source = system[role]
    return source === undefined ? [] : [{ name: nameOfRole(role), source, role }]
  })

  const indexed = (admitted: ReadonlyArray<SignerRecord>) =>
    Effect.gen(function* () {
      const signers = [...registry.signers, ...admitted]
      const misnamed = Rules.references({ ...registry, signers })
      yield* ring.add([...signers, ...roles].map(({ source }) => source))
      const problems = misnamed.length > 0 ? misnamed : yield* problemsOf(signers, roles, ring.get, patience)
      const clients = new Set<string>()
      const keys = new Map<string, RingKey.RingKey>()
      for (const record of signers)
        for (const [account, reference] of referencesOf(record)) {
          clients.add(clientKey(account, record.clientId))
          keys.set(reference, ring.get(record.source))
        }
      return { index: { clients, keys } satisfies Index, problems }
    })

  const first = yield* indexed([])
  let { index } = first

  const find = (account: AccountId, ref: SignerRef): RingKey.RingKey | SignerError["reason"] => {
    const { assetId, clientId, versionId } = ref
    const { clients, keys } = index
    if (!clients.has(clientKey(account, clientId))) return "clientIdIncorrect"
    if (assetId !== undefined && versionId === undefined)
      return keys.get(referenceKey(account, "asset", clientId, assetId)) ?? "assetNotSupported"
    if (versionId === undefined || assetId !== undefined) return "versionNotFound"
    return keys.get(referenceKey(account, "version", clientId, versionId)) ?? "versionNotFound"
  }

  const systemSigner = (role: SystemRole) => {
    const source = system[role]
    return source === undefined
      ? new SignerError({ reason: "notConfigured", message: `no system key ${role} is configured` })
      : ring.get(source).signer
  }

  const made: KeyRing = {
    signers: {
      resolve: (account, ref) =>
        Effect.suspend(() => {
          const found = find(account, ref)
          return typeof found === "string" ? Effect.fail(RingKey.signerError(found)) : found.signer
        })
    },
    systemSigners: {
      deployer: systemSigner("deployer"),
      serviceEoa: systemSigner("serviceEoa"),
      sponsor: systemSigner("sponsor"),
      treasury: systemSigner("treasury")
    },
    admit: (records) =>
      Effect.flatMap(indexed(records), (admitted) =>
        admitted.problems.length > 0
          ? Effect.fail(Rules.failure(admitted.problems))
          : Effect.sync(() => {
              index = admitted.index
            })
      )
  }
  return { ring: made, problems: first.problems }
})

/** Both ports over any number of providers; fails when the ring has any problem. */
export const make = (registry: Registry): Effect.Effect<KeyRing, Rules.KeyRingError, Scope.Scope> =>
  Effect.flatMap(examine(registry), ({ problems, ring }) =>
    problems.length > 0 ? Effect.fail(Rules.failure(problems)) : Effect.succeed(ring)
  )

/** The ring as the ports `Signers` and `SystemSigners`. */
export const ports = ({ signers, systemSigners }: KeyRing): Context.Context<Signers | SystemSigners> =>
  Context.make(Signers, signers).pipe(Context.add(SystemSigners, systemSigners))

/** Both ports; keys that cannot be used fail the start. */
export const layer = (registry: Registry): Layer.Layer<Signers | SystemSigners, Rules.KeyRingError> =>
  Layer.effectContext(Effect.map(make(registry), ports))
