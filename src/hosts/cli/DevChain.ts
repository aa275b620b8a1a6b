import { Contract, JsonRpcProvider, keccak256, NonceManager } from "ethers"
import { type Anvil, startAnvil } from "./Anvil.js"
import { devKeys } from "./DevKeys.js"
import { initCode } from "./deploy/Artifacts.js"
import { deploy } from "./deploy/DeterministicDeployer.js"
import { deployEntryPoints, entryPoints } from "./deploy/EntryPoints.js"
import { deploySuite, type Suite } from "./deploy/Suite.js"

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
  readonly stop: () => Promise<void>
}

const salt = `0x${"00".repeat(32)}`

const started = async ({ chainId, port }: Options): Promise<Anvil> => {
  try {
    return await startAnvil({ chainId, port, detached: true })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(/in use/i.test(why) ? `port ${port} (--rpc-port) is in use` : why)
  }
}

/** Starts anvil and deploys EntryPoints, wallet suite, test token and reverter. Leaves no anvil behind when it fails. */
export const startDevChain = async (options: Options): Promise<DevChain> => {
  const anvil = await started(options)
  const provider = new JsonRpcProvider(anvil.url, anvil.chainId, {
    staticNetwork: true,
    cacheTimeout: -1,
    pollingInterval: 20
  })
  try {
    const payer = new NonceManager(devKeys.faucet.connect(provider))
    await deployEntryPoints(payer)
    const suite = await deploySuite(payer, {
      deployer: devKeys.deployer.address,
      owner: devKeys.factoryOwner.address,
      beaconOwner: devKeys.beaconOwner.address
    })
    const token = await deploy(payer, initCode("TestToken"), salt)
    const reverter = await deploy(payer, initCode("Reverter"), salt)
    const beacon = new Contract(suite.beacon, ["function implementation() view returns (address)"], provider)
    const implementation: string = await beacon.getFunction("implementation")()
    const implementationCodeHash = keccak256(await provider.getCode(implementation))
    // Only now: with a block every so often each deployment would wait for one.
    if (options.blockTime !== null) await provider.send("evm_setIntervalMining", [options.blockTime])
    return {
      url: anvil.url,
      chainId: anvil.chainId,
      entryPoints,
      suite,
      implementationCodeHash,
      token,
      reverter,
      stop: anvil.stop
    }
  } catch (cause) {
    await anvil.stop()
    throw cause
  } finally {
    provider.destroy()
  }
}
