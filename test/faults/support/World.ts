import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { Contract, type JsonRpcProvider } from "ethers"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as DevChain from "../../../src/hosts/cli/dev/DevChain.js"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import * as Provider from "../../../src/hosts/cli/support/Provider.js"
import * as Wiring from "../../../src/hosts/Wiring.js"
import { startNode } from "../../../tools/PreparedChain.js"
import * as Server from "../../support/postgres/Server.js"

/**
 * A development chain with the counter on it. Several runs may follow each other on it, with separate wallets and keys.
 */
export interface World {
  readonly chain: DevChain.DevChain
  readonly provider: JsonRpcProvider
  readonly counter: Contract
  readonly send: (method: string, ...params: ReadonlyArray<unknown>) => Promise<unknown>
  /** The PostgreSQL of runs that use one: started on first use. */
  readonly postgres: () => Promise<Server.Server>
  readonly stop: () => Promise<void>
}

export const start = async (): Promise<World> => {
  const scope = await Effect.runPromise(Scope.make())
  const inScope = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
    Effect.runPromise(Scope.provide(effect, scope))
  const chain = await inScope(DevChain.start({ port: 0, chainId: 31337, blockTime: null, startNode }))
  const provider = await inScope(Provider.connect(chain.url, chain.chainId))
  const faucet = devKeys.faucet.connect(provider)
  let server: Promise<Server.Server> | undefined
  const address = await deploy(faucet, initCode("Counter"), `0x${"00".repeat(32)}`)
  return {
    chain,
    provider,
    counter: new Contract(address, artifact("Counter").abi, faucet),
    send: (method, ...params) => provider.send(method, [...params]),
    postgres: () => {
      server ??= Server.start()
      return server
    },
    stop: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      await (await server)?.stop()
    }
  }
}

export { entryPoints }

export const entryPoint = entryPoints["v0.7"]

export const creationCode = walletProxyCreationCode

const pepper = "of a test that ends soon"

/** An account of the service for a run, with a key and the signers that it may name. */
export interface Tenant {
  readonly id: string
  readonly key: string
  readonly hash: string
}

export const tenant = async (id: string): Promise<Tenant> => {
  const { hash, key } = await Effect.runPromise(Wiring.issueKey(Redacted.make(pepper)))
  return { id, hash, key: Redacted.value(key) }
}

/** A signer's key at a provider, and the provider, as the configuration names them. */
export interface Held {
  readonly provider: Readonly<Record<string, unknown>> & { readonly name: string }
  readonly key: string
}

export interface Profile {
  readonly nodeUrl: string
  readonly confirmations: number
  readonly settledDepth: number
  /** Time until a waiting transaction is replaced at a higher price. */
  readonly bumpAfterMillis: number
  readonly receiptTimeoutMillis: number
  readonly tenants: ReadonlyArray<Tenant>
  /** Named by `signerRef` of their place in the list; one of several tenants is shared. */
  readonly signers: ReadonlyArray<{
    readonly tenants: ReadonlyArray<Tenant>
    readonly privateKey: string
    readonly held?: Held
  }>
  /** Default: the chain's. */
  readonly requestExpiryMillis?: number
  /** Requests under way at most. */
  readonly concurrentRequests?: number
  /** Changed `limits` of the configuration. */
  readonly limits?: Readonly<Record<string, number>>
  /** Default: a file next to the configuration. */
  readonly database?: { readonly path: string } | { readonly url: string }
  /** The URL of a Redis that counts requests. Default: the database does, or the process. */
  readonly redis?: string
  /** URL of an external bundler. Default: the service bundles by itself. */
  readonly remoteBundler?: string
}

/** The requests' reference to the signer of this index. */
export const signerRef = (place: number) => ({ clientId: "faults", versionId: String(place) })

/** The service's configuration file, as the operator of a development machine would write it. */
export const configFile = ({ chain }: World, profile: Profile): string =>
  JSON.stringify({
    profile: "development",
    listen: { host: "127.0.0.1", port: 0 },
    database: profile.database ?? { path: "castellan.sqlite" },
    keyPepper: pepper,
    accounts: profile.tenants.map(({ hash, id }) => ({ id, name: id, tier: "enterprise", keys: [{ hash }] })),
    providers: profile.signers.flatMap(({ held }) => held?.provider ?? []),
    signers: profile.signers.map(({ held, privateKey, tenants }, place) => ({
      accounts: tenants.map(({ id }) => id),
      ...signerRef(place),
      ...(held === undefined ? { privateKey } : { provider: held.provider.name, key: held.key }),
      shared: tenants.length > 1
    })),
    ...(profile.redis !== undefined && { rateLimit: { redis: profile.redis } }),
    limits: { concurrentRequests: profile.concurrentRequests ?? 512, ...profile.limits },
    systemKeys: { deployer: devKeys.deployer.privateKey, serviceEoa: devKeys.serviceEoa.privateKey },
    networks: [
      {
        chainId: chain.chainId,
        rpc: profile.nodeUrl,
        factory: chain.suite.factory,
        sharedFactory: true,
        validator: chain.suite.validator,
        ledger: chain.suite.ledger,
        beaconAdminAddress: chain.suite.beacon,
        beaconAdminCreationCode: walletProxyCreationCode,
        implementationCodeHash: chain.implementationCodeHash,
        confirmations: profile.confirmations,
        settledDepth: profile.settledDepth,
        bumpAfterMillis: profile.bumpAfterMillis,
        receiptTimeoutMillis: profile.receiptTimeoutMillis,
        ...(profile.remoteBundler !== undefined && { bundler: { url: profile.remoteBundler } }),
        ...(profile.requestExpiryMillis !== undefined && {
          requestExpiryMillis: profile.requestExpiryMillis
        }),
        pollIntervalMillis: 50
      }
    ]
  })
