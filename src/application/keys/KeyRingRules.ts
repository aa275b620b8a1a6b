import * as Data from "effect/Data"
import type { Address } from "../../domain/primitives/Address.js"
import type { AccountId } from "../ports/Tenants.js"
import {
  nameOf,
  nameOfRole,
  type Registry,
  referencesOf,
  type SignerRecord,
  type SystemRole
} from "./KeyRingRegistry.js"
import type { RingKeyError } from "./RingKeyCall.js"

/**
 * A reason why a key ring cannot be used. `message` names the key and holds no secret.
 *
 * - `badReference`: not exactly one of versionId and assetId, an empty name, no account, or no such provider
 * - `duplicateReference`: one account has two keys under one reference
 * - `sharedEoa`: two accounts reach one EOA and not every record of it is `shared`
 * - `systemKeyReachable`: an account reaches an EOA of the operator's own keys
 * - `systemKeysEqual`: two of the operator's keys are the same
 * - all others: the key itself, or its provider, cannot be used
 */
export interface Problem {
  readonly reason:
    | "badReference"
    | "duplicateReference"
    | "sharedEoa"
    | "systemKeyReachable"
    | "systemKeysEqual"
    | RingKeyError["reason"]
  readonly message: string
}

/** The key ring cannot be used; `message` has a line per problem. */
export class KeyRingError extends Data.TaggedError("KeyRingError")<{
  readonly message: string
  readonly problems: ReadonlyArray<Problem>
}> {}

export const failure = (problems: ReadonlyArray<Problem>): KeyRingError =>
  new KeyRingError({
    problems,
    message: ["the keys cannot be used:", ...problems.map(({ message }) => `  ${message}`)].join("\n")
  })

const badReference = (record: SignerRecord): string | undefined => {
  if ((record.versionId === undefined) === (record.assetId === undefined))
    return "needs exactly one of versionId and assetId"
  if (record.clientId === "" || record.versionId === "" || record.assetId === "") return "has an empty name"
  return record.accountIds.length === 0 ? "belongs to no account" : undefined
}

/** Problems of the keys' names, checked before any provider is queried. */
export const references = ({ providers, signers, system }: Registry): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const provided = (name: string, provider: string) => {
    if (!Object.hasOwn(providers, provider))
      problems.push({
        reason: "badReference",
        message: `${name}: there is no provider ${JSON.stringify(provider)}`
      })
  }
  const taken = new Set<string>()
  for (const record of signers) {
    const name = nameOf(record)
    const bad = badReference(record)
    if (bad !== undefined) problems.push({ reason: "badReference", message: `${name} ${bad}` })
    provided(name, record.source.provider)
    for (const [account, reference] of referencesOf(record)) {
      if (taken.has(reference))
        problems.push({
          reason: "duplicateReference",
          message: `account ${JSON.stringify(account)} has two keys for ${name}`
        })
      taken.add(reference)
    }
  }
  for (const [role, source] of Object.entries(system))
    if (source !== undefined) provided(`the system key ${role}`, source.provider)
  return problems
}

/** One EOA, and the accounts that reach it. */
interface Reached {
  readonly accounts: Set<AccountId>
  shared: boolean
}

/** Problems of the accounts' access to EOAs. */
export const reach = (
  signers: ReadonlyArray<{ readonly record: SignerRecord; readonly address: Address }>,
  system: ReadonlyArray<{ readonly role: SystemRole; readonly address: Address }>
): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const roles = new Map<Address, SystemRole>()
  for (const { address, role } of system) {
    const other = roles.get(address)
    if (other === undefined) roles.set(address, role)
    else
      problems.push({
        reason: "systemKeysEqual",
        message: `${nameOfRole(other)} and ${nameOfRole(role)} are the same key (${address})`
      })
  }
  const reached = new Map<Address, Reached>()
  for (const { address, record } of signers) {
    const role = roles.get(address)
    if (role !== undefined)
      problems.push({
        reason: "systemKeyReachable",
        message: `${nameOf(record)} is ${nameOfRole(role)} (${address})`
      })
    const shared = record.shared === true
    const at = reached.get(address) ?? { accounts: new Set<AccountId>(), shared }
    reached.set(address, at)
    at.shared = at.shared && shared
    for (const account of record.accountIds) at.accounts.add(account)
  }
  for (const [address, { accounts, shared }] of reached)
    if (accounts.size > 1 && !shared)
      problems.push({
        reason: "sharedEoa",
        message: `accounts ${[...accounts].map((id) => JSON.stringify(id)).join(", ")} reach one EOA (${address})`
      })
  return problems
}
