import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { elementFailure } from "../../../src/application/failures/Elements.js"
import * as DecisionHooks from "../../../src/application/policies/DecisionHook.js"
import * as Signing from "../../../src/application/policies/Signing.js"
import { Budgets, BudgetsError } from "../../../src/application/ports/Budgets.js"
import { Policies } from "../../../src/application/ports/Policies.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Movements from "../../../src/domain/policy/Movements.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Log from "../../support/Log.js"
import * as DecisionHook from "../../support/memory/DecisionHook.js"
import * as Parties from "../../support/Parties.js"
import { testOver } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const test = testOver(Layer.mergeAll(DecisionHook.layer, InMemory.policies, InMemory.budgets))

const acme = "acme" as AccountId
const [token, router, one, two] = ["1", "2", "3", "4"].map((each) =>
  Address.unsafe(`0x${each.repeat(40)}`)
) as [Address.Address, Address.Address, Address.Address, Address.Address]

const permit = (amount: bigint, digest: string, to = router): Signing.Content => {
  const movement: Movements.Movement = {
    ...Movements.plain("erc20.approve"),
    contract: token,
    asset: token,
    to,
    amount,
    document: { name: null, chainId: 8453n, verifyingContract: token, primaryType: "Permit" }
  }
  return { hash: Hex.unsafe32(`0x${digest.repeat(64)}`), movements: () => [movement] }
}

const put = (mode: "enforce" | "observe") =>
  Effect.gen(function* () {
    const { put } = yield* Policies
    const content = {
      mode,
      expiresAt: 0,
      rules: [{ name: "all", effect: "allow", match: { kinds: ["erc20.approve"], to: [router] } }],
      limits: [{ name: "cap", chain: "8453", asset: token, per: "24h", max: 150n }]
    }
    const entry = { accountId: acme, layer: "account", subject: "account", content, at: 1, by: "tests" }
    yield* put({ ...entry, requestId: null } as unknown as Parameters<typeof put>[0], null)
  })

const judge = (signer: Address.Address, content: Signing.Content) =>
  Effect.gen(function* () {
    const caller = Parties.caller("request-1", acme)
    const asker = { caller, endpoint: "/sign", signers: [signer], wallet: null, chainId: null }
    const refused = yield* Signing.judge(asker, new Map([[0, content]]), "each")
    return refused.get(0)?.message ?? null
  })

test("a permit counts once for each signer, whatever the request", function* () {
  yield* put("enforce")
  expect(yield* judge(one, permit(70n, "a"))).toBeNull()
  expect(yield* judge(one, permit(70n, "a"))).toBeNull()
  expect(yield* judge(two, permit(70n, "a"))).toBeNull()
  expect(yield* judge(one, permit(11n, "b"))).toContain("limit cap: 11 asked, 10 left")
  expect(yield* judge(one, permit(10n, "c"))).toBeNull()
  expect(yield* judge(two, permit(1n, "c"))).toContain("0 left")
})

test("an observed policy counts and refuses nothing: the log says what it would refuse", function* () {
  yield* put("observe")
  const logged = yield* Log.listen
  const contents = [permit(100n, "a"), permit(1n, "b", two), permit(51n, "c")]
  for (const content of contents) expect(yield* judge(one, content)).toBeNull()
  expect(logged.map(({ annotations: { reason } }) => reason)).toEqual([
    expect.stringContaining(`to ${two} is not allowed`),
    expect.stringContaining("limit cap: 51 asked, 49 left")
  ])
  yield* put("enforce")
  yield* Time.adjust(1_000)
  expect(yield* judge(one, permit(1n, "d"))).toContain("limit cap: 1 asked, 0 left")
})

test("decision hooks decide between rules and limits: a permit that they refuse counts nothing", function* () {
  yield* put("enforce")
  const asked: Array<ReadonlyArray<number>> = []
  const contents = new Map([permit(150n, "a"), permit(1n, "b", two), permit(150n, "c")].entries())
  const caller = Parties.caller("request-1", acme)
  const asker = { caller, endpoint: "/sign", signers: [one], wallet: null, chainId: null }
  const hook: DecisionHooks.DecisionHook["Service"] = {
    ...(yield* DecisionHooks.DecisionHook),
    decideSignatures: ({ elements }) =>
      Effect.sync(() => {
        const indices = elements().map(({ index }) => index)
        asked.push(indices)
        return new Map(indices.slice(0, 1).map((index) => [index, elementFailure("decision_unavailable")]))
      })
  }
  const refused = (how: "each" | "whole") =>
    Effect.map(
      Effect.provideService(Signing.judge(asker, contents, how), DecisionHooks.DecisionHook, hook),
      (failures) => [...failures].map(([index, { code }]) => [index, code])
    )
  expect(yield* refused("whole")).toEqual([[1, "policy_refused"]])
  expect(yield* refused("each")).toEqual([
    [1, "policy_refused"],
    [0, "decision_unavailable"]
  ])
  expect(asked).toEqual([[], [0, 2]])
  expect(yield* judge(one, permit(1n, "d"))).toContain("limit cap: 1 asked, 0 left")
})

for (const method of ["reserve", "settle"] as const)
  test(`nothing is signed while budgets fail to ${method}`, function* () {
    yield* put("enforce")
    const budgets = yield* Budgets
    const broken = { ...budgets, [method]: () => new BudgetsError({ message: "away" }) }
    const failure = yield* Effect.flip(
      judge(one, permit(70n, "a")).pipe(Effect.provideService(Budgets, broken))
    )
    expect(failure).toMatchObject({ code: "unavailable" })
  })
