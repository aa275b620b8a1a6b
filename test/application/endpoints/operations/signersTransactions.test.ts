import { describe, expect, it } from "@effect/vitest"
import { type Context, Effect, Layer, Redacted, Result } from "effect"
import * as Networks from "../../../../src/adapters/memory/Networks.js"
import * as Replicas from "../../../../src/adapters/memory/Replicas.js"
import * as Execution from "../../../../src/application/endpoints/Execution.js"
import * as GetRequest from "../../../../src/application/endpoints/operations/GetRequest.js"
import * as TransactSigner from "../../../../src/application/endpoints/operations/TransactSigner.js"
import * as Unstuck from "../../../../src/application/endpoints/operations/Unstuck.js"
import { defaults, OpenRequestBounds } from "../../../../src/application/intake/OpenRequests.js"
import * as Engine from "../../../../src/application/lanes/Engine.js"
import { BundlerRpc } from "../../../../src/application/ports/chain/BundlerRpc.js"
import { type ChainClient, ChainRpc } from "../../../../src/application/ports/chain/ChainRpc.js"
import { PaymasterRpc } from "../../../../src/application/ports/chain/PaymasterRpc.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import {
  type Signer,
  SignerError,
  Signers,
  SystemSigners
} from "../../../../src/application/ports/Signers.js"
import * as Secp256k1 from "../../../../src/domain/crypto/Secp256k1.js"
import * as Percent from "../../../../src/domain/erc4337/Percent.js"
import type { Address } from "../../../../src/domain/primitives/Address.js"
import type { Bytes32 } from "../../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../../support/journal/InMemory.js"
import * as MemoryChain from "../../../support/memory/ChainRpc.js"
import * as DecisionHook from "../../../support/memory/DecisionHook.js"
import * as Rules from "../../../support/memory/Rules.js"
import * as Parties from "../../../support/Parties.js"

const rpc = "http://node.test"
const settings = { rpc, signer: { clientId: "test", versionId: "1" } }
const key = Effect.runSync(Effect.fromResult(Secp256k1.privateKey(`0x${"11".repeat(32)}` as Bytes32)))
const address = Secp256k1.addressOf(key.publicKey)
const payment = { to: `0x${"dd".repeat(20)}` as Address, value: 1n, settings }

const profile = NetworkProfile.make({
  chainId: 31_337n,
  rpc: Redacted.make(rpc),
  settledDepth: 1,
  receiptTimeoutMillis: 500,
  pollIntervalMillis: 10
})

const unused = (name: string): never => {
  throw new Error(`${name} is not used here`)
}

/** Of a chain whose blocks have less room than the operator allows a transaction. */
const gasOfBlock = 100_000n

let requests = 0
const caller = () => Parties.caller(`request-${++requests}`)

/** The use cases over a chain in memory; its node gives `lies` instead of the true replies. */
const world = (lies: (honest: ChainClient) => Partial<ChainClient> = () => ({}), bounds = defaults.open) =>
  Effect.gen(function* () {
    const node = yield* MemoryChain.make({
      chainId: profile.chainId,
      blockGasLimit: gasOfBlock,
      balances: new Map([[address, 10n ** 24n]])
    })
    const honest = node.client(rpc)
    const chain: ChainClient = { ...honest, ...lies(honest) }
    /** Signatures that the key provider still makes before it refuses. */
    const provider = { left: Number.POSITIVE_INFINITY }
    const signer: Signer = {
      address,
      publicKey: key.publicKey,
      type: "HSM",
      sign: (digest) =>
        Effect.suspend(() => {
          if (provider.left === 0)
            return new SignerError({ reason: "refused", message: "the key provider refused to sign" })
          provider.left -= 1
          return Effect.succeed(Secp256k1.serialize(key.sign(digest)))
        })
    }
    const context = yield* Layer.build(
      Execution.layer.pipe(
        Layer.provide(Layer.merge(DecisionHook.layer, Rules.layer)),
        Layer.provideMerge(Engine.layer),
        Layer.provideMerge(
          Layer.mergeAll(
            InMemory.abiStore,
            InMemory.budgets,
            InMemory.journal,
            Layer.succeed(OpenRequestBounds, bounds),
            Replicas.layer,
            Networks.layer({ profiles: [profile], overrides: [] }),
            Layer.succeed(ChainRpc, { connect: () => Effect.succeed(chain) }),
            Layer.succeed(BundlerRpc, { connect: () => unused("a bundler") }),
            Layer.succeed(PaymasterRpc, { connect: () => unused("a paymaster") }),
            Layer.succeed(Signers, { resolve: () => Effect.succeed(signer) }),
            Layer.succeed(SystemSigners, {
              deployer: Effect.die("unused"),
              serviceEoa: Effect.die("unused"),
              treasury: Effect.die("unused"),
              sponsor: Effect.die("unused")
            })
          )
        )
      )
    )
    const run = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.provide(effect as Effect.Effect<A, E>, context as Context.Context<never>)
    return {
      node,
      provider,
      pay: (by = caller(), more: object = {}) =>
        Effect.result(run(TransactSigner.run(by, { ...payment, settings: { ...settings, ...more } }))),
      unstuck: (by = caller()) => Effect.result(run(Unstuck.run(by, { settings }))),
      stateOf: (requestId: string) =>
        Effect.map(run(GetRequest.run(caller(), { requestId })), ({ httpStatus, state }) => ({
          httpStatus,
          state
        }))
    }
  })

/** A node that takes transactions and never mines them. */
const idle = (): Partial<ChainClient> => ({ sendRawTransaction: () => Effect.void })

it.live("a transaction of the signer has at most the gas of a block, whatever buffer the request names", () =>
  Effect.gen(function* () {
    const { node, pay } = yield* world()
    const percentTxGasOvershoot = Result.getOrThrow(Percent.from(1_000))
    expect(yield* pay(caller(), { percentTxGasOvershoot })).toMatchObject({ success: { status: 1 } })
    expect((yield* node.mined).map(({ transaction }) => transaction.gasLimit)).toEqual([gasOfBlock])
  })
)

it.live("a transaction of the signer ends permanently when the key provider refuses to sign", () =>
  Effect.gen(function* () {
    const { pay, provider, stateOf } = yield* world()
    provider.left = 0
    const by = caller()
    expect(yield* pay(by)).toMatchObject({
      failure: { code: "signer_unavailable", details: [{ path: "settings.signer" }] }
    })
    expect(yield* stateOf(by.requestId)).toEqual({ state: "final", httpStatus: 422 })
  })
)

describe("the replacement of waiting transactions", () => {
  it.live("ends permanently when the key provider refuses to sign", () =>
    Effect.gen(function* () {
      const { pay, provider, stateOf, unstuck } = yield* world(idle)
      expect(yield* pay()).toMatchObject({ failure: { code: "outcome_unknown" } })
      provider.left = 0
      const by = caller()
      expect(yield* unstuck(by)).toMatchObject({ failure: { code: "signer_unavailable" } })
      expect(yield* stateOf(by.requestId)).toEqual({ state: "final", httpStatus: 422 })
    })
  )

  it.live("keeps the signed ones when the key provider refuses midway", () =>
    Effect.gen(function* () {
      const given = new Set<string>()
      const { pay, provider, unstuck } = yield* world(() => ({
        sendRawTransaction: (raw) => Effect.sync(() => void given.add(raw))
      }))
      for (let waiting = 0; waiting < 2; waiting += 1)
        expect(yield* pay()).toMatchObject({ failure: { code: "outcome_unknown" } })
      provider.left = 1
      expect(yield* unstuck()).toMatchObject({
        failure: { code: "outcome_unknown", extra: { txHashes: [expect.stringMatching(/^0x[0-9a-f]{64}$/)] } }
      })
      expect(given.size).toBe(3)
    })
  )
})

it.live("an account at its bound gets outcomes by its idempotency keys, and no new write", () =>
  Effect.gen(function* () {
    const { pay } = yield* world(idle, { ...defaults.open, requestsPerAccount: 1 })
    const keyed = (byte: string) => ({
      ...caller(),
      idempotency: { key: "one", bodyHash: `0x${byte.repeat(32)}` as Bytes32 }
    })
    const [first, again] = yield* Effect.all([pay(keyed("aa")), pay(keyed("aa"))], { concurrency: 2 })
    expect(first).toMatchObject({ failure: { code: "outcome_unknown" } })
    expect([again, yield* pay(keyed("aa"))]).toEqual([first, first])
    expect(yield* pay(keyed("bb"))).toMatchObject({ failure: { code: "idempotency_key_reused" } })
    expect(yield* pay()).toMatchObject({ failure: { code: "rate_limited" } })
  })
)
