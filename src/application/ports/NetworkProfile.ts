import type * as Redacted from "effect/Redacted"
import * as EntryPoint from "../../domain/erc4337/EntryPoint.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { walletProxyCreationCode } from "../../domain/wallet/WalletProxy.generated.js"

/** What the operator says of one chain, with the overrides of one account already applied. */
export interface NetworkProfile {
  readonly chainId: bigint
  /** The operator's own node; null: nothing that needs a system key is possible on this chain. */
  readonly rpc: Redacted.Redacted<string> | null
  /** EntryPoints that requests may name. */
  readonly entryPoints: ReadonlyArray<Address>
  /** The account's own factory, the only one for which deployments are authorised; null: none. */
  readonly factory: Address | null
  readonly validator: Address | null
  readonly beacon: Address | null
  /** Creation code of the wallet proxy. */
  readonly creationCode: Hex.Hex | null
  /** keccak256 of the wallet implementation's code that the operator has confirmed; null: not pinned. */
  readonly implementationCodeHash: Hex.Bytes32 | null
  /** The suite's OperationLedger; null: no operation can depend on another. */
  readonly ledger: Address | null
  /** The operator's own verifying paymaster, for which the `sponsor` system key signs; null: nothing is sponsored. */
  readonly sponsor: {
    readonly paymaster: Address
    /** Wei that the wallets of one account may cost in one UTC day. */
    readonly dailyBudget: bigint
  } | null
  /** Paymasters of others that are asked for their data by ERC-7677. */
  readonly paymasterServices: ReadonlyArray<{
    readonly paymaster: Address
    readonly url: Redacted.Redacted<string>
  }>
  /** Bounds of what the service's own EOA submits for an account, for wallets that pay for it. */
  readonly serviceSubmission: {
    /** Wei that it may lose by one account in one UTC day. */
    readonly dailyLoss: bigint
    /** Most ops of one account on their way at a time. */
    readonly maxInFlight: number
  }
  /** Addresses outside 0x1 to 0x1ff that answer calls without having code. */
  readonly precompiles: ReadonlyArray<Address>
  /** The custody that `walletCustody` 0 stands for beside a salt. */
  readonly defaultCustody: 1 | 2 | 3 | 4 | 5
  readonly caps: {
    /** Absolute cap on maxFeePerGas of every transaction and op, wei. */
    readonly maxFeePerGas: bigint
    /** Absolute cap on maxPriorityFeePerGas, wei. */
    readonly maxPriorityFeePerGas: bigint
    /** Absolute cap on the gas limit of one transaction. */
    readonly transactionGas: bigint
  }
  /** Least maxPriorityFeePerGas (least gas price on legacy chains) that the chain's nodes take, wei. */
  readonly minPriorityFeePerGas: bigint
  /** Who asks for what a transaction's data cost on another layer: OP-stack's GasPriceOracle; null: nobody. */
  readonly l1Fee: "op-stack" | null
  /** Blocks, the including one counted, before an answer is given. At least 1. */
  readonly confirmations: number
  /** Blocks, the including one counted, after which nothing is undone any more. At least `confirmations`. */
  readonly settledDepth: number
  /** How long the lowest waiting transaction of an EOA waits before it is replaced at a higher price, milliseconds. */
  readonly bumpAfterMillis: number
  /** URL of the ERC-4337 bundler that ops go through on this chain; null: the service bundles itself. */
  readonly remoteBundler: Redacted.Redacted<string> | null
  /** Most transactions of one EOA on their way at a time; at least 1. */
  readonly maxInFlight: number
  /** How long a request waits for its transaction before it answers outcome_unknown, milliseconds. */
  readonly receiptTimeoutMillis: number
  /** Time after acceptance at which an unsigned request expires, milliseconds. */
  readonly requestExpiryMillis: number
  /** How often new blocks are asked for, milliseconds; what was just sent is looked for sooner where chains are fast. */
  readonly pollIntervalMillis: number
}

/** Fields of a profile to put over another one; what is absent stays as it is there. */
export type Fields = {
  readonly [K in Exclude<keyof NetworkProfile, "chainId" | "caps" | "serviceSubmission">]?:
    | NetworkProfile[K]
    | undefined
} & {
  readonly caps?: Parts<NetworkProfile["caps"]> | undefined
  readonly serviceSubmission?: Parts<NetworkProfile["serviceSubmission"]> | undefined
}

type Parts<A> = { readonly [K in keyof A]?: A[K] | undefined }

const gwei = 1_000_000_000n

/** What a profile says where neither its chain nor its operator says anything else. */
export const defaults: Omit<NetworkProfile, "chainId"> = {
  rpc: null,
  entryPoints: EntryPoint.versions.map((version) => EntryPoint.canonical[version]),
  factory: null,
  validator: null,
  beacon: null,
  creationCode: null,
  implementationCodeHash: null,
  ledger: null,
  sponsor: null,
  paymasterServices: [],
  serviceSubmission: { dailyLoss: 10n ** 16n, maxInFlight: 16 },
  precompiles: [],
  defaultCustody: 1,
  caps: {
    maxFeePerGas: 1_000n * gwei,
    maxPriorityFeePerGas: 200n * gwei,
    // The gas limit of one transaction since EIP-7825.
    transactionGas: 2n ** 24n
  },
  minPriorityFeePerGas: 0n,
  l1Fee: null,
  confirmations: 1,
  settledDepth: 64,
  bumpAfterMillis: 30_000,
  remoteBundler: null,
  maxInFlight: 16,
  receiptTimeoutMillis: 60_000,
  requestExpiryMillis: 600_000,
  pollIntervalMillis: 1_000
}

/** Its coins buy about as much by 10 as others do by 0.01; its nodes refuse transactions below a least tip. */
const polygon = (leastTip: bigint): Fields => ({
  serviceSubmission: { dailyLoss: 10n ** 19n },
  minPriorityFeePerGas: leastTip
})

/** Its prices are far below the defaults' caps, which bound what a broken node can make a key pay. */
const base: Fields = {
  caps: { maxFeePerGas: 100n * gwei, maxPriorityFeePerGas: 10n * gwei },
  l1Fee: "op-stack"
}

/** Chains of which more is known than the defaults say. */
export const chains: ReadonlyMap<bigint, Fields> = new Map([
  [80_002n, polygon(25n * gwei)],
  [137n, polygon(30n * gwei)],
  [84_532n, base],
  [8_453n, base]
])

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

/** All of a value, with those of its fields that the parts have a value for. Fields that it does not know are left. */
const over = <A extends object>(all: A, parts: Parts<A> | undefined): A => {
  const result: Mutable<A> = { ...all }
  for (const key in all) {
    const value = parts?.[key]
    if (value !== undefined) result[key] = value
  }
  return result
}

/**
 * Puts fields over a profile. A beacon without a creation code gets the reference proxy's; a settled depth below the
 * confirmations is raised to them.
 */
export const override = (
  profile: NetworkProfile,
  { caps, serviceSubmission, ...fields }: Fields
): NetworkProfile => {
  const merged = over<NetworkProfile>(profile, fields)
  return {
    ...merged,
    chainId: profile.chainId,
    caps: over(profile.caps, caps),
    serviceSubmission: over(profile.serviceSubmission, serviceSubmission),
    creationCode:
      merged.creationCode ?? (merged.beacon === null ? null : Hex.unsafe(walletProxyCreationCode)),
    settledDepth: Math.max(merged.settledDepth, merged.confirmations)
  }
}

/**
 * Makes a profile from few fields: the defaults of its chain stand for the others.
 *
 * @example
 * NetworkProfile.make({ chainId: 8_453n, rpc: Redacted.make("https://node.example") })
 */
export const make = ({ chainId, ...fields }: { readonly chainId: bigint } & Fields): NetworkProfile =>
  override(override({ chainId, ...defaults }, chains.get(chainId) ?? {}), fields)
