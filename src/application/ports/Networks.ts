import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../domain/primitives/Hex.js"
import type { AccountId } from "./Tenants.js"

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
  readonly creationCode: Hex | null
  /** keccak256 of the wallet implementation's code that the operator has confirmed; null: not pinned. */
  readonly implementationCodeHash: Bytes32 | null
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
  /** How long the lowest waiting transaction of an EOA waits before it is priced anew, milliseconds. */
  readonly bumpAfterMillis: number
  /** URL of the ERC-4337 bundler that ops go through on this chain; null: the service bundles itself. */
  readonly remoteBundler: Redacted.Redacted<string> | null
  /** Most transactions of one EOA on their way at a time; at least 1. */
  readonly maxInFlight: number
  /** How long a request waits for its transaction before it answers outcome_unknown, milliseconds. */
  readonly receiptTimeoutMillis: number
  /** How often new blocks are asked for, milliseconds. */
  readonly pollIntervalMillis: number
}

/** The network profiles. */
export class Networks extends Context.Tag("castellan/Networks")<
  Networks,
  {
    /** Null: the chain is not supported. */
    readonly profile: (account: AccountId, chainId: bigint) => Effect.Effect<NetworkProfile | null>
    readonly chainIds: Effect.Effect<ReadonlyArray<bigint>>
  }
>() {}
