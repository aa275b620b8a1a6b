import { mkdtempSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Result from "effect/Result"
import { Contract, id as hashOf, Wallet, zeroPadValue } from "ethers"
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest"
import { Budgets, type Hold } from "../../../src/application/ports/Budgets.js"
import { idOf } from "../../../src/application/ports/TenantStore.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Config from "../../../src/hosts/config/Config.js"
import * as Wiring from "../../../src/hosts/Wiring.js"
import * as Build from "../../faults/support/Build.js"
import * as Client from "../../faults/support/Client.js"
import * as Fault from "../../faults/support/Fault.js"
import * as FaultProxy from "../../faults/support/FaultProxy.js"
import * as Random from "../../faults/support/Random.js"
import type { Kill } from "../../faults/support/Scenario.js"
import * as Store from "../../faults/support/Store.js"
import * as Supervisor from "../../faults/support/Supervisor.js"
import * as World from "../../faults/support/World.js"
import type * as Server from "../../support/postgres/Server.js"
import * as SetClock from "../../support/SetClock.js"

/** Limits of spending rules against the chain's own logs, while the processes that keep them are killed. */

let world: World.World
let build: Build.Build
beforeAll(async () => {
  build = await Build.make()
})
// A chain for each: its time moves ahead of the processes'.
beforeEach(async () => {
  world = await World.start()
})
afterEach(() => world.stop())
afterAll(() => build.remove())

const payments = 200
/** Payments sum up to twice the account's; half of them come from the key with the lower one. */
const caps = { account: 400n, key: 120n }
const signers = 4
const settledDepth = 3
const plenty = 10n ** 24n

const inJournal = (step: string, moment: "before" | "after", nth = 3): Kill => ({
  at: "journal",
  step,
  moment,
  nth,
  atLatest: 6_000
})
const atStatement = (text: string, nth = 2): Kill => ({ at: "statement", text, nth, atLatest: 6_000 })

const insert = "insert into holds"
const bound = "set state = 'bound'"
const booked = "set state = 'settled'"
const totals = "budget_totals"

/** `CASTELLAN_TEST_SEED=N` draws other payments, and other kills for the two processes. */
const seed = process.env.CASTELLAN_TEST_SEED

/** Kills of one process in a run with a seed. */
const drawn = (random: Random.Random): ReadonlyArray<Kill> =>
  Array.from({ length: 3 }, () => {
    const moment = random.pick(["before", "after"] as const)
    const steps = [
      "accept",
      "record",
      "recordSubmitted",
      "settle",
      "fail",
      "renew",
      "ready",
      "claim",
      "answer"
    ]
    const texts = [insert, bound, booked, totals, "into transactions", "into requests", "update ops"]
    return random.pick<Kill>([
      { at: "clock", millis: random.int(50, 4_000) },
      { at: "send", moment, nth: random.int(1, 4) },
      inJournal(random.pick(steps), moment, random.int(1, 2)),
      inJournal(random.pick(steps), moment, random.int(1, 2)),
      atStatement(random.pick(texts), random.int(1, 12)),
      atStatement(random.pick(texts), random.int(1, 12))
    ])
  })

interface Payment {
  readonly by: "key" | "other"
  readonly path: "/execute" | "/transactSigner"
  readonly signer: number
  readonly amounts: ReadonlyArray<bigint>
  readonly to: ReadonlyArray<string>
}

/** Every payment has its own recipients, so the chain's logs show each one's outcome. */
const plan = (name: string): ReadonlyArray<Payment> => {
  const random = Random.make(name)
  return Array.from({ length: payments }, (_, n): Payment => {
    const path = random.chance(0.2) ? "/transactSigner" : "/execute"
    const elements = path === "/execute" && random.chance(0.2) ? 2 : 1
    return {
      by: n % 2 === 0 ? "key" : "other",
      path,
      signer: random.int(0, signers - 1),
      amounts: Array.from({ length: elements }, () => BigInt(random.int(1, 6))),
      to: Array.from({ length: elements }, (_, place) => hashOf(`${name} ${n} ${place}`).slice(0, 42))
    }
  })
}

const sum = (amounts: Iterable<bigint>): bigint => [...amounts].reduce((all, each) => all + each, 0n)

const begin = async (
  name: string,
  lives: ReadonlyArray<ReadonlyArray<Kill>>,
  server: Server.Server | null
) => {
  const folder = mkdtempSync(join(build.folder, "caps-"))
  const store = await Store.make(folder, server)
  const node = await FaultProxy.start(world.chain.url)
  const eoas = Array.from({ length: signers }, (_, n) => new Wallet(hashOf(`${name} ${n}`), world.provider))
  const [key, other, ruler] = await Promise.all([name, name, name].map(World.tenant))
  if (key === undefined || other === undefined || ruler === undefined) throw new Error("three keys")
  const file = JSON.parse(
    World.configFile(world, {
      nodeUrl: node.url,
      confirmations: 1,
      settledDepth,
      bumpAfterMillis: 2_000,
      receiptTimeoutMillis: 20_000,
      tenants: [key],
      signers: eoas.map(({ privateKey }) => ({ tenants: [key], privateKey })),
      database: store.address,
      limits: { openRequestsPerAccount: 1_000 }
    })
  )
  Object.assign(file.accounts[0], {
    requestsPerMinute: 100_000,
    requestsPerHour: 100_000,
    keys: [{ hash: key.hash }, { hash: other.hash }, { hash: ruler.hash, scopes: ["policies"] }]
  })
  const config = join(folder, "castellan.json")
  writeFileSync(config, JSON.stringify(file))
  const members = lives.map((kills) => Supervisor.start({ build, folder, config, kills }))
  const [first, ...others] = members
  if (first === undefined) throw new Error("one process at least")
  const service = Supervisor.fleet([first, ...others], Random.make(name))
  node.play(Fault.none, service.onSend)
  const stored = ManagedRuntime.make(
    Layer.orDie(Wiring.stores(Result.getOrThrow(Config.fromText(JSON.stringify(file), name, {}, folder))))
  )
  return {
    name,
    eoas,
    service,
    settings: (signer: number) => ({
      rpc: node.url,
      entryPoint: World.entryPoint,
      signer: World.signerRef(signer)
    }),
    keys: { key, other },
    ask: (by: World.Tenant, path: string, body: unknown, key: string | null) =>
      Client.ask(
        service,
        // Clients who hang up this early repeat at the other process what the first still prepares.
        { path, apiKey: by.key, key, body, patience: 3_000 },
        () => false,
        () => Number.POSITIVE_INFINITY
      ),
    rules: async (method: "GET" | "PUT", path: string, body?: unknown) => {
      const response = await fetch(`${await service.url()}/policies/${path}`, {
        method,
        headers: { "x-api-key": ruler.key, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) })
      })
      if (response.status !== 200) throw new Error(`${path}: ${await response.text()}`)
      return response.json()
    },
    budgets: <A>(use: (budgets: Budgets["Service"]) => Effect.Effect<A, unknown>) =>
      stored.runPromise(Effect.orDie(Effect.flatMap(Budgets, use))),
    stop: async () => {
      await Promise.all([service.stop(), stored.dispose()])
      await node.stop()
    }
  }
}
type Begun = Awaited<ReturnType<typeof begin>>

const tokenAbi = [
  "function mint(address,uint256)",
  "event Transfer(address indexed, address indexed, uint256)"
]

/** Wallets of the signers, with tokens; the signers have some, too. */
const prepare = async ({ ask, eoas, keys, name, settings }: Begun) => {
  const salts = eoas.map((_, n) => ({ salt: `${name} ${n}`, walletCustody: 1 }))
  const { answer } = await ask(
    keys.other,
    "/predict",
    {
      accounts: salts,
      settings: {
        factory: world.chain.suite.factory,
        beaconAdminAddress: world.chain.suite.beacon,
        beaconAdminCreationCode: World.creationCode
      }
    },
    null
  )
  const predicted = answer?.body as unknown as ReadonlyArray<{ readonly wallet: string }>
  const token = new Contract(world.chain.token, tokenAbi, await world.provider.getSigner())
  for (const address of [...eoas.map(({ address }) => address), ...predicted.map(({ wallet }) => wallet)]) {
    await world.send("anvil_setBalance", address, `0x${plenty.toString(16)}`)
    await token.getFunction("mint")(address, plenty)
  }
  const created = eoas.map((_, n) =>
    ask(keys.other, "/create", { accounts: [salts[n]], settings: settings(n) }, `${name}-wallet-${n}`)
  )
  for (const { answer, met } of await Promise.all(created))
    expect(answer, met.join()).toMatchObject({ status: 200, body: { status: 1 } })
  return predicted.map(({ wallet }) => wallet)
}

const limitsOf = (own: { readonly name: string; readonly max: bigint; readonly per: string }) => [
  { chain: String(world.chain.chainId), asset: world.chain.token, ...own },
  { chain: String(world.chain.chainId), asset: "fees", name: "gas", per: "30d", max: plenty },
  { chain: String(world.chain.chainId), asset: "ops", name: "count", per: "24h", max: 10n ** 6n }
]

const policy = (own: Parameters<typeof limitsOf>[0]) => ({
  mode: "enforce",
  expiresAt: 0,
  rules: [{ name: "payments", effect: "allow", match: { kinds: ["erc20.transfer"] } }],
  limits: limitsOf(own).map((limit) => ({ ...limit, max: limit.max.toString() }))
})

/** The chain's record since a block: amounts by recipient, number of landed elements, and cost of their gas. */
const landedSince = async (from: number, wallets: ReadonlyArray<string>) => {
  const { provider } = world
  const topic = (signature: string) => [hashOf(signature)]
  const transfers = await provider.getLogs({
    address: world.chain.token,
    fromBlock: from,
    topics: topic("Transfer(address,address,uint256)")
  })
  const events = await provider.getLogs({
    address: World.entryPoint,
    fromBlock: from,
    topics: [
      ...topic("UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)"),
      null,
      wallets.map((wallet) => zeroPadValue(wallet, 32))
    ]
  })
  const direct = transfers.filter(
    ({ topics: [, sender = ""] }) =>
      !wallets.some((wallet) => zeroPadValue(wallet, 32).toLowerCase() === sender)
  )
  const receipts = await Promise.all(
    direct.map(({ transactionHash }) => provider.getTransactionReceipt(transactionHash))
  )
  const ofOps = events.map(({ data }) => BigInt(`0x${data.slice(2 + 2 * 64, 2 + 3 * 64)}`))
  return {
    amounts: new Map(
      transfers.map(({ data, topics }) => [`0x${topics[2]?.slice(26)}`.toLowerCase(), BigInt(data)])
    ),
    transfers: transfers.length,
    elements: BigInt(events.length + direct.length),
    fees: sum([...ofOps, ...receipts.map((receipt) => receipt?.fee ?? 0n)])
  }
}

const storm = async (begun: Begun) => {
  const { ask, budgets, keys, name, rules, service, settings } = begun
  const wallets = await prepare(begun)
  const keyId = idOf(keys.key.hash)
  await rules("PUT", "account", policy({ name: "paid", per: "24h", max: caps.account }))
  await rules("PUT", `key:${keyId}`, policy({ name: "paidByKey", per: "30d", max: caps.key }))
  const from = (await world.provider.getBlockNumber()) + 1
  const trails = new Map<string, Client.Trail>()
  const pay = async ({ amounts, by, path, signer, to }: Payment, key: string) => {
    const calls = to.map((payee, place) => ({
      to: world.chain.token,
      funcSignature: "transfer(address,uint256)",
      funcParams: [payee, String(amounts[place])]
    }))
    const { entryPoint, ...ofSigner } = settings(signer)
    const body =
      path === "/execute"
        ? {
            operations: calls.map((call) => ({ ...call, salt: `${name} ${signer}`, walletCustody: 1 })),
            settings: { entryPoint, ...ofSigner }
          }
        : { ...calls[0], settings: ofSigner }
    const trail = await ask(keys[by], path, body, `${name}-${key}`)
    trails.set(key, trail)
    const { answer } = trail
    if (answer === null || answer.status !== 200) return to.map(() => answer?.body.code ?? "unanswered")
    return to.map((_, place): string => {
      const element = answer.body.returnData?.[place]?.[place]
      return element?.success === true ? "paid" : String(element?.error)
    })
  }
  // One wait at most: a life begins with the first seconds of a restart.
  await expect.poll(() => rules("GET", "account"), { timeout: 5_000 }).toMatchObject({ version: 1 })
  const all = plan(name)
  service.arm()
  const said = await Promise.all(all.map((payment, n) => pay(payment, String(n))))
  service.disarm()
  const chainId = BigInt(world.chain.chainId)
  /** Blocks come until no hold of signed work is left in which `isOpen` holds. */
  const settled = (isOpen: (hold: Hold) => boolean) =>
    expect
      .poll(
        async () => {
          await world.send("anvil_mine", `0x${settledDepth.toString(16)}`)
          return (await budgets(({ open }) => open(chainId))).filter((hold) => hold.bound && isOpen(hold))
        },
        { timeout: 30_000, interval: 200 }
      )
      .toEqual([])
  await settled(({ landed }) => landed !== null)
  const landed = await landedSince(from, wallets)

  const elements = all.flatMap(({ amounts, by, to }, n) =>
    to.map((payee, place) => ({
      request: String(n),
      by,
      asked: amounts[place] ?? 0n,
      said: said[n]?.[place] ?? "",
      landed: landed.amounts.get(payee) ?? 0n
    }))
  )
  console.log(`${name}: killed ${service.deaths().join(", ")}`)
  const total = sum(elements.map((element) => element.landed))
  const ofKey = sum(elements.map((element) => (element.by === "key" ? element.landed : 0n)))
  expect(total).toBeLessThanOrEqual(caps.account)
  expect(ofKey).toBeLessThanOrEqual(caps.key)
  // A run without faults would prove nothing.
  expect(service.deaths().length).toBeGreaterThan(seed === undefined ? 3 : 0)
  const wrong = elements.filter(
    ({ asked, landed, said }) =>
      landed !== (said === "paid" ? asked : 0n) || !/^paid$|^policy_refused$| limit paid/.test(said)
  )
  // Every answer agrees with the chain.
  expect(wrong.map((each) => ({ ...each, trail: trails.get(each.request) }))).toEqual([])
  const paid = elements.filter((element) => element.said === "paid").length
  expect(landed.transfers).toBe(paid)
  console.log(`${name}: ${paid} of ${elements.length} paid, ${ofKey} and ${total}`)

  // The limit admits its remainder, and then nothing.
  const usage = async (
    subject: string
  ): Promise<ReadonlyArray<Record<"limit" | "booked" | "held" | "max", string>>> =>
    ((await rules("GET", `${subject}/usage`)) as { limits: [] }).limits
  const [use] = await usage("account")
  const left = caps.account - BigInt(use?.booked ?? 0) - BigInt(use?.held ?? 0)
  const one = { by: "other", path: "/execute", signer: 0, to: [hashOf(`${name} rest`).slice(0, 42)] } as const
  if (left > 0n) expect(await pay({ ...one, amounts: [left] }, "rest")).toEqual(["paid"])
  expect(await pay({ ...one, amounts: [1n] }, "more")).toEqual(["policy_refused"])
  // Versions that were signed and given up can land until their windows are over.
  await world.send("evm_increaseTime", 3_600)
  await settled(() => true)

  const after = await landedSince(from, wallets)
  /** Once the holds of requests that were lost before their acceptance have expired. */
  const figures = (subject: string, limit: string, window: "24h" | "30d") =>
    budgets(({ figures }) =>
      Effect.flatMap(
        Effect.sync(() => Date.now()),
        (now) =>
          SetClock.by(660_000)(
            figures(
              { accountId: name as AccountId, chainId, name: `policy account ${subject} ${limit}` },
              now,
              window
            )
          )
      )
    )
  expect({
    account: await figures("account", "paid", "24h"),
    key: await figures(`key:${keyId}`, "paidByKey", "30d"),
    gas: await figures("account", "gas", "30d"),
    count: await figures("account", "count", "24h")
  }).toEqual({
    account: { held: 0n, booked: sum(after.amounts.values()) },
    key: { held: 0n, booked: ofKey },
    gas: { held: 0n, booked: after.fees },
    count: { held: 0n, booked: after.elements }
  })
}

/** Prints what a failure is reproduced with, and keeps the processes' logs where `CASTELLAN_TEST_LOGS` names a file. */
const prove = async (
  store: string,
  lives: ReadonlyArray<ReadonlyArray<Kill>>,
  server: Server.Server | null
) => {
  const name = seed === undefined ? store : `${store}-${seed}`
  console.log(`${name}: ${JSON.stringify(lives)}`)
  const begun = await begin(name, lives, server)
  try {
    await storm(begun)
  } finally {
    const logs = process.env.CASTELLAN_TEST_LOGS
    if (logs !== undefined) writeFileSync(logs, begun.service.log())
    await begun.stop()
  }
}

it(
  "a limit holds over 200 parallel payments at one process on SQLite that is killed",
  () =>
    prove(
      "sqlite",
      [
        [
          atStatement(insert),
          inJournal("accept", "after"),
          atStatement(bound, 6),
          inJournal("record", "after"),
          { at: "send", moment: "after", nth: 2 },
          atStatement(totals, 12),
          atStatement(booked, 2),
          inJournal("settle", "before"),
          { at: "clock", millis: 1_500 }
        ]
      ],
      null
    ),
  180_000
)

it("a limit holds over 200 parallel payments at two processes on PostgreSQL that are killed", async () => {
  const random = Random.make(`kills ${seed}`)
  const lives =
    seed === undefined
      ? [
          [atStatement(insert, 6), atStatement(totals, 20), atStatement(booked, 1)],
          [inJournal("record", "after", 1), atStatement(bound, 6), { at: "clock" as const, millis: 3_000 }]
        ]
      : [drawn(random), drawn(random)]
  await prove("postgres", lives, await world.postgres())
}, 600_000)
