import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Contract, type JsonRpcProvider, keccak256, NonceManager } from "ethers"
import * as Multicall from "../src/domain/evm/Multicall.js"
import { artifact, initCode } from "../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../src/hosts/cli/deploy/DeterministicDeployer.js"
import { deployEntryPoints, entryPoints } from "../src/hosts/cli/deploy/EntryPoints.js"
import { deploySuite, fundPaymaster, type Suite } from "../src/hosts/cli/deploy/Suite.js"
import * as Provider from "../src/hosts/cli/support/Provider.js"
import { devKeys } from "./DevKeys.js"
import { startPrepared } from "./PreparedChain.js"

export interface Options {
  /** 0 picks a free port. */
  readonly port: number
  readonly chainId: number
  /** Seconds between blocks; null: a block per transaction. */
  readonly blockTime: number | null
}

/** A development chain with everything on it that the service operates. */
export interface DevChain {
  readonly url: string
  readonly chainId: number
  readonly entryPoints: typeof entryPoints
  readonly suite: Suite
  /** keccak256 of the wallet implementation's code. */
  readonly implementationCodeHash: string
  readonly token: string
  readonly reverter: string
}

/** The chain does not start, or something can not be deployed on it. */
export class DevChainError extends Data.TaggedError("DevChainError")<{ readonly message: string }> {}

const textOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const salt = `0x${"00".repeat(32)}`

/** Wei that the paymaster has at each EntryPoint from the start: 100 of the chain's coin. */
const paymasterDeposit = 10n ** 20n

/** What is there already is not deployed again. */
const deployContracts = async (payer: NonceManager) => {
  await deployEntryPoints(payer)
  const suite = await deploySuite(payer, {
    deployer: devKeys.deployer.address,
    owner: devKeys.factoryOwner.address,
    beaconOwner: devKeys.beaconOwner.address,
    sponsor: devKeys.sponsor.address
  })
  const token = await deploy(payer, initCode("TestToken"), salt)
  const reverter = await deploy(payer, initCode("Reverter"), salt)
  return { suite, token, reverter }
}

const prepare = async (provider: JsonRpcProvider) => {
  const payer = new NonceManager(devKeys.faucet.connect(provider))
  const { suite } = await deployContracts(payer)
  await fundPaymaster(payer, suite.paymaster, paymasterDeposit)
  await provider.send("anvil_setCode", [Multicall.address, artifact("Multicall").deployedBytecode])
}

const anvil = ({ chainId, port }: Options) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => startPrepared("dev", { chainId, port, detached: true }, prepare),
      catch: (cause) =>
        new DevChainError({
          message: /in use/i.test(textOf(cause)) ? `port ${port} (--rpc-port) is in use` : textOf(cause)
        })
    }),
    ({ stop }) => Effect.promise(stop)
  )

const deployAll = async (provider: JsonRpcProvider, blockTime: number | null) => {
  const { reverter, suite, token } = await deployContracts(new NonceManager(devKeys.faucet.connect(provider)))
  const beacon = new Contract(suite.beacon, ["function implementation() view returns (address)"], provider)
  const implementation: string = await beacon.getFunction("implementation")()
  const implementationCodeHash = keccak256(await provider.getCode(implementation))
  // Only now: with a block every so often each deployment would wait for one.
  if (blockTime !== null) await provider.send("evm_setIntervalMining", [blockTime])
  return { entryPoints, suite, implementationCodeHash, token, reverter }
}

/** Anvil with EntryPoints, wallet suite, test token, reverter and Multicall3 on it, until the scope closes. */
export const start = (options: Options): Effect.Effect<DevChain, DevChainError, Scope.Scope> =>
  Effect.gen(function* () {
    const { chainId, url } = yield* anvil(options)
    const deployed = yield* Effect.scoped(
      Effect.flatMap(Provider.connect(url, chainId), (provider) =>
        Effect.tryPromise({
          try: () => deployAll(provider, options.blockTime),
          catch: (cause) => new DevChainError({ message: `the deployment failed: ${textOf(cause)}` })
        })
      )
    )
    return { url, chainId, ...deployed }
  })
