import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { NetworkProfile } from "../../application/ports/NetworkProfile.js"
import { Network as Written } from "../config/NetworkFile.js"
import * as NetworkProfiles from "../config/NetworkProfiles.js"
import * as SchemaProblems from "../config/SchemaProblems.js"
import type { Problem, Secret } from "../fields/FileFields.js"

type Integer = number | bigint
/** Wei: an integer, or its decimal or 0x-hex text. */
type Wei = number | bigint | string
type Url = string | Redacted.Redacted<string>

/** One chain. Every field but its id has a default; docs/operations.md names them. */
export interface Network {
  readonly chainId: Integer
  /** The operator's own node. Without one nothing is possible that needs a system key. */
  readonly rpc?: Url
  /** A bundler for the ops of this chain. Default: castellan bundles them itself. */
  readonly bundler?: { readonly url: Url } | null
  /** Canonical EntryPoints that requests may name. Default: all of them. */
  readonly entryPoints?: readonly [string, ...ReadonlyArray<string>]
  /** The wallet factory, the only one for which deployments are authorised. */
  readonly factory?: string
  /** The validator that the wallet implementation must report. */
  readonly validator?: string
  /** The beacon of the wallet proxies. */
  readonly beaconAdminAddress?: string
  /** Creation code of the wallet proxy, in hex. Default with a beacon: the one of castellan's own suite. */
  readonly beaconAdminCreationCode?: string
  /** keccak256 of the wallet implementation's code. Default: not pinned. */
  readonly implementationCodeHash?: string
  /** The OperationLedger of the suite. Without one no operation can depend on another. */
  readonly ledger?: string
  /** The operator's own verifying paymaster, and the wei that one account may cost in one UTC day. */
  readonly sponsor?: { readonly paymaster: string; readonly dailyBudget?: Wei } | null
  /** Paymasters of others that are asked for their data by ERC-7677. */
  readonly paymasters?: ReadonlyArray<{ readonly address: string; readonly url: Url }>
  /** Bounds of what the service EOA submits for one account. */
  readonly serviceSubmission?: { readonly dailyLoss?: Wei; readonly maxInFlight?: number }
  /** Addresses beside 0x1 to 0x1ff at which the chain answers calls without having code there. */
  readonly precompiles?: ReadonlyArray<string>
  /** The custody that `walletCustody` 0 stands for. */
  readonly defaultCustody?: 1 | 2 | 3 | 4 | 5
  /** Cap on maxFeePerGas of every transaction and op. */
  readonly maxFeePerGas?: Wei
  /** Cap on maxPriorityFeePerGas. */
  readonly maxPriorityFeePerGas?: Wei
  /** Cap on the gas limit of one transaction. */
  readonly maxTransactionGas?: Wei
  /** Least maxPriorityFeePerGas that the chain's nodes take. */
  readonly minPriorityFeePerGas?: Wei
  /** Whether the chain charges for data on layer 1 by the rules of the OP stack. */
  readonly l1Fee?: "op-stack" | null
  /** Blocks, the including one counted, before an answer is given. */
  readonly confirmations?: number
  /** Blocks, the including one counted, after which nothing is undone any more. */
  readonly settledDepth?: number
  /** Balance of a submitting EOA below which a warning is logged. */
  readonly lowBalance?: Wei
  /** How long the lowest waiting transaction of an EOA waits before it is replaced at a higher price, milliseconds. */
  readonly bumpAfterMillis?: number
  /** Most transactions of one EOA on their way at a time. */
  readonly maxInFlight?: number
  /** How long a request waits for its transaction before it answers outcome_unknown, milliseconds. */
  readonly receiptTimeoutMillis?: number
  /** How long after its acceptance a request of which nothing was signed is given up, milliseconds. */
  readonly requestExpiryMillis?: number
  /** How often new blocks are asked for, milliseconds; what was just sent is looked for sooner where chains are fast. */
  readonly pollIntervalMillis?: number
  /** All accounts deploy through one factory. Only safe where they trust each other. */
  readonly sharedFactory?: boolean
}

/** The options as JSON would have them: what the configuration file's schema reads. */
const plain = (value: unknown): unknown => {
  if (typeof value === "bigint") return value.toString()
  if (Redacted.isRedacted(value)) return Redacted.value(value)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]))
}

const written = (network: Network): unknown => {
  const fields = plain(network)
  return typeof fields === "object" ? { ...fields, chainId: Number(network.chainId) } : fields
}

const decode = SchemaProblems.decoder(Schema.Struct({ networks: Schema.Array(Written) }))

export interface Read {
  readonly profiles: ReadonlyArray<NetworkProfile>
  readonly lowBalances: ReadonlyMap<bigint, bigint>
}

/** The network profiles that these options make, under the rules of the configuration file. */
export const read = (
  networks: ReadonlyArray<Network>,
  options: { readonly sponsors: boolean }
): Result.Result<Read, ReadonlyArray<Problem>> =>
  Result.flatMap(decode({ networks: networks.map(written) }), ({ networks: decoded }) => {
    const problems: Array<Problem> = []
    const url = (path: string, text: Secret): Redacted.Redacted<string> => {
      if (typeof text !== "string") problems.push({ path, message: "expected a URL" })
      return Redacted.make(typeof text === "string" ? text : "")
    }
    const made = NetworkProfiles.make({
      networks: decoded.map((network, index) => NetworkProfiles.located(network, `networks[${index}]`, url)),
      accounts: [],
      development: false,
      sponsors: options.sponsors
    })
    problems.push(...made.problems)
    return problems.length > 0
      ? Result.fail(problems)
      : Result.succeed({ profiles: made.networks, lowBalances: NetworkProfiles.lowBalances(decoded) })
  })
