import { getBytes, type JsonRpcProvider } from "ethers"
import * as Multicall from "../../../domain/evm/Multicall.js"
import { artifact } from "./Artifacts.js"
import * as DeterministicDeployer from "./DeterministicDeployer.js"
import * as EntryPoints from "./EntryPoints.js"
import * as Suite from "./Suite.js"

/** A contract to deploy, and how to deploy it. */
export interface Step {
  readonly name: string
  readonly address: string
  /** Approximate upper bound of the gas; 0 when the code exists. */
  readonly gas: bigint
  /** Wei in addition to gas, for a keyless account. */
  readonly value: bigint
  readonly present: boolean
  readonly how:
    | { readonly kind: "create2"; readonly initCode: string; readonly salt: string }
    | { readonly kind: "keyless" }
    /** By a method of development nodes. */
    | { readonly kind: "setCode"; readonly code: string }
    /** Cannot be deployed; `why` explains the consequence and the remedy. */
    | { readonly kind: "left"; readonly why: string; readonly needed: boolean }
  /** Expected code, with zeros where the constructor writes immutables; null: unknown. */
  readonly runtime: string | null
}

export interface DeploySpec {
  readonly keys: Omit<Suite.SuiteKeys, "sponsor"> & { readonly sponsor: string | null }
  /** Accounts with a separate factory; empty: all use the suite's factory. */
  readonly accounts: ReadonlyArray<string>
}

/** Costs and addresses of a suite's deployments, as read from the chain. */
export interface Plan {
  readonly steps: ReadonlyArray<Step>
  readonly gas: bigint
  /** Wei for gas and keyless accounts, at the current price. */
  readonly cost: bigint
  readonly gasPrice: bigint
  /** Wei per gas for the block producer; null: the chain has no tips. */
  readonly tip: bigint | null
}

/** Calldata, creation, 200 per stored byte, and an allowance for the constructor. */
const gasOf = (initCode: string, runtimeBytes: number): bigint => {
  const code = getBytes(initCode)
  const calldata = code.reduce((sum, byte) => sum + (byte === 0 ? 4 : 16), 0)
  return BigInt(21_000 + 32_000 + calldata + 200 * runtimeBytes + 2 * Math.ceil(code.length / 32) + 150_000)
}

type Draft = Omit<Step, "present">

const entryPoint = (version: EntryPoints.EntryPointVersion): Draft => {
  const code = EntryPoints.compiled(version)
  const name = `EntryPoint ${version}`
  const address = EntryPoints.entryPoints[version]
  if (code === null) {
    const why = `its authors' package is not installed here: ${EntryPoints.advice(version)}`
    return { name, address, gas: 0n, value: 0n, how: { kind: "left", why, needed: true }, runtime: null }
  }
  const salt = EntryPoints.saltOf(version)
  // A matching CREATE2 address proves that the package has the same code as every other chain.
  if (DeterministicDeployer.addressOf(code.bytecode, salt) !== address)
    throw new Error(`${EntryPoints.packageOf(version)} does not have the canonical EntryPoint ${version}`)
  // Counts the code that the constructor creates.
  const gas = gasOf(code.bytecode, code.deployedBytecode.length / 2 + 1_500)
  const how = { kind: "create2", initCode: code.bytecode, salt } as const
  return { name, address, gas, value: 0n, how, runtime: code.deployedBytecode }
}

const deployer: Draft = {
  name: "deterministic deployer",
  address: DeterministicDeployer.deterministicDeployer,
  gas: 21_000n,
  value: DeterministicDeployer.cost,
  how: { kind: "keyless" },
  runtime: DeterministicDeployer.runtime
}

const multicall = (development: boolean): Draft => ({
  name: "Multicall3",
  address: Multicall.address,
  gas: 0n,
  value: 0n,
  how: development
    ? { kind: "setCode", code: artifact("Multicall").deployedBytecode }
    : {
        kind: "left",
        why: "its authors' signed transaction puts it there (github.com/mds1/multicall, new deployments); without it reads go in batches",
        needed: false
      },
  runtime: null
})

const ofPart = (name: string, { address, contract, initCode, salt }: Suite.Part): Draft => {
  const runtime = artifact(contract).deployedBytecode
  const gas = gasOf(initCode, runtime.length / 2 - 1)
  return { name, address, gas, value: 0n, how: { kind: "create2", initCode, salt }, runtime }
}

const suite = ({ accounts, keys }: DeploySpec): ReadonlyArray<Draft> => {
  const all = { ...keys, sponsor: keys.sponsor ?? keys.owner }
  const { factory, paymaster, ...shared } = Suite.partsOf(all)
  return [
    ...Object.entries(shared).map(([name, part]) => ofPart(name, part)),
    ...(accounts.length === 0 ? [ofPart("factory", factory)] : []),
    ...accounts.map((account) => ofPart(`factory of ${account}`, Suite.factoryOf(all, account))),
    ...(keys.sponsor === null ? [] : [ofPart("paymaster", paymaster)])
  ]
}

/** Whether the node is a development node, which can set code. */
export const isDevelopmentNode = async (provider: JsonRpcProvider): Promise<boolean> => {
  const version: unknown = await provider.send("web3_clientVersion", []).catch(() => "")
  return /anvil|hardhat|edr/i.test(String(version))
}

/** Reads the chain; sends nothing. */
export const make = async (provider: JsonRpcProvider, wanted: DeploySpec): Promise<Plan> => {
  const drafts = [
    deployer,
    ...EntryPoints.entryPointVersions.map(entryPoint),
    multicall(await isDevelopmentNode(provider)),
    ...suite(wanted)
  ]
  const steps = await Promise.all(
    drafts.map(async (draft): Promise<Step> => {
      const present = (await provider.getCode(draft.address)) !== "0x"
      return present ? { ...draft, present, gas: 0n, value: 0n } : { ...draft, present }
    })
  )
  const gasPrice = BigInt(await provider.send("eth_gasPrice", []))
  const gas = steps.reduce((sum, step) => sum + step.gas, 0n)
  const value = steps.reduce((sum, step) => sum + step.value, 0n)
  const { maxPriorityFeePerGas: tip } = await provider.getFeeData()
  return { steps, gas, gasPrice, tip, cost: gas * gasPrice + value }
}

export const obstacles = ({ steps }: Plan): ReadonlyArray<string> =>
  steps.flatMap(({ how, name, present }) =>
    !present && how.kind === "left" && how.needed ? [`${name} is missing: ${how.why}`] : []
  )

/** Configuration entries for a chain with a deployed plan. */
export interface NetworkEntry {
  readonly networks: ReadonlyArray<Readonly<Record<string, unknown>>>
  /** By account, for its entry in `accounts` or for `castellan accounts set-network`. */
  readonly accounts: ReadonlyArray<{
    readonly id: string
    readonly networks: ReadonlyArray<Readonly<Record<string, unknown>>>
  }>
}

/** Environment variable for the node's URL, which may contain a key. */
export const rpcVariable = (chainId: number): string => `CASTELLAN_RPC_${chainId}`

export const networkEntry = (
  chainId: number,
  { steps }: Plan,
  accounts: ReadonlyArray<string>,
  implementationCodeHash: string | null
): NetworkEntry => {
  const at = (name: string) => steps.find((step) => step.name === name)?.address
  const factory = at("factory")
  const paymaster = at("paymaster")
  return {
    networks: [
      {
        chainId,
        rpc: { env: rpcVariable(chainId) },
        ...(factory !== undefined && { factory }),
        validator: at("validator"),
        beaconAdminAddress: at("beacon"),
        ledger: at("ledger"),
        ...(implementationCodeHash !== null && { implementationCodeHash }),
        ...(paymaster !== undefined && { sponsor: { paymaster, dailyBudget: "0" } })
      }
    ],
    accounts: accounts.map((id) => ({ id, networks: [{ chainId, factory: at(`factory of ${id}`) }] }))
  }
}
