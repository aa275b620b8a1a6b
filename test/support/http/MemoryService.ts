import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as JsonRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as WebhookSender from "../../../src/adapters/json-rpc/services/WebhookSender.js"
import * as PrivateKeys from "../../../src/adapters/keys/PrivateKeys.js"
import * as Networks from "../../../src/adapters/memory/Networks.js"
import * as Replicas from "../../../src/adapters/memory/Replicas.js"
import * as SqlSettings from "../../../src/adapters/sql/Settings.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as SqlWatches from "../../../src/adapters/sql/watches/Watches.js"
import * as SqlWebhooks from "../../../src/adapters/sql/webhooks/Webhooks.js"
import * as Execution from "../../../src/application/endpoints/Execution.js"
import * as KeyRing from "../../../src/application/keys/KeyRing.js"
import * as Engine from "../../../src/application/lanes/Engine.js"
import * as DecisionHook from "../../../src/application/policies/DecisionHook.js"
import * as Rulebook from "../../../src/application/policies/Rulebook.js"
import * as Rules from "../../../src/application/policies/Rules.js"
import { BundlerRpc, BundlerRpcError } from "../../../src/application/ports/chain/BundlerRpc.js"
import { ChainRpc as ChainRpcPort } from "../../../src/application/ports/chain/ChainRpc.js"
import { PaymasterRpc, PaymasterRpcError } from "../../../src/application/ports/chain/PaymasterRpc.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Secp256k1 from "../../../src/domain/crypto/Secp256k1.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import * as Groups from "../../../src/hosts/http/service/Groups.js"
import * as HttpService from "../../../src/hosts/http/service/HttpService.js"
import * as InMemory from "../journal/InMemory.js"
import { options } from "../journal/Layers.js"
import * as ChainRpc from "../memory/ChainRpc.js"
import type { Place, Sent } from "./Bodies.js"
import { accounts, ask, rateLimit, unlimited } from "./Service.js"

/**
 * The service with its real use cases and engine over in-memory ports, for many requests in little time. URLs other
 * than its own node's lead to nodes on loopback.
 */

const rpc = "http://node.test"
const factory = Address.unsafe(`0x${"fa".repeat(20)}`)
const beacon = Address.unsafe(`0x${"be".repeat(20)}`)
/** Address of a wallet: the stub chain returns code for it. */
const wallet = Address.unsafe(`0x${"ca".repeat(20)}`)
const signer = { clientId: "test", versionId: "1" }

/** Valid values for requests. */
export const place: Place = {
  rpc,
  noRpc: "http://elsewhere.test",
  signer,
  wallet,
  salt: "customer-1",
  factory,
  beacon,
  validator: `0x${"00".repeat(20)}`,
  creationCode: walletProxyCreationCode,
  token: `0x${"33".repeat(20)}`,
  webhookId: "none"
}

const keys = {
  signer: `0x${"11".repeat(32)}`,
  deployer: `0x${"22".repeat(32)}`,
  serviceEoa: `0x${"33".repeat(32)}`,
  sponsor: `0x${"44".repeat(32)}`
}

const addressOf = (key: string) =>
  Secp256k1.addressOf(Result.getOrThrow(Secp256k1.privateKey(Hex.unsafe32(key))).publicKey)

export const entryPoint = EntryPoint.canonical["v0.8"]
const profile = NetworkProfile.make({
  chainId: 31_337n,
  rpc: Redacted.make(rpc),
  factory,
  beacon,
  ledger: Address.unsafe(`0x${"1e".repeat(20)}`),
  settledDepth: 1,
  receiptTimeoutMillis: 1_000,
  pollIntervalMillis: 10
})

const deployed = Hex.unsafe("0x6001600155")

/** Possible contract replies, chosen by the call: nothing, one word, many words, text, either kind of revert. */
const answers: ReadonlyArray<Hex.Hex> = [
  Hex.empty,
  Hex.unsafe(`0x${"00".repeat(32)}`),
  Hex.unsafe(`0x${"00".repeat(31)}01`),
  Hex.unsafe(`0x${"ff".repeat(32)}`),
  Hex.unsafe(`0x${"00".repeat(31)}20${"00".repeat(31)}02${"6869".padEnd(64, "0")}`),
  Hex.unsafe(`0x${"00".repeat(31)}20${"ff".repeat(32)}`),
  Hex.unsafe(`0x08c379a0${"00".repeat(31)}20${"00".repeat(31)}02${"6e6f".padEnd(64, "0")}`),
  Hex.unsafe(`0x4e487b71${"00".repeat(31)}11`),
  Hex.unsafe(`0x${"ab".repeat(1_000)}`),
  Hex.unsafe("0x12345678")
]

/** A chain whose contracts return arbitrary data, the same for the same call. */
const execute: ChainRpc.Execute = ({ data, to }) =>
  Effect.sync(() => {
    if (to === undefined) return { success: true, data: deployed, gasUsed: 21_000n, logs: [] }
    const chosen = Number.parseInt(Keccak.hash(data).slice(2, 8), 16)
    const answer = answers[chosen % answers.length] ?? Hex.empty
    return { success: chosen % 4 !== 0, data: answer, gasUsed: 30_000n, logs: [] }
  })

/** Bundler and paymaster services are absent at every URL. */
const noServices = Layer.mergeAll(
  Layer.succeed(BundlerRpc, {
    connect: () =>
      Effect.fail(
        new BundlerRpcError({ reason: "invalidUrl", origin: "", message: "no bundler has this URL" })
      )
  }),
  Layer.succeed(PaymasterRpc, {
    connect: () =>
      Effect.fail(
        new PaymasterRpcError({ reason: "invalidUrl", origin: "", message: "no service has this URL" })
      )
  })
)

export const make: Effect.Effect<HttpService.HttpService, never, Scope.Scope> = Effect.gen(function* () {
  const rich = [keys.signer, keys.deployer, keys.serviceEoa].map(addressOf)
  const node = yield* ChainRpc.make({
    chainId: profile.chainId,
    execute,
    balances: new Map([...rich, wallet].map((address) => [address, 10n ** 24n])),
    codes: new Map(
      [wallet, factory, beacon, ...Object.values(EntryPoint.canonical)].map((address) => [address, deployed])
    )
  })
  const inMemory = yield* Layer.build(ChainRpc.layer({ [rpc]: node }))
  const ports = Execution.layer.pipe(
    Layer.provideMerge(Layer.merge(DecisionHook.layer, Rules.layer)),
    Layer.provideMerge(Layer.merge(Rulebook.layer, Engine.layer)),
    Layer.provideMerge(
      Layer.mergeAll(
        InMemory.abiStore,
        Replicas.layer,
        InMemory.budgets,
        InMemory.policies,
        noServices,
        Layer.effect(
          ChainRpcPort,
          Effect.map(JsonRpc.make({ egress: { allowLoopback: true } }), (overHttp) => ({
            connect: (url, by) =>
              url.startsWith("http://127.0.0.1:")
                ? overHttp.connect(url, by)
                : Effect.flatMap(ChainRpcPort, (memory) => memory.connect(url, by)).pipe(
                    Effect.provide(inMemory)
                  )
          }))
        ),
        InMemory.journal,
        Layer.mergeAll(
          SqlSettings.layer(options),
          SqlWebhooks.layer(options),
          SqlWatches.layer(options)
        ).pipe(Layer.provide(Sqlite.layer({ filename: ":memory:" })), Layer.orDie),
        WebhookSender.layer({ egress: { allowLoopback: false } }),
        Networks.layer({ profiles: [profile], overrides: [] }),
        KeyRing.layer({
          providers: {
            memory: {
              open: PrivateKeys.make({
                keys: Object.fromEntries(
                  Object.entries(keys).map(([name, key]) => [name, Redacted.make(key)])
                )
              })
            }
          },
          signers: [
            {
              accountIds: ["acme" as AccountId],
              ...signer,
              source: { provider: "memory", key: "signer" }
            }
          ],
          system: {
            deployer: { provider: "memory", key: "deployer" },
            serviceEoa: { provider: "memory", key: "serviceEoa" },
            sponsor: { provider: "memory", key: "sponsor" }
          }
        })
      )
    ),
    Layer.provideMerge(
      Layer.merge(
        accounts,
        rateLimit(() => unlimited)
      )
    )
  )
  const context = yield* Effect.orDie(Layer.build(ports))
  return yield* Effect.provide(
    HttpService.make(Groups.handlers, { anonymousPerMinute: 1_000_000_000 }),
    context
  )
})

/** Answers without a socket, with the body in two chunks that may split a character. */
export const inProcess =
  (front: HttpService.HttpService) =>
  ({ body, headers, method, target }: Sent) => {
    const half = body.length >> 1
    const pieces = [body.subarray(0, half), body.subarray(half)].filter(({ length }) => length > 0)
    return ask(front, {
      method,
      target,
      headers: { ...headers, "content-length": String(body.length) },
      remoteAddress: "203.0.113.1",
      ...(method !== "GET" && method !== "HEAD" && pieces.length > 0 && { body: ReadableStream.from(pieces) })
    })
  }
