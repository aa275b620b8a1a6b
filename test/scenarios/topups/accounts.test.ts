import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { parseEther } from "ethers"
import { expect, it } from "vitest"
import * as Endpoint from "../../../src/application/endpoints/policies/TopUps.js"
import * as Rulebook from "../../../src/application/policies/Rulebook.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { Settings } from "../../../src/application/ports/operator/Settings.js"
import * as AccountTopUps from "../../../src/application/topups/AccountTopUps.js"
import type { Policy } from "../../../src/domain/policy/Policy.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { account, keyOf, type Runtime, useStack } from "../../support/stack/Stack.js"
import * as Policed from "../policies/Policed.js"
import * as Rounds from "./Rounds.js"

/** Top-ups by an account's signer on a real chain, and the sums on the chain against the caps. */

const stack = useStack()
const { balance, blockedOf, bookedOf, clock, lived, settled } = Rounds.of(stack, AccountTopUps.round, account)
const wei = parseEther
const [payer, other] = [keyOf(1).address, keyOf(6).address]
const chain = () => stack.anvil.chainId.toString()

const signer = { clientId: "dev", versionId: "1" }
const toSigner = {
  to: { clientId: "dev", versionId: "2" },
  below: wei("0.2"),
  upTo: wei("0.5"),
  dailyCap: wei("2")
}
const terms: Endpoint.Terms = { signer, keep: wei("1"), dailyCap: wei("2"), targets: [toSigner] }

const set = (life: Runtime, given: Endpoint.Terms) =>
  life.runPromise(Endpoint.set(stack.caller(), { ...given, chainId: chain() }))

it("a signer and a wallet of the account are raised as docs/topups.md shows, by requests of the account", async () => {
  const [, text = ""] =
    /## An account's top-ups[\s\S]*?```json\n([\s\S]*?)```/.exec(readFileSync("docs/topups.md", "utf8")) ?? []
  const shown = Schema.decodeUnknownSync(Schema.fromJsonString(Endpoint.Terms))(text)
  await stack.fund(payer, wei("10"))
  await stack.fund(other, 0n)
  const wallet = stack.predict("payroll")
  const { at, round } = clock()
  await lived({}, async (life) => {
    await set(life, shown)
    expect((await life.runPromise(Endpoint.get(stack.caller(), { chainId: chain() }))).topUp).toMatchObject({
      ...shown,
      by: "account"
    })
    await settled(life, round)
    expect([await balance(other), await balance(wallet)]).toEqual([wei("0.5"), wei("0.05")])
    const { booked, held } = await bookedOf(life, at())
    expect([booked, held]).toEqual([wei("10") - (await balance(payer)), 0n])
    const nonce = await stack.nonce(payer)
    await life.runPromise(round)
    expect(await stack.nonce(payer)).toBe(nonce)
    const { requests } = await life.runPromise(
      Effect.flatMap(RequestJournal, ({ list }) => Effect.orDie(list(account, { limit: 10 })))
    )
    expect(requests.map(({ endpoint, state }) => [endpoint, state])).toEqual([
      ["/topUp", "final"],
      ["/topUp", "final"]
    ])
    // No more top-ups without targets.
    await set(life, { ...shown, targets: [] })
    await stack.fund(other, 0n)
    await life.runPromise(round)
    expect(await stack.nonce(payer)).toBe(nonce)
  })
})

it("a chain that stalls has one top-up, and the signer keeps keep next to its other transactions", async () => {
  await stack.fund(other, 0n)
  const { round } = clock()
  // The signer's own transaction holds 0.1 ether while it waits.
  const most = wei("0.5") + 31_500n * Rounds.caps.maxFeePerGas
  await stack.fund(payer, terms.keep + most + wei("0.1"))
  await lived({}, async (life) => {
    await set(life, terms)
    await stack.automine(false)
    const nonce = await stack.nonce(payer)
    const sent = life.runPromise(
      Effect.exit(stack.transact({ to: stack.settings.entryPoint, value: wei("0.1") }))
    )
    await stack.pooled(1, payer)
    await life.runPromise(round)
    expect(await stack.pool(payer)).toHaveLength(1)
    await stack.fund(payer, terms.keep + most + wei("0.2"))
    for (let rounds = 0; rounds < 5; rounds++) await life.runPromise(round)
    expect(await stack.pooled(2, payer)).toMatchObject([{}, { value: `0x${wei("0.5").toString(16)}` }])
    await stack.automine(true)
    await stack.mine()
    await sent
    await settled(life, round)
    expect([await stack.nonce(payer), await balance(other)]).toEqual([nonce + 2, wei("0.5")])
    expect(await balance(payer)).toBeGreaterThanOrEqual(terms.keep)
  })
})

it("spending rules of the key that has set the terms bind the top-ups, which count in its limits", async () => {
  await stack.fund(payer, wei("10"))
  await stack.fund(other, 0n)
  const { at, round } = clock()
  const keyId = "21ca2b88d8bd"
  const subject = `key:${keyId}`
  const rule = (most: bigint): Partial<Policy> => ({
    rules: [
      {
        name: "signer",
        effect: "allow",
        match: { kinds: ["native"], endpoints: ["/topUp"], to: [Address.unsafe(other)] }
      }
    ],
    limits: [Policed.cap(stack.anvil.chainId, "native", most, { per: "30d" })]
  })
  await lived({ database: stack.database() }, async (life) => {
    const counted = () => {
      const pot = { layer: "account", subject, countedAs: subject } as const
      const { chainId, ...budget } = Rulebook.potOf(account, pot, { chain: chain(), name: "cap" }, null)
      return life.runPromise(
        Effect.flatMap(Budgets, ({ figures }) => Effect.orDie(figures({ chainId, ...budget }, at(), "30d")))
      )
    }
    await Policed.put(life, subject, rule(wei("0.9")))
    const { principal, ...more } = stack.caller()
    const caller = { ...more, principal: { ...principal, keyId } }
    await life.runPromise(Endpoint.set(caller, { ...terms, chainId: chain() }))
    await settled(life, round)
    expect([await balance(other), await blockedOf(life)]).toEqual([wei("0.5"), []])
    await stack.mine()
    await expect.poll(counted, { timeout: 20_000 }).toEqual({ booked: wei("0.5"), held: 0n })

    await stack.fund(other, 0n)
    const nonce = await stack.nonce(payer)
    for (let rounds = 0; rounds < 3; rounds++) await life.runPromise(round)
    expect([await stack.nonce(payer), await balance(other)]).toEqual([nonce, 0n])
    expect(await blockedOf(life)).toEqual([["refused", 1]])
    expect(await counted()).toEqual({ booked: wei("0.5"), held: 0n })

    await Policed.put(life, subject, rule(wei("1")))
    await settled(life, round)
    await expect.poll(() => balance(other), { timeout: 20_000 }).toBe(wei("0.5"))
    expect(await blockedOf(life)).toEqual([])
    await stack.mine()
    await expect.poll(counted, { timeout: 20_000 }).toEqual({ booked: wei("1"), held: 0n })
  })
})

it("nothing is topped up for a paused account, or by terms that cannot be read", async () => {
  await stack.fund(payer, wei("10"))
  await stack.fund(other, 0n)
  const { round } = clock()
  const nonce = await stack.nonce(payer)
  const killSwitches = {
    isPaused: ({ kind }: { readonly kind: string }) => Effect.succeed(kind === "account")
  }
  await lived({ killSwitches }, async (life) => {
    await set(life, terms)
    await life.runPromise(round)
  })
  await lived({}, async (life) => {
    const setting = { accountId: account, name: Endpoint.nameOf(BigInt(chain())), at: 1 }
    await life.runPromise(
      Effect.flatMap(Settings, ({ put }) => put({ ...setting, content: "{}", by: "x", requestId: null }))
    )
    await life.runPromise(round)
  })
  expect([await stack.nonce(payer), await balance(other)]).toEqual([nonce, 0n])
})

const wallet = { ...toSigner, to: { salt: "payroll", walletCustody: 1 as const } }

it.each<readonly [string, Partial<Endpoint.Terms>, string]>([
  ["another account's signer", { signer: { clientId: "theirs", versionId: "1" } }, "signer.clientId"],
  [
    "an unknown target",
    { targets: [{ ...toSigner, to: { clientId: "x", versionId: "1" } }] },
    "targets[0].to.clientId"
  ],
  ["the paying signer as target", { targets: [{ ...toSigner, to: signer }] }, "targets[0].to"],
  ["a wallet that is listed twice", { targets: [wallet, wallet] }, "targets[1].to"]
])("refused before anything is stored: %s", async (_, change, path) => {
  const refusal = await stack.refused(Endpoint.set(stack.caller(), { ...terms, ...change, chainId: chain() }))
  expect(refusal).toMatchObject({ details: [{ path }] })
  expect((await stack.ask(Endpoint.get(stack.caller(), { chainId: chain() }))).topUp).toBeNull()
})

it("refused before anything is stored: a chain without a node of the operator, a level below", async () => {
  const elsewhere = await stack.refused(Endpoint.set(stack.caller(), { ...terms, chainId: "999" }))
  expect(elsewhere).toMatchObject({ details: [{ path: "chainId" }] })
  const decode = Schema.decodeUnknownResult(Endpoint.Terms)
  const target = { to: signer, below: "5", upTo: "5", dailyCap: "1" }
  expect(decode({ signer, keep: "0", dailyCap: "1", targets: [target] })._tag).toBe("Failure")
})
