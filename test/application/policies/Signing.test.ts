import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Signing from "../../../src/application/policies/Signing.js"
import { Budgets, BudgetsError } from "../../../src/application/ports/Budgets.js"
import { Policies } from "../../../src/application/ports/Policies.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Movements from "../../../src/domain/policy/Movements.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Log from "../../support/Log.js"
import * as Parties from "../../support/Parties.js"
import { testOver } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const test = testOver(Layer.merge(InMemory.policies, InMemory.budgets))

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
    const refusal = yield* (yield* Signing.judge(asker))(content)
    return refusal?.message ?? null
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
