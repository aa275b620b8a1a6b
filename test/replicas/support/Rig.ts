import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { id as hashOf, Wallet } from "ethers"
import { expect } from "vitest"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Config from "../../../src/hosts/config/Config.js"
import * as Service from "../../../src/hosts/node/Service.js"
import * as Wiring from "../../../src/hosts/Wiring.js"
import * as World from "../../faults/support/World.js"
import * as Journals from "../../support/journal/Journals.js"

/** A service of this process, with a separate journal, engine and port. */
export interface Running {
  readonly url: string
  readonly stop: () => Promise<void>
}

const startService = async (config: Config.Config, seams: Wiring.Seams): Promise<Running> => {
  const scope = await Effect.runPromise(Scope.make())
  const stop = () => Effect.runPromise(Scope.close(scope, Exit.void))
  try {
    const { url } = await Effect.runPromise(
      Service.start(config, seams).pipe(
        Scope.provide(scope),
        Effect.provideService(References.MinimumLogLevel, "None")
      )
    )
    return { url, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** As slow as a key in an HSM: between the nonce and the bytes another process has time to act. */
export const slowSigner: Wiring.Seams = {
  journal: Journals.mapped((journal) => ({
    ...journal,
    record: (recording) => Effect.delay(journal.record(recording), "150 millis")
  }))
}

export interface Answer {
  readonly status: number
  readonly retryAfter: string | null
  readonly body: { readonly status?: number; readonly code?: string; readonly requestId?: string }
}

export type Database = { readonly path: string } | { readonly url: string }

/** Temporary answers: the same request with the same key is repeated after them. */
const isPassing = ({ body, status }: Answer): boolean =>
  status === 503 || status === 429 || body.code === "outcome_unknown"

/** A tenant with one signer and funded wallets, and the services that serve it. */
export interface Rig {
  /** `node`: the operator's node instead of the chain itself. `at`: a database other than the rig's. */
  readonly begin: (seams?: Wiring.Seams, node?: string, at?: Database) => Promise<Running>
  /** The configuration file of a service of this rig. */
  readonly file: (at?: Database) => string
  readonly end: (service: Running) => Promise<void>
  readonly endAll: () => Promise<void>
  readonly exchange: (
    service: Running,
    path: string,
    key: string | null,
    body: unknown,
    headers?: Readonly<Record<string, string>>
  ) => Promise<Answer>
  /** Repeats with the same key, at any service, until the outcome is known; `met` receives every answer. */
  readonly insist: (
    services: () => Running,
    path: string,
    key: string,
    body: unknown,
    met?: (answer: Answer | null) => void
  ) => Promise<Answer>
  /** The body that makes wallet `n` count the id. */
  readonly hit: (n: number, id: string) => unknown
  /** Funds and creates the wallets. */
  readonly prepare: (service: Running) => Promise<void>
  readonly count: (id: string) => Promise<number>
  /** Number of the signer's mined transactions. */
  readonly transactions: () => Promise<number>
  /** Transactions of the signer that the node has in its pool. */
  readonly pooled: () => Promise<number>
  /** The journal's count of open work: transactions of the lane, and lanes with work. */
  readonly open: () => Promise<ReadonlyArray<string>>
}

let rigs = 0

export const make = async (
  world: World.World,
  folder: string,
  database: Database,
  network: Partial<World.Profile> = {},
  others: ReadonlyArray<World.Tenant> = []
): Promise<Rig> => {
  rigs += 1
  const own = rigs
  const running = new Set<Running>()
  const signer = new Wallet(hashOf(`services ${own}`), world.provider)
  const tenant = await World.tenant(`tenant-${own}`)
  await world.send("anvil_setBalance", signer.address, "0x3635c9adc5dea00000")
  const file = (nodeUrl: string, at: Database): string =>
    World.configFile(world, {
      nodeUrl,
      confirmations: 1,
      settledDepth: 1,
      bumpAfterMillis: 5_000,
      receiptTimeoutMillis: 20_000,
      tenants: [tenant, ...others],
      signers: [{ tenants: [tenant, ...others], privateKey: signer.privateKey }],
      database: at,
      ...network
    })
  const configOf = (nodeUrl: string, at = database): Config.Config =>
    Result.getOrThrow(Config.fromText(file(nodeUrl, at), "of the test", {}, folder))
  const config = configOf(world.chain.url)
  const to = await world.counter.getAddress()
  const settings = { rpc: world.chain.url, entryPoint: World.entryPoint, signer: World.signerRef(0) }
  const accounts = Array.from({ length: 8 }, (_, n) => ({ salt: `services ${own} ${n}`, walletCustody: 1 }))

  const exchange: Rig["exchange"] = async (service, path, key, body, headers = {}) => {
    const response = await fetch(`${service.url}${path}`, {
      method: body === null ? "GET" : "POST",
      headers: {
        "x-api-key": tenant.key,
        "content-type": "application/json",
        ...(key !== null && { "idempotency-key": key }),
        ...headers
      },
      body: body === null ? null : JSON.stringify(body)
    })
    return {
      status: response.status,
      retryAfter: response.headers.get("retry-after"),
      body: (await response.json()) as Answer["body"]
    }
  }
  const insist: Rig["insist"] = async (services, path, key, body, met = () => undefined) => {
    for (;;) {
      const answer = await exchange(services(), path, key, body).catch(() => null)
      met(answer)
      if (answer !== null && !isPassing(answer)) return answer
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  const lane = { chainId: BigInt(world.chain.chainId), signer: Address.unsafe(signer.address) }

  return {
    file: (at = database) => file(world.chain.url, at),
    begin: async (seams = {}, node = world.chain.url, at = database) => {
      const service = await startService(configOf(node, at), seams)
      running.add(service)
      return service
    },
    end: async (service) => {
      running.delete(service)
      await service.stop()
    },
    endAll: async () => {
      await Promise.all([...running].map(({ stop }) => stop()))
      running.clear()
    },
    exchange,
    insist,
    hit: (n, id) => ({
      operations: [{ ...accounts[n % accounts.length], to, funcSignature: "hit(bytes32)", funcParams: [id] }],
      settings
    }),
    prepare: async (service) => {
      const predicted = await exchange(service, "/predict", null, {
        accounts,
        settings: {
          factory: world.chain.suite.factory,
          beaconAdminAddress: world.chain.suite.beacon,
          beaconAdminCreationCode: World.creationCode
        }
      })
      for (const { wallet } of predicted.body as unknown as ReadonlyArray<{ readonly wallet: string }>)
        await world.send("anvil_setBalance", wallet, "0x8ac7230489e80000")
      const created = await insist(() => service, "/create", "wallets", { accounts, settings })
      expect(created).toMatchObject({ status: 200, body: { status: 1 } })
    },
    count: async (id) => Number(await world.counter.getFunction("count")(id)),
    transactions: () => world.provider.getTransactionCount(signer.address),
    pooled: async () => {
      const { pending } = (await world.send("txpool_content")) as {
        readonly pending: Readonly<Record<string, Readonly<Record<string, unknown>>>>
      }
      return Object.entries(pending).reduce(
        (sum, [from, byNonce]) =>
          from.toLowerCase() === signer.address.toLowerCase() ? sum + Object.keys(byNonce).length : sum,
        0
      )
    },
    open: async () => {
      const runtime = ManagedRuntime.make(Layer.orDie(Wiring.stores(config)))
      try {
        const [transactions, requests] = await runtime.runPromise(
          Effect.flatMap(Journals.all, (journal) => Effect.all([journal.openOf(lane), journal.openIn(lane)]))
        )
        return [
          ...transactions.map(({ nonce }) => `transaction ${nonce}`),
          ...requests.map(({ requestId }) => `request ${requestId}`)
        ]
      } finally {
        await runtime.dispose()
      }
    }
  }
}
