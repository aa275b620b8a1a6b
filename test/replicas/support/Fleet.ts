import * as Effect from "effect/Effect"
import { id as hashOf, Wallet } from "ethers"
import type { Build } from "../../faults/support/Build.js"
import * as Random from "../../faults/support/Random.js"
import * as World from "../../faults/support/World.js"
import * as Server from "../../support/postgres/Server.js"
import * as Redis from "../../support/redis/Redis.js"
import * as Balancer from "./Balancer.js"
import * as LaneHolders from "./LaneHolders.js"
import * as Replica from "./Replica.js"

/** Replicas on one PostgreSQL and one Redis, in front of a chain with a block a second, and their surroundings. */
export interface Fleet {
  readonly world: World.World
  readonly replicas: ReadonlyArray<Replica.Replica>
  readonly balancer: Balancer.Balancer
  readonly postgres: Server.Server
  readonly redis: Redis.Server
  readonly holders: LaneHolders.LaneHolders
  readonly signers: ReadonlyArray<Wallet>
  /** One question and its answer, or the fate of the connection. */
  readonly exchange: (replica: Replica.Replica, question: Question) => Promise<Answer | Unanswered>
  /** The execution that makes wallet `n` count the id. */
  readonly hit: (n: number, id: string) => unknown
  /** Bodies of reads, by endpoint; of wallet `n`. */
  readonly reads: Readonly<Record<string, (n: number) => unknown>>
  /** Open work by the journal's count. */
  readonly open: () => Promise<ReadonlyArray<string>>
  readonly stop: () => Promise<void>
}

export interface Question {
  readonly method?: "GET" | "POST"
  readonly path: string
  readonly account: string
  /** The Idempotency-Key. */
  readonly key?: string
  /** Request-Metadata. */
  readonly metadata?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Whether the answer comes once the work is accepted. */
  readonly isAsync?: boolean
}

export interface Answer {
  readonly status: number
  readonly retryAfter: number | null
  /** As the header names it. */
  readonly requestId: string
  readonly body: {
    readonly status?: number
    readonly code?: string
    readonly requestId?: string
    readonly txHash?: string
    readonly httpStatus?: number | null
    readonly answer?: Answer["body"] | null
    readonly requests?: ReadonlyArray<{ readonly requestId: string }>
  }
}

/** The client hung up, or the connection was lost. */
export type Unanswered = "hung up" | "connection lost"

export interface Options {
  readonly build: Build
  readonly replicas: number
  readonly wallets: number
  readonly signers: number
  readonly name: string
  readonly limits?: Readonly<Record<string, number>>
}

/** Accounts have limits of requests per minute. */
const accounts = 8
/** Time until a client hangs up without an answer. */
const patienceMillis = 40_000
const perCreation = 25

const funds = "0x3635c9adc5dea00000"

/** Wallets `n`, `n + signers`, … belong to signer `n`. */
export const start = async (options: Options): Promise<Fleet> => {
  const begun: Array<() => Promise<void>> = []
  const stop = async () => {
    for (const end of begun.splice(0).reverse()) await end()
  }
  try {
    return await assemble(options, begun, stop)
  } catch (error) {
    await stop()
    throw error
  }
}

/** Every started part is registered as it starts, so a failed start leaves none behind. */
const assemble = async (
  { build, limits = {}, name, ...counts }: Options,
  begun: Array<() => Promise<void>>,
  stop: () => Promise<void>
): Promise<Fleet> => {
  const world = await World.start()
  begun.push(world.stop)
  const postgres = await Server.start()
  begun.push(postgres.stop)
  const redis = await Redis.start()
  begun.push(redis.stop)
  const url = new URL(await Effect.runPromise(Server.createDatabase(postgres, "replicas")))
  const holders = await LaneHolders.start(url.href)
  begun.push(holders.stop)
  const signers = Array.from(
    { length: counts.signers },
    (_, n) => new Wallet(hashOf(`${name} signer ${n}`), world.provider)
  )
  for (const { address } of signers) await world.send("anvil_setBalance", address, funds)
  const tenants = await Promise.all(Array.from({ length: accounts }, (_, n) => World.tenant(`tenant-${n}`)))
  const config: Replica.Options["config"] = ({ databasePort, nodeUrl }) => {
    const own = new URL(url)
    own.port = String(databasePort)
    return World.configFile(world, {
      nodeUrl,
      confirmations: 1,
      settledDepth: 2,
      bumpAfterMillis: 5_000,
      // The service's default: after it, a caller receives `outcome_unknown`.
      receiptTimeoutMillis: 60_000,
      tenants,
      signers: signers.map(({ privateKey }) => ({ tenants, privateKey })),
      database: { url: own.href },
      redis: redis.url,
      limits
    })
  }
  const replicas: Array<Replica.Replica> = []
  for (let n = 0; n < counts.replicas; n += 1) {
    replicas.push(
      await Replica.make({
        build,
        name: `replica ${n}`,
        address: `127.0.0.${2 + n}`,
        chain: { port: Number(new URL(world.chain.url).port) },
        database: { port: postgres.port },
        nodePort: replicas[0]?.node.port ?? 0,
        config
      })
    )
    begun.push(replicas[n]?.stop ?? (async () => undefined))
  }
  // Concurrently: the first one creates the schema, whichever it is.
  await Promise.all(replicas.map(({ begin }) => begin()))
  const to = await world.counter.getAddress()
  const settings = (signer: number) => ({
    rpc: `http://node.example:${replicas[0]?.node.port}`,
    entryPoint: World.entryPoint,
    signer: World.signerRef(signer)
  })

  const exchange: Fleet["exchange"] = async (replica, question) => {
    const at = replica.url()
    if (at === null) return "connection lost"
    try {
      const response = await fetch(at + question.path, {
        method: question.method ?? "POST",
        headers: {
          "x-api-key": Random.make(question.account).pick(tenants).key,
          ...(question.body !== undefined && { "content-type": "application/json" }),
          ...(question.key !== undefined && { "idempotency-key": question.key }),
          ...(question.metadata !== undefined && { "request-metadata": JSON.stringify(question.metadata) }),
          ...(question.isAsync === true && { prefer: "respond-async" })
        },
        ...(question.body !== undefined && { body: JSON.stringify(question.body) }),
        signal: AbortSignal.timeout(patienceMillis)
      })
      const retryAfter = response.headers.get("retry-after")
      return {
        status: response.status,
        retryAfter: retryAfter === null ? null : Number(retryAfter),
        requestId: response.headers.get("x-request-id") ?? "",
        body: JSON.parse(await response.text())
      }
    } catch (error) {
      return error instanceof Error && error.name === "TimeoutError" ? "hung up" : "connection lost"
    }
  }

  const salts = Array.from({ length: counts.wallets }, (_, n) => ({
    salt: `${name} ${n}`,
    walletCustody: 1
  }))
  const must = async (question: Question): Promise<Answer["body"]> => {
    for (let tries = 0; tries < 5; tries += 1) {
      const [first] = replicas
      const answer = first === undefined ? "connection lost" : await exchange(first, question)
      if (typeof answer !== "string" && answer.status === 200) return answer.body
    }
    throw new Error(`${question.path} has no success`)
  }
  const { factory, beacon } = world.chain.suite
  const prepare = async (signer: number) => {
    const own = salts.filter((_, n) => n % counts.signers === signer)
    for (let at = 0; at < own.length; at += perCreation) {
      const batch = own.slice(at, at + perCreation)
      const account = `wallets ${signer} ${at}`
      const predicted = await must({
        path: "/predict",
        account,
        body: {
          accounts: batch,
          settings: { factory, beaconAdminAddress: beacon, beaconAdminCreationCode: World.creationCode }
        }
      })
      for (const { wallet } of predicted as unknown as ReadonlyArray<{ readonly wallet: string }>)
        await world.send("anvil_setBalance", wallet, funds)
      const created = await must({
        path: "/create",
        account,
        key: account.replaceAll(" ", "-"),
        body: { accounts: batch, settings: settings(signer) }
      })
      if (created.status !== 1) throw new Error(`wallets were not created: ${JSON.stringify(created)}`)
    }
  }
  await Promise.all(signers.map((_, signer) => prepare(signer)))
  await world.send("evm_setAutomine", false)
  await world.send("evm_setIntervalMining", 1)
  const balancer = Balancer.start(replicas)
  begun.push(balancer.stop)

  return {
    world,
    replicas,
    balancer,
    postgres,
    redis,
    holders,
    signers,
    exchange,
    hit: (n, id) => ({
      operations: [{ ...salts[n], to, funcSignature: "hit(bytes32)", funcParams: [id] }],
      settings: settings(n % counts.signers)
    }),
    reads: {
      "/predict": (n) => ({
        accounts: [salts[n]],
        settings: { factory, beaconAdminAddress: beacon, beaconAdminCreationCode: World.creationCode }
      }),
      "/estimateGas": (n) => ({
        operations: [{ ...salts[n], to, funcSignature: "hit(bytes32)", funcParams: [hashOf("estimate")] }],
        settings: settings(n % counts.signers)
      }),
      "/read": (n) => ({
        reads: [
          { to, funcSignature: "count(bytes32)", funcParams: [hashOf(`${n}`)], returnSignature: "uint256" }
        ],
        rpc: settings(0).rpc
      }),
      "/getSigner": (n) => ({ signer: World.signerRef(n % counts.signers) })
    },
    open: holders.open,
    stop
  }
}
