import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Provider } from "./application/keys/KeyRing.js"
import * as KeyRing from "./application/keys/KeyRing.js"
import * as ClockCheck from "./application/operate/ClockCheck.js"
import type { ChainRpc } from "./application/ports/chain/ChainRpc.js"
import type { Networks } from "./application/ports/Networks.js"
import type { RateLimit } from "./application/ports/RateLimit.js"
import type { Signers, SystemSigners } from "./application/ports/Signers.js"
import type { AccountId } from "./application/ports/Tenants.js"
import type { Caller } from "./application/request/Caller.js"
import * as IpAddress from "./domain/net/IpAddress.js"
import * as Keccak from "./domain/primitives/Keccak.js"
import * as NetworkOptions from "./hosts/library/NetworkOptions.js"
import * as SignerOptions from "./hosts/library/SignerOptions.js"
import type { Given, Own, Port, Ports } from "./hosts/Running.js"

export type { Network } from "./hosts/library/NetworkOptions.js"
export type { Key, Signer } from "./hosts/library/SignerOptions.js"

export type Services = Ports

/** Storage of the journal, budgets, registered ABI definitions and the audit log. */
export type Database = ({ readonly path: string } | { readonly url: string | Redacted.Redacted<string> }) & {
  /** Seals requests and nodes at rest, at least 16 bytes. Keep it as long as the database. */
  readonly sealingKey: string | Redacted.Redacted<string>
}

export interface Options extends Own {
  /** Chains, in addition to the presets 137, 80002, 8453 and 84532; or the port itself. */
  readonly networks: ReadonlyArray<NetworkOptions.Network> | Port<Networks>
  /** Keys that requests may name; or the ports themselves. */
  readonly signers: ReadonlyArray<SignerOptions.Signer> | Port<Signers | SystemSigners>
  /** The operator's keys, which requests cannot name. Creating wallets requires a deployer. */
  readonly systemKeys?: SignerOptions.Options["systemKeys"]
  /** Key providers (HSM, KMS, MPC), by the name in `signers` and `systemKeys`. */
  readonly providers?: Readonly<Record<string, Provider>>
  /** A SQLite file, or PostgreSQL. Default: SQLite in memory, lost with the process. */
  readonly database?: Database
  /**
   * Confirms the host's clock when a chain's latest block is over an hour away from it. Otherwise, in that case at the
   * start, no stored data is deleted by age and no accepted request expires. Default: false.
   */
  readonly clockConfirmed?: boolean
  /** Destinations of requests' RPC URLs in addition to public addresses. Default: none. */
  readonly egress?: { readonly allowLoopback?: boolean; readonly allow?: ReadonlyArray<string> }
  readonly rateLimit?: Port<RateLimit>
}

/** The layer cannot be built. `message` has one line per problem, without secrets; `problems` names the options' paths. */
export class LayerError extends Data.TaggedError("LayerError")<{
  readonly message: string
  readonly problems: ReadonlyArray<{ readonly path: string; readonly message: string }>
}> {}

const failed = ({ message }: { readonly message: string }) => new LayerError({ message, problems: [] })

const refused = (problems: LayerError["problems"]) =>
  new LayerError({
    message: [
      "the options cannot be used:",
      ...problems.map(({ message, path }) => `  ${path}: ${message}`)
    ].join("\n"),
    problems
  })

/** Loads an adapter on first use: importing castellan loads no technology. */
const late = <P, E, R>(load: () => Promise<Layer.Layer<P, E, R>>): Layer.Layer<P, E, R> =>
  Layer.unwrap(Effect.promise(load))

const secret = (text: string | Redacted.Redacted<string>): Redacted.Redacted<string> =>
  Redacted.isRedacted(text) ? text : Redacted.make(text)

const clientOf = (database: Database | undefined): Port<SqlClient> =>
  database !== undefined && "url" in database
    ? late(() =>
        import("./adapters/sql/postgres/Postgres.js").then(({ layer }) =>
          layer({ url: secret(database.url) })
        )
      )
    : late(() =>
        import("./adapters/sql/sqlite/Sqlite.js").then(({ layer }) =>
          layer({ filename: database?.path ?? ":memory:" })
        )
      )

/** 32 random bytes: data in memory needs no lasting key. */
const freshKey = (): Redacted.Redacted<string> =>
  Redacted.make(Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(32))).toString("hex"))

/** Programs with the same keys on one PostgreSQL database share the lanes. */
const sharedOf = ({ database, journal, signers }: Options): Given["shared"] => {
  if (database === undefined || !("url" in database) || journal !== undefined) return null
  const names = isLayer(signers) ? [] : signers.map(({ clientId, versionId }) => [clientId, versionId])
  return { url: secret(database.url), group: Keccak.hashText(JSON.stringify(names)).slice(2, 18) }
}

/** A SQLite file belongs to one program. */
const exclusive = ({ database, journal }: Options): Port<never> =>
  database !== undefined && "path" in database && journal === undefined
    ? late(() =>
        import("./adapters/sql/sqlite/Sqlite.js").then(({ exclusive }) =>
          Layer.effectDiscard(exclusive({ filename: database.path }))
        )
      )
    : Layer.empty

const openKeys = (keys: Readonly<Record<string, Redacted.Redacted<string>>>) =>
  Effect.flatMap(
    Effect.promise(() => import("./adapters/keys/PrivateKeys.js")),
    ({ make }) => make({ keys })
  )

const keys = ({ providers = {}, signers, systemKeys = {} }: Options): Port<Signers | SystemSigners> =>
  isLayer(signers)
    ? signers
    : KeyRing.layer(SignerOptions.registry({ signers, systemKeys, providers }, openKeys))

/** Data in memory is as old as the process, whatever its clock says. */
const clockCheck = (
  { clockConfirmed = false, database }: Options,
  profiles: ClockCheck.Options["profiles"]
): Effect.Effect<void, never, ChainRpc | Scope.Scope> =>
  ClockCheck.start({
    profiles: clockConfirmed || database === undefined ? [] : profiles,
    remedy: "confirm it with the option clockConfirmed",
    confirmation: Effect.succeed(null)
  })

const isLayer = <A, P>(given: ReadonlyArray<A> | Port<P>): given is Port<P> => Layer.isLayer(given)

const leastSealingKeyBytes = 16

const problemsOf = ({ database }: Options): LayerError["problems"] =>
  database !== undefined &&
  new TextEncoder().encode(Redacted.value(secret(database.sealingKey))).length < leastSealingKeyBytes
    ? [{ path: "database.sealingKey", message: `expected at least ${leastSealingKeyBytes} bytes` }]
    : []

/** The networks, and those with monitored balances of submitting EOAs. */
const networksOf = ({
  networks,
  systemKeys
}: Options): Result.Result<
  { readonly port: Port<Networks> } & NetworkOptions.Read,
  LayerError["problems"]
> =>
  isLayer(networks)
    ? Result.succeed({ port: networks, profiles: [], lowBalances: new Map() })
    : Result.map(
        NetworkOptions.read(networks, {
          sponsors: systemKeys?.sponsor !== undefined,
          treasury: systemKeys?.treasury !== undefined
        }),
        ({ lowBalances, profiles }) => ({
          port: late(() => import("./adapters/memory/Networks.js").then(({ layer }) => layer({ profiles }))),
          profiles,
          lowBalances
        })
      )

/**
 * All use cases in one layer, with default ports: JSON-RPC nodes, private keys in this process, SQLite in memory. Building
 * it resumes an earlier process's open work in the database. Its own work stops with its scope, and resumes when it is
 * built again over the same database.
 *
 * @example
 * Castellan.layer({
 *   networks: [{ chainId: 8453, rpc: "https://node.example", factory: "0x..", beaconAdminAddress: "0x.." }],
 *   signers: [{ clientId: "treasury", versionId: "1", privateKey: process.env.TREASURY_KEY ?? "" }],
 *   database: { path: "castellan.sqlite", sealingKey: process.env.SEALING_KEY ?? "" }
 * })
 */
export const layer = (options: Options): Layer.Layer<Services, LayerError> => {
  const networks = networksOf(options)
  const allow = Result.all((options.egress?.allow ?? []).map(IpAddress.range))
  const problems = [
    ...problemsOf(options),
    ...Result.match(networks, { onFailure: (wrong) => wrong, onSuccess: () => [] }),
    ...Result.match(allow, {
      onFailure: (message) => [{ path: "egress.allow", message }],
      onSuccess: () => []
    })
  ]
  if (Result.isFailure(networks) || Result.isFailure(allow) || problems.length > 0)
    return Layer.effectContext(Effect.fail(refused(problems)))
  const { database, egress } = options
  const { lowBalances, port, profiles } = networks.success
  const sql = clientOf(database)
  return late(() =>
    import("./hosts/Running.js").then((Running) =>
      Running.layer({
        ...options,
        sql,
        sealingKey: database === undefined ? freshKey() : secret(database.sealingKey),
        shared: sharedOf(options),
        egress: { allowLoopback: egress?.allowLoopback ?? false, allow: allow.success },
        networks: profiles,
        lowBalances,
        clockCheck: clockCheck(options, profiles)
      })
    )
  ).pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        exclusive(options),
        options.rateLimit ?? late(() => import("./adapters/memory/RateLimit.js").then(({ layer }) => layer)),
        port,
        keys(options)
      )
    ),
    Layer.catch((error) => Layer.effectContext(Effect.fail(failed(error))))
  )
}

export interface CallerOptions {
  /** Account of the request. Default: `default`. */
  readonly account?: string
  /** Makes retries of a write one request. `body` distinguishes other requests with the same key. */
  readonly idempotency?: { readonly key: string; readonly body: string }
}

/** The caller of one request, with a fresh request id. Never use one for two requests. */
export const caller = ({
  account = SignerOptions.defaultAccount,
  idempotency
}: CallerOptions = {}): Effect.Effect<Caller> =>
  Effect.sync(() => ({
    requestId: globalThis.crypto.randomUUID(),
    principal: {
      accountId: account as AccountId,
      name: account,
      tier: "enterprise",
      scopes: new Set(["read", "write", "sign", "webhooks"] as const),
      paused: false,
      keyId: null
    },
    idempotency:
      idempotency === undefined ? null : { key: idempotency.key, bodyHash: Keccak.hashText(idempotency.body) }
  }))
