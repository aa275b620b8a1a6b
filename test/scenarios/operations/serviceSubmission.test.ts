import * as Effect from "effect/Effect"
import { Contract, hexlify, randomBytes } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { KillSwitches, type Switched } from "../../../src/application/ports/KillSwitches.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as PasskeyHash from "../../../src/application/usecases/operations/PasskeyHash.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import type * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { startFaultyNode } from "../../support/stack/FaultyNode.js"
import * as Handed from "../../support/stack/Handed.js"
import {
  Address,
  account,
  keyOf,
  type LifeOptions,
  type Stack,
  startStack
} from "../../support/stack/Stack.js"
import { walletInitCode } from "../../support/suite/Layouts.js"

const ether = 10n ** 18n
const eoa = keyOf(2).address
const unpaid = "op does not pay for its submission"
const recipient = () => Address.unsafe(hexlify(randomBytes(20)))

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
  const [wallet] = await stack.create("payer")
  await stack.mint(String(wallet), 1_000n)
})
afterAll(() => stack.stop())

const wei = () => stack.provider.getBalance(eoa)
const sent = () => stack.provider.getTransactionCount(eoa)

/** What stands against the account, wei. */
const figures = (runtime = stack.runtime) =>
  runtime.runPromise(
    Effect.flatMap(Budgets, (budgets) =>
      budgets.figures(
        { accountId: account, chainId: BigInt(stack.anvil.chainId), name: "service-eoa" },
        Date.now()
      )
    )
  )

/** Another life of the service, for as long as the body takes. */
const during = async <A>(life: LifeOptions, body: (other: Stack) => Promise<A>): Promise<A> => {
  const runtime = stack.begin(life)
  try {
    return await body({
      ...stack,
      runtime,
      ask: (effect) => runtime.runPromise(effect),
      refused: (effect) => runtime.runPromise(Effect.flip(effect))
    })
  } finally {
    await runtime.dispose()
  }
}

describe.each(entryPointVersions)("an op of the service's own EOA on EntryPoint %s", (version) => {
  it.each(["userOpHash", "signingHash"] as const)(
    "lands when its owner signs %s, and the EOA is no poorer",
    async (which) => {
      const handed = Handed.make(stack, Address.unsafe(entryPoints[version]))
      const to = recipient()
      const [op] = await handed.out([handed.transfer("payer", to)])
      if (op === undefined) throw new Error("an op was expected")
      expect(op.bundler).toBe(eoa)
      const [before, count] = [await wei(), await sent()]
      const answer = await stack.ask(handed.post(op, { over: op[which] }))
      expect(answer.status).toBe(1)
      expect(await stack.balanceOf(to)).toBe(1n)
      expect(await sent()).toBe(count + 1)
      expect(await wei()).toBeGreaterThanOrEqual(before)
      expect(await figures()).toEqual({ held: 0n, booked: 0n })
      const again = await stack.ask(handed.post(op, { over: op[which] }))
      expect(again.txHash).toBe(answer.txHash)
      expect(await sent()).toBe(count + 1)
    }
  )
})

describe("an op of the service's own EOA", () => {
  const transferring = () => {
    const handed = Handed.make(stack)
    return handed.out([handed.transfer("payer", recipient())])
  }

  it("is refused while that EOA is paused, though no request names it, and nothing is sent", async () => {
    const [op] = await transferring()
    if (op === undefined) throw new Error("an op was expected")
    const before = await stack.provider.getTransactionCount(eoa, "pending")
    const isPaused = (what: Switched) => Effect.succeed(what.kind === "signer" && what.address === eoa)
    const posting = Effect.provideService(Handed.make(stack).post(op), KillSwitches, { isPaused })
    expect(await stack.refused(posting)).toMatchObject({
      code: "writes_paused",
      details: [{ message: `the operator has paused writes by ${eoa}` }]
    })
    expect(await stack.provider.getTransactionCount(eoa, "pending")).toBe(before)
  })

  it("shares no nonce key with one that is handed out at the same time for a signer of the account", async () => {
    const settings = { signer: stack.settings.signer }
    const handed = Handed.make(stack)
    const one = [handed.transfer("payer", recipient())]
    const all = [...(await transferring()), ...(await handed.out(one, settings)), ...(await transferring())]
    expect(all.map(({ bundler }) => bundler)).toEqual([eoa, stack.signer.address, eoa])
    expect(new Set(all.map(({ op }) => op.nonce)).size).toBe(3)
  })
})

describe.each(entryPointVersions)("a sponsored op of the service's own EOA on EntryPoint %s", (version) => {
  const phone = Authenticator.make()

  it("lands for a wallet without a wei, and the EOA is no poorer", async () => {
    const journey = Journey.make(stack, version)
    const poor = await journey.createdPoor({
      salt: `poor ${version}`,
      walletCustody: 5,
      passkeyPubKey: [phone.spki.toString("base64")]
    })
    const to = recipient()
    const op = await journey.hashed(journey.transfer(poor, to), journey.sponsored)
    const before = await wei()
    const answer = await stack.ask(journey.executePasskey(op, phone.get(op.signingHash)))
    await journey.transferred(answer, poor, to)
    expect(await wei()).toBeGreaterThanOrEqual(before)
    expect(await stack.provider.getBalance(poor)).toBe(0n)
    expect(await figures()).toEqual({ held: 0n, booked: 0n })
  })

  it("that was changed is not sponsored", async () => {
    const journey = Journey.make(stack, version)
    const entryPoint = Address.unsafe(entryPoints[version])
    const handed = Handed.make(stack, entryPoint)
    const [op] = await handed.out([handed.transfer("payer", recipient())], journey.sponsored)
    if (op === undefined) throw new Error("an op was expected")
    const [before, count] = [await wei(), await sent()]
    const changed = { op: { ...op.op, callGasLimit: op.op.callGasLimit + 1n } }
    const failure = await stack.refused(handed.post(changed))
    expect(failure.code).toBe("not_sponsored")
    expect([await wei(), await sent()]).toEqual([before, count])
    expect((await stack.ask(handed.post(op))).status).toBe(1)
  })
})

describe("the service's own EOA loses nothing by", () => {
  const handed = () => Handed.make(stack)
  const fresh = async () => {
    const [op] = await handed().out([handed().transfer("payer", recipient())])
    if (op === undefined) throw new Error("an op was expected")
    return op
  }

  let before: readonly [bigint, number]
  beforeAll(async () => {
    before = [await wei(), await sent()]
  })
  afterEach(async () => {
    expect([await wei(), await sent()]).toEqual(before)
    expect(await figures()).toEqual({ held: 0n, booked: 0n })
  })

  type Change = (op: UserOperation.UserOperation) => Partial<UserOperation.UserOperation>
  it.each<[string, Change, RegExp]>([
    [
      "no fees at all",
      () => ({ maxFeePerGas: 0n, maxPriorityFeePerGas: 0n }),
      /: maxFeePerGas 0 is below \d+$/
    ],
    [
      "one wei of fees",
      () => ({ maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }),
      /: maxFeePerGas 1 is below \d+$/
    ],
    ["no tip", () => ({ maxPriorityFeePerGas: 0n }), /: maxPriorityFeePerGas 0 is below \d+$/],
    ["no preVerificationGas", () => ({ preVerificationGas: 0n }), /: preVerificationGas 0 is below \d+$/],
    [
      "half of the preVerificationGas",
      ({ preVerificationGas }) => ({ preVerificationGas: preVerificationGas / 2n }),
      /: preVerificationGas \d+ is below \d+$/
    ],
    [
      "a paymaster of somebody else",
      () => ({
        paymasterAndData: PaymasterData.make("v0.7", {
          paymaster: Address.unsafe(`0x${"ab".repeat(20)}`),
          limits: { verificationGasLimit: 60_000n, postOpGasLimit: 0n },
          data: Hex.empty
        })
      }),
      /: paymaster 0x(ab){20} is not the operator's$/i
    ]
  ])("an op with %s", async (_, change, message) => {
    const { op } = await fresh()
    const failure = await stack.refused(handed().post({ op: { ...op, ...change(op) } }))
    expect(failure).toMatchObject({ _tag: "Unprocessable", code: "submission_unpaid", message: unpaid })
    expect(failure.details).toMatchObject([
      { path: "operations[0]", message: expect.stringMatching(message) }
    ])
  })

  it("an op that pays a little less than the transaction takes", async () => {
    const { op } = await fresh()
    // What the simulation finds out: the op's own limits are as they should be.
    const least = op.preVerificationGas - 4_000n
    const failure = await stack.refused(handed().post({ op: { ...op, preVerificationGas: least } }))
    expect(failure).toMatchObject({ code: "submission_unpaid", message: unpaid })
  })

  it.each<[string, () => object, string]>([
    ["aggregator", () => ({ aggregator: recipient() }), "settings.aggregator"],
    ["beacon", () => ({ beaconAdminAddress: recipient() }), "settings.beaconAdminAddress"],
    ["creation code", () => ({ beaconAdminCreationCode: "0x6001" }), "settings.beaconAdminCreationCode"]
  ])("the caller's own %s", async (_, settings, path) => {
    const failure = await stack.refused(handed().post(await fresh(), { settings: settings() }))
    expect(failure).toMatchObject({ code: "submission_unpaid", message: unpaid })
    expect(failure.details[0]?.path).toBe(path)
  })

  it("the caller's own factory, as everywhere", async () => {
    const failure = await stack.refused(handed().post(await fresh(), { settings: { factory: recipient() } }))
    expect(failure).toMatchObject({ code: "factory_not_allowed", message: "factory not allowed" })
    expect(failure.details[0]?.path).toBe("settings.factory")
  })

  it("a proxy of another beacon, configured like a wallet of ours", async () => {
    const salt = hexlify(randomBytes(32))
    const beacon = await deploy(
      stack.faucet,
      initCode("WalletBeacon", [stack.suite.implementation, keyOf(9).address]),
      salt
    )
    const foreign = await deploy(stack.faucet, walletInitCode(walletProxyCreationCode, beacon), salt)
    const wallet = (address: string) => new Contract(address, artifact("Wallet").abi, stack.faucet)
    const configured = await wallet(stack.predict("payer")).getFunction("configuration").staticCall()
    await wallet(foreign).getFunction("initialize").send(configured.config.toArray(true), keyOf(3).address)
    expect(await wallet(foreign).getFunction("configuration").staticCall()).toEqual(configured)
    await stack.fund(foreign, ether)
    const { op } = await fresh()
    const failure = await stack.refused(handed().post({ op: { ...op, sender: Address.unsafe(foreign) } }))
    expect(failure).toMatchObject({ code: "wallet_not_supported", message: "wallet not supported" })
  })

  it("any wallet while no implementation is pinned", async () => {
    const op = await fresh()
    await during({ profile: { implementationCodeHash: null } }, async (other) => {
      const failure = await other.refused(handed().post(op))
      expect(failure).toMatchObject({ code: "submission_unpaid", message: unpaid })
      expect(failure.details[0]?.message).toContain("the operator has pinned no wallet implementation")
    })
  })

  it("wallets whose implementation was replaced", async () => {
    const op = await fresh()
    const canonical = entryPointVersions.map((version) => entryPoints[version])
    const replaced = await deploy(
      stack.faucet,
      initCode("Wallet", [...canonical, recipient()]),
      hexlify(randomBytes(32))
    )
    const owner = keyOf(5).connect(stack.provider)
    const beacon = new Contract(stack.suite.beacon, artifact("WalletBeacon").abi, owner)
    const upgrade = async (to: string) => (await beacon.getFunction("upgradeTo")(to)).wait()
    await upgrade(replaced)
    try {
      const failure = await stack.refused(handed().post(op))
      expect(failure).toMatchObject({
        code: "implementation_changed",
        message: "wallet implementation changed"
      })
    } finally {
      await upgrade(stack.suite.implementation)
    }
  })

  const wrapChain: LifeOptions["wrapChain"] = (nodes) => ({
    connect: (url, by) =>
      Effect.map(nodes.connect(url, by), (chain) => ({
        ...chain,
        simulate: () =>
          Effect.fail(
            new ChainRpcError({ reason: "unsupported", origin: chain.origin, message: "no such method" })
          )
      }))
  })

  it("before anybody signs, requests for a node that cannot tell what ops would pay", async () => {
    const { signer: _, ...settings } = stack.settings
    const operations = [handed().transfer("payer", recipient())]
    await during({ wrapChain }, async (other) => {
      const hashed = await other.ask(PasskeyHash.run(stack.caller(), { operations, settings }))
      expect(hashed).toMatchObject({ status: 1, results: [{ signingHash: null }] })
      expect(hashed.results[0]?.error).toContain("has no eth_simulateV1")
      const estimated = await other.ask(EstimateGas.run(stack.caller(), { operations, settings }))
      expect(estimated).toMatchObject({ status: 0, userOps: [] })
      expect(estimated.error).toContain("has no eth_simulateV1")
      const own = await other.ask(EstimateGas.run(stack.caller(), { operations, settings: stack.settings }))
      expect(own).toMatchObject({ status: 1, error: null })
    })
  })

  it("before anybody signs, passkeys' requests where no implementation is pinned", async () => {
    const { signer: _, ...settings } = stack.settings
    const operations = [handed().transfer("payer", recipient())]
    await during({ profile: { implementationCodeHash: null } }, async (other) => {
      const hashed = await other.ask(PasskeyHash.run(stack.caller(), { operations, settings }))
      expect(hashed.results[0]).toMatchObject({
        signingHash: null,
        error: expect.stringContaining("the operator has pinned no wallet implementation")
      })
    })
  })

  it("a node that cannot tell what ops would pay", async () => {
    const op = await fresh()
    await during({ wrapChain }, async (other) => {
      const failure = await other.refused(handed().post(op))
      expect(failure).toMatchObject({ code: "submission_unpaid", message: unpaid })
      expect(failure.details[0]?.message).toContain("can not tell what the ops would pay")
    })
  })

  it("an account that has used up what it may cost", async () => {
    const op = await fresh()
    await during({ profile: { serviceSubmission: { dailyLoss: 1n, maxInFlight: 16 } } }, async (other) => {
      const failure = await other.refused(handed().post(op))
      expect(failure).toMatchObject({
        code: "submission_limit",
        message: "too much is submitted for this account: it may cost the service 1 wei in one day"
      })
      expect(await figures(other.runtime)).toEqual({ held: 0n, booked: 0n })
    })
  })
})

describe("the service's own EOA", () => {
  const handed = () => Handed.make(stack)

  it("has no more ops of one account under way than the profile says", async () => {
    const ops = await handed().out(
      ["1", "2", "3"].map((amount) => handed().transfer("payer", recipient(), amount))
    )
    const before = await wei()
    await during({ profile: { serviceSubmission: { dailyLoss: ether, maxInFlight: 2 } } }, async (other) => {
      await stack.provider.send("evm_setAutomine", [false])
      const waiting = ops.slice(0, 2).map((op) => other.ask(handed().post(op)))
      const underWay = async () => (await figures(other.runtime)).held
      await expect.poll(underWay, { timeout: 10_000 }).toBeGreaterThan(0n)
      const pending = async () => Number((await stack.provider.send("txpool_status", [])).pending)
      await expect.poll(pending, { timeout: 10_000 }).toBeGreaterThan(0)
      const held = await Promise.all([
        expect.poll(async () => (await other.runtime.runPromise(open)).length, { timeout: 10_000 }).toBe(2)
      ])
      expect(held).toHaveLength(1)
      const [third] = ops.slice(2)
      if (third === undefined) throw new Error("three ops were expected")
      const failure = await other.refused(handed().post(third))
      expect(failure).toMatchObject({
        code: "submission_limit",
        message: "too much is submitted for this account: 2 of its ops are under way"
      })
      await stack.provider.send("evm_setAutomine", [true])
      await stack.provider.send("evm_mine", [])
      for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(1)
      expect((await other.ask(handed().post(third))).status).toBe(1)
      expect(await figures(other.runtime)).toEqual({ held: 0n, booked: 0n })
    })
    expect(await wei()).toBeGreaterThanOrEqual(before)
  })

  const open = Effect.flatMap(Budgets, (budgets) => budgets.open(BigInt(stack.anvil.chainId)))

  it("asks the caller's node for its chain id alone", async () => {
    const node = await startFaultyNode(stack.anvil.url)
    const asked = new Set<string>()
    node.behave((question, ask) => {
      asked.add(question.method)
      return question.method === "eth_chainId"
        ? ask()
        : Promise.resolve({ error: { code: -32_000, message: "a lie" } })
    })
    try {
      const to = recipient()
      const [op] = await handed().out([handed().transfer("payer", to)])
      if (op === undefined) throw new Error("an op was expected")
      const before = await wei()
      expect((await stack.ask(handed().post(op, { settings: { rpc: node.url } }))).status).toBe(1)
      expect([...asked]).toEqual(["eth_chainId"])
      expect(await wei()).toBeGreaterThanOrEqual(before)
    } finally {
      await node.stop()
    }
  })

  it("has what it loses booked to the account, and stops when that is too much", async () => {
    const [poor] = await stack.create("poor")
    await stack.mint(String(poor), 10n)
    // The wallet has nothing any more at the moment in which the transaction leaves.
    const wrapChain: LifeOptions["wrapChain"] = (nodes) => ({
      connect: (url, by) =>
        Effect.map(nodes.connect(url, by), (chain) => ({
          ...chain,
          sendRawTransaction: (raw) =>
            Effect.zipRight(
              Effect.promise(() => stack.fund(String(poor), 0n)),
              chain.sendRawTransaction(raw)
            )
        }))
    })
    const drained = async (other: Stack) => {
      await stack.fund(String(poor), ether)
      const [op] = await handed().out([handed().transfer("poor", recipient())])
      if (op === undefined) throw new Error("an op was expected")
      return other.ask(Effect.either(handed().post(op)))
    }
    await during(
      { wrapChain, profile: { serviceSubmission: { dailyLoss: 10n ** 15n, maxInFlight: 16 } } },
      async (other) => {
        const before = await wei()
        const count = await sent()
        const first = await drained(other)
        expect(first).toMatchObject({ _tag: "Right", right: { status: 0 } })
        const lost = before - (await wei())
        expect(lost).toBeGreaterThan(0n)
        expect(await figures(other.runtime)).toEqual({ held: 0n, booked: lost })
        let refused = false
        for (let tries = 0; tries < 40 && !refused; tries += 1) {
          const answer = await drained(other)
          refused = answer._tag === "Left" && (answer.left as { code: string }).code === "submission_limit"
        }
        expect(refused).toBe(true)
        const { booked } = await figures(other.runtime)
        expect(booked).toBe(before - (await wei()))
        expect(booked).toBeLessThanOrEqual(10n ** 15n)
        expect(await sent()).toBeGreaterThan(count)
      }
    )
  })
})
