import { randomUUID } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { Contract, toQuantity } from "ethers"
import { afterEach, beforeAll, expect } from "vitest"
import * as ChainRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as BundlerRpc from "../../../src/adapters/json-rpc/services/BundlerRpc.js"
import * as PaymasterRpc from "../../../src/adapters/json-rpc/services/PaymasterRpc.js"
import * as WebhookSender from "../../../src/adapters/json-rpc/services/WebhookSender.js"
import * as Networks from "../../../src/adapters/memory/Networks.js"
import * as Replicas from "../../../src/adapters/memory/Replicas.js"
import * as NativeCrypto from "../../../src/adapters/native/Crypto.js"
import * as AbiStore from "../../../src/adapters/sql/AbiStore.js"
import * as Budgets from "../../../src/adapters/sql/budgets/Budgets.js"
import * as Journal from "../../../src/adapters/sql/journal/Journal.js"
import * as SqlPolicies from "../../../src/adapters/sql/Policies.js"
import * as SqlSettings from "../../../src/adapters/sql/Settings.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as Execution from "../../../src/application/endpoints/Execution.js"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/endpoints/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as TransactSigner from "../../../src/application/endpoints/operations/TransactSigner.js"
import { Submissions } from "../../../src/application/endpoints/Submissions.js"
import * as CreateWallets from "../../../src/application/endpoints/wallets/CreateWallets.js"
import type { Failure } from "../../../src/application/failures/Failure.js"
import * as Engine from "../../../src/application/lanes/Engine.js"
import * as Start from "../../../src/application/operate/Start.js"
import * as DecisionHook from "../../../src/application/policies/DecisionHook.js"
import * as Rulebook from "../../../src/application/policies/Rulebook.js"
import * as Rules from "../../../src/application/policies/Rules.js"
import type { AbiStore as AbiStoreTag } from "../../../src/application/ports/AbiStore.js"
import type { Budgets as BudgetsTag } from "../../../src/application/ports/Budgets.js"
import type { BundlerRpc as BundlerRpcTag } from "../../../src/application/ports/chain/BundlerRpc.js"
import { ChainRpc as ChainRpcTag } from "../../../src/application/ports/chain/ChainRpc.js"
import type { PaymasterRpc as PaymasterRpcTag } from "../../../src/application/ports/chain/PaymasterRpc.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import { KillSwitches } from "../../../src/application/ports/KillSwitches.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import { Networks as NetworksTag } from "../../../src/application/ports/Networks.js"
import type { Settings } from "../../../src/application/ports/operator/Settings.js"
import type { Policies } from "../../../src/application/ports/Policies.js"
import { Replicas as ReplicasTag } from "../../../src/application/ports/Replicas.js"
import {
  type Signer,
  Signers as SignersTag,
  type SystemSigners
} from "../../../src/application/ports/Signers.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import type { WebhookSender as WebhookSenderTag } from "../../../src/application/ports/Webhooks.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Salt from "../../../src/domain/wallet/Salt.js"
import * as WalletAddress from "../../../src/domain/wallet/WalletAddress.js"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Journals from "../journal/Journals.js"
import * as PrivateKeys from "../signing/PrivateKeys.js"
import { mined } from "../suite/Receipt.js"
import { use } from "../Use.js"
import { keyOf, startChain } from "./Chain.js"

/** Ports of the application over a real chain and a real database. */
export type Ports =
  | AbiStoreTag
  | BudgetsTag
  | BundlerRpcTag
  | ChainRpcTag
  | DecisionHook.DecisionHook
  | Engine.Engine
  | Submissions
  | Journals.Ports
  | NetworksTag
  | PaymasterRpcTag
  | Policies
  | ReplicasTag
  | Rulebook.Rulebook
  | Rules.Rules
  | Settings
  | SignersTag
  | SystemSigners
  | WebhookSenderTag

export { Address, keyOf }

export const account = "tests" as AccountId

export type Runtime = ManagedRuntime.ManagedRuntime<Ports, unknown>

export type HandedOut = Pick<
  EstimateGas.Response["userOps"][number],
  "encodedUserOp" | "userOpHash" | "signingHash"
>

export interface PoolTransaction {
  readonly hash: string
  readonly nonce: string
  readonly to: string
  readonly value: string
  readonly input: string
  readonly maxFeePerGas: string
  readonly maxPriorityFeePerGas: string
}

/** Error of each element of the response; null on success. */
export const errorsOf = ({ returnData }: Pick<ExecuteOperations.Response, "returnData">) =>
  returnData.map((element, index) => {
    const own = element[index]
    return own?.success === true ? null : own?.error
  })

export interface Options extends LifeOptions {
  readonly entryPoint?: "v0.6" | "v0.7" | "v0.8"
  /** Further arguments of the chain. */
  readonly anvil?: ReadonlyArray<string>
}

/** Options of one run of the service. */
export interface LifeOptions {
  readonly profile?: NetworkProfile.Fields
  /** File of the journal; in memory when left out. */
  readonly database?: string
  /** A wrap between the engine and the request's signer. */
  readonly wrapSigner?: (signer: Signer) => Signer
  readonly wrapJournal?: (journal: Journals.Methods) => Journals.Methods
  readonly wrapChain?: (nodes: ChainRpcTag["Service"]) => ChainRpcTag["Service"]
  readonly wrapNetworks?: (networks: NetworksTag["Service"]) => NetworksTag["Service"]
  readonly onExchange?: (methods: ReadonlyArray<string>) => void
  /** The operator's; default: none. */
  readonly decisionHook?: DecisionHook.Hook
  /** Default: no pause. */
  readonly killSwitches?: typeof KillSwitches.Service
  /** Whether it works on lanes. Default: on all; false: another life does, for its requests too. */
  readonly ownsLanes?: boolean
}

const noLanes = Layer.sync(ReplicasTag, () => ({
  process: randomUUID(),
  owns: () => false,
  independent: Effect.succeed([]),
  tell: () => Effect.void,
  assigned: Stream.never,
  signals: Stream.never
}))

const wrapped = <Id, Service, E>(
  tag: Context.Key<Id, Service>,
  wrap: (service: Service) => Service,
  layer: Layer.Layer<Id, E>
): Layer.Layer<Id, E> => Layer.effect(tag, Effect.map(tag, wrap)).pipe(Layer.provide(layer))

/** The application's ports over a chain with this profile. */
const portsOf = (profile: NetworkProfile.NetworkProfile, options: LifeOptions) => {
  const privateKey = (index: number) => Redacted.make(keyOf(index).privateKey)
  const own = { accountIds: [account], clientId: "dev" }
  const keys = PrivateKeys.layer({
    signers: [
      { ...own, versionId: "1", privateKey: privateKey(1) },
      { ...own, versionId: "2", privateKey: privateKey(6) }
    ],
    system: {
      deployer: privateKey(3),
      serviceEoa: privateKey(2),
      sponsor: privateKey(7),
      treasury: privateKey(8)
    }
  })
  const {
    database = ":memory:",
    decisionHook = null,
    killSwitches,
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
  const sealed = { sealingKey: Redacted.make("the journal of a stack") }
  const journal = Journal.layer(sealed).pipe(Layer.provide(sql))
  const networks = Networks.layer({ profiles: [profile] })
  return Execution.layer.pipe(
    Layer.provideMerge(Layer.merge(DecisionHook.layer, Rules.layer)),
    Layer.provideMerge(Layer.merge(Rulebook.layer, Engine.layer)),
    Layer.provideMerge(
      Layer.mergeAll(
        AbiStore.layer.pipe(Layer.provide(sql)),
        Layer.succeed(DecisionHook.OperatorHook, decisionHook),
        SqlPolicies.layer.pipe(Layer.provide(sql)),
        SqlSettings.layer(sealed).pipe(Layer.provide(sql)),
        WebhookSender.layer({ egress: { allowLoopback: true } }),
        ownsLanes ? Replicas.layer : noLanes,
        killSwitches === undefined ? Layer.empty : Layer.succeed(KillSwitches, killSwitches),
        Budgets.layer.pipe(Layer.provide(sql)),
        BundlerRpc.layer(),
        PaymasterRpc.layer(),
        wrapChain === undefined ? nodes : wrapped(ChainRpcTag, wrapChain, nodes),
        wrapJournal === undefined
          ? journal
          : Layer.flatMap(journal, (ports) => Layer.succeedContext(Journals.mapped(wrapJournal)(ports))),
        wrapNetworks === undefined ? networks : wrapped(NetworksTag, wrapNetworks, networks),
        signers
      )
    )
  )
}

/** The test ends earlier. */
const answerMillis = 60_000

let requests = 0

/** A chain with all contracts deployed, and the application's ports over it. */
export const startStack = async (options: Options = {}) => {
  // As the service does.
  await Effect.runPromise(NativeCrypto.install)
  const { anvil, faucet, provider, stop, suite, ...deployed } = await startChain(options.anvil)
  const at = (name: string, address: string) => new Contract(address, artifact(name).abi, faucet)
  const token = at("TestToken", deployed.token)
  /** Counts calls per id. */
  const counter = at("Counter", deployed.counter)
  /** EOA of the request's signer. */
  const signer = keyOf(1)
  const chainId = BigInt(anvil.chainId)

  const profile = NetworkProfile.override(
    NetworkProfile.make({
      chainId,
      rpc: Redacted.make(anvil.url),
      entryPoints: Object.values(entryPoints).map(Address.unsafe),
      factory: Address.unsafe(suite.factory),
      validator: Address.unsafe(suite.validator),
      beacon: Address.unsafe(suite.beacon),
      implementationCodeHash: Hex.unsafe32(deployed.implementationCodeHash),
      caps: { maxFeePerGas: 500_000_000_000n, maxPriorityFeePerGas: 100_000_000_000n },
      settledDepth: 1,
      ledger: Address.unsafe(suite.ledger),
      sponsor: { paymaster: Address.unsafe(suite.paymaster), dailyBudget: 10n ** 18n },
      receiptTimeoutMillis: 20_000,
      pollIntervalMillis: 25
    }),
    options.profile ?? {}
  )
  /** Starts another run of the service on the same chain; the caller ends it. */
  const begin = (life: LifeOptions = {}) =>
    ManagedRuntime.make(
      portsOf(NetworkProfile.override(profile, life.profile ?? {}), { ...options, ...life })
    )
  const runtime = begin()

  const settings = {
    rpc: anvil.url,
    entryPoint: Address.unsafe(entryPoints[options.entryPoint ?? "v0.7"]),
    signer: { clientId: "dev", versionId: "1" }
  }
  /** The stack's values overridden by `more`; undefined removes a value. */
  const merged = (more: object) =>
    Object.fromEntries(
      Object.entries({ ...settings, ...more }).filter(([, value]) => value !== undefined)
    ) as typeof settings
  const caller = (): Caller => {
    requests += 1
    return {
      requestId: `request-${requests}`,
      principal: {
        accountId: account,
        name: "tests",
        tier: "enterprise",
        scopes: new Set(["read", "write", "sign"]),
        paused: false,
        keyId: null
      }
    }
  }
  const initCodeHash = Result.getOrThrow(
    Result.map(WalletAddress.creationCode(walletProxyCreationCode), (code) =>
      WalletAddress.initCodeHash(code, Address.unsafe(suite.beacon))
    )
  )
  const predict = (text: string) =>
    WalletAddress.predict({
      factory: Address.unsafe(suite.factory),
      initCodeHash,
      create2Salt: WalletAddress.create2Salt(Salt.hash(Result.getOrThrow(Salt.from(text))), 1, false)
    })
  const fund = async (address: string, wei: bigint): Promise<void> => {
    await provider.send("anvil_setBalance", [address, toQuantity(wei)])
  }
  const createWallets = (salts: ReadonlyArray<string>, more: object = {}, by = caller()) =>
    CreateWallets.run(by, {
      accounts: salts.map((salt) => ({ salt, walletCustody: 1 as const })),
      settings: merged(more)
    })

  const mine = (): Promise<unknown> => provider.send("evm_mine", [])
  /** Transactions of an EOA in the node's pool, ready for mining; defaults to the signer. */
  const pool = async (eoa = signer.address): Promise<ReadonlyArray<PoolTransaction>> => {
    const { pending } = (await provider.send("txpool_content", [])) as {
      readonly pending: Readonly<Record<string, Readonly<Record<string, PoolTransaction>>>>
    }
    return Object.entries(pending).flatMap(([from, byNonce]) =>
      from.toLowerCase() === eoa.toLowerCase() ? Object.values(byNonce) : []
    )
  }
  const operation = (salt: string, more: Partial<Operation>): Operation => ({
    salt,
    walletCustody: 1,
    to: Address.unsafe(String(counter.target)),
    funcSignature: "receive()",
    ...more
  })
  const requestOf = (life: Runtime, requestId: string) =>
    life.runPromise(Effect.flatMap(RequestJournal, (journal) => Effect.orDie(journal.request(requestId))))

  let isMining = true
  let folder: string | undefined
  let files = 0
  return {
    anvil,
    provider,
    faucet,
    suite,
    token,
    reverter: at("Reverter", deployed.reverter),
    counter,
    signer,
    settings,
    runtime,
    begin,
    caller,
    predict,
    fund,
    /** Funds and creates wallets of these salts, owned by the signer. */
    create: async (...salts: ReadonlyArray<string>) => {
      for (const salt of salts) await fund(predict(salt), 10n ** 18n)
      await runtime.runPromise(createWallets(salts))
      return salts.map(predict)
    },
    mint: async (to: string, amount: bigint): Promise<void> => {
      await mined(await token.getFunction("mint").send(to, amount))
    },
    balanceOf: (holder: string): Promise<bigint> => token.getFunction("balanceOf")(holder),
    /** The use case's answer. */
    ask: <A, R extends Ports>(effect: Effect.Effect<A, Failure, R>): Promise<A> => runtime.runPromise(effect),
    /** The use case's failure. */
    refused: async <A, R extends Ports>(effect: Effect.Effect<A, Failure, R>): Promise<Failure> => {
      const exit = await runtime.runPromiseExit(effect)
      if (Exit.isSuccess(exit))
        throw new Error(`expected a refusal, got ${JSON.stringify(exit.value).slice(0, 1_000)}`)
      const failure = Cause.findErrorOption(exit.cause)
      if (Option.isNone(failure) || !("code" in failure.value)) throw new Error(Cause.pretty(exit.cause))
      return failure.value
    },
    /** Path of an unused journal file. */
    database: (): string => {
      folder ??= mkdtempSync(join(tmpdir(), "castellan-stack-"))
      files += 1
      return join(folder, `${files}.sqlite`)
    },
    /** A second run of the service that maintains its journal while the body runs. */
    living: async <A>(life: LifeOptions, body: (runtime: Runtime) => Promise<A>): Promise<A> => {
      const runtime = begin(life)
      try {
        await runtime.runPromise(Start.start)
        return await body(runtime)
      } finally {
        await runtime.dispose()
      }
    },

    mine,
    /** On again at the end of a test of `useStack`. */
    automine: async (on: boolean): Promise<void> => {
      if (on !== isMining) await provider.send("evm_setAutomine", [on])
      isMining = on
    },
    /** Sets the next block's base fee and mines that block. */
    baseFee: async (wei: bigint): Promise<void> => {
      await provider.send("anvil_setNextBlockBaseFeePerGas", [toQuantity(wei)])
      await mine()
    },
    now: async () => Number((await provider.getBlock("latest"))?.timestamp),
    later: async (seconds: number): Promise<void> => {
      await provider.send("evm_increaseTime", [seconds])
      await mine()
    },
    nonce: (eoa: string = signer.address) => provider.getTransactionCount(eoa),
    pool,
    /** Waits until there are this many, and returns them. */
    pooled: async (count: number, eoa?: string) => {
      await expect.poll(async () => (await pool(eoa)).length, { timeout: 15_000 }).toBe(count)
      return pool(eoa)
    },
    /** Sends a foreign transaction with the signer's key. */
    foreign: async (nonce: number): Promise<string> => {
      const raw = await signer.signTransaction({
        type: 2,
        chainId,
        nonce,
        to: signer.address,
        gasLimit: 21_000,
        maxFeePerGas: 400n * 10n ** 9n,
        maxPriorityFeePerGas: 90n * 10n ** 9n
      })
      return provider.send("eth_sendRawTransaction", [raw])
    },

    /** The wallet of the salt counts the id. */
    hit: (salt: string, id: string, more: Partial<Operation> = {}) =>
      operation(salt, { funcSignature: "hit(bytes32)", funcParams: [id], ...more }),
    counts: (...ids: ReadonlyArray<string>): Promise<ReadonlyArray<number>> =>
      Promise.all(ids.map(async (id) => Number(await counter.getFunction("count")(id)))),
    /** Transfers one token, or this amount, from the salt's wallet. */
    transfer: (salt: string, to: string, amount = "1", more: Partial<Operation> = {}) =>
      operation(salt, {
        to: Address.unsafe(String(token.target)),
        funcSignature: "transfer(address,uint256)",
        funcParams: [to, amount],
        ...more
      }),
    pay: (salt: string, to: string, value: bigint, more: Partial<Operation> = {}) =>
      operation(salt, { to: Address.unsafe(to), value, ...more }),
    execute: (operations: ReadonlyArray<Operation>, more: object = {}, by = caller(), preview = false) =>
      ExecuteOperations.run(by, { operations, settings: merged(more), preview }),
    /** The caller of a request that is accepted, who does not wait for its outcome. */
    accepted: async (
      life: Runtime,
      operations: ReadonlyArray<Operation>,
      more: Partial<Caller> = {},
      preview = false
    ): Promise<Caller> => {
      const by = { ...caller(), ...more }
      const requestId = await new Promise<string>((resolve, reject) => {
        const asked: Caller = { ...by, isAsynchronous: true, onAccepted: resolve }
        life.runPromise(ExecuteOperations.run(asked, { operations, settings, preview })).catch(reject)
      })
      return { ...by, requestId }
    },
    createWallets,
    transact: (request: Omit<TransactSigner.Request, "settings">, more: object = {}, by = caller()) => {
      const { rpc, signer } = settings
      return TransactSigner.run(by, { ...request, settings: { rpc, signer, ...more } })
    },
    estimate: (operations: ReadonlyArray<Operation>, more: object = {}) =>
      runtime.runPromise(EstimateGas.run(caller(), { operations, settings: merged(more) })),
    /** Posts ops returned for signing, with the signer's signature over `over`; null: signed by the service. */
    post: (
      ops: ReadonlyArray<HandedOut>,
      over: "signingHash" | "userOpHash" | null = null,
      more: object = {},
      by = caller()
    ) => {
      const operations = ops.map((op) => ({
        encodedUserOp: Hex.unsafe(op.encodedUserOp),
        userOpHash: Hex.unsafe32(op.userOpHash),
        walletCustody: 1 as const,
        ...(over !== null && { signature: Hex.unsafe(signer.signingKey.sign(op[over]).serialized) })
      }))
      return ExecuteEncoded.run(by, { operations, settings: merged(more) })
    },

    requestOf,
    /** Awaits the stored outcome. */
    answerOf: async (life: Runtime, requestId: string): Promise<ReturnType<typeof JSON.parse>> => {
      const outcome = async () => (await requestOf(life, requestId))?.outcome ?? null
      // Polls would take a quarter of the time that a large request needs.
      const ended = async () => {
        const known = await outcome()
        if (known !== null) return known
        await life.runPromise(
          Effect.flatMap(Submissions, ({ awaitFinal }) => awaitFinal(requestId, answerMillis))
        )
        return outcome()
      }
      await expect.poll(ended, { timeout: answerMillis }).not.toBeNull()
      return JSON.parse((await outcome()) ?? "{}")
    },
    /** Transactions of the signer's lane that are not settled. */
    openOf: (life: Runtime) =>
      life.runPromise(
        Effect.flatMap(TransactionJournal, (journal) =>
          Effect.orDie(journal.openOf({ chainId, signer: Address.unsafe(signer.address) }))
        )
      ),
    eventsOf: (life: Runtime, requestId: string) =>
      life.runPromise(
        Effect.flatMap(RequestJournal, (journal) => Effect.orDie(journal.events(requestId, 0, 100)))
      ),
    stop: async (): Promise<void> => {
      await runtime.dispose()
      if (folder !== undefined) rmSync(folder, { recursive: true })
      await stop()
    }
  }
}

export type Stack = Awaited<ReturnType<typeof startStack>>

/** A stack for the tests of this file or group, with their preparation; it exists once they begin. */
export const useStack = (
  options: Options | (() => Promise<Options>) = {},
  prepare?: (stack: Stack) => Promise<unknown>
): Stack => {
  const stack = use(async () => startStack(typeof options === "function" ? await options() : options))
  if (prepare !== undefined) beforeAll(async () => void (await prepare(stack)))
  afterEach(() => stack.automine?.(true))
  return stack
}

/** Watches until the service knows the height from which blocks count for its pending transaction. */
export const watchHeights = () => {
  let looks = 0
  return {
    onExchange: (methods: ReadonlyArray<string>) => {
      // The latest and the pending nonce; the height came with the receipts before.
      if (methods.filter((name) => name === "eth_getTransactionCount").length === 2) looks += 1
    },
    /** Waits for two looks: the second begins when the first has had its answer. */
    noted: async () => {
      const before = looks
      await expect.poll(() => looks, { timeout: 20_000 }).toBeGreaterThan(before + 1)
    }
  }
}
