import { readFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import * as Brand from "effect/Brand"
import * as Data from "effect/Data"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { NetworkProfile } from "../../application/ports/NetworkProfile.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as FileAccounts from "../../application/tenants/FileAccounts.js"
import * as UseAbi from "../../domain/abi/UseAbi.js"
import * as Breakage from "../../domain/json/Breakage.js"
import * as Json from "../../domain/json/Json.js"
import { ConfigFile, defaultLimits, type Limits } from "./ConfigFile.js"
import * as ConfigText from "./ConfigText.js"
import * as EdgeFile from "./EdgeFile.js"
import * as EnvOverrides from "./EnvOverrides.js"
import type { Problem, ReadSecret, Secret } from "./FileFields.js"
import * as KeysFile from "./KeysFile.js"
import * as NetworkProfiles from "./NetworkProfiles.js"
import * as OperationsFile from "./OperationsFile.js"
import * as SchemaProblems from "./SchemaProblems.js"
import * as Secrets from "./Secrets.js"

/** The configuration is unusable. `message` is for the operator: one line per problem, without secrets. */
export class ConfigError extends Data.TaggedError("ConfigError")<{
  readonly message: string
  readonly problems: ReadonlyArray<Problem>
}> {}

/** The service's configuration: validated, with defaults and secrets. */
export interface Config {
  readonly profile: "development" | "production"
  readonly listen: { readonly host: string; readonly port: number }
  /** A SQLite file, or the URL of a PostgreSQL database. */
  readonly database: { readonly path: string } | { readonly url: Redacted.Redacted<string> }
  readonly keyPepper: Redacted.Redacted<string>
  readonly accounts: ReadonlyArray<FileAccounts.Listed>
  readonly keys: KeysFile.KeysConfig
  readonly networks: ReadonlyArray<NetworkProfile>
  readonly accountNetworks: ReadonlyArray<NetworkProfiles.AccountProfile>
  /** Preset chains of `networks` that are not configured. */
  readonly unconfigured: ReadonlySet<bigint>
  /** Chains whose factory all accounts share. */
  readonly sharedFactories: ReadonlySet<bigint>
  /** Reads a secret referenced outside the file, under the file's rules. */
  readonly readSecret: (path: string, reference: Secret) => Result.Result<Redacted.Redacted<string>, Problem>
  /** Counter of requests for all replicas; null: the database, or with SQLite the process. */
  readonly rateLimit: { readonly redis: Redacted.Redacted<string> } | null
  /** ABI definitions for all accounts. */
  readonly abi: UseAbi.UseAbi
  readonly edge: EdgeFile.Edge
  readonly operations: OperationsFile.Operations
  /** Low-balance threshold of Submitting EOAs, in wei, by chain. */
  readonly lowBalances: ReadonlyMap<bigint, bigint>
  readonly limits: Limits
}

const leastPepperBytes = 16

const accountId = Brand.nominal<AccountId>()
const loopback = new Set(["127.0.0.1", "::1", "localhost"])

const failure = (problems: ReadonlyArray<Problem>, where: string): ConfigError =>
  new ConfigError({
    problems,
    message: [
      `the configuration ${where} cannot be used:`,
      ...SchemaProblems.lines(problems).map((line) => `  ${line}`)
    ].join("\n")
  })

const decode = SchemaProblems.decoder(ConfigFile)

/** Reports all problems of a file that fails its schema, including unreadable secrets. */
const parse = (
  text: string,
  where: string,
  { env, folder }: Pick<Secrets.Sources, "env" | "folder">
): Result.Result<ConfigFile, ConfigError> => {
  const plain = ConfigText.json(text)
  const json = Json.parse(plain, Json.unbounded)
  if (Result.isFailure(json)) {
    const { kind, message, path } = json.failure
    const problem = kind === "malformed" ? `it is not JSON${Breakage.describeIn(plain)}` : message
    return Result.fail(failure([{ path, message: problem }], where))
  }
  const overridden = EnvOverrides.apply(json.success, env)
  if (overridden.problems.length > 0) return Result.fail(failure(overridden.problems, where))
  return Result.mapError(decode(overridden.file), (problems) => {
    const paths = problems.map(({ path }) => path)
    const sources = { env, folder, allowInline: true }
    return failure([...problems, ...Secrets.unreadable(overridden.file, sources, paths)], where)
  })
}

const everyAddress = new Set(["0.0.0.0", "::"])

/** Whether the operator's port conflicts with the service's. */
const sharesPort = ({ admin, listen }: ConfigFile): boolean => {
  if (admin === undefined || admin.port === 0 || admin.port !== listen.port) return false
  const { host = OperationsFile.adminHost } = admin
  return host === listen.host || everyAddress.has(host) || everyAddress.has(listen.host)
}

const contradictions = (file: ConfigFile, env: Secrets.Sources["env"]): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const say = (path: string, message: string) => problems.push({ path, message })
  const development = file.profile === "development"
  if (development && env.NODE_ENV === "production")
    say("profile", "the development profile does not start while NODE_ENV is production")
  if (development && !loopback.has(file.listen.host))
    say("listen.host", "the development profile listens on a loopback address only")
  file.accounts.forEach(({ id }, index) => {
    if (file.accounts.findIndex((other) => other.id === id) < index)
      say(`accounts[${index}].id`, `another account is called ${id}`)
  })
  const hashes = new Set<string>()
  file.accounts.forEach(({ keys }, account) => {
    keys.forEach(({ hash, scopes = [] }, index) => {
      if (hashes.has(hash)) say(`accounts[${account}].keys[${index}].hash`, "another key has this hash")
      hashes.add(hash)
      const conflict = FileAccounts.conflict(scopes)
      if (conflict !== null) say(`accounts[${account}].keys[${index}].scopes`, conflict)
    })
  })
  if (sharesPort(file)) say("admin.port", "listen has this port")
  file.networks.forEach((network, index) => {
    const { confirmations, maxFeePerGas, maxPriorityFeePerGas, settledDepth, sharedFactory } = network
    const at = `networks[${index}]`
    if (confirmations !== undefined && settledDepth !== undefined && settledDepth < confirmations)
      say(`${at}.settledDepth`, "expected at least the confirmations")
    if (
      maxFeePerGas !== undefined &&
      maxPriorityFeePerGas !== undefined &&
      maxPriorityFeePerGas > maxFeePerGas
    )
      say(`${at}.maxPriorityFeePerGas`, "expected at most maxFeePerGas")
    if (sharedFactory === true && !development)
      say(`${at}.sharedFactory`, "a shared factory is possible in the development profile only")
  })
  return problems
}

/** Networks of the file and its accounts, with their secret URLs. */
const networkProfiles = (
  file: ConfigFile,
  secret: ReadSecret,
  say: (path: string, message: string) => void
): NetworkProfiles.Output =>
  NetworkProfiles.make({
    networks: file.networks.map((network, index) =>
      NetworkProfiles.locate(network, `networks[${index}]`, secret, say)
    ),
    accounts: file.accounts.map(({ id, networks = [] }, account) => ({
      accountId: accountId(id),
      networks: networks.map((network, index) =>
        NetworkProfiles.locate(network, `accounts[${account}].networks[${index}]`, secret, say)
      )
    })),
    development: file.profile === "development",
    sponsors: file.systemKeys?.sponsor !== undefined,
    treasury: file.systemKeys?.treasury !== undefined
  })

const accountOf = ({
  id,
  keys,
  name,
  paused,
  requestsPerHour,
  requestsPerMinute,
  tier
}: ConfigFile["accounts"][number]): FileAccounts.Listed => ({
  accountId: accountId(id),
  name,
  tier,
  ...(requestsPerMinute !== undefined && { requestsPerMinute }),
  ...(requestsPerHour !== undefined && { requestsPerHour }),
  paused: paused ?? false,
  keys: keys.map(({ hash, scopes }) => ({ hash, scopes: scopes ?? FileAccounts.defaultScopes }))
})

/** Builds the configuration from a file's text. `where` names the file in messages. */
export const fromText = (
  text: string,
  where: string,
  env: Secrets.Sources["env"],
  folder: string
): Result.Result<Config, ConfigError> =>
  Result.flatMap(parse(text, where, { env, folder }), (file) => {
    const sources: Secrets.Sources = { env, folder, allowInline: file.profile === "development" }
    const problems = [...contradictions(file, env)]
    const say = (path: string, message: string) => {
      problems.push({ path, message })
    }
    const secret: ReadSecret = (path, reference) =>
      Result.getOrElse(Secrets.read(reference, sources), (message) => {
        say(path, message)
        return Redacted.make("")
      })

    const keyPepper = secret("keyPepper", file.keyPepper)
    const pepperBytes = Buffer.byteLength(Redacted.value(keyPepper), "utf8")
    // An unreadable pepper is already a problem.
    if (pepperBytes > 0 && pepperBytes < leastPepperBytes)
      say("keyPepper", `expected at least ${leastPepperBytes} bytes`)
    const rateLimit =
      file.rateLimit === undefined ? null : { redis: secret("rateLimit.redis", file.rateLimit.redis) }
    const database =
      "url" in file.database
        ? { url: secret("database.url", file.database.url) }
        : { path: resolve(folder, file.database.path) }
    const keys = KeysFile.read(
      file,
      {
        development: file.profile === "development",
        accounts: new Set(file.accounts.map(({ id }) => id))
      },
      {
        secret,
        say,
        path: (text) => resolve(folder, text)
      }
    )
    const profiles = networkProfiles(file, secret, say)
    problems.push(...profiles.problems)
    const abi = Result.getOrElse(UseAbi.parse(file.abi ?? []), ({ index, message }) => {
      say(`abi[${index}]`, message)
      return UseAbi.empty
    })
    const operations = OperationsFile.read(file, secret, say)
    if (problems.length > 0) return Result.fail(failure(problems, where))
    return Result.succeed({
      profile: file.profile,
      listen: file.listen,
      database,
      keyPepper,
      accounts: file.accounts.map(accountOf),
      keys,
      networks: profiles.networks,
      accountNetworks: profiles.accountNetworks,
      unconfigured: profiles.unconfigured,
      sharedFactories: new Set(
        file.networks.filter(({ sharedFactory }) => sharedFactory).map(({ chainId }) => chainId)
      ),
      readSecret: (path, reference) =>
        Result.mapError(Secrets.read(reference, sources), (message) => ({ path, message })),
      rateLimit,
      abi,
      edge: EdgeFile.read(file),
      operations,
      lowBalances: NetworkProfiles.lowBalances(file.networks),
      limits: { ...defaultLimits, ...file.limits }
    })
  })

export type File = typeof ConfigFile.Encoded

/** Builds the configuration from a file's content. `env` holds secrets and overrides; relative paths start at `folder`. */
export const from = (
  file: File,
  options: { readonly env?: Secrets.Sources["env"]; readonly folder?: string } = {}
): Result.Result<Config, ConfigError> =>
  fromText(JSON.stringify(file), "of the program", options.env ?? {}, resolve(options.folder ?? "."))

const unreadable = (cause: unknown): string => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"
  return code === "ENOENT" ? "there is no such file" : `the file cannot be read (${code})`
}

/** Reads the configuration from the file at `CASTELLAN_CONFIG`. */
export const load = (env: Secrets.Sources["env"]): Result.Result<Config, ConfigError> => {
  const named = env.CASTELLAN_CONFIG
  if (named === undefined || named === "")
    return Result.fail(
      new ConfigError({
        problems: [],
        message:
          'CASTELLAN_CONFIG is not set: it, or --config, names the configuration file; "castellan init" writes one'
      })
    )
  const path = resolve(named)
  return Result.flatMap(
    Result.try({
      try: () => readFileSync(path, "utf8"),
      catch: (cause) => failure([{ path: "", message: unreadable(cause) }], path)
    }),
    (text) => fromText(text, path, env, dirname(path))
  )
}
