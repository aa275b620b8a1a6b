import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { Contract, JsonRpcProvider, keccak256, parseEther, toQuantity } from "ethers"
import { expect, it } from "vitest"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import type { Lane, TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import type { TopUp } from "../../../src/application/ports/NetworkProfile.js"
import * as TopUps from "../../../src/application/topups/TopUps.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { startAnvil } from "../../../src/hosts/cli/dev/Anvil.js"
import * as NetworkOptions from "../../../src/hosts/library/NetworkOptions.js"
import * as InterruptedAt from "../../support/InterruptedAt.js"
import type * as Journals from "../../support/journal/Journals.js"
import { Address, account, keyOf, type LifeOptions, useStack } from "../../support/stack/Stack.js"
import * as Rounds from "./Rounds.js"

/** Top-ups by the treasury on a real chain, and the sums on the chain against the caps. */

const [treasury, eoa] = [keyOf(8).address, keyOf(2).address]
const wei = parseEther

const stack = useStack()
const { balance, blockedOf, bookedOf, clock, lived, openOf, settled } = Rounds.of(stack, TopUps.round, null)

const eoaOnly: TopUp = {
  keep: wei("1"),
  dailyCap: wei("2"),
  targets: [{ to: "serviceEoa", below: wei("0.2"), upTo: wei("0.5"), dailyCap: wei("2") }]
}

/** A treasury of 10 ether, an EOA that has this sum, and rounds of top-ups. */
const begun = async ({ has = 0n } = {}) => {
  await stack.fund(treasury, wei("10"))
  await stack.fund(eoa, has)
  return { ...clock(), nonce: await stack.nonce(treasury) }
}

/** The sponsor's deposit. */
const deposit = (): Promise<bigint> =>
  new Contract(
    entryPoints["v0.7"],
    ["function balanceOf(address) view returns (uint256)"],
    stack.provider
  ).getFunction("balanceOf")(stack.suite.paymaster)

it("an EOA, a deposit and an address are raised as docs/topups.md shows", async () => {
  const [, json = ""] = /```json\n([\s\S]*?)```/.exec(readFileSync("docs/topups.md", "utf8")) ?? []
  const { networks } = JSON.parse(json)
  const other = "0x2222222222222222222222222222222222222222"
  networks[0].topUp.targets[1].to.deposit = stack.suite.paymaster
  networks[0].topUp.targets[1].to.entryPoint = entryPoints["v0.7"]
  const read = NetworkOptions.read([{ ...networks[0], rpc: stack.anvil.url }], {
    sponsors: true,
    treasury: true
  })
  const topUp = Result.getOrThrow(read).profiles.find(({ chainId }) => chainId === 31337n)?.topUp ?? null
  const { at, round } = await begun({ has: wei("0.05") })
  const before = await deposit()
  await lived({ profile: { topUp } }, async (life) => {
    await settled(life, round)
    expect([await balance(eoa), await balance(other)]).toEqual([wei("0.5"), wei("0.05")])
    expect(await deposit()).toBe(before < wei("0.2") ? wei("1") : before)
    const { booked, held } = await bookedOf(life, at())
    expect([booked, held]).toEqual([wei("10") - (await balance(treasury)), 0n])
    const nonce = await stack.nonce(treasury)
    await life.runPromise(round)
    expect([await stack.nonce(treasury), await blockedOf(life)]).toEqual([nonce, []])
    const { requests } = await life.runPromise(
      Effect.flatMap(RequestJournal, ({ list }) => Effect.orDie(list(TopUps.account, { limit: 10 })))
    )
    expect(new Set(requests.map(({ endpoint }) => endpoint))).toEqual(new Set(["/topUp"]))
  })
})

it("the chain's sum stays below the caps over a process killed at every kind of step", async () => {
  const database = stack.database()
  const { at, nonce, round } = await begun()
  const profile = { topUp: eoaOnly }
  const start = await balance(treasury)
  for (let step = 1; step <= 400; step += 13)
    await lived({ database, profile }, async (life) => {
      await stack.fund(eoa, 0n)
      await life.runPromise(InterruptedAt.step(step, round))
    })
  await lived({ database, profile }, async (life) => {
    await settled(life, round)
    const spent = start - (await balance(treasury))
    expect(await bookedOf(life, at())).toEqual({ booked: spent, held: 0n })
    expect(await stack.nonce(treasury)).toBeGreaterThan(nonce)
    expect(spent).toBeLessThanOrEqual(eoaOnly.dailyCap)
    // Until the cap is reached; with the most gas of the next one, nothing passes it.
    for (let more = 0; more < 6; more++) {
      await stack.fund(eoa, 0n)
      await settled(life, round)
    }
    const all = start - (await balance(treasury))
    expect(all).toBeLessThanOrEqual(eoaOnly.dailyCap)
    expect(all).toBeGreaterThan(eoaOnly.dailyCap - wei("0.51"))
    expect(await blockedOf(life)).toEqual([["cap", 1]])
  })
})

it("a process that dies between the hold and the acceptance loses the hold only", async () => {
  const database = stack.database()
  const { at, nonce, round } = await begun()
  const profile = { topUp: eoaOnly }
  const wrapJournal = (journal: Journals.Methods): Journals.Methods => ({
    ...journal,
    accept: () => Effect.never
  })
  await lived({ database, profile, wrapJournal }, async (life) => {
    await life.runPromise(Effect.timeoutOption(round, 2_000))
    expect(await openOf(life)).toMatchObject([{ bound: true }, { bound: true }])
  })
  await lived({ database, profile }, async (life) => {
    await settled(life, round)
    expect([await stack.nonce(treasury), await balance(eoa)]).toEqual([nonce + 1, wei("0.5")])
    expect(await bookedOf(life, at())).toEqual({ booked: wei("10") - (await balance(treasury)), held: 0n })
  })
})

it("a chain that stalls has one top-up, and the next day has its own cap", async () => {
  const { nextDay, round } = await begun()
  const topUp = { ...eoaOnly, dailyCap: wei("0.6") }
  await lived({ profile: { topUp } }, async (life) => {
    await stack.automine(false)
    for (let rounds = 0; rounds < 20; rounds++) await life.runPromise(round)
    const [first, ...others] = await stack.pooled(1, treasury)
    expect([BigInt(first?.value ?? 0), others]).toEqual([wei("0.5"), []])
    expect(new Set((await openOf(life)).map(({ name }) => name))).toEqual(new Set(["topUp", `topUp:${eoa}`]))
    await stack.automine(true)
    await stack.mine()
    await settled(life, round)
    await stack.fund(eoa, 0n)
    await life.runPromise(round)
    expect(await blockedOf(life)).toEqual([["cap", 1]])
    nextDay()
    await settled(life, round)
    await expect.poll(() => balance(eoa)).toBe(wei("0.5"))
  })
})

it("the treasury keeps keep, to the wei, at the highest price of its gas", async () => {
  const { nonce, round } = await begun()
  // A plain transfer has 21,000 gas, and half of it on top.
  const most = wei("0.5") + 31_500n * Rounds.caps.maxFeePerGas
  await lived({ profile: { topUp: eoaOnly } }, async (life) => {
    await stack.fund(treasury, eoaOnly.keep + most - 1n)
    await life.runPromise(round)
    expect([await blockedOf(life), await stack.nonce(treasury)]).toEqual([[["lack", 1]], nonce])
    await stack.fund(treasury, eoaOnly.keep + most)
    await settled(life, round)
    expect([await balance(eoa), await stack.nonce(treasury)]).toEqual([wei("0.5"), nonce + 1])
    expect(await balance(treasury)).toBeGreaterThanOrEqual(eoaOnly.keep)
  })
})

it("two processes that both believe to own the lane top up once", async () => {
  const { nonce, round } = await begun()
  const database = stack.database()
  const profile = { topUp: eoaOnly }
  await lived({ database, profile }, (one) =>
    lived({ database, profile }, async (other) => {
      await Promise.all([one, other, one, other].map((life) => life.runPromiseExit(round)))
      await settled(one, round)
      expect([await stack.nonce(treasury), await balance(eoa)]).toEqual([nonce + 1, wei("0.5")])
    })
  )
})

it.each<readonly [string, string, bigint, ReadonlyArray<readonly [string, number]>]>([
  ["the balance rose", eoa, wei("0.5"), []],
  ["the treasury paid another target", treasury, wei("1.2"), [["lack", 1]]]
])("a process that was suspended while %s sends nothing", async (_, address, funds, blocked) => {
  const { nonce, round } = await begun()
  let step: "reads" | "is suspended" | "has worked" = "reads"
  const wrapChain: LifeOptions["wrapChain"] = (nodes) => ({
    connect: (...named) =>
      Effect.map(nodes.connect(...named), (client) => ({
        ...client,
        estimateGas: (call) =>
          Effect.tap(client.estimateGas(call), () =>
            Effect.sync(() => {
              if (step === "reads") step = "is suspended"
            })
          )
      }))
  })
  // The last that it reads before it holds the sum.
  const wrapNetworks: LifeOptions["wrapNetworks"] = ({ chainIds, profile }) => ({
    chainIds,
    profile: (...named) =>
      Effect.gen(function* () {
        if (step === "is suspended") {
          step = "has worked"
          yield* Effect.promise(() => stack.fund(address, funds))
        }
        return yield* profile(...named)
      })
  })
  await lived({ profile: { topUp: eoaOnly }, wrapChain, wrapNetworks }, async (life) => {
    await life.runPromise(round)
    expect([step, await openOf(life)]).toMatchObject(["has worked", [{ bound: false }, { bound: false }]])
    expect([await stack.nonce(treasury), await blockedOf(life)]).toEqual([nonce, blocked])
    await stack.fund(treasury, wei("10"))
    await stack.fund(eoa, 0n)
    await settled(life, round)
    expect(await balance(eoa)).toBe(wei("0.5"))
  })
})

it("a node that has the receipt, and a balance from before, causes no second top-up", async () => {
  const { nonce, round } = await begun()
  let isBehind = false
  const wrapChain: LifeOptions["wrapChain"] = (nodes) => ({
    connect: (...named) =>
      Effect.map(nodes.connect(...named), (client) => ({
        ...client,
        balance: (address) => (isBehind && address === eoa ? Effect.succeed(0n) : client.balance(address))
      }))
  })
  await lived({ profile: { topUp: eoaOnly }, wrapChain }, async (life) => {
    await life.runPromise(round)
    await expect
      .poll(
        async () => {
          isBehind = (await openOf(life)).some(({ landed }) => landed === null)
          await life.runPromise(round)
          return openOf(life)
        },
        { timeout: 20_000 }
      )
      .toEqual([])
    expect([await stack.nonce(treasury), await balance(eoa)]).toEqual([nonce + 1, wei("0.5")])
  })
})

it("targets of one address are raised on two chains in one round", async () => {
  const anvil = await startAnvil({ chainId: 31338 })
  const provider = new JsonRpcProvider(anvil.url, anvil.chainId, { staticNetwork: true })
  try {
    await provider.send("anvil_setBalance", [treasury, toQuantity(wei("10"))])
    await provider.send("anvil_setBalance", [eoa, "0x0"])
    const { round } = await begun()
    const chainIds = [BigInt(stack.anvil.chainId), BigInt(anvil.chainId)] as const
    const wrapNetworks: LifeOptions["wrapNetworks"] = ({ profile }) => ({
      chainIds: Effect.succeed(chainIds),
      profile: (id, chainId) =>
        Effect.map(profile(id, chainIds[0]), (own) =>
          own === null || chainId === chainIds[0] ? own : { ...own, chainId, rpc: Redacted.make(anvil.url) }
        )
    })
    await lived({ profile: { topUp: eoaOnly }, wrapNetworks }, async (life) => {
      await life.runPromise(round)
      await settled(life, round)
      await expect.poll(() => provider.getBalance(eoa), { timeout: 10_000 }).toBe(wei("0.5"))
      expect([await balance(eoa), await blockedOf(life)]).toEqual([wei("0.5"), []])
    })
  } finally {
    provider.destroy()
    await anvil.stop()
  }
})

it("pending transactions of an EOA and reserved ops of a deposit count as spent", async () => {
  const { at, round } = await begun({ has: wei("0.25") })
  const chainId = BigInt(stack.anvil.chainId)
  const entryPoint = Address.unsafe(entryPoints["v0.7"])
  const paymaster = Address.unsafe(stack.suite.paymaster)
  const topUp: TopUp = {
    keep: 0n,
    dailyCap: wei("9"),
    targets: [{ to: { deposit: paymaster, entryPoint }, below: wei("1"), upTo: wei("2"), dailyCap: wei("9") }]
  }
  const before = await deposit()
  const held = before > wei("1") ? before - wei("0.5") : wei("0.1")
  await lived({ profile: { topUp } }, async (life) => {
    await life.runPromise(
      Effect.flatMap(Budgets, ({ bind, reserve }) =>
        Effect.andThen(
          reserve([
            [
              {
                accountId: account,
                chainId,
                name: `deposit:${entryPoint}:${paymaster}`,
                id: "an op",
                wei: held,
                limit: null,
                maxOpen: null,
                window: "open",
                expiresAt: at() + Rounds.day
              }
            ]
          ]),
          bind({ chainId, id: "an op", wei: 0n }, "")
        )
      ).pipe(Effect.orDie)
    )
    await settled(life, round)
    expect((await deposit()) - held).toBe(wei("2"))
  })
  const raw = await keyOf(2).signTransaction({
    type: 2,
    chainId,
    nonce: 0,
    to: treasury,
    value: wei("0.1"),
    gasLimit: 21_000,
    maxFeePerGas: 10n ** 10n,
    maxPriorityFeePerGas: 10n ** 9n
  })
  const wrapJournal = (journal: Journals.Methods): Journals.Methods => ({
    ...journal,
    openOf: (lane) => Effect.succeed(lane.signer === eoa ? [pending(lane, Hex.unsafe(raw))] : [])
  })
  await lived({ profile: { topUp: eoaOnly }, wrapJournal }, async (life) => {
    await stack.automine(false)
    await life.runPromise(round)
    const [sent] = await stack.pooled(1, treasury)
    expect(BigInt(sent?.value ?? 0)).toBe(wei("0.5") - (wei("0.25") - wei("0.1") - 21_000n * 10n ** 10n))
    await stack.automine(true)
    await stack.mine()
  })
})

const pending = (lane: Lane, raw: Hex.Hex): TransactionRecord => ({
  ...lane,
  nonce: 0n,
  access: { accountId: account, key: "serviceEoa", rpc: null, trust: "operator" },
  state: "signed",
  versions: [
    { raw, txHash: Hex.unsafe32(keccak256(raw)), maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n }
  ],
  signedAt: 0,
  ops: [],
  direct: null,
  mined: null
})

it.each<readonly [string, string, Partial<TopUp>, LifeOptions]>([
  ["lack", "a treasury that has to keep its own gas", { keep: wei("9.6") }, {}],
  ["cap", "a target beyond its cap", { dailyCap: wei("0.5") }, {}],
  [
    "paused",
    "a paused treasury",
    {},
    { killSwitches: { isPaused: ({ kind }) => Effect.succeed(kind === "signer") } }
  ],
  [
    "refused",
    "a treasury as its own target",
    { targets: [{ to: Address.unsafe(treasury), below: 1n, upTo: wei("1"), dailyCap: wei("1") }] },
    {}
  ],
  [
    "refused",
    "a target under two names",
    {
      targets: ["serviceEoa" as const, Address.unsafe(eoa)].map((to) => ({
        to,
        below: 1n,
        upTo: wei("1"),
        dailyCap: wei("1")
      }))
    },
    {}
  ],
  [
    "balance_unknown",
    "a balance that the node does not return",
    {},
    {
      wrapChain: (nodes) => ({
        connect: (...named) =>
          Effect.map(nodes.connect(...named), (client) => ({
            ...client,
            balance: () =>
              new ChainRpcError({ reason: "unavailable", origin: client.origin, message: "away" })
          }))
      })
    }
  ]
])("%s: %s sends nothing", async (reason, _, changed, options) => {
  const { nonce, round } = await begun()
  const topUp = { ...eoaOnly, ...changed }
  await lived({ ...options, profile: { topUp } }, async (life) => {
    await life.runPromise(round)
    expect(await blockedOf(life)).toEqual([[reason, topUp.targets.length]])
    expect([await openOf(life), await stack.nonce(treasury)]).toEqual([[], nonce])
  })
})
