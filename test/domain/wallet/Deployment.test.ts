import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { concat, Interface, TypedDataEncoder } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Deployment from "../../../src/domain/wallet/Deployment.js"
import * as WalletConfig from "../../../src/domain/wallet/WalletConfig.js"
import { address, bytes32, config, custody, forAll, hex, mutated, uint, uint48 } from "../generators.js"

const deployment: fc.Arbitrary<Deployment.Deployment> = fc.record({
  saltHash: bytes32,
  custody,
  legacy: fc.boolean(),
  config,
  deadline: uint48
})

const types = {
  Deploy: [
    { name: "saltHash", type: "bytes32" },
    { name: "custody", type: "uint256" },
    { name: "legacy", type: "bool" },
    { name: "configHash", type: "bytes32" },
    { name: "deadline", type: "uint48" },
    { name: "bundler", type: "address" }
  ]
}

const factoryAbi = new Interface([
  "function createWallet(bytes32 saltHash, uint256 custody, bool legacy, (uint8 custody,uint8 threshold,address[] owners,(bytes32 x,bytes32 y)[] passkeys) config, uint48 deadline, bytes authorization) returns (address)"
])

describe("Deployment", () => {
  it("a deployment is authorised over the EIP-712 digest of Deploy", () => {
    forAll([deployment, uint(64), address, address], (it, chainId, factory, bundler) => {
      expect(Deployment.digest({ chainId, factory }, it, bundler)).toBe(
        TypedDataEncoder.hash(
          { name: "castellan", version: "1", chainId, verifyingContract: factory },
          types,
          { ...it, configHash: WalletConfig.configHash(it.config), bundler }
        )
      )
    })
  })

  it("a deployment is authorised for one chain, one factory, one configuration and one submitter", () => {
    forAll([deployment, deployment, uint(64), address, address], (a, b, chainId, factory, other) => {
      const digest = Deployment.digest({ chainId, factory }, a, factory)
      expect(Deployment.digest({ chainId: chainId + 1n, factory }, a, factory)).not.toBe(digest)
      expect(Deployment.digest({ chainId, factory: other }, a, factory) === digest).toBe(other === factory)
      expect(Deployment.digest({ chainId, factory }, a, other) === digest).toBe(other === factory)
      expect(Deployment.digest({ chainId, factory }, { ...a, config: b.config }, factory) === digest).toBe(
        WalletConfig.encode(a.config) === WalletConfig.encode(b.config)
      )
    })
  })

  it("a deployment's authorisation is one byte longer without a submitter", () => {
    forAll([hex(65), address], (signature, bundler) => {
      expect(Deployment.authorization(signature, bundler)).toBe(
        bundler === Address.zero ? `${signature}01` : signature
      )
      expect(Deployment.authorization(signature, Address.zero)).toBe(`${signature}01`)
    })
  })

  it("a deployment is encoded as by ethers, behind the factory in an initCode, and read back", () => {
    forAll([deployment, address, hex(100)], (it, factory, authorization) => {
      const call = factoryAbi.encodeFunctionData("createWallet", [
        it.saltHash,
        it.custody,
        it.legacy,
        it.config,
        it.deadline,
        authorization
      ])
      expect(Deployment.createWalletCall(it, authorization)).toBe(call)
      const initCode = Deployment.initCode(factory, it, authorization)
      expect(initCode).toBe(concat([factory, call]))
      expect(Deployment.parse(initCode)).toEqual(Result.succeed({ factory, deployment: it, authorization }))
    })
  })

  it("a deployment is read from one initCode only", () => {
    const initCode = fc
      .tuple(deployment, address, hex(100))
      .map(([it, factory, authorization]) => Deployment.initCode(factory, it, authorization))
    forAll(
      [mutated(initCode)],
      ([right, wrong]) => {
        const result = Deployment.parse(wrong)
        if (wrong !== right && Result.isSuccess(result)) expect(result).not.toEqual(Deployment.parse(right))
      },
      { numRuns: 500 }
    )
    forAll([hex(800)], (garbage) => Result.isFailure(Deployment.parse(garbage)))
    for (const text of ["0x", `0x${"11".repeat(20)}`, `0x${"11".repeat(23)}`, `0x${"11".repeat(24)}`])
      expect(Result.isFailure(Deployment.parse(Hex.unsafe(text)))).toBe(true)
  })

  it("a deployment with an impossible deadline has expired", () => {
    forAll(
      [
        deployment,
        uint(64),
        address,
        fc.constantFrom(-1, 0.5, 2 ** 48, Number.NaN, Number.POSITIVE_INFINITY)
      ],
      (it, chainId, factory, deadline) => {
        const [wrong, expired] = [
          { ...it, deadline },
          { ...it, deadline: 0 }
        ]
        expect(Deployment.digest({ chainId, factory }, wrong, factory)).toBe(
          Deployment.digest({ chainId, factory }, expired, factory)
        )
        expect(Deployment.createWalletCall(wrong, Hex.empty)).toBe(
          Deployment.createWalletCall(expired, Hex.empty)
        )
      }
    )
  })
})
