import { Contract, ContractFactory, HDNodeWallet, type JsonRpcProvider, Mnemonic, type Signer } from "ethers"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import {
  deployEntryPoints,
  type EntryPointVersion,
  entryPoints
} from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { deploySuite, type Suite } from "../../../src/hosts/cli/deploy/Suite.js"
import { NodeProvider } from "../../../src/hosts/cli/support/NodeProvider.js"
import { startPrepared } from "../../../tools/PreparedChain.js"

const mnemonic = Mnemonic.fromPhrase("test test test test test test test test test test test junk")

/** The development chain's key of this index; 0 to 9 are funded. */
export const devKey = (index: number): HDNodeWallet =>
  HDNodeWallet.fromMnemonic(mnemonic, `m/44'/60'/0'/0/${index}`)

/** One chain with EntryPoints, suite and all actors. */
export interface Chain {
  readonly provider: JsonRpcProvider
  readonly chainId: bigint
  readonly suite: Suite
  readonly factory: Contract
  readonly ledger: Contract
  readonly token: Contract
  readonly entryPoint: (version: EntryPointVersion) => Contract
  /** Submits bundles. */
  readonly bundler: HDNodeWallet
  /** Another funded EOA, with no rights. */
  readonly stranger: HDNodeWallet
  readonly deployer: HDNodeWallet
  readonly factoryOwner: HDNodeWallet
  readonly beaconOwner: HDNodeWallet
  /** Signs for the suite's paymaster, which has no deposits yet. */
  readonly sponsor: HDNodeWallet
  readonly now: () => Promise<number>
  readonly fund: (address: string, wei?: bigint) => Promise<void>
  readonly stop: () => Promise<void>
}

/** A contract of `contracts/artifacts`, at this address. */
export const at = (name: string, address: string, chain: { readonly provider: JsonRpcProvider }): Contract =>
  new Contract(address, artifact(name).abi, chain.provider)

/** Deploys an artifact by plain CREATE. */
export const create = async (
  name: string,
  args: ReadonlyArray<unknown>,
  from: HDNodeWallet
): Promise<Contract> => {
  const { abi, bytecode } = artifact(name)
  const made = await new ContractFactory(abi, bytecode, from).deploy(...args)
  await made.waitForDeployment()
  return new Contract(await made.getAddress(), abi, from.provider)
}

const packed =
  "(address sender,uint256 nonce,bytes initCode,bytes callData,bytes32 accountGasLimits,uint256 preVerificationGas,bytes32 gasFees,bytes paymasterAndData,bytes signature)"
const unpacked =
  "(address sender,uint256 nonce,bytes initCode,bytes callData,uint256 callGasLimit,uint256 verificationGasLimit,uint256 preVerificationGas,uint256 maxFeePerGas,uint256 maxPriorityFeePerGas,bytes paymasterAndData,bytes signature)"

const entryPointAbi = (op: string) => [
  `function handleOps(${op}[] ops, address beneficiary)`,
  `function getUserOpHash(${op} op) view returns (bytes32)`,
  "function getNonce(address sender, uint192 key) view returns (uint256)",
  "function balanceOf(address account) view returns (uint256)",
  "function depositTo(address account) payable",
  "event UserOperationEvent(bytes32 indexed userOpHash, address indexed sender, address indexed paymaster, uint256 nonce, bool success, uint256 actualGasCost, uint256 actualGasUsed)",
  "event UserOperationRevertReason(bytes32 indexed userOpHash, address indexed sender, uint256 nonce, bytes revertReason)",
  "error FailedOp(uint256 opIndex, string reason)",
  "error FailedOpWithRevert(uint256 opIndex, string reason, bytes inner)"
]

/** Deploys missing contracts only. */
const deployContracts = async (payer: Signer): Promise<Suite> => {
  await deployEntryPoints(payer)
  return deploySuite(payer, {
    deployer: devKey(3).address,
    owner: devKey(4).address,
    beaconOwner: devKey(5).address,
    sponsor: devKey(6).address
  })
}

/** Starts a separate anvil with the three EntryPoints and the suite. */
export const startChain = async (args: ReadonlyArray<string> = [], chainId = 31337): Promise<Chain> => {
  const anvil = await startPrepared("suite", { chainId, args }, (fresh) =>
    deployContracts(devKey(0).connect(fresh))
  )
  const provider = new NodeProvider(anvil.url, chainId, {
    staticNetwork: true,
    cacheTimeout: -1,
    batchMaxCount: 1,
    pollingInterval: 50
  })
  const as = (index: number) => devKey(index).connect(provider)
  const [payer, bundler, stranger, deployer, factoryOwner, beaconOwner, sponsor] = [0, 1, 2, 3, 4, 5, 6].map(
    as
  )
  if (!payer || !bundler || !stranger || !deployer || !factoryOwner || !beaconOwner || !sponsor)
    throw new Error("keys")
  const suite = await deployContracts(payer)
  const contracts = {
    "v0.6": new Contract(entryPoints["v0.6"], entryPointAbi(unpacked), provider),
    "v0.7": new Contract(entryPoints["v0.7"], entryPointAbi(packed), provider),
    "v0.8": new Contract(entryPoints["v0.8"], entryPointAbi(packed), provider)
  }
  return {
    provider,
    chainId: BigInt(chainId),
    suite,
    factory: at("WalletFactory", suite.factory, { provider }),
    ledger: at("OperationLedger", suite.ledger, { provider }),
    token: await create("TestToken", [], payer),
    entryPoint: (version) => contracts[version],
    bundler,
    stranger,
    deployer,
    factoryOwner,
    beaconOwner,
    sponsor,
    now: async () => (await provider.getBlock("latest"))?.timestamp ?? 0,
    fund: async (address, wei = 10n ** 18n) => {
      await provider.send("anvil_setBalance", [address, `0x${wei.toString(16)}`])
    },
    stop: async () => {
      provider.destroy()
      await anvil.stop()
    }
  }
}
