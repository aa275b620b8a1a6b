import { createHash } from "node:crypto"
import { accessSync, constants, existsSync } from "node:fs"
import { dirname } from "node:path"
import * as Brand from "effect/Brand"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import * as ChainRpc from "../adapters/json-rpc/node/ChainRpc.js"
import * as WebhookSender from "../adapters/json-rpc/services/WebhookSender.js"
import * as ApiKey from "../adapters/memory/ApiKey.js"
import * as Networks from "../adapters/memory/Networks.js"
import * as ProcessRateLimit from "../adapters/memory/RateLimit.js"
import * as SqlClockConfirmations from "../adapters/sql/ClockConfirmations.js"
import * as ErrorCode from "../adapters/sql/ErrorCode.js"
import * as Journal from "../adapters/sql/journal/Journal.js"
import * as Migrations from "../adapters/sql/Migrations.js"
import * as OperatorLog from "../adapters/sql/operator/OperatorLog.js"
import * as RequestHistory from "../adapters/sql/operator/RequestHistory.js"
import type * as Postgres from "../adapters/sql/postgres/Postgres.js"
import * as ServerClock from "../adapters/sql/postgres/ServerClock.js"
import * as SqlRateLimit from "../adapters/sql/RateLimit.js"
import * as StoreCopy from "../adapters/sql/StoreCopy.js"
import type * as Sqlite from "../adapters/sql/sqlite/Sqlite.js"
import * as TenantStore from "../adapters/sql/TenantStore.js"
import { type Bounds, OpenRequestBounds, ScheduledRequestBounds } from "../application/intake/OpenRequests.js"
import * as KeyRing from "../application/keys/KeyRing.js"
import type { Registry } from "../application/keys/KeyRingRegistry.js"
import * as ClockCheck from "../application/operate/ClockCheck.js"
import { OperatorHook } from "../application/policies/DecisionHook.js"
import { OperatorAbi } from "../application/ports/AbiStore.js"
import type { ChainRpc as ChainRpcPort } from "../application/ports/chain/ChainRpc.js"
import { ClockConfirmations } from "../application/ports/clock/ClockConfirmations.js"
import type { Journals } from "../application/ports/journal/Journals.js"
import type { Networks as NetworksPort } from "../application/ports/Networks.js"
import type { OperatorLog as OperatorLogPort } from "../application/ports/operator/OperatorLog.js"
import type { RequestHistory as RequestHistoryPort } from "../application/ports/operator/RequestHistory.js"
import {
  RateLimitError,
  RateLimit as RateLimitPort,
  limits as rateLimits
} from "../application/ports/RateLimit.js"
import type { Signers as SignersPort, SystemSigners } from "../application/ports/Signers.js"
import type { TenantStore as AccountStorePort } from "../application/ports/TenantStore.js"
import { type AccountId, type Tenants as AccountsPort, TenantsError } from "../application/ports/Tenants.js"
import type { WebhookSender as WebhookSenderPort } from "../application/ports/Webhooks.js"
import * as Counting from "../application/tenants/Counting.js"
import * as Directory from "../application/tenants/Directory.js"
import * as AccountNetworks from "./config/AccountNetworks.js"
import * as AccountSigners from "./config/AccountSigners.js"
import type { Config } from "./config/Config.js"
import * as KeyProviders from "./config/KeyProviders.js"
import * as Packages from "./Packages.js"
import * as Running from "./Running.js"

/**
 * Builds ports from a `Config`. The service runs on `layer`; commands and inspections build only the parts that they
 * need.
 *
 * Gotchas: the service migrates an older schema; a command refuses it.
 */

/** All ports that the use cases and the HTTP server require. */
export type Ports = Running.Ports | AccountsPort | AccountStorePort | OperatorLogPort | RequestHistoryPort

/** The service cannot start with this configuration; `message` gives the reason, without secrets. */
export class StartError extends Data.TaggedError("StartError")<{ readonly message: string }> {}

/** Wrappers that a host may put around ports. */
export interface Seams {
  readonly journal?: (ports: Context.Context<Journals>) => Context.Context<Journals>
}

/** Loads the packages of the configured database only. */
const postgres = Effect.promise(() => import("../adapters/sql/postgres/Postgres.js"))
const sqlite = Effect.promise(() => import("../adapters/sql/sqlite/Sqlite.js"))

/** Prepares a database's schema before use. */
type Preparation = typeof Migrations.run

/** Uses the server's time, see `adapters/sql/postgres/ServerClock.ts`: several processes may share the database. */
const onPostgres = (address: Postgres.Address, prepare: Preparation) =>
  Effect.gen(function* () {
    const { layer, PostgresError } = yield* postgres
    // A migration of a large table may take long; other statements may not.
    const patient = layer({ ...address, answerTimeoutMillis: null })
    yield* Effect.scoped(Layer.build(Layer.provide(Layer.effectDiscard(prepare), patient)))
    const sql = layer(address)
    const clock = Layer.catch(ServerClock.layer, () =>
      Layer.effectContext(
        Effect.fail(new PostgresError({ message: "the PostgreSQL server does not return its time" }))
      )
    )
    return Layer.merge(sql, Layer.provide(clock, sql))
  })

type Client = Layer.Layer<SqlClient, Migrations.MigrationsError | Postgres.PostgresError | Sqlite.SqliteError>

const client = ({ database }: Config, prepare = Migrations.run): Client =>
  "url" in database
    ? Layer.unwrap(onPostgres(database, prepare))
    : Layer.unwrap(
        Effect.map(sqlite, ({ layer }) =>
          Layer.tap(layer({ filename: database.path }), (context) => Effect.provide(prepare, context))
        )
      )

/** Likewise for a service, which locks a SQLite file before touching the schema. */
const ownClient = (config: Config): Client => {
  const { database } = config
  if ("url" in database) return client(config)
  const own = Effect.flatMap(sqlite, ({ exclusive }) => exclusive({ filename: database.path }))
  return Layer.provide(client(config), Layer.effectDiscard(own))
}

/** Likewise for a command, which creates a new schema but leaves migrations to the service. */
const commandClient = (config: Config): Client =>
  client(config, Effect.andThen(Migrations.refuseOlder, Migrations.run))

const startError = ({ message }: { readonly message: string }) => new StartError({ message })

const orStartError = <A, R>(layer: Layer.Layer<A, { readonly message: string }, R>) =>
  Layer.catch(layer, (error) => Layer.effectContext<A, StartError, never>(Effect.fail(startError(error))))

const egressOf = (config: Config) => ({
  allowLoopback: config.profile === "development",
  ...config.edge.egress
})

/** Database ports of the command line, including the ones for testing webhooks. */
export type Stored =
  | Layer.Success<ReturnType<typeof Running.stored>>
  | AccountStorePort
  | ClockConfirmations
  | OperatorLogPort
  | RequestHistoryPort
  | WebhookSenderPort

export const stores = (config: Config): Layer.Layer<Stored, StartError> => {
  const sql = commandClient(config)
  return Layer.mergeAll(
    TenantStore.layer,
    RequestHistory.layer,
    OperatorLog.layer,
    SqlClockConfirmations.layer
  ).pipe(
    Layer.provide(sql),
    Layer.merge(Running.stored({ sealingKey: config.keyPepper, sql })),
    Layer.merge(WebhookSender.layer({ egress: egressOf(config) })),
    orStartError
  )
}

/** Accounts with their chains and nodes, to validate the command line's watches. */
export const callers = (
  config: Config
): Layer.Layer<ChainRpcPort | NetworksPort | AccountsPort, StartError, AccountStorePort> =>
  Layer.mergeAll(
    tenants(config),
    Layer.succeed(OperatorAbi, config.abi),
    ChainRpc.layer({ egress: egressOf(config) })
  ).pipe(orStartError)

/** Likewise with keys of signers, to read callers' requests. */
export const readers = (config: Config) =>
  AccountSigners.layer(registry(config.keys)).pipe(
    Layer.provideMerge(tenants(config)),
    Layer.merge(Layer.succeed(OperatorAbi, config.abi)),
    Layer.merge(ChainRpc.layer({ egress: egressOf(config) })),
    orStartError
  )

/**
 * Copies a service's SQLite file to another configuration's PostgreSQL, where a service with the same secrets continues.
 * The file must not be in use.
 */
export const copyStore = (
  from: Config,
  to: Config,
  onTable: (copied: StoreCopy.Copied) => Effect.Effect<void>
): Effect.Effect<ReadonlyArray<StoreCopy.Copied>, StartError> =>
  Effect.gen(function* () {
    if ("url" in from.database)
      return yield* new StartError({ message: "the source of a copy is a SQLite database file" })
    if (!("url" in to.database))
      return yield* new StartError({ message: "the database that it is copied to is one of PostgreSQL" })
    if (Redacted.value(from.keyPepper) !== Redacted.value(to.keyPepper))
      return yield* new StartError({
        message: "keyPepper is another one there: no key would be known, and no request could be read"
      })
    const filename = from.database.path
    if (!existsSync(filename)) return yield* new StartError({ message: `there is no file ${filename}` })
    const { exclusive, layer: file } = yield* sqlite
    const { layer: server } = yield* postgres
    yield* exclusive({ filename })
    const open = (
      layer: Layer.Layer<SqlClient, Postgres.PostgresError | Sqlite.SqliteError>,
      prepare: Preparation
    ) =>
      Effect.flatMap(Layer.build(layer), (context) =>
        Effect.provide(Effect.andThen(prepare, Migrations.client), context)
      )
    const source = yield* open(file({ filename }), Migrations.refuseOlder)
    const target = yield* open(server({ ...to.database, answerTimeoutMillis: null }), Effect.void)
    return yield* StoreCopy.copy(source, target, onTable)
  }).pipe(
    Effect.scoped,
    Effect.mapError((error) => (error instanceof StartError ? error : startError(error)))
  )

/** Keys, pauses and networks of accounts, from file and database. */
const tenants = (config: Config) => {
  const directory = Layer.unwrap(
    Effect.map(
      Effect.mapError(
        Effect.fromResult(ApiKey.hasher(config.keyPepper)),
        (message) => new TenantsError({ message })
      ),
      (hash) => Directory.layer({ hash, accounts: config.accounts })
    )
  )
  const networks = Networks.layer({ profiles: config.networks, overrides: config.accountNetworks })
  return Layer.provideMerge(AccountNetworks.layer(config, networks), directory)
}

const redis = (url: Redacted.Redacted<string>) =>
  Effect.flatMap(
    Effect.tryPromise({
      try: () => import("../adapters/redis/RateLimit.js"),
      catch: () =>
        new RateLimitError({
          message: `what Redis needs is not installed: ${Packages.installation(["ioredis"])}`
        })
    }),
    ({ make }) => make({ url })
  )

/** Counts requests in Redis, if configured, then in a shared PostgreSQL, then in this process. */
const rateLimit = (config: Config, sql: Client) => {
  const { rateLimit } = config
  const shared =
    "url" in config.database
      ? Layer.effect(RateLimitPort, Effect.map(RateLimitPort, Counting.withPatience)).pipe(
          Layer.provide(SqlRateLimit.layer),
          Layer.provide(sql)
        )
      : null
  if (rateLimit === null) return shared ?? ProcessRateLimit.layer
  const alone = Effect.map(redis(rateLimit.redis), (first) => Counting.withFailover(first, null))
  return shared === null
    ? Layer.effect(RateLimitPort, alone)
    : Layer.effect(
        RateLimitPort,
        Effect.zipWith(redis(rateLimit.redis), RateLimitPort, (first, second) =>
          Counting.withFailover(first, second)
        )
      ).pipe(Layer.provide(shared))
}

/** Distinguishes services that share a database: replicas have equal keys, other services have different ones. */
const groupOf = ({ keys: { providers, signers, systemKeys } }: Config): string =>
  createHash("sha256")
    .update(JSON.stringify([providers.map(({ kind, name }) => [kind, name]), signers, systemKeys]))
    .digest("hex")
    .slice(0, 16)

const boundsOf = ({ limits }: Config, what: "open" | "scheduled"): Bounds => ({
  requests: limits[`${what}Requests`],
  elements: limits[`${what}Elements`],
  requestsPerAccount: limits[`${what}RequestsPerAccount`],
  elementsPerAccount: limits[`${what}ElementsPerAccount`]
})

/** Development chains are exempt: their blocks may have any time. */
const clockCheck = ({ networks, profile }: Config) =>
  Effect.flatMap(ClockConfirmations, ({ latest }) =>
    ClockCheck.start({
      profiles: profile === "development" ? [] : networks,
      remedy: 'confirm it with "castellan store confirm-clock"',
      confirmation: latest
    })
  )

/** All ports of the service. `Running` binds the adapters that an embedding program shares. */
export const layer = (config: Config, { journal: between }: Seams = {}): Layer.Layer<Ports, StartError> => {
  const sql = ownClient(config)
  const sealingKey = config.keyPepper
  const adapters = Layer.mergeAll(
    Layer.succeed(OperatorAbi, config.abi),
    Layer.succeed(OperatorHook, config.operations.decisionHook),
    Layer.succeed(OpenRequestBounds, boundsOf(config, "open")),
    Layer.succeed(ScheduledRequestBounds, boundsOf(config, "scheduled")),
    Layer.provide(RequestHistory.layer, sql),
    Layer.provide(OperatorLog.layer, sql),
    Layer.provide(SqlClockConfirmations.layer, sql),
    AccountSigners.layer(registry(config.keys)).pipe(
      Layer.provideMerge(tenants(config)),
      Layer.provideMerge(Layer.provide(TenantStore.layer, sql))
    ),
    rateLimit(config, sql)
  )
  return Running.layer({
    sql,
    sealingKey,
    egress: egressOf(config),
    shared: "url" in config.database ? { url: config.database.url, group: groupOf(config) } : null,
    networks: config.networks,
    lowBalances: config.lowBalances,
    clockCheck: clockCheck(config),
    ...(between !== undefined && {
      journal: Layer.flatMap(Layer.provide(Journal.layer({ sealingKey }), sql), (ports) =>
        Layer.succeedContext(between(ports))
      )
    })
  }).pipe(
    Layer.provideMerge(adapters),
    // Users of the ports get the database's clock, too.
    Layer.provideMerge(Layer.provide(Layer.effect(Clock.Clock, Clock.Clock), sql)),
    orStartError
  )
}

export const nodes: Layer.Layer<ChainRpcPort> = ChainRpc.layer()

/** The configuration's keys, and one line per problem. Sound keys work even if others do not. */
export const keys = (
  config: Config,
  patience: Duration.Duration
): Effect.Effect<
  { readonly ports: Context.Context<SignersPort | SystemSigners>; readonly problems: ReadonlyArray<string> },
  never,
  Scope.Scope
> =>
  Effect.map(KeyRing.examine(registry(config.keys), patience), ({ problems, ring }) => ({
    ports: KeyRing.ports(ring),
    problems: problems.map(({ message }) => message)
  }))

/** Owner of no key. */
const nobody = Brand.nominal<AccountId>()("")

/** A server or file in the configuration other than nodes: `open` connects, or fails with the problem. */
export interface Connection {
  readonly name: string
  readonly open: Effect.Effect<unknown, { readonly message: string }, Scope.Scope>
}

/** Whether a SQLite file exists or can be created. Writes nothing. */
const openable = (path: string): Effect.Effect<void, { readonly message: string }> =>
  Effect.try({
    try: () => accessSync(existsSync(path) ? path : dirname(path), constants.R_OK | constants.W_OK),
    catch: (cause) => ({ message: `cannot open the database file ${path}${ErrorCode.suffix(cause)}` })
  })

/** Whether a PostgreSQL database is usable. Does not migrate it: processes of the previous version may need its schema. */
const usable = (address: Postgres.Address) =>
  Effect.flatMap(postgres, ({ layer }) =>
    Layer.build(Layer.provide(Layer.effectDiscard(Migrations.inspect), layer(address)))
  )

export const connections = (config: Config): ReadonlyArray<Connection> => {
  const { database, rateLimit } = config
  return [
    { name: "database", open: "url" in database ? usable(database) : openable(database.path) },
    ...(rateLimit === null
      ? []
      : [
          {
            name: "rateLimit.redis",
            open: Effect.flatMap(redis(rateLimit.redis), (counts) =>
              Effect.mapError(counts.take(nobody, rateLimits.free), () => ({
                message: "Redis does not answer"
              }))
            )
          }
        ])
  ]
}

export const registry = ({ providers, signers, systemKeys }: Config["keys"]): Registry => ({
  providers: Object.fromEntries(providers.map((each) => [each.name, KeyProviders.provider(each)])),
  signers,
  system: systemKeys
})

/** Creates an API key and its hash for the configuration. Only this result contains the key: show it once. */
export const issueKey = (
  pepper: Redacted.Redacted<string>
): Effect.Effect<{ readonly key: Redacted.Redacted<string>; readonly hash: string }> =>
  Effect.map(ApiKey.issue, (key) => ({ key, hash: ApiKey.hash(pepper, key) }))

/** The hash of a key in the configuration; null when the text is not a key. */
export const hashOfKey = (pepper: Redacted.Redacted<string>, key: Redacted.Redacted<string>): string | null =>
  Result.match(ApiKey.hasher(pepper), { onFailure: () => null, onSuccess: (hash) => hash(key) })
