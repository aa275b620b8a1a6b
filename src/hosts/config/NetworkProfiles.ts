import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as NetworkProfile from "../../application/ports/NetworkProfile.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as Targets from "../../application/topups/Targets.js"
import type { Address } from "../../domain/primitives/Address.js"
import { type Problem, type ReadSecret, urlReader } from "./FileFields.js"
import { type AccountNetwork, type Network, ofDevelopment, usualLowBalance } from "./NetworkFile.js"
import * as Secrets from "./Secrets.js"

/** Profile of an account with overrides on a chain. */
export interface AccountProfile {
  readonly accountId: AccountId
  readonly chainId: bigint
  readonly profile: NetworkProfile.NetworkProfile
}

interface Located<N> {
  readonly network: N
  /** Path in the configuration file. */
  readonly path: string
  /** The operator's RPC, once read. */
  readonly rpc: Redacted.Redacted<string> | null
  /** URL of the bundler, once read. */
  readonly bundler: Redacted.Redacted<string> | null
  /** The paymasters with services, once read; undefined: the network does not say. */
  readonly paymasters: NetworkProfile.NetworkProfile["paymasterServices"] | undefined
}

/** JSON of the file with its references to secrets replaced by the secrets. */
const withSecrets = (secret: ReadSecret, path: string, value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((each, index) => withSecrets(secret, `${path}[${index}]`, each))
  return Secrets.isReference(value)
    ? Redacted.value(secret(path, value))
    : Record.map({ ...value }, (member, name) => withSecrets(secret, `${path}.${name}`, member))
}

/** A network at a path of the configuration file, with its secret URLs read. */
export const locate = <N extends AccountNetwork>(
  network: N,
  path: string,
  secret: ReadSecret,
  say: (path: string, message: string) => void
): Located<N> => {
  const at = path === "" ? "" : `${path}.`
  const url = urlReader(secret, say)
  return {
    network,
    path,
    rpc: network.rpc === undefined ? null : url(`${at}rpc`, network.rpc),
    bundler: network.bundler == null ? null : url(`${at}bundler.url`, network.bundler.url),
    paymasters: network.paymasters?.map(({ address, callerContext, context, url: reference }, index) => ({
      paymaster: address,
      url: url(`${at}paymasters[${index}].url`, reference),
      ...(context !== undefined && {
        context: Redacted.make(
          Record.map(context, (member, name) =>
            withSecrets(secret, `${at}paymasters[${index}].context.${name}`, member)
          )
        )
      }),
      ...(callerContext !== undefined && { callerContext })
    }))
  }
}

export interface Input {
  readonly networks: ReadonlyArray<Located<Network>>
  readonly accounts: ReadonlyArray<{
    readonly accountId: AccountId
    readonly networks: ReadonlyArray<Located<AccountNetwork>>
  }>
  readonly development: boolean
  /** Whether the operator's paymasters have a signing key. */
  readonly sponsors: boolean
  /** Whether a key pays top-ups. */
  readonly treasury: boolean
}

export interface Output {
  readonly networks: ReadonlyArray<NetworkProfile.NetworkProfile>
  readonly accountNetworks: ReadonlyArray<AccountProfile>
  /** Preset chains that are not configured. */
  readonly unconfigured: ReadonlySet<bigint>
  readonly problems: ReadonlyArray<Problem>
}

/** Preset chains: supported without configuration, though the operator may configure them. */
const interfaceChains: ReadonlyArray<bigint> = [80_002n, 137n, 84_532n, 8_453n]

/** Applies configured fields to a base profile; fields with equal names are copied. */
export const override = (
  base: NetworkProfile.NetworkProfile,
  { bundler, network, paymasters, rpc }: Omit<Located<AccountNetwork>, "path">
): NetworkProfile.NetworkProfile => {
  const { beaconAdminAddress, beaconAdminCreationCode, maxFeePerGas, maxPriorityFeePerGas } = network
  return NetworkProfile.override(base, {
    ...network,
    rpc: rpc ?? undefined,
    beacon: beaconAdminAddress,
    creationCode: beaconAdminCreationCode,
    sponsor: network.sponsor && {
      paymaster: network.sponsor.paymaster,
      dailyBudget: network.sponsor.dailyBudget ?? base.sponsor?.dailyBudget ?? 0n
    },
    paymasterServices: paymasters,
    caps: { maxFeePerGas, maxPriorityFeePerGas, transactionGas: network.maxTransactionGas },
    // Null returns an account to the service's bundler.
    remoteBundler: network.bundler === null ? null : (bundler ?? undefined)
  })
}

/** Low-balance threshold of Submitting EOAs, in wei, by chain. */
export const lowBalances = (networks: ReadonlyArray<Network>): ReadonlyMap<bigint, bigint> =>
  new Map(networks.map(({ chainId, lowBalance }) => [chainId, lowBalance ?? usualLowBalance]))

/** Problems of the payment for ops: a missing key or node, or conflicting entries for a paymaster. */
const paymentProblems = (
  { network, path }: Located<AccountNetwork>,
  { paymasterServices, rpc, sponsor }: NetworkProfile.NetworkProfile,
  sponsors: boolean
): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  if (network.sponsor != null && !sponsors)
    problems.push({ path: `${path}.sponsor`, message: "systemKeys.sponsor is missing: no key signs for it" })
  if (network.sponsor != null && rpc === null)
    problems.push({ path: `${path}.sponsor`, message: "the chain has no rpc of the operator's own" })
  for (const [index, { address }] of (network.paymasters ?? []).entries()) {
    const at = `${path}.paymasters[${index}]`
    if (paymasterServices.findIndex(({ paymaster }) => paymaster === address) !== index)
      problems.push({ path: `${at}.address`, message: `${address} is listed twice` })
    if (address === sponsor?.paymaster)
      problems.push({ path: `${at}.address`, message: `${address} is the sponsor's, which needs no service` })
  }
  return problems
}

/** Problems of top-ups: a missing key or node, a level that is never reached, a target listed twice. */
const topUpProblems = (
  { network: { topUp }, path }: Located<Network>,
  { rpc }: NetworkProfile.NetworkProfile,
  treasury: boolean
): ReadonlyArray<Problem> => {
  if (topUp === undefined) return []
  const problems: Array<Problem> = []
  const say = (at: string, message: string) => problems.push({ path: `${path}.topUp${at}`, message })
  if (!treasury) say("", "systemKeys.treasury is missing: no key pays for it")
  if (rpc === null) say("", "the chain has no rpc of the operator's own")
  for (const [index, { below, upTo }] of topUp.targets.entries())
    if (upTo <= below) say(`.targets[${index}].upTo`, "expected more than below")
  const twice = Targets.firstRepeat(topUp.targets.map(({ to }) => JSON.stringify(to)))
  if (twice !== null) say(`.targets[${twice}].to`, "it is listed twice")
  return problems
}

/**
 * Factories shared by accounts. A wallet's address does not bind its owner, so a user of a factory can take its funded,
 * undeployed addresses: each account needs a separate factory, unless the factory is declared shared (development).
 */
const factoryProblems = (
  profiles: ReadonlyMap<bigint, NetworkProfile.NetworkProfile>,
  accountNetworks: ReadonlyArray<AccountProfile>,
  accounts: Input["accounts"],
  shared: ReadonlySet<bigint>
): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
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
  return problems
}

export const make = ({ accounts, development, networks, sponsors, treasury }: Input): Output => {
  const problems: Array<Problem> = []
  const plain = (chainId: bigint) => NetworkProfile.make({ chainId, ...(development ? ofDevelopment : {}) })
  const profiles = new Map(interfaceChains.map((chainId) => [chainId, plain(chainId)]))
  const named = new Set<bigint>()
  const shared = new Set<bigint>()
  for (const located of networks) {
    const { network, path } = located
    const { chainId } = network
    if (named.has(chainId))
      problems.push({ path: `${path}.chainId`, message: `chain ${chainId} is listed twice` })
    named.add(chainId)
    if (network.sharedFactory === true) shared.add(chainId)
    const profile = override(profiles.get(chainId) ?? plain(chainId), located)
    problems.push(
      ...paymentProblems(located, profile, sponsors),
      ...topUpProblems(located, profile, treasury)
    )
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
        const profile = override(base, located)
        problems.push(...paymentProblems(located, profile, sponsors))
        accountNetworks.push({ accountId, chainId, profile })
      }
    }

  problems.push(...factoryProblems(profiles, accountNetworks, accounts, shared))
  const isConfigured = (chainId: bigint) =>
    named.has(chainId) || accountNetworks.some((own) => own.chainId === chainId)
  const unconfigured = new Set(interfaceChains.filter((chainId) => !isConfigured(chainId)))
  return { networks: [...profiles.values()], accountNetworks, unconfigured, problems }
}
