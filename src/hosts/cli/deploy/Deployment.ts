import {
  getBytes,
  Interface,
  type JsonRpcProvider,
  keccak256,
  NonceManager,
  type Signer,
  type TransactionRequest
} from "ethers"
import * as DeterministicDeployer from "./DeterministicDeployer.js"
import type * as Plan from "./Plan.js"
import * as Suite from "./Suite.js"

export const setCode = async (provider: JsonRpcProvider, address: string, code: string): Promise<void> => {
  await provider
    .send("hardhat_setCode", [address, code])
    .catch(() => provider.send("anvil_setCode", [address, code]))
}

/**
 * Uses the plan's prices. The deterministic deployer's transaction pays 100 gwei; on a quiet chain the node would then
 * suggest that price for the transactions after it.
 */
const feesOf =
  (provider: JsonRpcProvider, { tip }: Plan.Plan) =>
  async (): Promise<TransactionRequest> => {
    const base = (await provider.getBlock("latest"))?.baseFeePerGas ?? null
    return base === null || tip === null
      ? {}
      : { maxPriorityFeePerGas: tip, maxFeePerGas: 2n * base + tip, type: 2 }
  }

const perform = async (
  payer: Signer,
  provider: JsonRpcProvider,
  { address, how }: Plan.Step,
  fees: () => Promise<TransactionRequest>
) => {
  if (how.kind === "keyless") return DeterministicDeployer.bring(payer, provider, fees)
  if (how.kind === "setCode") return setCode(provider, address, how.code)
  if (how.kind === "create2") await DeterministicDeployer.deploy(payer, how.initCode, how.salt, fees)
}

/** A pending transaction of an earlier run may deploy the same code: refuses to pay twice. */
const refuseWaiting = async (provider: JsonRpcProvider, payer: string): Promise<void> => {
  const [mined, waiting] = await Promise.all([
    provider.getTransactionCount(payer, "latest"),
    provider.getTransactionCount(payer, "pending")
  ])
  if (waiting > mined)
    throw new Error(
      `${waiting - mined} transactions of ${payer} are pending, perhaps from an earlier run: rerun the command when they are mined`
    )
}

/** Deploys the plan's missing contracts one by one, checking each again before paying. Rerun it after an interruption. */
export const run = async (
  payer: Signer,
  provider: JsonRpcProvider,
  plan: Plan.Plan,
  done: (step: Plan.Step) => void
): Promise<void> => {
  await refuseWaiting(provider, await payer.getAddress())
  const numbered = new NonceManager(payer)
  const fees = feesOf(provider, plan)
  for (const step of plan.steps) {
    if (step.present || step.how.kind === "left") continue
    await perform(numbered, provider, step, fees)
    done(step)
  }
}

/** Compares code with an artifact; zeros of the artifact match anything, as constructors write immutables there. */
const isCode = (code: string, runtime: string): boolean => {
  const [found, expected] = [getBytes(code), getBytes(runtime)]
  return found.length === expected.length && expected.every((byte, at) => byte === 0 || byte === found[at])
}

const reads = new Interface([
  "function implementation() view returns (address)",
  "function beacon() view returns (address)",
  "function deployer() view returns (address)",
  "function sponsor() view returns (address)",
  "function owner() view returns (address)"
])

/** Expected results of a suite's getters before any replacement. */
const answers = (step: Plan.Step, keys: Plan.DeploySpec["keys"]): Readonly<Record<string, string>> => {
  const { beacon, implementation } = Suite.suiteOf({ ...keys, sponsor: keys.sponsor ?? keys.owner })
  if (step.name === "beacon") return { implementation, owner: keys.beaconOwner }
  if (step.name.startsWith("factory")) return { beacon, deployer: keys.deployer, owner: keys.owner }
  if (step.name === "paymaster") return { sponsor: keys.sponsor ?? "", owner: keys.owner }
  return {}
}

/** Code hash of the beacon's current implementation; null when it has no code. */
export const implementationCodeHash = async (
  provider: JsonRpcProvider,
  beacon: string
): Promise<string | null> => {
  const data = reads.encodeFunctionData("implementation")
  const returned = await provider.call({ to: beacon, data })
  const code = await provider.getCode(String(reads.decodeFunctionResult("implementation", returned)[0]))
  return code === "0x" ? null : keccak256(code)
}

interface Verified {
  readonly name: string
  readonly address: string
  /** keccak256 of the code; null when there is none. */
  readonly codeHash: string | null
  /** Faults that make the contract unusable. */
  readonly problems: ReadonlyArray<string>
  /** Replacements made by the contract's owner. */
  readonly notes: ReadonlyArray<string>
}

/** Reads the deployed plan back from the chain. */
export const verify = (
  provider: JsonRpcProvider,
  { steps }: Plan.Plan,
  keys: Plan.DeploySpec["keys"]
): Promise<ReadonlyArray<Verified>> =>
  Promise.all(
    steps.map(async (step): Promise<Verified> => {
      const { address, how, name, runtime } = step
      const code = await provider.getCode(address)
      if (code === "0x") {
        const problems = how.kind === "left" && !how.needed ? [] : ["there is no code"]
        return { name, address, codeHash: null, problems, notes: [] }
      }
      const notes: Array<string> = []
      const problems =
        runtime === null || isCode(code, runtime) ? [] : ["the code differs from this version's"]
      for (const [read, expected] of Object.entries(answers(step, keys))) {
        const data = reads.encodeFunctionData(read)
        const returned = await provider.call({ to: address, data }).catch(() => "0x")
        const found = returned === "0x" ? "nothing" : String(reads.decodeFunctionResult(read, returned)[0])
        if (found.toLowerCase() !== expected.toLowerCase())
          notes.push(`${read}() is ${found}, not ${expected}`)
      }
      return { name, address, codeHash: keccak256(code), problems, notes }
    })
  )
