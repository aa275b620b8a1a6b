import * as Data from "effect/Data"
import type { RingKeyError } from "./RingKeyError.js"

/**
 * One reason why a key ring can not be used. `message` names the key and holds no secret.
 *
 * - `badReference`: not exactly one of versionId and assetId, an empty name, no account, or no such provider
 * - `duplicateReference`: one account has two keys under one reference
 * - `sharedEoa`: two accounts reach one EOA and not every record of it is `shared`
 * - `systemKeyReachable`: an account reaches an EOA of the operator's own keys
 * - `systemKeysEqual`: two of the operator's keys are one
 * - all others: the key itself, or its provider, can not be used
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

/** The key ring can not be used; `message` has a line per problem. */
export class KeyRingError extends Data.TaggedError("KeyRingError")<{
  readonly message: string
  readonly problems: ReadonlyArray<Problem>
}> {}

export const of = (problems: ReadonlyArray<Problem>): KeyRingError =>
  new KeyRingError({
    problems,
    message: ["the keys can not be used:", ...problems.map(({ message }) => `  ${message}`)].join("\n")
  })
