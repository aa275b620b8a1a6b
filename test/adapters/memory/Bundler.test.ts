import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as MemoryBundler from "../../../src/adapters/memory/Bundler.js"
import { type Bundle, Bundler, BundlerError } from "../../../src/application/ports/Bundler.js"
import { type ChainClient, ChainRpcError } from "../../../src/application/ports/ChainRpc.js"
import * as Hex from "../../../src/domain/evm/Hex.js"
import { address, chainId, entryPoint, word } from "../../support/journal/Make.js"

const noNode = Effect.fail(
  new ChainRpcError({ reason: "unreachable", origin: "http://nowhere", message: "there is no node" })
)
const chain: ChainClient = {
  origin: "http://nowhere",
  chainId: Effect.succeed(chainId),
  fees: noNode,
  block: () => noNode,
  balance: () => noNode,
  code: () => noNode,
  transactionCount: () => noNode,
  call: () => noNode,
  simulate: () => noNode,
  sendRawTransaction: () => noNode,
  receipt: () => noNode,
  transaction: () => noNode,
  logs: () => noNode
}

const bundle = (requestId: string, ...hashes: ReadonlyArray<number>): Bundle => ({
  requestId,
  chain,
  profile: {
    chainId,
    rpc: null,
    entryPoints: [entryPoint],
    factory: null,
    validator: null,
    beacon: null,
    creationCode: null,
    implementationCodeHash: null,
    defaultCustody: 1,
    caps: { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n, transactionGas: 1n },
    minPriorityFeePerGas: 0n,
    l1Fee: null,
    confirmations: 1,
    receiptTimeoutMillis: 1,
    pollIntervalMillis: 1
  },
  version: "v0.7",
  entryPoint,
  ops: hashes.map((hash, index) => ({
    index,
    userOpHash: word(hash),
    op: {
      sender: address(0xa),
      nonce: 0n,
      initCode: Hex.empty,
      callData: Hex.empty,
      callGasLimit: 1n,
      verificationGasLimit: 1n,
      preVerificationGas: 1n,
      maxFeePerGas: 1n,
      maxPriorityFeePerGas: 1n,
      paymasterAndData: Hex.empty,
      signature: Hex.empty
    }
  })),
  submitter: {
    address: address(0x51),
    publicKey: "",
    type: "PRIVATE_KEY",
    sign: () => Effect.succeed(Hex.empty)
  },
  prices: { maxFeePerGas: 7n, maxPriorityFeePerGas: 1n, legacy: false },
  l1Fee: 0n,
  gasLimit: 100_000n
})

describe("the bundler in memory", () => {
  it.effect("lands every op at once and keeps the bundles in their order", () =>
    Effect.gen(function* () {
      const bundler = yield* Bundler
      const one = bundle("r1", 1, 2)
      const other = bundle("r2", 3)
      const landed = yield* bundler.submit(one)
      const next = yield* bundler.submit(other)
      expect([...landed.outcomes.keys()]).toEqual([word(1), word(2)])
      for (const outcome of landed.outcomes.values())
        expect(outcome).toEqual({ success: true, txHash: landed.receipt.txHash, revertData: null })
      expect(landed.receipt).toMatchObject({ success: true, from: address(0x51), effectiveGasPrice: 7n })
      expect(next.receipt.txHash).not.toBe(landed.receipt.txHash)
      expect(next.receipt.blockNumber).toBe(landed.receipt.blockNumber + 1n)
      expect(yield* yield* MemoryBundler.Submitted).toEqual([one, other])
    }).pipe(Effect.provide(MemoryBundler.layer))
  )

  it.effect("does what it is told to do with each bundle", () =>
    Effect.gen(function* () {
      const bundler = yield* Bundler
      const refusal = yield* Effect.flip(bundler.submit(bundle("r1", 1)))
      expect(refusal.reason).toBe("signerRefused")
      const landed = yield* bundler.submit(bundle("r1", 1, 2))
      expect(landed.outcomes.get(word(1))?.success).toBe(true)
      expect(landed.outcomes.get(word(2))?.success).toBe(false)
      expect((yield* yield* MemoryBundler.Submitted).length).toBe(2)
    }).pipe(
      Effect.provide(
        MemoryBundler.layerWith((bundle, position) =>
          position === 0
            ? Effect.fail(
                new BundlerError({
                  reason: "signerRefused",
                  message: "it does not sign",
                  txHash: null,
                  missing: 0n,
                  dropped: new Map()
                })
              )
            : Effect.map(MemoryBundler.landAll(bundle, position), (landed) => ({
                ...landed,
                outcomes: new Map(
                  [...landed.outcomes].map(([hash, it], n) => [hash, { ...it, success: n === 0 }])
                )
              }))
        )
      )
    )
  )
})
