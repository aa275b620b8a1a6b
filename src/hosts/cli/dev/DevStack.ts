import { mkdtempSync, rmSync } from "node:fs"
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

/** What `.castellan/dev.json` holds: all that a client of a development stack needs. */
export interface DevInfo {
  readonly baseUrl: string
  readonly rpc: string
  readonly chainId: number
  readonly apiKeys: Readonly<Record<Tier, string>>
  /** For every endpoint; `entryPoint` is the EntryPoint v0.7, another of `entryPoints` put in works as well. */
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
  /** Pays for the wallets of every account, each up to its budget of the day, when `settings.paymaster` names it. */
  readonly paymaster: string
  /** An ERC-20 whose mint(address,uint256) anyone may call. */
  readonly token: string
  /** A contract whose functions fail, each in one way. */
  readonly reverter: string
  readonly faucetPrivateKey: string
}

export interface Options {
  /** Of the service; 0 picks a free one. */
  readonly port: number
  readonly rpcPort: number
  readonly chainId: number
  readonly blockTime: number | null
  /** The URL of a development node that runs already. Default: an anvil of its own. */
  readonly rpc?: string | undefined
  readonly startNode?: DevChain.StartNode
  /** What the service shall use as its node's URL, given the chain's own: a proxy in front of it. Default: itself. */
  readonly nodeUrl?: (chainUrl: string) => Effect.Effect<string, never, Scope.Scope>
  /** Fields of the network's configuration, beside or in place of those of a development stack. */
  readonly network?: Readonly<Record<string, unknown>>
  /** Fields of the configuration likewise. */
  readonly config?: Readonly<Record<string, unknown>>
}

const refuse = (message: string) => new DevChain.DevError({ message })

/** The development stack hands out well-known keys: nothing of it may happen where real ones are. */
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

const pepper = "development only, known to everybody"

/** The configuration file of a development stack, as the operator of a real one would write it. */
const configFile = (
  dev: DevChain.DevChain,
  nodeUrl: string,
  { config, network, port }: Options,
  folder: string,
  keys: Readonly<Record<Tier, { readonly hash: string }>>
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
  ...config
})

/**
 * A chain, everything on it, and the service in this process, until the scope closes. Fails when it is not certain
 * that this is a development machine, and when a port is in use.
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
    // The second oldest: most wallets of others are at it.
    const [, entryPoint = ""] = Object.values(dev.entryPoints)
    const nodeUrl = yield* options.nodeUrl?.(dev.url) ?? Effect.succeed(dev.url)

    const issue = Wiring.issueKey(Redacted.make(pepper))
    const issued = yield* Effect.all({ free: issue, pro: issue, enterprise: issue })
    const file = configFile(dev, nodeUrl, options, folder, issued)
    const config = yield* Effect.fromResult(
      Config.fromText(JSON.stringify(file), "of the development stack", process.env, folder)
    )
    const { url } = yield* Effect.mapError(Service.start(config), (error) =>
      refuse(
        "code" in error && error.code === "EADDRINUSE"
          ? `port ${options.port} (--port) is in use`
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
      faucetPrivateKey: devKeys.faucet.privateKey
    }
  })
