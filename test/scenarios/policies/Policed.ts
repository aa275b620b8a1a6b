import * as Effect from "effect/Effect"
import { Policies, type PolicyVersion } from "../../../src/application/ports/Policies.js"
import type { Limit, Policy, Rule } from "../../../src/domain/policy/Policy.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { account, type Runtime } from "../../support/stack/Stack.js"

/** Policies of the stack's account. */

/** Sets a policy of this subject. It allows nothing by default. */
export const put = (
  life: Runtime,
  subject: string,
  more: Partial<Policy> = {},
  layer: PolicyVersion["layer"] = "account"
) =>
  life.runPromise(
    Effect.flatMap(Policies, ({ put }) => {
      const content: Policy = { mode: "enforce", expiresAt: 0, rules: [], ...more }
      return put({ accountId: account, layer, subject, content, at: 1, by: "tests", requestId: null }, null)
    })
  )

export const allowing = (...kinds: Rule["match"]["kinds"]): ReadonlyArray<Rule> => [
  { name: "all", effect: "allow", match: { kinds } }
]

/** A limit of a day. */
export const cap = (chainId: number, asset: string, max: bigint, more: Partial<Limit> = {}): Limit => ({
  name: "cap",
  chain: String(chainId),
  asset: asset as "native",
  per: "day",
  max,
  ...more
})

let shops = 0
/** A recipient that has received nothing. */
export const shop = (): Address.Address => {
  shops += 1
  return Address.unsafe(`0x${"50".repeat(18)}${shops.toString(16).padStart(4, "0")}`)
}
