import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { type BaseWallet, Interface, type TransactionReceipt } from "ethers"
import * as fc from "fast-check"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as Outcome from "../../../src/domain/erc4337/Outcome.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import type { RawLog } from "../../../src/domain/evm/RawLog.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import * as Deployment from "../../../src/domain/wallet/Deployment.js"
import * as Salt from "../../../src/domain/wallet/Salt.js"
import * as WalletAddress from "../../../src/domain/wallet/WalletAddress.js"
import * as WalletCalls from "../../../src/domain/wallet/WalletCalls.js"
import * as WalletConfig from "../../../src/domain/wallet/WalletConfig.js"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { custody } from "../../domain/generators.js"
import { type Chain, create, devKey, startChain } from "../../support/suite/Chain.js"

let chain: Chain
let factory: Address.Address
let initCodeHash: Hex.Bytes32
let reverter: Address.Address

beforeAll(async () => {
  chain = await startChain()
  factory = Address.unsafe(chain.suite.factory)
  const code = Result.getOrThrow(WalletAddress.creationCode(walletProxyCreationCode))
  initCodeHash = WalletAddress.initCodeHash(code, Address.unsafe(chain.suite.beacon))
  reverter = Address.unsafe(
    await (await create("Reverter", [], devKey(0).connect(chain.provider))).getAddress()
  )
})

afterAll(() => chain?.stop())

const owner = devKey(7)
const ownerAddress = Address.unsafe(owner.address)
const bundlerOf = () => Address.unsafe(chain.bundler.address)
const saltOf = (text: string) => Salt.hash(Result.getOrThrow(Salt.from(text)))
const sign = (hash: Hex.Bytes32, by: BaseWallet) => Hex.unsafe(by.signingKey.sign(hash).serialized)

const opOf = (
  sender: Address.Address,
  fields: Partial<UserOperation.UserOperation>
): UserOperation.UserOperation => ({
  sender,
  nonce: 0n,
  initCode: Hex.empty,
  callData: Hex.empty,
  callGasLimit: 200_000n,
  verificationGasLimit: 1_000_000n,
  preVerificationGas: 60_000n,
  maxFeePerGas: 3_000_000_000n,
  maxPriorityFeePerGas: 1_000_000_000n,
  paymasterAndData: Hex.empty,
  signature: Hex.empty,
  ...fields
})

const hashOf = (version: EntryPoint.Version, op: UserOperation.UserOperation) =>
  UserOperation.hash(version, EntryPoint.canonical[version], chain.chainId, op)

/** The op signed under every condition there is. */
const signed = async (version: EntryPoint.Version, op: UserOperation.UserOperation, by: BaseWallet) => {
  const now = await chain.now()
  const conditions = { validUntil: now + 600, validAfter: now - 1, bundler: bundlerOf() }
  const proof = sign(Conditions.signingHash(hashOf(version, op), conditions), by)
  return { ...op, signature: Conditions.encodeSignature(conditions, proof) }
}

const send = async (version: EntryPoint.Version, ops: ReadonlyArray<UserOperation.UserOperation>) => {
  const sent = await chain.bundler.sendTransaction({
    to: EntryPoint.canonical[version],
    data: UserOperation.handleOps(version, ops, bundlerOf()),
    gasLimit: 10_000_000n
  })
  const receipt = await sent.wait()
  if (receipt === null) throw new Error("no receipt")
  return receipt
}

const rawLogs = (receipt: TransactionReceipt): ReadonlyArray<RawLog> =>
  receipt.logs.map((log) => ({
    address: Address.unsafe(log.address),
    topics: log.topics.map(Hex.unsafe32),
    data: Hex.unsafe(log.data),
    logIndex: log.index
  }))

const outcomesOf = (version: EntryPoint.Version, receipt: TransactionReceipt) =>
  Outcome.parse(EntryPoint.canonical[version], rawLogs(receipt))

const addressOf = (text: string, legacy = false) =>
  WalletAddress.predict({
    factory,
    initCodeHash,
    create2Salt: WalletAddress.create2Salt(saltOf(text), 1, legacy)
  })

const creationOp = async (version: EntryPoint.Version, text: string, legacy = false) => {
  const deployment: Deployment.Deployment = {
    saltHash: saltOf(text),
    custody: 1,
    legacy,
    config: WalletConfig.ecdsa(ownerAddress),
    deadline: (await chain.now()) + 600
  }
  const bundler = Address.unsafe(chain.bundler.address)
  const digest = Deployment.digest({ chainId: chain.chainId, factory }, deployment, bundler)
  const initCode = Deployment.initCode(factory, deployment, sign(digest, chain.deployer))
  return signed(version, opOf(addressOf(text, legacy), { initCode }), chain.deployer)
}

const reverterAbi = new Interface([
  "function failWithReason(string reason)",
  "function failWithoutReason()",
  "function bump(bytes32 id) returns (uint256)"
])
const call = (name: string, args: ReadonlyArray<unknown>) =>
  WalletCalls.execute(reverter, 0n, Hex.unsafe(reverterAbi.encodeFunctionData(name, args)))

describe.each(EntryPoint.versions)("A wallet made by the domain's bytes on EntryPoint %s", (version) => {
  it.each([
    ["plain", `customer of ${version}`, false],
    ["legacy", `customer of ${version}`, true],
    ["not ASCII", `Zoë \u{1f3f0} ${version}`, false]
  ])("stands at its predicted address (%s salt)", async (_, text, legacy) => {
    const op = await creationOp(version, text, legacy)
    await chain.fund(op.sender)
    const receipt = await send(version, [op])
    const outcome = outcomesOf(version, receipt).get(hashOf(version, op))
    expect(outcome).toMatchObject({
      success: true,
      deployed: true,
      revertData: null,
      sender: op.sender,
      nonce: 0n
    })
    expect(outcome?.actualGasUsed).toBeGreaterThan(100_000n)
    expect(await chain.provider.getCode(op.sender)).toBe(
      await chain.provider.call({
        data: WalletAddress.initCode(
          Result.getOrThrow(WalletAddress.creationCode(walletProxyCreationCode)),
          Address.unsafe(chain.suite.beacon)
        )
      })
    )
    const configuration = await chain.provider.call({ to: op.sender, data: WalletCalls.configuration })
    expect(WalletConfig.decode(Hex.unsafe(configuration))).toEqual(
      Result.succeed({ config: WalletConfig.ecdsa(ownerAddress), configNonce: 1n })
    )
    const validator = await chain.provider.call({ to: op.sender, data: WalletCalls.validator })
    expect(Address.fromWord(validator)).toBe(chain.suite.validator)
  })

  it("executes a bundle of which every op has its own outcome, revert data and logs", async () => {
    const text = `bundle of ${version}`
    const creation = await creationOp(version, text)
    await chain.fund(creation.sender)
    await send(version, [creation])
    const calls = [
      call("bump", [Keccak.hashText(version)]),
      call("failWithReason", ["too poor"]),
      call("failWithoutReason", []),
      WalletCalls.executeBatch([
        { target: Address.unsafe(await chain.token.getAddress()), value: 0n, data: mint(creation.sender) },
        { target: Address.unsafe(await chain.token.getAddress()), value: 0n, data: mint(creation.sender) }
      ])
    ]
    const ops: Array<UserOperation.UserOperation> = []
    for (const [key, callData] of calls.entries())
      ops.push(
        await signed(version, opOf(creation.sender, { nonce: BigInt(key + 3) << 64n, callData }), owner)
      )
    const receipt = await send(version, ops)
    const outcomes = outcomesOf(version, receipt)
    const [bump, reason, silent, batch] = ops.map((op) => outcomes.get(hashOf(version, op)))
    expect(outcomes.size).toBe(4)
    expect(bump).toMatchObject({ success: true, deployed: false, revertData: null, nonce: 3n << 64n })
    expect(reason?.success).toBe(false)
    expect(reason?.revertData).toBe(
      new Interface(["error Error(string)"]).encodeErrorResult("Error", ["too poor"])
    )
    expect(silent).toMatchObject({ success: false, revertData: null })
    expect(batch?.success).toBe(true)
    const transfers = rawLogs(receipt).filter((log) => log.topics[0] === transfer)
    expect(transfers).toHaveLength(2)
    for (const { logIndex } of transfers) {
      const owners = [...outcomes.values()].filter(
        ({ logs }) => logIndex >= logs.first && logIndex <= logs.last
      )
      expect(owners).toEqual([batch])
    }
    const paid = [...outcomes.values()].reduce((sum, outcome) => sum + outcome.actualGasCost, 0n)
    const spent = await chain.provider.getBalance(creation.sender)
    expect(paid).toBeGreaterThan(0n)
    expect(spent + paid).toBeLessThanOrEqual(10n ** 18n)
  })

  it("returns through execute what its target returned", async () => {
    const text = `bundle of ${version}`
    const returned = await chain.provider.call({
      from: EntryPoint.canonical[version],
      to: addressOf(text),
      data: call("bump", [Keccak.hashText(version)])
    })
    const inner = Result.getOrThrow(WalletCalls.decodeExecuteResult(Hex.unsafe(returned)))
    expect(reverterAbi.decodeFunctionResult("bump", inner)[0]).toBe(2n)
    const both = await chain.provider.call({
      from: EntryPoint.canonical[version],
      to: addressOf(text),
      data: WalletCalls.executeBatch([
        { target: factory, value: 0n, data: Keccak.selector("deployer()") },
        { target: Address.unsafe(chain.stranger.address), value: 1n, data: Hex.empty }
      ])
    })
    const results = Result.getOrThrow(WalletCalls.decodeExecuteBatchResult(Hex.unsafe(both)))
    expect(results.map(Hex.size)).toEqual([32, 0])
    expect(Address.fromWord(results[0] ?? "")).toBe(chain.deployer.address)
  })

  it("takes the validation calldata as the EntryPoint would make it", async () => {
    const op = await signed(version, opOf(addressOf(`bundle of ${version}`), { nonce: 9n << 64n }), owner)
    const validate = (each: UserOperation.UserOperation) =>
      chain.provider.send("eth_call", [
        {
          from: EntryPoint.canonical[version],
          to: op.sender,
          data: UserOperation.validateCall(version, each, hashOf(version, op))
        },
        "latest"
      ])
    const { conditions, proof } = Result.getOrThrow(Conditions.decodeSignature(op.signature))
    const unbound = { ...op, signature: Conditions.encodeSignature(Conditions.none, proof) }
    const raw = {
      ...op,
      signature: Conditions.encodeSignature(Conditions.none, sign(hashOf(version, op), owner))
    }
    expect(conditions.bundler).toBe(bundlerOf())
    expect(BigInt(await validate(raw))).toBe(0n)
    expect(BigInt(await validate(unbound))).toBe(1n)
  })
})

const transfer = Keccak.hashText("Transfer(address,address,uint256)")
const mint = (to: Address.Address) =>
  Hex.unsafe(new Interface(["function mint(address to,uint256 amount)"]).encodeFunctionData("mint", [to, 5n]))

describe("Prediction", () => {
  it("is what the factory says, for every salt, custody and legacy flag", async () => {
    const salt = fc
      .oneof(
        fc.string({ minLength: 1, maxLength: 200 }),
        fc.fullUnicodeString({ minLength: 1, maxLength: 60 })
      )
      .map(Salt.from)
      .filter(Result.isSuccess)
      .map((right) => right.success)
    await fc.assert(
      fc.asyncProperty(salt, custody, fc.boolean(), async (text, kind, legacy) => {
        const saltHash = Salt.hash(text)
        expect(
          WalletAddress.predict({
            factory,
            initCodeHash,
            create2Salt: WalletAddress.create2Salt(saltHash, kind, legacy)
          })
        ).toBe(await chain.factory.getFunction("getAddress").staticCall(saltHash, kind, legacy))
      }),
      { numRuns: 100 }
    )
    expect(await chain.factory.getFunction("initCodeHash").staticCall()).toBe(initCodeHash)
  })
})
