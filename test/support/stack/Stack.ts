import { randomUUID } from "node:crypto"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { Contract, HDNodeWallet, type JsonRpcProvider, keccak256, Mnemonic, NonceManager } from "ethers"
import * as ChainRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as BundlerRpc from "../../../src/adapters/json-rpc/services/BundlerRpc.js"
import * as PaymasterRpc from "../../../src/adapters/json-rpc/services/PaymasterRpc.js"
import * as Networks from "../../../src/adapters/memory/Networks.js"
import * as Replicas from "../../../src/adapters/memory/Replicas.js"
import * as AbiStore from "../../../src/adapters/sql/AbiStore.js"
import * as Budgets from "../../../src/adapters/sql/Budgets.js"
import * as Journal from "../../../src/adapters/sql/journal/Journal.js"
import * as Sqlite from "../../../src/adapters/sql/Sqlite.js"
import * as Engine from "../../../src/application/lanes/Engine.js"
import type { AbiStore as AbiStoreTag } from "../../../src/application/ports/AbiStore.js"
import type { Budgets as BudgetsTag } from "../../../src/application/ports/Budgets.js"
import type { Bundler } from "../../../src/application/ports/chain/Bundler.js"
import type { BundlerRpc as BundlerRpcTag } from "../../../src/application/ports/chain/BundlerRpc.js"
import { ChainRpc as ChainRpcTag } from "../../../src/application/ports/chain/ChainRpc.js"
import type { PaymasterRpc as PaymasterRpcTag } from "../../../src/application/ports/chain/PaymasterRpc.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import { Networks as NetworksTag } from "../../../src/application/ports/Networks.js"
import { Replicas as ReplicasTag } from "../../../src/application/ports/Replicas.js"
import {
  type Signer,
  Signers as SignersTag,
  type SystemSigners
} from "../../../src/application/ports/Signers.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import type { Failure } from "../../../src/application/request/Failure.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Salt from "../../../src/domain/wallet/Salt.js"
import * as WalletAddress from "../../../src/domain/wallet/WalletAddress.js"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { deployEntryPoints, entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { deploySuite, fundPaymaster, type Suite } from "../../../src/hosts/cli/deploy/Suite.js"
import type { Anvil } from "../../../src/hosts/cli/dev/Anvil.js"
import { NodeProvider } from "../../../src/hosts/cli/support/NodeProvider.js"
import { startPrepared } from "../../../tools/PreparedChain.js"
import * as Journals from "../journal/Journals.js"
import * as PrivateKeys from "../signing/PrivateKeys.js"
import { mined } from "../suite/Receipt.js"

/** Ports of the application over a real chain and a real database. */
export type Ports =
  | AbiStoreTag
  | BudgetsTag
  | Bundler
  | BundlerRpcTag
  | ChainRpcTag
  | Engine.Engine
  | Journals.Ports
  | NetworksTag
  | PaymasterRpcTag
  | SignersTag
  | SystemSigners

const mnemonic = Mnemonic.fromPhrase("test test test test test test test test test test test junk")
export const keyOf = (index: number): HDNodeWallet =>
  HDNodeWallet.fromMnemonic(mnemonic, `m/44'/60'/0'/0/${index}`)

export { Address }

export const account = "tests" as AccountId

export interface Stack {
  readonly anvil: Anvil
  readonly provider: JsonRpcProvider
  readonly faucet: NonceManager
  readonly suite: Suite
  readonly token: Contract
  readonly reverter: Contract
  /** Counts calls per id. */
  readonly counter: Contract
  /** EOA of the request's signer. */
  readonly signer: HDNodeWallet
  readonly settings: {
    readonly rpc: string
    readonly entryPoint: Address.Address
    readonly signer: { readonly clientId: string; readonly versionId: string }
  }
  readonly caller: () => Caller
  readonly predict: (salt: string) => Address.Address
  /** Funds and creates wallets of these salts, owned by the signer. */
  readonly create: (...salts: ReadonlyArray<string>) => Promise<ReadonlyArray<Address.Address>>
  readonly fund: (address: string, wei: bigint) => Promise<void>
  readonly mint: (to: string, amount: bigint) => Promise<void>
  readonly balanceOf: (holder: string) => Promise<bigint>
  /** The use case's answer. */
  readonly ask: <A, R extends Ports>(effect: Effect.Effect<A, Failure, R>) => Promise<A>
  readonly runtime: ManagedRuntime.ManagedRuntime<Ports, unknown>
  /** Another life of the service on the same chain; who begins it ends it. */
  readonly begin: (life?: LifeOptions) => ManagedRuntime.ManagedRuntime<Ports, unknown>
  /** The use case's failure. */
  readonly refused: <A, R extends Ports>(effect: Effect.Effect<A, Failure, R>) => Promise<Failure>
  readonly stop: () => Promise<void>
}

export interface Options extends LifeOptions {
  readonly entryPoint?: "v0.6" | "v0.7" | "v0.8"
  readonly blockTime?: number
  /** Further arguments of the chain. */
  readonly anvil?: ReadonlyArray<string>
}

/** What is particular to one life of the service. */
export interface LifeOptions {
  readonly profile?: NetworkProfile.Fields
  /** File of the journal; in memory when left out. */
  readonly database?: string
  /** Stands between the engine and the request's signer. */
  readonly wrapSigner?: (signer: Signer) => Signer
  readonly wrapJournal?: (journal: Journals.Methods) => Journals.Methods
  readonly wrapChain?: (nodes: ChainRpcTag["Type"]) => ChainRpcTag["Type"]
  readonly wrapNetworks?: (networks: NetworksTag["Type"]) => NetworksTag["Type"]
  readonly onExchange?: (methods: ReadonlyArray<string>) => void
  /** Whether it works on lanes. Default: on all; false: another life does, for its requests too. */
  readonly ownsLanes?: boolean
}

const noLanes = Layer.sync(ReplicasTag, () => ({
  process: randomUUID(),
  owns: () => false,
  independent: Effect.succeed([]),
  tell: () => Effect.void,
  assigned: Stream.never,
  heard: Stream.never
}))

const wrapped = <Id, Service, E>(
  tag: Context.Tag<Id, Service>,
  wrap: (service: Service) => Service,
  layer: Layer.Layer<Id, E>
): Layer.Layer<Id, E> => Layer.effect(tag, Effect.map(tag, wrap)).pipe(Layer.provide(layer))

/** The application's ports over a chain with this profile. */
const portsOf = (profile: NetworkProfile.NetworkProfile, options: LifeOptions) => {
  const keys = PrivateKeys.layer({
    signers: [
      {
        accountIds: [account],
        clientId: "dev",
        versionId: "1",
        privateKey: Redacted.make(keyOf(1).privateKey)
      },
      {
        accountIds: [account],
        clientId: "dev",
        versionId: "2",
        privateKey: Redacted.make(keyOf(6).privateKey)
      }
    ],
    system: {
      deployer: Redacted.make(keyOf(3).privateKey),
      serviceEoa: Redacted.make(keyOf(2).privateKey),
      sponsor: Redacted.make(keyOf(7).privateKey)
    }
  })
  const {
    database = ":memory:",
    onExchange,
    ownsLanes = true,
    wrapChain,
    wrapJournal,
    wrapNetworks,
    wrapSigner
  } = options
  const signers =
    wrapSigner === undefined
      ? keys
      : Layer.effect(
          SignersTag,
          Effect.map(SignersTag, ({ resolve }) => ({
            resolve: (id, ref) => Effect.map(resolve(id, ref), wrapSigner)
          }))
        ).pipe(Layer.provideMerge(keys))
  const nodes = ChainRpc.layer({
    egress: { allowLoopback: true },
    onExchange: ({ methods }) => onExchange?.(methods)
  })
  const sql = Sqlite.layer({ filename: database })
  const journal = Journal.layer({ sealingKey: Redacted.make("the journal of a stack") }).pipe(
    Layer.provide(sql)
  )
  const networks = Networks.layer({ profiles: [profile] })
  return Engine.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        AbiStore.layer.pipe(Layer.provide(sql)),
        ownsLanes ? Replicas.layer : noLanes,
        Budgets.layer.pipe(Layer.provide(sql)),
        BundlerRpc.layer(),
        PaymasterRpc.layer(),
        wrapChain === undefined ? nodes : wrapped(ChainRpcTag, wrapChain, nodes),
        wrapJournal === undefined ? journal : Layer.map(journal, Journals.mapped(wrapJournal)),
        wrapNetworks === undefined ? networks : wrapped(NetworksTag, wrapNetworks, networks),
        signers
      )
    )
  )
}

let requests = 0

const deployContracts = async (faucet: NonceManager) => {
  await deployEntryPoints(faucet)
  const suite = await deploySuite(faucet, {
    deployer: keyOf(3).address,
    owner: keyOf(4).address,
    beaconOwner: keyOf(5).address,
    sponsor: keyOf(7).address
  })
  const [token, reverter, counter] = [
    await deploy(faucet, initCode("TestToken"), `0x${"00".repeat(32)}`),
    await deploy(faucet, initCode("Reverter"), `0x${"00".repeat(32)}`),
    await deploy(faucet, initCode("Counter"), `0x${"00".repeat(32)}`)
  ]
  return { suite, token, reverter, counter, code: await faucet.provider?.getCode(suite.implementation) }
}

/** The addresses are the same on every chain of a process: what is there already is not deployed again. */
let deployed: ReturnType<typeof deployContracts> | undefined

const prepare = async (provider: JsonRpcProvider) => {
  const faucet = new NonceManager(keyOf(0).connect(provider))
  const { suite } = await deployContracts(faucet)
  await fundPaymaster(faucet, suite.paymaster, 10n ** 18n)
}

const connect = ({ chainId, url }: Anvil) => {
  const provider = new NodeProvider(url, chainId, { staticNetwork: true, cacheTimeout: -1 })
  provider.pollingInterval = 20
  return provider
}

interface Chain {
  readonly anvil: Anvil
  /** Back to where it began, for another stack; false when that is not possible. */
  readonly renew: () => Promise<boolean>
}

const startChain = async (args: ReadonlyArray<string>): Promise<Chain> => {
  const anvil = await startPrepared("stack", { args }, prepare)
  const control = connect(anvil)
  let isThere = true
  const { baseFeePerGas } = await control.send("eth_getBlockByNumber", ["latest", false])
  let start: string = await control.send("evm_snapshot", [])
  return {
    anvil: {
      ...anvil,
      stop: () => {
        isThere = false
        control.destroy()
        return anvil.stop()
      }
    },
    renew: async () => {
      if (!isThere) return false
      await control.send("evm_setIntervalMining", [0])
      await control.send("anvil_dropAllTransactions", [])
      await control.send("evm_revert", [start])
      start = await control.send("evm_snapshot", [])
      // Neither is of the snapshot; the clock goes on from the block that it returns to.
      await control.send("anvil_setNextBlockBaseFeePerGas", [baseFeePerGas])
      await control.send("evm_setTime", [Math.floor(Date.now() / 1_000)])
      await control.send("evm_setAutomine", [true])
      await control.send("evm_mine", [])
      return true
    }
  }
}

/** Chains of this process that no stack has: they outlive test files. */
const idle: Array<Chain> = []
// Workers of Vitest end by it; the chains go with them.
const ended = () => process.exit()

const takeChain = (): Promise<Chain> | Chain => {
  if (!process.listeners("SIGTERM").includes(ended)) process.once("SIGTERM", ended)
  return idle.pop() ?? startChain([])
}

/** A chain with everything deployed, and the application's ports over it. */
export const startStack = async (options: Options = {}): Promise<Stack> => {
  const chain = options.anvil === undefined ? await takeChain() : await startChain(options.anvil)
  const { anvil } = chain
  const provider = connect(anvil)
  const faucet = new NonceManager(keyOf(0).connect(provider))
  const signer = keyOf(1)
  deployed ??= deployContracts(faucet)
  const { code = "0x", suite, ...contracts } = await deployed
  const at = (name: string, address: string) => new Contract(address, artifact(name).abi, faucet)
  const token = at("TestToken", contracts.token)
  const reverter = at("Reverter", contracts.reverter)
  const counter = at("Counter", contracts.counter)

  const profile = NetworkProfile.override(
    NetworkProfile.make({
      chainId: BigInt(anvil.chainId),
      rpc: Redacted.make(anvil.url),
      entryPoints: Object.values(entryPoints).map(Address.unsafe),
      factory: Address.unsafe(suite.factory),
      validator: Address.unsafe(suite.validator),
      beacon: Address.unsafe(suite.beacon),
      implementationCodeHash: Hex.unsafe32(keccak256(code)),
      caps: { maxFeePerGas: 500_000_000_000n, maxPriorityFeePerGas: 100_000_000_000n },
      settledDepth: 1,
      ledger: Address.unsafe(suite.ledger),
      sponsor: { paymaster: Address.unsafe(suite.paymaster), dailyBudget: 10n ** 18n },
      receiptTimeoutMillis: 20_000,
      pollIntervalMillis: 25
    }),
    options.profile ?? {}
  )
  const begin = (life: LifeOptions = {}) =>
    ManagedRuntime.make(
      portsOf(NetworkProfile.override(profile, life.profile ?? {}), { ...options, ...life })
    )
  const runtime = begin()
  if (options.blockTime !== undefined) await provider.send("evm_setIntervalMining", [options.blockTime])

  const initCodeHash = Either.getOrThrow(
    Either.map(WalletAddress.creationCode(walletProxyCreationCode), (code) =>
      WalletAddress.initCodeHash(code, Address.unsafe(suite.beacon))
    )
  )

  const settings = {
    rpc: anvil.url,
    entryPoint: Address.unsafe(entryPoints[options.entryPoint ?? "v0.7"]),
    signer: { clientId: "dev", versionId: "1" }
  }
  const caller = (): Caller => {
    requests += 1
    return {
      requestId: `request-${requests}`,
      principal: {
        accountId: account,
        name: "tests",
        tier: "enterprise",
        scopes: new Set(["read", "write", "sign"]),
        paused: false
      }
    }
  }
  const predict = (text: string) =>
    WalletAddress.predict({
      factory: Address.unsafe(suite.factory),
      initCodeHash,
      create2Salt: WalletAddress.create2Salt(Salt.hash(Either.getOrThrow(Salt.from(text))), 1, false)
    })
  const fund = async (address: string, wei: bigint) => {
    await provider.send("anvil_setBalance", [address, `0x${wei.toString(16)}`])
  }

  return {
    anvil,
    provider,
    faucet,
    suite,
    token,
    reverter,
    counter,
    signer,
    settings,
    caller,
    predict,
    fund,
    create: async (...salts) => {
      for (const salt of salts) await fund(predict(salt), 10n ** 18n)
      const accounts = salts.map((salt) => ({ salt, walletCustody: 1 as const }))
      await runtime.runPromise(CreateWallets.run(caller(), { accounts, settings }))
      return salts.map(predict)
    },
    mint: async (to, amount) => {
      await mined(await token.getFunction("mint").send(to, amount))
    },
    balanceOf: (holder) => token.getFunction("balanceOf")(holder),
    runtime,
    begin,
    ask: (effect) => runtime.runPromise(effect),
    refused: async (effect) => {
      const exit = await runtime.runPromiseExit(effect)
      if (Exit.isSuccess(exit))
        throw new Error(`expected a refusal, got ${JSON.stringify(exit.value).slice(0, 1_000)}`)
      const failure = Cause.failureOption(exit.cause)
      if (Option.isNone(failure) || !("code" in failure.value)) throw new Error(Cause.pretty(exit.cause))
      return failure.value
    },
    stop: async () => {
      await runtime.dispose()
      provider.destroy()
      if (options.anvil === undefined && (await chain.renew())) idle.push(chain)
      else await anvil.stop()
    }
  }
}
