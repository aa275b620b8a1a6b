import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Evaluation from "../../../src/application/policies/Evaluation.js"
import type { PolicyVersion } from "../../../src/application/ports/Policies.js"
import * as Movements from "../../../src/domain/policy/Movements.js"
import type { Limit, Rule } from "../../../src/domain/policy/Policy.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { alice } from "../../support/journal/Make.js"
import * as Parties from "../../support/Parties.js"

const token = Address.unsafe(`0x${"33".repeat(20)}`)
const shop = Address.unsafe(`0x${"77".repeat(20)}`)
const stranger = Address.unsafe(`0x${"88".repeat(20)}`)

const version = (
  layer: PolicyVersion["layer"],
  rules: ReadonlyArray<Rule>,
  limits: ReadonlyArray<Limit> = []
): PolicyVersion => ({
  accountId: alice,
  layer,
  subject: "account",
  version: 3,
  content: { mode: "enforce", expiresAt: 0, rules, limits },
  countedAs: "account",
  at: 0,
  by: "ann",
  requestId: null
})

const allow: Rule = {
  name: "shops",
  effect: "allow",
  match: { kinds: ["erc20.transfer"], to: [shop], maxAmount: 100n }
}
const cap: Limit = { name: "cap", chain: "8453", asset: token, per: "day", max: 150n }

const payment = (amount: bigint, to = shop) => ({
  movements: () => [{ ...Movements.plain("erc20.transfer"), contract: token, asset: token, to, amount }]
})

const asker = {
  caller: Parties.caller(),
  endpoint: "/execute",
  signers: [],
  wallet: null,
  chainId: 8_453n
}

/** Of a window in which 50 are held and 30 booked. */
const figures = () => Effect.succeed({ held: 50n, booked: 30n })

const evaluate = (
  versions: ReadonlyArray<PolicyVersion>,
  view: Evaluation.View,
  ...payments: ReadonlyArray<ReturnType<typeof payment>>
) =>
  Effect.map(Evaluation.of({ figures }, versions, Evaluation.ofContents(asker, payments), view), (elements) =>
    elements.map(({ findings, verdict }) => [
      verdict,
      ...findings.map(({ objection }) => objection?.problem ?? null)
    ])
  )

describe("a dry run", () => {
  it.effect("counts the account's limits from what is held and booked, and element by element", () =>
    Effect.gen(function* () {
      const asked = [40n, 31n, 30n].map((amount) => payment(amount))
      expect(yield* evaluate([version("account", [allow], [cap])], "account", ...asked)).toEqual([
        ["allow", null],
        ["refuse", "31 asked, 30 left"],
        ["allow", null]
      ])
    })
  )

  it.effect("shows an account no amount of the operator's layer, whatever it asks for", () =>
    Effect.gen(function* () {
      const versions = [version("operator", [allow], [cap, { ...cap, name: "op", per: "op", max: 5n }])]
      for (const amount of [0n, 5n, 6n, 70n, 71n, 100n, 101n, 10n ** 30n]) {
        expect(yield* evaluate(versions, "account", payment(amount))).toEqual([["allow", null]])
        expect(yield* evaluate(versions, "account", payment(amount, stranger))).toEqual([
          [
            "refuse",
            expect.stringMatching(
              `erc20.transfer .*to ${stranger} is not allowed: to of rule ${allow.name} does`
            )
          ]
        ])
      }
      expect(yield* evaluate(versions, "operator", payment(6n))).toEqual([["refuse", "6 asked, 5 left"]])
      expect(yield* evaluate(versions, "operator", payment(101n))).toEqual([
        [
          "refuse",
          `erc20.transfer of 101 to ${shop} is not allowed: maxAmount of rule ${allow.name} does not fit`
        ]
      ])
    })
  )

  it.effect("leaves out the operator's rules that refuse by amounts", () =>
    Effect.gen(function* () {
      const refuse: Rule = { ...allow, name: "small", effect: "refuse" }
      const all: Rule = { name: "all", effect: "allow", match: { kinds: ["erc20.transfer"] } }
      const versions = [version("operator", [refuse, all])]
      for (const amount of [1n, 100n, 101n])
        expect(yield* evaluate(versions, "account", payment(amount))).toEqual([["allow", null]])
      expect(yield* evaluate(versions, "operator", payment(100n))).toEqual([
        ["refuse", `erc20.transfer of 100 to ${shop} is not allowed`]
      ])
      expect(yield* evaluate(versions, "operator", payment(101n))).toEqual([["allow", null]])
    })
  )

  it.effect("takes drafts in place of their layer's policy only, and counts on under them", () =>
    Effect.gen(function* () {
      const stored = [
        version("operator", []),
        { ...version("account", [allow]), countedAs: "key:0123456789ab" }
      ]
      const drafts = Evaluation.withDrafts(stored, new Map([["account", null]]), {
        accountId: alice,
        layer: "account"
      })
      expect(drafts).toMatchObject([
        { layer: "operator", version: 3 },
        { layer: "account", version: Evaluation.draft, content: null, countedAs: "key:0123456789ab" }
      ])
      expect(yield* evaluate(drafts, "operator", payment(1n))).toHaveLength(1)
    })
  )
})
