import { HDNodeWallet, type JsonRpcProvider, keccak256, Mnemonic, NonceManager } from "ethers"
import { initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { deployEntryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { deploySuite, fundPaymaster } from "../../../src/hosts/cli/deploy/Suite.js"
import type { Anvil } from "../../../src/hosts/cli/dev/Anvil.js"
import { NodeProvider } from "../../../src/hosts/cli/support/NodeProvider.js"
import { startPrepared } from "../../../tools/PreparedChain.js"

const mnemonic = Mnemonic.fromPhrase("test test test test test test test test test test test junk")
export const keyOf = (index: number): HDNodeWallet =>
  HDNodeWallet.fromMnemonic(mnemonic, `m/44'/60'/0'/0/${index}`)

export type Chain = Awaited<ReturnType<typeof deployContracts>> & {
  readonly anvil: Anvil
  readonly provider: JsonRpcProvider
  readonly faucet: NonceManager
  readonly stop: () => Promise<void>
}

const deployContracts = async (faucet: NonceManager) => {
  await deployEntryPoints(faucet)
  const suite = await deploySuite(faucet, {
    deployer: keyOf(3).address,
    owner: keyOf(4).address,
    beaconOwner: keyOf(5).address,
    sponsor: keyOf(7).address
  })
  const [token, reverter, counter] = [
    await deploy(faucet, initCode("TestToken"), `0x${"00".repeat(32)}`),
    await deploy(faucet, initCode("Reverter"), `0x${"00".repeat(32)}`),
    await deploy(faucet, initCode("Counter"), `0x${"00".repeat(32)}`)
  ]
  const code = await faucet.provider?.getCode(suite.implementation)
  return { suite, token, reverter, counter, implementationCodeHash: keccak256(code ?? "0x") }
}

/** Addresses are the same on every chain of a process, so existing contracts are not deployed again. */
let deployed: ReturnType<typeof deployContracts> | undefined

const prepare = async (provider: JsonRpcProvider) => {
  const faucet = new NonceManager(keyOf(0).connect(provider))
  const { suite } = await deployContracts(faucet)
  await fundPaymaster(faucet, suite.paymaster, 10n ** 18n)
}

const connect = ({ chainId, url }: Anvil): JsonRpcProvider => {
  const provider = new NodeProvider(url, chainId, { staticNetwork: true, cacheTimeout: -1 })
  provider.pollingInterval = 20
  return provider
}

interface Started {
  readonly anvil: Anvil
  /** Back to its beginning, for another user; false when that is not possible. */
  readonly renew: () => Promise<boolean>
}

const begin = async (args: ReadonlyArray<string>): Promise<Started> => {
  const anvil = await startPrepared("stack", { args }, prepare)
  const control = connect(anvil)
  let isThere = true
  const { baseFeePerGas } = await control.send("eth_getBlockByNumber", ["latest", false])
  let start: string = await control.send("evm_snapshot", [])
  return {
    anvil: {
      ...anvil,
      stop: () => {
        isThere = false
        control.destroy()
        return anvil.stop()
      }
    },
    renew: async () => {
      if (!isThere) return false
      await control.send("evm_setIntervalMining", [0])
      await control.send("anvil_dropAllTransactions", [])
      await control.send("evm_revert", [start])
      start = await control.send("evm_snapshot", [])
      // The snapshot contains neither; the clock continues from the restored block.
      await control.send("anvil_setNextBlockBaseFeePerGas", [baseFeePerGas])
      await control.send("evm_setTime", [Math.floor(Date.now() / 1_000)])
      await control.send("evm_setAutomine", [true])
      await control.send("evm_mine", [])
      return true
    }
  }
}

/** Idle chains of this process; they outlive test files. */
const idle: Array<Started> = []

/** A chain with all contracts deployed; a new one when anvil gets further arguments. */
export const startChain = async (args?: ReadonlyArray<string>): Promise<Chain> => {
  const started = (args === undefined ? idle.pop() : undefined) ?? (await begin(args ?? []))
  const { anvil } = started
  const provider = connect(anvil)
  const faucet = new NonceManager(keyOf(0).connect(provider))
  deployed ??= deployContracts(faucet)
  return {
    ...(await deployed),
    anvil,
    provider,
    faucet,
    stop: async () => {
      provider.destroy()
      if (args === undefined && (await started.renew())) idle.push(started)
      else await anvil.stop()
    }
  }
}
