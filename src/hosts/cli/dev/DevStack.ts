import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { map } from "effect/Record"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { walletProxyCreationCode } from "../../../domain/wallet/WalletProxy.generated.js"
import * as Config from "../../config/Config.js"
import * as Service from "../../node/Service.js"
import * as Wiring from "../../Wiring.js"
import * as DevChain from "./DevChain.js"
import { devKeys } from "./DevKeys.js"

const tiers = ["free", "pro", "enterprise"] as const
type Tier = (typeof tiers)[number]

/** Content of `.castellan/dev.json`: everything that a client of a development stack needs. */
export interface DevInfo {
  readonly baseUrl: string
  readonly rpc: string
  readonly chainId: number
  readonly apiKeys: Readonly<Record<Tier, string>>
  /** Settings for every endpoint. `entryPoint` is v0.7; the other `entryPoints` work as well. */
  readonly settings: {
    readonly rpc: string
    readonly entryPoint: string
    readonly factory: string
    readonly validator: string
    readonly beaconAdminAddress: string
    readonly beaconAdminCreationCode: string
    readonly signer: { readonly clientId: string; readonly versionId: string }
  }
  readonly entryPoints: DevChain.DevChain["entryPoints"]
  /** Pays for all accounts' wallets, up to each daily budget, when `settings.paymaster` names it. */
  readonly paymaster: string
  /** An ERC-20 with a public mint(address,uint256). */
  readonly token: string
  /** A contract whose functions each fail in a different way. */
  readonly reverter: string
  readonly faucetPrivateKey: string
  /** Link to the operator's console, which signs its reader in; null: the stack has none. */
  readonly console: string | null
  /** The service's configuration file, for commands such as `castellan lanes list`. */
  readonly config: string
}

export interface Options {
  /** Port of the service; 0 picks a free one. */
  readonly port: number
  readonly rpcPort: number
  /** Port of the operator's console; 0 picks a free one. Default: no console. */
  readonly consolePort?: number
  readonly chainId: number
  readonly blockTime: number | null
  /** URL of a running development node. Default: starts an anvil. */
  readonly rpc?: string | undefined
  readonly startNode?: DevChain.StartNode
  /** Maps the chain's URL to the node URL of the service, for example a proxy's. Default: unchanged. */
  readonly nodeUrl?: (chainUrl: string) => Effect.Effect<string, never, Scope.Scope>
  /** Overrides for the network's configuration. */
  readonly network?: Readonly<Record<string, unknown>>
  /** Overrides for the configuration. */
  readonly config?: Readonly<Record<string, unknown>>
}

const refuse = (message: string) => new DevChain.DevError({ message })

/** Refuses to run in production: the development stack publishes well-known keys. */
export const onlyInDevelopment = (env: Readonly<Record<string, string | undefined>>) =>
  Effect.gen(function* () {
    if (env.NODE_ENV === "production")
      return yield* refuse("the development stack does not start while NODE_ENV is production")
    if (env.CASTELLAN_CONFIG === undefined) return
    const profile = yield* Effect.match(Effect.fromResult(Config.load(env)), {
      onFailure: () => "unknown",
      onSuccess: (config) => config.profile
    })
    if (profile !== "development")
      return yield* refuse(
        `the development stack does not start: CASTELLAN_CONFIG names a configuration of the ${profile} profile`
      )
  })

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "castellan-dev-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const pepper = "development only, public"

/** A port of 127.0.0.1 that is free now. The console's link and its commands must know it before the service starts. */
const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

const consoleOf = ({ consolePort }: Options) =>
  consolePort === undefined
    ? Effect.succeed(null)
    : Effect.map(consolePort === 0 ? freePort : Effect.succeed(consolePort), (port) => ({
        port,
        token: randomBytes(24).toString("base64url")
      }))

/** The configuration file of a development stack, in the form that an operator writes. */
const configFile = (
  dev: DevChain.DevChain,
  nodeUrl: string,
  { config, network, port }: Options,
  folder: string,
  keys: Readonly<Record<Tier, { readonly hash: string }>>,
  admin: { readonly port: number; readonly token: string } | null
) => ({
  profile: "development",
  listen: { host: "127.0.0.1", port },
  database: { path: join(folder, "castellan.sqlite") },
  keyPepper: pepper,
  accounts: tiers.map((tier) => ({ id: tier, name: tier, tier, keys: [{ hash: keys[tier].hash }] })),
  signers: [
    {
      accounts: tiers,
      clientId: "dev",
      versionId: "1",
      privateKey: devKeys.signer.privateKey,
      shared: true
    }
  ],
  systemKeys: {
    deployer: devKeys.deployer.privateKey,
    serviceEoa: devKeys.serviceEoa.privateKey,
    sponsor: devKeys.sponsor.privateKey
  },
  networks: [
    {
      chainId: dev.chainId,
      rpc: nodeUrl,
      factory: dev.suite.factory,
      sharedFactory: true,
      validator: dev.suite.validator,
      beaconAdminAddress: dev.suite.beacon,
      beaconAdminCreationCode: walletProxyCreationCode,
      ledger: dev.suite.ledger,
      sponsor: { paymaster: dev.suite.paymaster, dailyBudget: "10000000000000000000" },
      implementationCodeHash: dev.implementationCodeHash,
      confirmations: 1,
      pollIntervalMillis: 50,
      ...network
    }
  ],
  ...(admin !== null && { admin }),
  ...config
})

/**
 * Runs a chain, its contracts and the service in this process until the scope closes. Fails when the machine may not be a
 * development machine, and when a port is in use.
 */
export const start = (
  options: Options
): Effect.Effect<DevInfo, DevChain.DevError | Config.ConfigError, Scope.Scope> =>
  Effect.gen(function* () {
    yield* onlyInDevelopment(process.env)
    const folder = yield* temporaryFolder
    const dev = yield* options.rpc === undefined
      ? DevChain.start({
          port: options.rpcPort,
          chainId: options.chainId,
          blockTime: options.blockTime,
          ...(options.startNode !== undefined && { startNode: options.startNode })
        })
      : DevChain.attach(options.rpc)
    // The second oldest EntryPoint: most existing wallets use it.
    const [, entryPoint = ""] = Object.values(dev.entryPoints)
    const nodeUrl = yield* options.nodeUrl?.(dev.url) ?? Effect.succeed(dev.url)

    const issue = Wiring.issueKey(Redacted.make(pepper))
    const issued = yield* Effect.all({ free: issue, pro: issue, enterprise: issue })
    const admin = yield* consoleOf(options)
    const file = join(folder, "castellan.json")
    const text = JSON.stringify(configFile(dev, nodeUrl, options, folder, issued, admin), null, 2)
    yield* Effect.sync(() => writeFileSync(file, text, { mode: 0o600 }))
    const config = yield* Effect.fromResult(
      Config.fromText(text, "of the development stack", process.env, folder)
    )
    const { url } = yield* Effect.mapError(Service.start(config), (error) =>
      refuse(
        "code" in error && error.code === "EADDRINUSE"
          ? error.message.startsWith("the operator's port")
            ? DevChain.inUse(admin?.port ?? 0, "--console-port")
            : DevChain.inUse(options.port, "--port")
          : error.message
      )
    )
    return {
      baseUrl: url,
      rpc: nodeUrl,
      chainId: dev.chainId,
      apiKeys: map(issued, ({ key }) => Redacted.value(key)),
      settings: {
        rpc: nodeUrl,
        entryPoint,
        factory: dev.suite.factory,
        validator: dev.suite.validator,
        beaconAdminAddress: dev.suite.beacon,
        beaconAdminCreationCode: walletProxyCreationCode,
        signer: { clientId: "dev", versionId: "1" }
      },
      entryPoints: dev.entryPoints,
      paymaster: dev.suite.paymaster,
      token: dev.token,
      reverter: dev.reverter,
      faucetPrivateKey: devKeys.faucet.privateKey,
      console: admin === null ? null : `http://127.0.0.1:${admin.port}/console/sign-in?token=${admin.token}`,
      config: file
    }
  })

/**
 * URL of the playground with its fields filled in. The values are in the fragment, which browsers never send. Uses
 * localhost: browsers create no passkeys for IP addresses.
 */
export const playgroundOf = ({ apiKeys, baseUrl, chainId, rpc, settings, token }: DevInfo): string => {
  const page = new URL("/playground", baseUrl)
  page.hostname = "localhost"
  const { clientId, versionId } = settings.signer
  page.hash = `key=${apiKeys.pro}&chain=${chainId}&rpc=${rpc}&token=${token}&signer=${clientId}/${versionId}`
  return page.href
}

/** URL of the page that describes every endpoint and sends requests. */
export const apiPageOf = ({ baseUrl }: DevInfo): string => new URL("/docs", baseUrl).href
