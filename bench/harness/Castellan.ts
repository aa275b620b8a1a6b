import { spawn } from "node:child_process"
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Wallet } from "ethers"
import { walletProxyCreationCode } from "../../src/domain/wallet/WalletProxy.generated.js"
import { devKeys } from "../../src/hosts/cli/dev/DevKeys.js"
import * as Wiring from "../../src/hosts/Wiring.js"
import { ensure } from "./Claim.js"
import * as Client from "./Client.js"
import type { Context } from "./Context.js"
import * as Processes from "./Processes.js"
import type { World } from "./World.js"

/** The service in a separate process, as an operator runs it, with SQLite, limits and logs. */
export interface Castellan {
  readonly pid: number
  readonly url: string
  readonly folder: string
  readonly database: string
  /** API keys of its accounts, one each. */
  readonly keys: ReadonlyArray<string>
  /** Milliseconds from the start of the process until it was ready. */
  readonly readyMillis: number
  readonly settings: Readonly<Record<string, unknown>>
  readonly client: Client.Client
  /** Sends a JSON POST with the key at this index; by default keys take turns. */
  readonly post: (path: string, body: unknown, key?: number) => Promise<Client.Answer>
  /** Like `post`, and returns the body of a 200. */
  readonly ok: <Body>(path: string, body: unknown, key?: number) => Promise<Body>
  /** Ends the process by SIGTERM and waits, while it writes its CPU profile. */
  readonly stop: () => Promise<void>
}

export interface Options {
  /** Number of accounts in the highest tier, with 1,000 requests a minute unless `limits` overrides them. */
  readonly accounts: number
  /** Limits of each account instead of its tier's. */
  readonly limits?: { readonly requestsPerMinute: number; readonly requestsPerHour: number }
  readonly tier?: string
  readonly signers?: number
  /** Node URL instead of the chain's. */
  readonly nodeUrl?: string
  readonly network?: Readonly<Record<string, unknown>>
  readonly config?: Readonly<Record<string, unknown>>
  /** Name of the CPU profile, if taken. */
  readonly profile?: string
  /** Options of Node. */
  readonly nodeArgs?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  /** Restarts on this service's folder, with its configuration and database. */
  readonly again?: Castellan
}

/** Limits that never bind. */
export const unbound = { requestsPerMinute: 1_000_000, requestsPerHour: 60_000_000 }

const pepper = "of a bench that ends soon"

export const signerRef = (place: number) => ({ clientId: "bench", versionId: String(place) })

const configFile = (world: World, options: Options, hashes: ReadonlyArray<string>) => {
  const accounts = hashes.map((_, place) => `account-${place}`)
  const signers = Array.from({ length: options.signers ?? 1 }, (_, place) => ({
    accounts,
    ...signerRef(place),
    privateKey: signerKey(place),
    shared: accounts.length > 1
  }))
  const { chain } = world
  return {
    profile: "development",
    listen: { host: "127.0.0.1", port: 0 },
    database: { path: "castellan.sqlite" },
    keyPepper: pepper,
    accounts: hashes.map((hash, place) => ({
      id: accounts[place],
      name: accounts[place],
      tier: options.tier ?? "enterprise",
      ...options.limits,
      keys: [{ hash }]
    })),
    signers,
    limits: { concurrentRequests: 2_048, connections: 4_096, connectionsPerAddress: 4_096 },
    systemKeys: { deployer: devKeys.deployer.privateKey, serviceEoa: devKeys.serviceEoa.privateKey },
    networks: [
      {
        chainId: chain.chainId,
        rpc: options.nodeUrl ?? chain.url,
        factory: chain.suite.factory,
        sharedFactory: true,
        validator: chain.suite.validator,
        ledger: chain.suite.ledger,
        beaconAdminAddress: chain.suite.beacon,
        beaconAdminCreationCode: walletProxyCreationCode,
        implementationCodeHash: chain.implementationCodeHash,
        confirmations: 1,
        pollIntervalMillis: 50,
        receiptTimeoutMillis: 180_000,
        ...options.network
      }
    ],
    ...options.config
  }
}

/** Private key of the signer with this index. */
export const signerKey = (place: number): string => `0x${(0xca57e11a + place).toString(16).padStart(64, "0")}`

const issue = (count: number) =>
  Effect.runPromise(
    Effect.forEach(Array.from({ length: count }), () => Wiring.issueKey(Redacted.make(pepper)))
  )

const untilReady = async (log: string, child: ReturnType<typeof spawn>): Promise<string> => {
  const until = performance.now() + 60_000
  for (;;) {
    const said = readFileSync(log, "utf8")
    const url = /"message":"listening".*?"url":"([^"]+)"/.exec(said)?.[1]
    if (url !== undefined) return url
    if (child.exitCode !== null || performance.now() > until)
      throw new Error(`the service does not start: ${said.slice(-2_000)}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

const profileArgs = (context: Context, name: string | undefined): ReadonlyArray<string> =>
  context.profiles === null || name === undefined
    ? []
    : ["--cpu-prof", "--cpu-prof-interval=500", `--cpu-prof-dir=${join(context.profiles, name)}`]

export const start = async (context: Context, world: World, options: Options): Promise<Castellan> => {
  const { again } = options
  const folder = again?.folder ?? mkdtempSync(join(tmpdir(), "castellan-bench-"))
  const config = join(folder, "castellan.json")
  const keys = again?.keys ?? (await writeConfig(world, options, config))
  if (again === undefined) context.defer(() => rmSync(folder, { recursive: true, force: true }))
  for (let place = 0; place < (options.signers ?? 1); place++)
    await world.fund([new Wallet(signerKey(place)).address])
  // Logs to a file, as under a supervisor, so that no reader slows it down.
  const log = join(folder, `log-${performance.now()}.jsonl`)
  const output = openSync(log, "w")
  const { CASTELLAN_CONFIG, NODE_ENV, NODE_OPTIONS, ...env } = process.env
  const profiled = profileArgs(context, options.profile)
  if (profiled.length > 0 && context.profiles !== null) mkdirSync(context.profiles, { recursive: true })
  const began = performance.now()
  const child = spawn(process.execPath, [...profiled, ...(options.nodeArgs ?? []), context.build.main], {
    cwd: folder,
    env: { ...env, ...options.env, CASTELLAN_CONFIG: config },
    stdio: ["ignore", output, output]
  })
  closeSync(output)
  Processes.tie(child)
  const stop = () => Processes.end(child, "SIGTERM")
  context.defer(stop)
  const url = await untilReady(log, child)
  const client = Client.make(url)
  const health = await client.send("GET", "/health/ready", {})
  ensure(health.status === 200, `the service is not ready: ${health.status} ${health.text}`)
  const readyMillis = performance.now() - began
  context.defer(client.close)
  let turn = 0
  const post: Castellan["post"] = (path, body, key = turn++) =>
    client.send(
      "POST",
      path,
      { "content-type": "application/json", "x-api-key": keys[key % keys.length] ?? "" },
      JSON.stringify(body)
    )
  return {
    pid: child.pid ?? 0,
    url,
    folder,
    database: join(folder, "castellan.sqlite"),
    keys,
    readyMillis,
    settings: {
      rpc: options.nodeUrl ?? world.chain.url,
      entryPoint: world.chain.entryPoints["v0.7"],
      signer: signerRef(0)
    },
    client,
    post,
    ok: async <Body>(path: string, body: unknown, key?: number) => {
      const answer = await post(path, body, key)
      ensure(answer.status === 200, `${path} answered ${answer.status}: ${answer.text.slice(0, 1_000)}`)
      return JSON.parse(answer.text) as Body
    },
    stop
  }
}

/** The service as this account uses it, with the signer of the same place. */
export const as = (castellan: Castellan, place: number): Castellan => ({
  ...castellan,
  settings: { ...castellan.settings, signer: signerRef(place) },
  post: (path, body) => castellan.post(path, body, place),
  ok: (path, body) => castellan.ok(path, body, place)
})

const writeConfig = async (world: World, options: Options, config: string) => {
  const issued = await issue(options.accounts)
  const file = configFile(
    world,
    options,
    issued.map(({ hash }) => hash)
  )
  writeFileSync(config, JSON.stringify(file))
  return issued.map(({ key }) => Redacted.value(key))
}
