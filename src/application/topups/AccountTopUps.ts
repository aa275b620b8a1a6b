import * as Effect from "effect/Effect"
import * as Terms from "../endpoints/policies/TopUps.js"
import type * as Troubles from "../observe/Troubles.js"
import { Networks } from "../ports/Networks.js"
import { Settings } from "../ports/operator/Settings.js"
import type { AccountId } from "../ports/Tenants.js"
import * as TopUps from "./TopUps.js"

/** Top-ups of accounts, on the terms that they have set. */

const keyOf = (by: string): string | null => (by.startsWith("key:") ? by.slice("key:".length) : null)

const accountRound = Effect.fnUntraced(function* (
  owner: AccountId,
  chainId: bigint,
  troubles: Troubles.Troubles
) {
  const found = yield* Terms.find(owner, chainId)
  if (found === null) return new Map()
  const { by, dailyCap, keep, signer, targets } = found
  const payer = { owner, signer, keep, dailyCap, keyId: keyOf(by), count: targets.length }
  return yield* TopUps.pay(payer, chainId, troubles, ({ connection: { profile } }) =>
    Terms.targetsOf(TopUps.callerOf(payer, ""), profile, found)
  )
})

/** One round over all accounts and chains, for signers whose lanes this process owns. */
export const round = Effect.fnUntraced(function* (troubles: Troubles.Troubles) {
  const { chainIds } = yield* Networks
  const settings = yield* Settings
  for (const chainId of yield* chainIds) {
    const blocked: Array<Effect.Success<ReturnType<typeof accountRound>>> = []
    yield* Effect.forEach(
      yield* settings.having(Terms.nameOf(chainId)),
      (owner) =>
        troubles.tolerate(
          { what: "top-ups of an account failed; retrying", place: chainId.toString(), subject: owner },
          Effect.map(accountRound(owner, chainId, troubles), (each) => blocked.push(each))
        ),
      { concurrency: 8, discard: true }
    )
    yield* TopUps.measure(chainId, "accounts", blocked)
  }
})
