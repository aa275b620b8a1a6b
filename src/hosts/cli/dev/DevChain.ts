import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Interface, type JsonRpcProvider, NonceManager } from "ethers"
import * as Multicall from "../../../domain/evm/Multicall.js"
import { artifact, initCode } from "../deploy/Artifacts.js"
import { implementationCodeHash, setCode } from "../deploy/Deployment.js"
import { bring, deploy } from "../deploy/DeterministicDeployer.js"
import { deployEntryPoints, entryPoints } from "../deploy/EntryPoints.js"
import { isDevelopmentNode } from "../deploy/Plan.js"
import { deploySuite, fundPaymaster, type Suite } from "../deploy/Suite.js"
import * as Provider from "../support/Provider.js"
import { type Anvil, type AnvilOptions, startAnvil } from "./Anvil.js"
import { devKeys } from "./DevKeys.js"

/** A development chain with all contracts that the service uses. */
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

type Prepare = (provider: JsonRpcProvider) => Promise<void>

/** Starts an anvil and runs `prepare` on it. */
export type StartNode = (options: AnvilOptions, prepare: Prepare) => Promise<Anvil>

export interface Options {
  /** 0 picks a free port. */
  readonly port: number
  readonly chainId: number
  /** Seconds between blocks; null: one block per transaction. */
  readonly blockTime: number | null
  /** Default: a fresh chain. */
  readonly startNode?: StartNode
}

/** The development stack cannot start or does not work; `message` explains why. */
export class DevError extends Data.TaggedError("DevError")<{ readonly message: string }> {}

const textOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const salt = `0x${"00".repeat(32)}`

/** Initial deposit of the paymaster at each EntryPoint, in wei: 100 coins. */
const paymasterDeposit = 10n ** 20n

/** Skips existing contracts. */
const deployContracts = async (payer: NonceManager, provider: JsonRpcProvider) => {
  await bring(payer, provider)
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

const deposits = new Interface(["function balanceOf(address) view returns (uint256)"])

const holdsDeposits = async (provider: JsonRpcProvider, paymaster: string): Promise<boolean> => {
  const data = deposits.encodeFunctionData("balanceOf", [paymaster])
  const held = await Promise.all(
    Object.values(entryPoints).map(async (to) => BigInt(await provider.call({ to, data })))
  )
  return held.every((wei) => wei > 0n)
}

const prepare: Prepare = async (provider) => {
  const payer = new NonceManager(devKeys.faucet.connect(provider))
  const { suite } = await deployContracts(payer, provider)
  if (!(await holdsDeposits(provider, suite.paymaster)))
    await fundPaymaster(payer, suite.paymaster, paymasterDeposit)
  if ((await provider.getCode(Multicall.address)) === "0x")
    await setCode(provider, Multicall.address, artifact("Multicall").deployedBytecode)
}

const startFresh: StartNode = async (options, prepare) => {
  const anvil = await startAnvil(options)
  try {
    await withProvider(anvil, prepare)
    return anvil
  } catch (cause) {
    await anvil.stop()
    throw cause
  }
}

export const inUse = (port: number, flag: string): string =>
  `port ${port} (${flag}) is in use: stop its process, or choose a free port with ${flag} 0`

const withProvider = <A>(
  { chainId, url }: Pick<Anvil, "chainId" | "url">,
  use: (provider: JsonRpcProvider) => Promise<A>
): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(Provider.connect(url, chainId), (provider) => Effect.promise(() => use(provider)))
    )
  )

const anvil = ({ chainId, port, startNode = startFresh }: Options) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => startNode({ chainId, port, detached: true }, prepare),
      catch: (cause) =>
        new DevError({
          message: /in use/i.test(textOf(cause)) ? inUse(port, "--rpc-port") : textOf(cause)
        })
    }),
    ({ stop }) => Effect.promise(stop)
  )

const deployAll = async (provider: JsonRpcProvider, blockTime: number | null) => {
  const payer = new NonceManager(devKeys.faucet.connect(provider))
  const { reverter, suite, token } = await deployContracts(payer, provider)
  const codeHash = await implementationCodeHash(provider, suite.beacon)
  if (codeHash === null) throw new Error("the beacon names no code")
  // Only now: with interval mining each deployment would wait for a block.
  if (blockTime !== null) await provider.send("evm_setIntervalMining", [blockTime])
  return { entryPoints, suite, implementationCodeHash: codeHash, token, reverter }
}

const deployOn = (
  url: string,
  chainId: number,
  run: (provider: JsonRpcProvider) => ReturnType<typeof deployAll>
): Effect.Effect<DevChain, DevError> =>
  Effect.scoped(
    Effect.flatMap(Provider.connect(url, chainId), (provider) =>
      Effect.tryPromise({
        try: async () => ({ url, chainId, ...(await run(provider)) }),
        catch: (cause) => new DevError({ message: `the deployment failed: ${textOf(cause)}` })
      })
    )
  )

/** Runs anvil with EntryPoints, wallet suite, test token, reverter and Multicall3 until the scope closes. */
export const start = (options: Options): Effect.Effect<DevChain, DevError, Scope.Scope> =>
  Effect.flatMap(anvil(options), ({ chainId, url }) =>
    deployOn(url, chainId, (provider) => deployAll(provider, options.blockTime))
  )

/**
 * Prepares a running development node likewise. Publicly known keys pay for the contracts and own them, so other nodes are
 * refused.
 */
export const attach = (url: string): Effect.Effect<DevChain, DevError> =>
  Effect.gen(function* () {
    const chainId = yield* Effect.mapError(Provider.chainIdOf(url), (message) => new DevError({ message }))
    return yield* deployOn(url, chainId, async (provider) => {
      if (!(await isDevelopmentNode(provider)))
        throw new Error("--rpc is not a development node of anvil or Hardhat")
      await prepare(provider)
      return deployAll(provider, null)
    })
  })
