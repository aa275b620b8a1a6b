import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { id as hashOf, Wallet } from "ethers"
import type { Build } from "./Build.js"
import { type Answer, ask, exchange, type Question } from "./Client.js"
import * as Random from "./Random.js"
import type { Kill } from "./Scenario.js"
import * as Supervisor from "./Supervisor.js"
import * as World from "./World.js"

/** A separate service process on a world, with a fresh signer, its wallets, and a node between service and chain. */
export interface Rig<Node> {
  readonly node: Node
  readonly supervisor: Supervisor.Supervisor
  readonly signer: Wallet
  /** Of the first account. */
  readonly apiKey: string
  /** By salt. */
  readonly wallets: ReadonlyMap<string, string>
  readonly settings: {
    readonly rpc: string
    readonly entryPoint: string
    readonly signer: ReturnType<typeof World.signerRef>
  }
  /** An operation of the wallet with this salt that counts the id. */
  readonly hit: (salt: string, id: string) => unknown
  /** One exchange; null when the connection was lost. */
  readonly once: (
    path: string,
    key: string | null,
    body: unknown,
    patience?: number
  ) => Promise<Answer | null>
  /** A GET by the account of requests under this key; null when the connection was lost. */
  readonly get: (path: string, key: string) => Promise<Answer | null>
  /** Repeats with the same key until there is a final answer. */
  readonly insist: (path: string, key: string | null, body: unknown) => Promise<Answer>
  readonly execute: (key: string, ...operations: ReadonlyArray<unknown>) => Promise<Answer>
  readonly count: (id: string) => Promise<number>
  /** Number of the signer's mined transactions. */
  readonly nonce: () => Promise<number>
  /** The signer's transactions in the node's pool. */
  readonly pending: () => Promise<ReadonlyArray<PoolTransaction>>
  /** Sends a foreign transaction with the signer's key. */
  readonly foreign: (nonce: number) => Promise<void>
  readonly stop: () => Promise<void>
}

export interface PoolTransaction {
  readonly hash: string
  readonly nonce: string
  readonly maxFeePerGas: string
  readonly maxPriorityFeePerGas: string
}

export interface Options<Node> {
  readonly salts: ReadonlyArray<string>
  readonly node: (target: string) => Promise<Node>
  readonly kills?: ReadonlyArray<Kill>
  readonly receiptTimeoutMillis?: number
  /** Default 1: a mined transaction is settled. */
  readonly settledDepth?: number
  /** Default 2 s. */
  readonly bumpAfterMillis?: number
  /** Number of accounts that share the requests, by their keys, since each account has a limit. Default 1. */
  readonly tenants?: number
  /** Requests under way at most. Default 512. */
  readonly concurrentRequests?: number
  /** The signer as the configuration names it, instead of its private key. */
  readonly held?: (privateKey: string) => World.Held
  /** Default: the chain's. */
  readonly requestExpiryMillis?: number
}

const ether = 10n ** 18n

/** Longest until a final answer. */
const patienceMillis = 40_000

/** The id that the counter counts under this name. */
export const idOf = hashOf

let rigs = 0

export const start = async <Node extends { readonly url: string; readonly stop: () => Promise<void> }>(
  world: World.World,
  build: Build,
  options: Options<Node>
): Promise<Rig<Node>> => {
  rigs += 1
  const own = rigs
  const folder = mkdtempSync(join(build.folder, "rig-"))
  const signer = new Wallet(hashOf(`rig ${rigs}`), world.provider)
  const tenants = await Promise.all(
    Array.from({ length: options.tenants ?? 1 }, (_, n) => World.tenant(`tenant-${n}`))
  )
  await world.send("anvil_setBalance", signer.address, `0x${(1_000n * ether).toString(16)}`)
  const node = await options.node(world.chain.url)
  const config = join(folder, "castellan.json")
  const held = options.held?.(signer.privateKey)
  writeFileSync(
    config,
    World.configFile(world, {
      nodeUrl: node.url,
      confirmations: 1,
      settledDepth: options.settledDepth ?? 1,
      bumpAfterMillis: options.bumpAfterMillis ?? 2_000,
      receiptTimeoutMillis: options.receiptTimeoutMillis ?? 20_000,
      tenants,
      signers: [{ tenants, privateKey: signer.privateKey, ...(held !== undefined && { held }) }],
      ...(options.requestExpiryMillis !== undefined && { requestExpiryMillis: options.requestExpiryMillis }),
      concurrentRequests: options.concurrentRequests ?? 512
    })
  )
  const supervisor = Supervisor.start({ build, folder, config, kills: options.kills ?? [] })
  const settings = { rpc: node.url, entryPoint: World.entryPoint, signer: World.signerRef(0) }
  const to = await world.counter.getAddress()

  const question = (path: string, key: string | null, body: unknown, patience = 20_000): Question => ({
    path,
    apiKey: (key === null ? tenants[0] : Random.make(key).pick(tenants))?.key ?? "",
    // Visible ASCII only.
    key: key === null ? null : key.replaceAll(" ", "-"),
    body,
    patience
  })
  const insist: Rig<Node>["insist"] = async (path, key, body) => {
    const end = Date.now() + patienceMillis
    const trail = await ask(
      supervisor,
      question(path, key, body),
      () => false,
      () => end
    )
    if (trail.answer === null) throw new Error(`${path} found no end: ${trail.met.join(", ")}`)
    return trail.answer
  }

  const accounts = options.salts.map((salt) => ({ salt: `rig ${own} ${salt}`, walletCustody: 1 }))
  const predictions = (
    await insist("/predict", null, {
      accounts,
      settings: {
        factory: world.chain.suite.factory,
        beaconAdminAddress: world.chain.suite.beacon,
        beaconAdminCreationCode: World.creationCode
      }
    })
  ).body as unknown as ReadonlyArray<{ readonly wallet: string }>
  for (const { wallet } of predictions)
    await world.send("anvil_setBalance", wallet, `0x${(10n * ether).toString(16)}`)
  const created = await insist("/create", `wallets-${own}`, { accounts, settings })
  if (created.body.status !== 1) throw new Error(`the wallets were not created: ${JSON.stringify(created)}`)

  return {
    node,
    supervisor,
    signer,
    apiKey: tenants[0]?.key ?? "",
    wallets: new Map(options.salts.map((salt, place) => [salt, predictions[place]?.wallet ?? ""])),
    settings,
    hit: (salt, id) => ({
      salt: `rig ${own} ${salt}`,
      walletCustody: 1,
      to,
      funcSignature: "hit(bytes32)",
      funcParams: [id]
    }),
    once: (path, key, body, patience) => exchange(supervisor, question(path, key, body, patience)),
    get: (path, key) => exchange(supervisor, { ...question(path, key, null), key: null }, "GET"),
    insist,
    execute: (key, ...operations) => insist("/execute", key, { operations, settings }),
    count: async (id) => Number(await world.counter.getFunction("count")(id)),
    nonce: () => world.provider.getTransactionCount(signer.address, "latest"),
    pending: async () => {
      const { pending } = (await world.send("txpool_content")) as {
        readonly pending: Readonly<Record<string, Readonly<Record<string, PoolTransaction>>>>
      }
      return Object.entries(pending).flatMap(([address, byNonce]) =>
        address.toLowerCase() === signer.address.toLowerCase() ? Object.values(byNonce) : []
      )
    },
    foreign: async (nonce) => {
      const raw = await signer.signTransaction({
        type: 2,
        chainId: world.chain.chainId,
        nonce,
        to: signer.address,
        gasLimit: 21_000,
        maxFeePerGas: 400n * 10n ** 9n,
        maxPriorityFeePerGas: 90n * 10n ** 9n
      })
      await world.send("eth_sendRawTransaction", raw)
    },
    stop: async () => {
      await supervisor.stop()
      await node.stop()
      await world.send("evm_setAutomine", true)
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
