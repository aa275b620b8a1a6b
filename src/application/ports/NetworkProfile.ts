import type * as Redacted from "effect/Redacted"
import * as EntryPoint from "../../domain/erc4337/EntryPoint.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { walletProxyCreationCode } from "../../domain/wallet/WalletProxy.generated.js"

/** Wei that the treasury sends; it keeps `keep`. The caps bound amounts and gas by UTC day. */
export interface TopUp {
  readonly keep: bigint
  readonly dailyCap: bigint
  readonly targets: ReadonlyArray<TopUpTarget>
}

/** A balance: below `below` it is raised to `upTo`. */
export interface TopUpTarget {
  readonly to: "serviceEoa" | Address | { readonly deposit: Address; readonly entryPoint: Address }
  readonly below: bigint
  readonly upTo: bigint
  readonly dailyCap: bigint
}

/** The operator's settings for one chain, with one account's overrides applied. */
export interface NetworkProfile {
  readonly chainId: bigint
  /** The operator's node; null: operations that need a system key are not possible on this chain. */
  readonly rpc: Redacted.Redacted<string> | null
  /** EntryPoints that requests may name. */
  readonly entryPoints: ReadonlyArray<Address>
  /** The account's factory, the only factory whose deployments are authorised; null: none. */
  readonly factory: Address | null
  readonly validator: Address | null
  readonly beacon: Address | null
  /** Creation code of the wallet proxy. */
  readonly creationCode: Hex.Hex | null
  /** keccak256 of the wallet implementation's code that the operator has confirmed; null: not pinned. */
  readonly implementationCodeHash: Hex.Bytes32 | null
  /** The suite's OperationLedger; null: operations cannot depend on each other. */
  readonly ledger: Address | null
  /** The operator's verifying paymaster, for which the `sponsor` system key signs; null: no sponsoring. */
  readonly sponsor: {
    readonly paymaster: Address
    /** Most wei that one account's wallets may cost in one UTC day. */
    readonly dailyBudget: bigint
  } | null
  /** Balances of the operator that the `treasury` system key keeps up; null: none. */
  readonly topUp: TopUp | null
  /** Third-party paymasters that serve their data by ERC-7677. */
  readonly paymasterServices: ReadonlyArray<{
    readonly paymaster: Address
    readonly url: Redacted.Redacted<string>
    /** The operator's members of the context that every call carries. */
    readonly context?: Redacted.Redacted<Readonly<Record<string, unknown>>>
    /** Names of the members that a request may add. */
    readonly callerContext?: ReadonlyArray<string>
  }>
  /** Bounds for the service EOA's submissions for an account, when wallets pay for them. */
  readonly serviceSubmission: {
    /** Most wei that it may lose through one account in one UTC day. */
    readonly dailyLoss: bigint
    /** Most ops of one account in flight. */
    readonly maxInFlight: number
  }
  /** Addresses outside 0x1 to 0x1ff that answer calls without code. */
  readonly precompiles: ReadonlyArray<Address>
  /** The custody that `walletCustody` 0 means together with a salt. */
  readonly defaultCustody: 1 | 2 | 3 | 4 | 5
  readonly caps: {
    /** Absolute cap on maxFeePerGas of every transaction and op, wei. */
    readonly maxFeePerGas: bigint
    /** Absolute cap on maxPriorityFeePerGas, wei. */
    readonly maxPriorityFeePerGas: bigint
    /** Absolute cap on one transaction's gas limit. */
    readonly transactionGas: bigint
  }
  /** Lowest maxPriorityFeePerGas (gas price on legacy chains) that the chain's nodes accept, wei. */
  readonly minPriorityFeePerGas: bigint
  /** Source of the L1 data fee. `op-stack`: the GasPriceOracle; null: no such fee. */
  readonly l1Fee: "op-stack" | null
  /** Blocks, including the transaction's own, before an answer is sent. At least 1. */
  readonly confirmations: number
  /** Blocks, including the transaction's own, after which no reorganisation is expected. At least `confirmations`. */
  readonly settledDepth: number
  /** Age at which an EOA's lowest pending transaction is replaced at a higher price, milliseconds. */
  readonly bumpAfterMillis: number
  /** URL of the ERC-4337 bundler for this chain's ops; null: the service bundles them. */
  readonly remoteBundler: Redacted.Redacted<string> | null
  /** Most transactions of one EOA in flight; at least 1. */
  readonly maxInFlight: number
  /** Time a request waits for its transaction before it answers outcome_unknown, milliseconds. */
  readonly receiptTimeoutMillis: number
  /** Age at which an unsigned request expires, milliseconds from acceptance. */
  readonly requestExpiryMillis: number
  /** Polling interval for new blocks, milliseconds. On fast chains, fresh transactions are polled sooner. */
  readonly pollIntervalMillis: number
}

/** Fields that override a profile; absent fields leave the profile unchanged. */
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

/** Values where neither the chain nor the operator sets one. */
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
  topUp: null,
  paymasterServices: [],
  serviceSubmission: { dailyLoss: 10n ** 16n, maxInFlight: 16 },
  precompiles: [],
  defaultCustody: 1,
  caps: {
    maxFeePerGas: 1_000n * gwei,
    maxPriorityFeePerGas: 200n * gwei,
    // EIP-7825 limits one transaction's gas.
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

/** 10 of its coins buy about as much as 0.01 elsewhere; its nodes refuse transactions below a minimum tip. */
const polygon = (leastTip: bigint): Fields => ({
  serviceSubmission: { dailyLoss: 10n ** 19n },
  minPriorityFeePerGas: leastTip
})

/** Its prices are far below the default caps, and the caps bound the price that a broken node can make a key pay. */
const base: Fields = {
  caps: { maxFeePerGas: 100n * gwei, maxPriorityFeePerGas: 10n * gwei },
  l1Fee: "op-stack"
}

/** Chains whose profiles differ from the defaults. */
export const chains: ReadonlyMap<bigint, Fields> = new Map([
  [80_002n, polygon(25n * gwei)],
  [137n, polygon(30n * gwei)],
  [84_532n, base],
  [8_453n, base]
])

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

/** Overlays defined parts; unknown fields are ignored. */
const over = <A extends object>(all: A, parts: Parts<A> | undefined): A => {
  const result: Mutable<A> = { ...all }
  for (const key in all) {
    const value = parts?.[key]
    if (value !== undefined) result[key] = value
  }
  return result
}

/**
 * Overrides a profile's fields. A beacon without a creation code gets the reference proxy's. The settled depth is at
 * least the confirmations.
 *
 * @example NetworkProfile.override(NetworkProfile.make({ chainId: 1n }), { confirmations: 3 }).confirmations
 * // 3
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
 * Completes a profile with its chain's defaults.
 *
 * @example NetworkProfile.make({ chainId: 8_453n, rpc: Redacted.make("https://node.example") })
 */
export const make = ({ chainId, ...fields }: { readonly chainId: bigint } & Fields): NetworkProfile =>
  override(override({ chainId, ...defaults }, chains.get(chainId) ?? {}), fields)
