import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Content, Subject } from "../../domain/policy/Subject.js"
import type { AccountId } from "./Tenants.js"

/** Author of a policy: the operator by command, or the account over HTTP. */
export type Layer = "operator" | "account"

/** One version of a subject's policy or list. */
export interface PolicyVersion {
  readonly accountId: AccountId
  readonly layer: Layer
  readonly subject: Subject
  /** Counts a subject's versions in its layer from 1. */
  readonly version: number
  readonly content: Content
  /** Subject whose counts its limits continue: its own, or that of the key that it has replaced. */
  readonly countedAs: Subject
  /** Unix seconds. */
  readonly at: number
  /** The operator's name, or `key:` and the id of the account's key. */
  readonly by: string
  /** Null: set by command. */
  readonly requestId: string | null
}

/** A version of a policy, without its content. */
export type PolicyName = Pick<PolicyVersion, "layer" | "subject" | "version">

/** Most policies and lists that an account has in one layer, and most characters of their JSON together. */
export const most = { subjects: 200, characters: 262_144 }

/** `unreadable`: a version in the store is in no form that this program reads. `full`: see `most`. */
export class PoliciesError extends Data.TaggedError("PoliciesError")<{
  readonly reason: "unavailable" | "unreadable" | "full"
  readonly message: string
}> {}

/** The current version, which differs from the expected one; 0: there is none. */
export interface Mismatch {
  readonly mismatch: number
}

/** Spending rules and lists of all accounts, of the configuration file too. Versions are never changed or deleted. */
export class Policies extends Context.Service<
  Policies,
  {
    /**
     * Adds the next version; the same content as the current version's adds none. Null content removes: a subject
     * without content is a mismatch. `expected`: the current version must be this one, 0 for none; null: it may be any.
     */
    readonly put: (
      entry: Omit<PolicyVersion, "countedAs" | "version">,
      expected: number | null
    ) => Effect.Effect<PolicyVersion | Mismatch, PoliciesError>
    /** The newest version of each subject of the account, in both layers, without removed ones. */
    readonly current: (accountId: AccountId) => Effect.Effect<ReadonlyArray<PolicyVersion>, PoliciesError>
    /** All versions of a subject, newest first. */
    readonly history: (
      accountId: AccountId,
      layer: Layer,
      subject: Subject
    ) => Effect.Effect<ReadonlyArray<PolicyVersion>, PoliciesError>
    /** Accounts with versions added after the `after`th of all, and the number of the latest; misses none. */
    readonly changes: (
      after: number
    ) => Effect.Effect<
      { readonly latest: number; readonly accounts: ReadonlyArray<AccountId> },
      PoliciesError
    >
  }
>()("castellan/Policies") {}
