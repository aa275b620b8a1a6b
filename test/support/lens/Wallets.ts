import { AbiCoder, concat, id, keccak256, Wallet } from "ethers"
import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { factoryAbi, walletAbi } from "./Abis.js"
import { dummyEcdsa, type Op, type World } from "./World.js"

const coder = AbiCoder.defaultAbiCoder()

/** A wallet of the suite, its creation, and how it proves itself. */
export interface TestWallet {
  readonly address: Address.Address
  /** factory ++ createWallet calldata with a valid authorisation. */
  readonly initCode: Hex.Hex
  readonly prove: (hash: string) => string
  /** Of the real shape, for estimates. */
  readonly dummy: (hash: string) => string
}

export interface Config {
  readonly custody: number
  readonly threshold: number
  readonly owners: ReadonlyArray<string>
  readonly passkeys: ReadonlyArray<{ readonly x: string; readonly y: string }>
}

const deployTypes = {
  Deploy: [
    { name: "saltHash", type: "bytes32" },
    { name: "custody", type: "uint256" },
    { name: "legacy", type: "bool" },
    { name: "configHash", type: "bytes32" },
    { name: "deadline", type: "uint48" },
    { name: "bundler", type: "address" }
  ]
}

const configType =
  "tuple(uint8 custody,uint8 threshold,address[] owners,tuple(bytes32 x,bytes32 y)[] passkeys)"

/** A wallet of any custody, not deployed yet. */
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
  const { chainId } = await world.provider.getNetwork()
  const authorization = await world.deployer.signTypedData(
    { name: "castellan", version: "1", chainId, verifyingContract: factory },
    deployTypes,
    {
      saltHash,
      custody: config.custody,
      legacy: false,
      configHash: keccak256(coder.encode([configType], [config])),
      deadline,
      bundler: world.submitter.address
    }
  )
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

/** An ECDSA wallet (custody 1) of a fresh owner. */
export const ecdsaWallet = (world: World, salt: string): Promise<TestWallet> => {
  const owner = Wallet.createRandom()
  return walletOf(
    world,
    salt,
    { custody: 1, threshold: 1, owners: [owner.address], passkeys: [] },
    { prove: (hash) => owner.signingKey.sign(hash).serialized, dummy: dummyEcdsa }
  )
}

/** An op with round fees and no gas limits yet. */
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
