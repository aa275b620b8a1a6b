import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Address from "../primitives/Address.js"
import * as InvalidValue from "../primitives/InvalidValue.js"
import * as Policy from "./Policy.js"

/**
 * The subject of a policy, in canonical form: `account`, `key:ID`, `signer:ADDRESS`, `wallet:ADDRESS`, or `wallet:*` for each
 * wallet without its own. `list:NAME` holds addresses that rules name.
 */
export type Subject = string

export const everyWallet = "wallet:*"

const key = /^key:[0-9a-f]{12}$/
const address = /^(signer|wallet):(.*)$/
const list = /^list:[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

export const isList = (subject: Subject): boolean => list.test(subject)

export const from = (text: string): Result.Result<Subject, string> => {
  if (text === "account" || text === everyWallet || key.test(text) || isList(text))
    return Result.succeed(text)
  const [, kind, given] = address.exec(text) ?? []
  return kind === undefined || given === undefined
    ? Result.fail(
        "expected account, key: and the key's id, signer: or wallet: and an address, wallet:*, or list: and a name"
      )
    : Result.map(InvalidValue.toText(Address.from(given)), (found) => `${kind}:${found}`)
}

/** Content of a subject's version; null: the version removes it. */
export type Content = Policy.Policy | Policy.List | null

/** The form of a subject's content. */
export const contentOf = (subject: Subject): Schema.Codec<Policy.Policy | Policy.List, unknown> =>
  isList(subject) ? Policy.List : Policy.Policy
