import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as EntryPoint from "../../domain/erc4337/EntryPoint.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import * as Words from "../../domain/primitives/Words.js"
import * as Capabilities from "../chain/Capabilities.js"
import * as Reads from "../chain/Reads.js"
import { type ChainClient, ChainRpc, type ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import { type SignerError, type SignerRef, Signers, SystemSigners } from "../ports/Signers.js"
import type { AccountId } from "../ports/Tenants.js"
import * as Targets from "../topups/Targets.js"
import * as Amounts from "./Amounts.js"

/**
 * Compares configured networks with their chains: contracts, keys, balances and the abilities of nodes. The service's
 * start and `castellan config` report the findings.
 */

/** An error or a limitation in a network's configuration or contracts. */
export interface Finding {
  readonly chainId: bigint
  /** The account whose profile it is about; null: every account's. */
  readonly account: string | null
  /** `broken`: the configuration cannot work. `limited`: a part will not work, or costs more. */
  readonly severity: "broken" | "limited"
  readonly message: string
}

export interface Submitter {
  readonly account: AccountId
  readonly ref: SignerRef
}

/** A profile to inspect, and the balance below which the service's EOA is low, wei. */
export interface Inspected {
  readonly account: string | null
  readonly profile: NetworkProfile
  readonly lowBalance: bigint
  /** Signers whose balances are checked: all accounts', or those of the profile's account. */
  readonly submitters: ReadonlyArray<Submitter>
}

type Say = (severity: Finding["severity"], message: string) => void

const selector = {
  balanceOf: Keccak.selector("balanceOf(address)"),
  beacon: Keccak.selector("beacon()"),
  deployer: Keccak.selector("deployer()"),
  implementation: Keccak.selector("implementation()"),
  sponsor: Keccak.selector("sponsor()"),
  validator: Keccak.selector("validator()")
}

const hasCode = (chain: ChainClient, address: Address.Address) =>
  Effect.map(chain.code(address), (code) => code !== Hex.empty)

const entryPoints = (chain: ChainClient, profile: NetworkProfile, say: Say) =>
  Effect.forEach(
    profile.entryPoints,
    (address) =>
      Effect.map(hasCode(chain, address), (there) => {
        if (!there)
          say(
            "broken",
            `EntryPoint ${EntryPoint.versionOf(address) ?? ""} at ${address} has no code: "castellan deploy" puts it there, or take it out of entryPoints`
          )
      }),
    { concurrency: "unbounded", discard: true }
  )

const beacon = Effect.fnUntraced(function* (
  chain: ChainClient,
  { beacon, implementationCodeHash, validator }: NetworkProfile,
  say: Say
) {
  if (beacon === null) return
  const implementation = yield* Reads.addressAt(chain, beacon, selector.implementation)
  if (implementation === null)
    return say("broken", `beaconAdminAddress ${beacon} is not a beacon: it names no implementation`)
  const code = yield* chain.code(implementation)
  if (code === Hex.empty)
    return say("broken", `the beacon ${beacon} names ${implementation}, which has no code`)
  const hash = Keccak.hash(code)
  if (implementationCodeHash === null)
    say(
      "limited",
      `implementationCodeHash is not set, so that the service EOA submits for no account; the code at ${implementation} has the hash ${hash}`
    )
  else if (implementationCodeHash !== hash)
    say(
      "broken",
      `the implementation ${implementation} has the code hash ${hash}, not ${implementationCodeHash}`
    )
  const named = yield* Reads.addressAt(chain, implementation, selector.validator)
  if (validator !== null && named !== validator)
    say("broken", `the implementation names the validator ${named ?? "nowhere"}, not ${validator}`)
  if (named !== null && !(yield* hasCode(chain, named))) say("broken", `the validator ${named} has no code`)
})

type Keys = SystemSigners["Service"]

/** The address of a key; null when there is none, or when its provider does not answer now. */
const addressOf = (signer: Effect.Effect<{ readonly address: Address.Address }, SignerError>) =>
  signer.pipe(
    Effect.map(({ address }) => address),
    Effect.catch(() => Effect.succeed(null))
  )

const factory = Effect.fnUntraced(function* (
  chain: ChainClient,
  profile: NetworkProfile,
  keys: Keys,
  say: Say
) {
  const { beacon, factory } = profile
  if (factory === null) return
  const [named, authority] = yield* Effect.all(
    [Reads.addressAt(chain, factory, selector.beacon), Reads.addressAt(chain, factory, selector.deployer)],
    { concurrency: "unbounded" }
  )
  if (named === null || authority === null) return say("broken", `${factory} is not a factory of this suite`)
  if (beacon !== null && named !== beacon)
    say("broken", `the factory ${factory} is of the beacon ${named}, not ${beacon}`)
  const deployer = yield* addressOf(keys.deployer)
  if (deployer === null)
    say("limited", "systemKeys.deployer is missing or does not answer: no wallet can be created")
  else if (deployer !== authority)
    say("broken", `systemKeys.deployer is ${deployer}, and the factory ${factory} accepts only ${authority}`)
})

const paymaster = Effect.fnUntraced(function* (
  chain: ChainClient,
  { entryPoints, sponsor }: NetworkProfile,
  keys: Keys,
  say: Say
) {
  if (sponsor === null) return
  const authority = yield* Reads.addressAt(chain, sponsor.paymaster, selector.sponsor)
  if (authority === null) return say("broken", `${sponsor.paymaster} is not a SponsorPaymaster`)
  const key = yield* addressOf(keys.sponsor)
  if (key !== null && key !== authority)
    say(
      "broken",
      `systemKeys.sponsor is ${key}, and the paymaster ${sponsor.paymaster} accepts only ${authority}`
    )
  const data = Words.call(selector.balanceOf, [Words.address(sponsor.paymaster)])
  const deposits = yield* Effect.forEach(entryPoints, (to) => chain.call({ to, data }), {
    concurrency: "unbounded"
  })
  if (
    deposits.every((answer) => !answer.success || BigInt(answer.data === Hex.empty ? 0 : answer.data) === 0n)
  )
    say(
      "limited",
      `the paymaster ${sponsor.paymaster} has no deposit at any EntryPoint: nothing is sponsored`
    )
})

const serviceEoa = Effect.fnUntraced(function* (
  chain: ChainClient,
  lowBalance: bigint,
  keys: Keys,
  say: Say
) {
  const address = yield* addressOf(keys.serviceEoa)
  if (address === null) return
  const balance = yield* chain.balance(address)
  if (balance === 0n) say("broken", `the service's EOA ${address} has no balance to pay gas with`)
  else if (balance < lowBalance)
    say("limited", `the service's EOA ${address} has ${balance} wei, below the bound of ${lowBalance}`)
})

const topUps = Effect.fnUntraced(function* ({ topUp }: NetworkProfile, keys: Keys, say: Say) {
  const [treasury, eoa] = yield* Effect.all([addressOf(keys.treasury), addressOf(keys.serviceEoa)])
  if (topUp === null || treasury === null) return
  const targets = Targets.resolve(topUp.targets, { serviceEoa: eoa ?? Address.zero, treasury })
  if (typeof targets === "string") say("broken", `topUp: ${targets}: nothing is topped up`)
})

/** Limited, not broken: an account need not use each of its signers on each chain. */
const submitters = (
  chain: ChainClient,
  { remoteBundler }: NetworkProfile,
  named: ReadonlyArray<Submitter>,
  signers: Signers["Service"],
  say: Say
) =>
  Effect.forEach(
    remoteBundler === null ? named : [],
    ({ account, ref }) =>
      Effect.gen(function* () {
        const address = yield* addressOf(signers.resolve(account, ref))
        if (address !== null && (yield* chain.balance(address)) === 0n)
          say(
            "limited",
            `the signer ${ref.clientId} ${ref.versionId ?? ref.assetId ?? ""} of ${account}, ${address}, has no balance to pay gas with: its submissions on this chain are refused`
          )
      }),
    { concurrency: 16, discard: true }
  )

const capabilities = (chain: ChainClient, { remoteBundler }: NetworkProfile, say: Say) =>
  Effect.map(Capabilities.ask(chain), ({ overrides, p256, simulation }) => {
    if (simulation === false && remoteBundler === null)
      say(
        "limited",
        `${chain.origin} has no eth_simulateV1: signers of accounts submit, with reverts seen beforehand but no outcomes of calls; the service's own EOA does not (passkeys, requests without settings.signer). Another node or a bundler helps`
      )
    if (overrides === false)
      say(
        "limited",
        `${chain.origin} takes no state overrides: gas is found by eth_estimateGas, in more calls and less exactly`
      )
    if (p256 === "broken")
      say(
        "broken",
        `the code at 0x100 of ${chain.origin} accepts a wrong P-256 signature, so that any signature passes for each passkey: writes of wallets with passkeys (custody 2, 4, 5) are refused until the chain has the precompile of EIP-7951 there, or nothing`
      )
    if (p256 === "absent")
      say(
        "limited",
        "the chain has no P-256 precompile: wallets verify passkeys in Solidity, for about 300,000 gas more each"
      )
  })

const ledger = Effect.fnUntraced(function* (chain: ChainClient, { ledger }: NetworkProfile, say: Say) {
  if (ledger !== null && !(yield* hasCode(chain, ledger)))
    say("broken", `the ledger ${ledger} has no code: no operation can depend on another`)
})

const silent = ({ message, origin }: ChainRpcError): string =>
  `the node at ${origin} does not answer: ${message.replace(`${origin}: `, "")}`

/** Inspects one network through the operator's node. Findings made before the time limit are always returned. */
const inspect = Effect.fnUntraced(function* (
  { account, lowBalance, profile, submitters: named }: Inspected,
  patience: Duration.Duration
): Effect.fn.Return<ReadonlyArray<Finding>, never, ChainRpc | Signers | SystemSigners> {
  const found: Array<Finding> = []
  const { chainId, rpc } = profile
  const say: Say = (severity, message) => void found.push({ chainId, account, severity, message })
  if (rpc === null) return found
  const rpcs = yield* ChainRpc
  const keys = yield* SystemSigners
  const signers = yield* Signers
  const mute = (error: ChainRpcError) => Effect.sync(() => say("broken", silent(error)))
  const connected = yield* Effect.result(rpcs.connect(Redacted.value(rpc), "operator"))
  if (Result.isFailure(connected)) return yield* Effect.as(mute(connected.failure), found)
  const chain = connected.success
  yield* Effect.gen(function* () {
    const served = yield* chain.chainId
    if (served !== chainId) return say("broken", `the node at ${chain.origin} serves chain ${served}`)
    yield* Effect.forEach(
      [
        entryPoints(chain, profile, say),
        beacon(chain, profile, say),
        factory(chain, profile, keys, say),
        paymaster(chain, profile, keys, say),
        ledger(chain, profile, say),
        Amounts.inspect(chain, profile, say),
        Amounts.layer1(chain, profile, say),
        serviceEoa(chain, lowBalance, keys, say),
        topUps(profile, keys, say),
        submitters(chain, profile, named, signers, say),
        capabilities(chain, profile, say)
      ],
      // A refused call does not suppress other findings.
      (part) => Effect.catch(part, mute),
      { concurrency: "unbounded", discard: true }
    )
  }).pipe(
    Effect.catch(mute),
    Effect.timeoutOption(patience),
    Effect.tap((done) =>
      Effect.sync(() => {
        if (Option.isNone(done)) say("broken", `the node at ${chain.origin} does not answer in time`)
      })
    )
  )
  return found
})

/** Inspects all networks with an operator's node concurrently. Sends no transaction. */
export const run = (networks: ReadonlyArray<Inspected>, patience: Duration.Duration = Duration.seconds(30)) =>
  Effect.map(
    Effect.forEach(networks, (network) => inspect(network, patience), { concurrency: 16 }),
    (found) => {
      const reported = new Set<string>()
      // Reports an account's finding that the whole chain shares only once.
      return found.flat().filter(({ chainId, message }) => {
        const key = `${chainId} ${message}`
        return reported.has(key) ? false : reported.add(key)
      })
    }
  )
