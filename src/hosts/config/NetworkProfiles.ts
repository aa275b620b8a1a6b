import * as Redacted from "effect/Redacted"
import type { NetworkProfile } from "../../application/ports/Networks.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as EntryPoint from "../../domain/erc4337/EntryPoint.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { walletProxyCreationCode } from "../../domain/wallet/WalletProxy.generated.js"
import type { AccountNetwork, Network } from "./ConfigFile.js"
import type { Problem } from "./FileFields.js"

/** What one account has of its own on one chain. */
export interface AccountProfile {
  readonly accountId: AccountId
  readonly chainId: bigint
  readonly profile: Partial<Omit<NetworkProfile, "chainId">>
}

interface Located<N> {
  readonly network: N
  /** Where it stands in the configuration file. */
  readonly path: string
  /** Its operator's RPC, once read. */
  readonly rpc: Redacted.Redacted<string> | null
  /** The URL of its bundler, once read. */
  readonly bundler: Redacted.Redacted<string> | null
  /** The URLs of its paymasters, in their order, once read. */
  readonly paymasters: ReadonlyArray<Redacted.Redacted<string>>
}

export interface Input {
  readonly networks: ReadonlyArray<Located<Network>>
  readonly accounts: ReadonlyArray<{
    readonly accountId: AccountId
    readonly networks: ReadonlyArray<Located<AccountNetwork>>
  }>
  readonly development: boolean
  /** Whether a key signs for the operator's own paymasters. */
  readonly sponsors: boolean
}

export interface Output {
  readonly networks: ReadonlyArray<NetworkProfile>
  readonly accountNetworks: ReadonlyArray<AccountProfile>
  readonly problems: ReadonlyArray<Problem>
}

const gwei = 1_000_000_000n

/** Chains of the interface: supported without a word of the operator, who may still configure them. */
const interfaceChains: ReadonlyArray<bigint> = [80_002n, 137n, 84_532n, 8_453n]

/** Base's prices are far below Polygon's; a cap bounds what a lying or broken node can make a key pay. */
const cheapChains: ReadonlySet<bigint> = new Set([84_532n, 8_453n])

/** What Polygon's nodes ask for at least, on the main and on the test network. */
const leastTips: ReadonlyMap<bigint, bigint> = new Map([
  [137n, 30n * gwei],
  [80_002n, 25n * gwei]
])

/** Wei of Polygon's coins that buy about as much as 0.01 ether does of transactions on other chains. */
const dailyLosses: ReadonlyMap<bigint, bigint> = new Map([
  [137n, 10n ** 19n],
  [80_002n, 10n ** 19n]
])

/** Chains that also charge for a transaction's data on layer 1, by OP-stack's rules. */
const opStackChains: ReadonlySet<bigint> = new Set([84_532n, 8_453n])

const defaults = (chainId: bigint, development: boolean): NetworkProfile => ({
  chainId,
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
  serviceSubmission: { dailyLoss: dailyLosses.get(chainId) ?? 10n ** 16n, maxInFlight: 16 },
  defaultCustody: 1,
  caps: {
    maxFeePerGas: cheapChains.has(chainId) ? 100n * gwei : 1_000n * gwei,
    maxPriorityFeePerGas: cheapChains.has(chainId) ? 10n * gwei : 200n * gwei,
    // The gas limit of one transaction since EIP-7825.
    transactionGas: 2n ** 24n
  },
  minPriorityFeePerGas: leastTips.get(chainId) ?? 0n,
  l1Fee: opStackChains.has(chainId) ? "op-stack" : null,
  confirmations: 1,
  settledDepth: development ? 1 : 64,
  bumpAfterMillis: 30_000,
  maxInFlight: 16,
  remoteBundler: null,
  receiptTimeoutMillis: 60_000,
  pollIntervalMillis: development ? 100 : 1_000
})

/** The configured fields over a base profile. */
export const overridden = (
  base: NetworkProfile,
  { bundler, network, paymasters, rpc }: Omit<Located<AccountNetwork>, "path">
): NetworkProfile => {
  const beacon = network.beaconAdminAddress ?? base.beacon
  return {
    chainId: base.chainId,
    rpc: rpc ?? base.rpc,
    entryPoints: network.entryPoints ?? base.entryPoints,
    factory: network.factory ?? base.factory,
    validator: network.validator ?? base.validator,
    beacon,
    // Whoever names a beacon of his own and no creation code uses the reference proxy.
    creationCode:
      network.beaconAdminCreationCode ??
      base.creationCode ??
      (beacon === null ? null : Hex.unsafe(walletProxyCreationCode)),
    implementationCodeHash: network.implementationCodeHash ?? base.implementationCodeHash,
    ledger: network.ledger ?? base.ledger,
    sponsor:
      network.sponsor === undefined
        ? base.sponsor
        : network.sponsor === null
          ? null
          : {
              paymaster: network.sponsor.paymaster,
              dailyBudget: network.sponsor.dailyBudget ?? base.sponsor?.dailyBudget ?? 0n
            },
    paymasterServices:
      network.paymasters === undefined
        ? base.paymasterServices
        : network.paymasters.flatMap(({ address }, index) => {
            const url = paymasters[index]
            return url === undefined ? [] : [{ paymaster: address, url }]
          }),
    serviceSubmission: { ...base.serviceSubmission, ...network.serviceSubmission },
    defaultCustody: network.defaultCustody ?? base.defaultCustody,
    caps: {
      maxFeePerGas: network.maxFeePerGas ?? base.caps.maxFeePerGas,
      maxPriorityFeePerGas: network.maxPriorityFeePerGas ?? base.caps.maxPriorityFeePerGas,
      transactionGas: network.maxTransactionGas ?? base.caps.transactionGas
    },
    minPriorityFeePerGas: network.minPriorityFeePerGas ?? base.minPriorityFeePerGas,
    l1Fee: network.l1Fee === undefined ? base.l1Fee : network.l1Fee,
    confirmations: network.confirmations ?? base.confirmations,
    settledDepth: Math.max(
      network.settledDepth ?? base.settledDepth,
      network.confirmations ?? base.confirmations
    ),
    bumpAfterMillis: network.bumpAfterMillis ?? base.bumpAfterMillis,
    maxInFlight: network.maxInFlight ?? base.maxInFlight,
    // Null brings an account back to the service's own bundler.
    remoteBundler: network.bundler === null ? null : (bundler ?? base.remoteBundler),
    receiptTimeoutMillis: network.receiptTimeoutMillis ?? base.receiptTimeoutMillis,
    pollIntervalMillis: network.pollIntervalMillis ?? base.pollIntervalMillis
  }
}

/** What is wrong with who shall pay for ops: a key or a node that is missing, or two words about one paymaster. */
const paymentProblems = (
  { network, path, paymasters }: Located<AccountNetwork>,
  { paymasterServices, rpc, sponsor }: NetworkProfile,
  sponsors: boolean
): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  if (network.sponsor != null && !sponsors)
    problems.push({ path: `${path}.sponsor`, message: "systemKeys.sponsor is missing: nobody signs for it" })
  if (network.sponsor != null && rpc === null)
    problems.push({ path: `${path}.sponsor`, message: "the chain has no rpc of the operator's own" })
  for (const [index, { address }] of (network.paymasters ?? []).entries()) {
    const at = `${path}.paymasters[${index}]`
    if (paymasterServices.findIndex(({ paymaster }) => paymaster === address) !== index)
      problems.push({ path: `${at}.address`, message: `${address} is listed twice` })
    if (address === sponsor?.paymaster)
      problems.push({ path: `${at}.address`, message: `${address} is the sponsor's, which needs no service` })
    const url = paymasters[index]
    // One that could not be read is a problem already.
    const text = url === undefined ? "" : Redacted.value(url)
    if (text !== "" && !/^https?:\/\//i.test(text))
      problems.push({ path: `${at}.url`, message: "expected an http or https URL" })
  }
  return problems
}

/**
 * The network profiles of a configuration. A wallet's address does not bind its owner, so whoever deploys through a
 * factory may take any funded, undeployed address of it: two accounts with one factory are a problem, unless the
 * factory is shared by name (development).
 */
export const make = ({ accounts, development, networks, sponsors }: Input): Output => {
  const problems: Array<Problem> = []
  const profiles = new Map<bigint, NetworkProfile>(
    interfaceChains.map((chainId) => [chainId, defaults(chainId, development)])
  )
  const named = new Set<bigint>()
  const shared = new Set<bigint>()
  for (const located of networks) {
    const { network, path } = located
    const { chainId } = network
    if (named.has(chainId))
      problems.push({ path: `${path}.chainId`, message: `chain ${chainId} is listed twice` })
    named.add(chainId)
    if (network.sharedFactory === true) shared.add(chainId)
    const profile = overridden(profiles.get(chainId) ?? defaults(chainId, development), located)
    problems.push(...paymentProblems(located, profile, sponsors))
    profiles.set(chainId, profile)
  }

  const accountNetworks: Array<AccountProfile> = []
  for (const { accountId, networks: ownNetworks } of accounts)
    for (const located of ownNetworks) {
      const { network, path } = located
      const { chainId } = network
      const base = profiles.get(chainId)
      if (base === undefined)
        problems.push({ path: `${path}.chainId`, message: `networks has no chain ${chainId}` })
      else if (accountNetworks.some((other) => other.accountId === accountId && other.chainId === chainId))
        problems.push({ path: `${path}.chainId`, message: `chain ${chainId} is listed twice` })
      else {
        const own = overridden(base, located)
        problems.push(...paymentProblems(located, own, sponsors))
        const { chainId: _, ...profile } = own
        accountNetworks.push({ accountId, chainId, profile })
      }
    }

  for (const [chainId, base] of profiles) {
    const owners = new Map<Address, AccountId>()
    for (const { accountId } of accounts) {
      const own = accountNetworks.find(
        (profile) => profile.accountId === accountId && profile.chainId === chainId
      )
      const factory = own?.profile.factory ?? base.factory
      if (factory === null || (shared.has(chainId) && factory === base.factory)) continue
      const other = owners.get(factory)
      if (other !== undefined && other !== accountId)
        problems.push({
          path: "networks",
          message: `accounts ${other} and ${accountId} share the factory ${factory} on chain ${chainId}; each needs its own`
        })
      owners.set(factory, accountId)
    }
  }
  return { networks: [...profiles.values()], accountNetworks, problems }
}
