import { concat, id, Wallet } from "ethers"
import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import type { Measure } from "../../../src/domain/erc4337/gas/GasLens.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { configOf, ecdsa, newPasskey, passkeyProof } from "../../support/suite/Keys.js"
import { authorizationOf, type Config, configHash, deployDigest } from "../../support/suite/Layouts.js"
import { factoryAbi, walletAbi } from "./Abis.js"
import { dummyEcdsa, type Op, type World } from "./World.js"

/** A wallet of the suite, its creation and its proofs. */
export interface TestWallet {
  readonly address: Address.Address
  /** factory ++ createWallet calldata with a valid authorisation. */
  readonly initCode: Hex.Hex
  readonly prove: (hash: string) => string
  /** A dummy of the real shape, for estimates. */
  readonly dummy: (hash: string) => string
}

/** A wallet of any custody, not yet deployed. */
export const walletOf = async (
  world: World,
  salt: string,
  config: Config,
  proof: Pick<TestWallet, "prove" | "dummy">
): Promise<TestWallet> => {
  const factory = world.suite.factory
  const saltHash = id(salt)
  const call = factoryAbi.encodeFunctionData("getAddress", [saltHash, config.custody, false])
  const address = Address.fromWord(await world.provider.call({ to: factory, data: call }))
  const latest = await world.provider.getBlock("latest")
  const deadline = (latest?.timestamp ?? 0) + 3000
  const bundler = world.submitter.address
  const digest = deployDigest(BigInt(world.anvil.chainId), factory, {
    saltHash,
    custody: config.custody,
    legacy: false,
    configHash: configHash(config),
    deadline,
    bundler
  })
  const authorization = authorizationOf(ecdsa(digest, world.deployer), bundler)
  const creation = factoryAbi.encodeFunctionData("createWallet", [
    saltHash,
    config.custody,
    false,
    config,
    deadline,
    authorization
  ])
  return { address, initCode: Hex.unsafe(concat([factory, creation])), ...proof }
}

/** An ECDSA wallet (custody 1) with a fresh owner. */
export const ecdsaWallet = (world: World, salt: string): Promise<TestWallet> => {
  const owner = Wallet.createRandom()
  return walletOf(world, salt, configOf(1, [owner]), {
    prove: (hash) => owner.signingKey.sign(hash).serialized,
    dummy: dummyEcdsa
  })
}

/** A passkey wallet (custody 5) with a fresh key. Its dummy is by another key, which takes as long to refuse. */
export const passkeyWallet = (world: World, salt: string): Promise<TestWallet> => {
  const [own, other] = [newPasskey(), newPasskey()]
  return walletOf(world, salt, configOf(5, [], [own]), {
    prove: (hash) => passkeyProof(hash, own),
    dummy: (hash) => passkeyProof(hash, other)
  })
}

/** An op with round fees and without gas limits. */
export const opOf = (wallet: TestWallet, nonce: bigint, callData: string): Op => ({
  sender: wallet.address,
  nonce,
  initCode: Hex.empty,
  callData: Hex.unsafe(callData),
  callGasLimit: 0n,
  verificationGasLimit: 0n,
  preVerificationGas: 60_000n,
  maxFeePerGas: 30_123_456_789n,
  maxPriorityFeePerGas: 30_123_456_789n,
  paymasterAndData: Hex.empty,
  signature: Hex.empty
})

/** The op that creates a wallet: no call, the deployer's proof. */
export const creationOf = (wallet: TestWallet): Op => ({
  ...opOf(wallet, 0n, "0x"),
  verificationGasLimit: 600_000n,
  initCode: wallet.initCode
})

/** Gives the wallet 1 ether and 1,000 units of the test token, and creates it. */
export const created = async (world: World, version: Version, wallet: TestWallet): Promise<TestWallet> => {
  await world.setBalance(wallet.address, 10n ** 18n)
  await world.mint(wallet.address, 1_000n)
  const outcome = await world.submit(version, [
    await world.sign(version, creationOf(wallet), world.deployerProof)
  ])
  if (!outcome.success) throw new Error("the wallet was not created")
  return wallet
}

/** wallet.execute(target, value, data). */
export const execute = (target: string, value: bigint, data: string): string =>
  walletAbi.encodeFunctionData("execute", [target, value, data])

/** wallet.executeBatch. */
export const executeBatch = (
  calls: ReadonlyArray<{ readonly target: string; readonly value: bigint; readonly data: string }>
): string => walletAbi.encodeFunctionData("executeBatch", [calls])

/** A measure of an op that ran to completion. */
export const completed = (measure: Measure | undefined, op = "op"): Measure => {
  if (measure?.stage !== "ok") throw new Error(`${op}: ${measure?.stage} ${measure?.data}`)
  return measure
}

/** The op under the formulas' limits for its measure; its signature has the real length. */
export const withLimits = (op: Op, measure: Measure | undefined, version: Version): Op => ({
  ...op,
  ...Gas.meteredLimits(version, op, completed(measure), Percent.zero)
})
