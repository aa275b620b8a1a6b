import * as Effect from "effect/Effect"
import { Contract, hexlify, randomBytes } from "ethers"
import { afterEach, beforeAll, describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as PasskeyHash from "../../../src/application/endpoints/operations/PasskeyHash.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { RecoveryJournal } from "../../../src/application/ports/journal/RecoveryJournal.js"
import { KillSwitches, type Switched } from "../../../src/application/ports/KillSwitches.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import type { UserOperation } from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { startFaultyNode } from "../../support/stack/FaultyNode.js"
import * as Handed from "../../support/stack/Handed.js"
import { Address, account, keyOf, type LifeOptions, type Stack, useStack } from "../../support/stack/Stack.js"
import { walletInitCode } from "../../support/suite/Layouts.js"

const ether = 10n ** 18n
const eoa = keyOf(2).address
const unpaid = { code: "submission_unpaid", message: "op does not pay for its submission" }
const { recipient } = Journey

const stack = useStack({}, async (stack) => {
  const [wallet] = await stack.create("payer")
  await stack.mint(String(wallet), 1_000n)
})

const wei = () => stack.provider.getBalance(eoa)
const sent = () => stack.nonce(eoa)
const handed = () => Handed.make(stack)
/** An op that transfers a token, issued for the EOA. */
const fresh = async (by = handed(), more: object = {}, salt = "payer") => {
  const [op] = await by.out([stack.transfer(salt, recipient())], more)
  if (op === undefined) throw new Error("an op was expected")
  return op
}

/** The account's open charges, in wei. */
const figures = (runtime = stack.runtime) => {
  const budget = { accountId: account, chainId: BigInt(stack.anvil.chainId), name: "service-eoa" }
  return runtime.runPromise(Effect.flatMap(Budgets, (budgets) => budgets.figures(budget, Date.now(), "day")))
}
const nothing = { held: 0n, booked: 0n }

/** Another life of the service, while the body runs. */
const during = async <A>(life: LifeOptions, body: (other: Stack) => Promise<A>): Promise<A> => {
  const runtime = stack.begin(life)
  try {
    const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(eoa) }
    const below = BigInt(await sent())
    // The journal of this life has not lost the EOA's acts in the other life.
    await runtime.runPromise(Effect.flatMap(RecoveryJournal, ({ explain }) => explain(lane, below)))
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

describe("an op of the service's own EOA", () => {
  it.each(entryPointVersions)(
    "lands on EntryPoint %s when its owner signs either hash, and the EOA loses no wei",
    async (version) => {
      const by = Handed.make(stack, Address.unsafe(entryPoints[version]))
      for (const which of ["userOpHash", "signingHash"] as const) {
        const op = await fresh(by)
        expect(op.bundler).toBe(eoa)
        const [before, count] = [await wei(), await sent()]
        const { status, txHash } = await stack.ask(by.post(op, { over: op[which] }))
        expect([status, await sent()]).toEqual([1, count + 1])
        expect(await wei()).toBeGreaterThanOrEqual(before)
        expect(await figures()).toEqual(nothing)
        expect((await stack.ask(by.post(op, { over: op[which] }))).txHash).toBe(txHash)
        expect(await sent()).toBe(count + 1)
      }
    }
  )

  it("is refused while that EOA is paused, though no request names it, and is not sent", async () => {
    const op = await fresh()
    const before = await sent()
    const isPaused = (what: Switched) => Effect.succeed(what.kind === "signer" && what.address === eoa)
    const posting = Effect.provideService(handed().post(op), KillSwitches, { isPaused })
    expect(await stack.refused(posting)).toMatchObject({
      code: "writes_paused",
      details: [{ message: `the operator has paused writes by ${eoa}` }]
    })
    expect(await sent()).toBe(before)
  })

  it("shares no nonce key with an op issued at the same time for a signer of the account", async () => {
    const { signer } = stack.settings
    const all = [await fresh(), await fresh(handed(), { signer }), await fresh()]
    expect(all.map(({ bundler }) => bundler)).toEqual([eoa, stack.signer.address, eoa])
    expect(new Set(all.map(({ op }) => op.nonce)).size).toBe(3)
  })

  it("when sponsored lands for a wallet without a wei, and the EOA loses no wei", async () => {
    const phone = Authenticator.make()
    const journey = Journey.make(stack, "v0.7")
    const passkeyPubKey = [phone.spki.toString("base64")]
    const poor = await journey.createdPoor({ salt: "penniless", walletCustody: 5, passkeyPubKey })
    const to = recipient()
    const op = await journey.hashed(journey.transfer(poor, to), journey.sponsored)
    const before = await wei()
    await journey.transferred(
      await stack.ask(journey.executePasskey(op, phone.get(op.signingHash))),
      poor,
      to
    )
    expect(await wei()).toBeGreaterThanOrEqual(before)
    expect(await stack.provider.getBalance(poor)).toBe(0n)
    expect(await figures()).toEqual(nothing)
  })

  it.each(entryPointVersions)(
    "when changed after sponsoring loses its sponsorship on EntryPoint %s",
    async (version) => {
      const by = Handed.make(stack, Address.unsafe(entryPoints[version]))
      const op = await fresh(by, Journey.make(stack, version).sponsored)
      const before = [await wei(), await sent()]
      const changed = { op: { ...op.op, callGasLimit: op.op.callGasLimit + 1n } }
      expect((await stack.refused(by.post(changed))).code).toBe("not_sponsored")
      expect([await wei(), await sent()]).toEqual(before)
      expect((await stack.ask(by.post(op))).status).toBe(1)
    }
  )
})

describe("the service's own EOA loses nothing by", () => {
  let before: readonly [bigint, number]
  beforeAll(async () => {
    before = [await wei(), await sent()]
  })
  afterEach(async () => {
    expect([await wei(), await sent()]).toEqual(before)
    expect(await figures()).toEqual(nothing)
  })

  it.each<[string, (op: UserOperation) => Partial<UserOperation>, RegExp]>([
    [
      "no fees at all",
      () => ({ maxFeePerGas: 0n, maxPriorityFeePerGas: 0n }),
      /: maxFeePerGas 0 is below \d+$/
    ],
    ["no tip", () => ({ maxPriorityFeePerGas: 0n }), /: maxPriorityFeePerGas 0 is below \d+$/],
    [
      "half of the preVerificationGas",
      ({ preVerificationGas }) => ({ preVerificationGas: preVerificationGas / 2n }),
      /: preVerificationGas \d+ is below \d+$/
    ],
    // Found by the simulation: the op's own limits are valid.
    [
      "a little less than the transaction takes",
      ({ preVerificationGas }) => ({ preVerificationGas: preVerificationGas - 4_000n }),
      /./
    ],
    [
      "an external paymaster",
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
    expect(await stack.refused(handed().post({ op: { ...op, ...change(op) } }))).toMatchObject({
      ...unpaid,
      details: [{ message: expect.stringMatching(message) }]
    })
  })

  it.each<[string, () => object, object]>([
    ["aggregator", () => ({ aggregator: recipient() }), unpaid],
    ["beaconAdminAddress", () => ({ beaconAdminAddress: recipient() }), unpaid],
    ["beaconAdminCreationCode", () => ({ beaconAdminCreationCode: "0x6001" }), unpaid],
    ["factory", () => ({ factory: recipient() }), { code: "factory_not_allowed" }]
  ])("the caller's own %s", async (name, settings, failure) => {
    expect(await stack.refused(handed().post(await fresh(), { settings: settings() }))).toMatchObject({
      ...failure,
      details: [{ path: `settings.${name}` }]
    })
  })

  it("a proxy of another beacon, configured like a wallet of ours", async () => {
    const salt = hexlify(randomBytes(32))
    const ofBeacon = initCode("WalletBeacon", [stack.suite.implementation, keyOf(9).address])
    const beacon = await deploy(stack.faucet, ofBeacon, salt)
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

  it("wallets whose implementation was replaced", async () => {
    const op = await fresh()
    const args = [...entryPointVersions.map((version) => entryPoints[version]), recipient()]
    const replaced = await deploy(stack.faucet, initCode("Wallet", args), hexlify(randomBytes(32)))
    const owner = keyOf(5).connect(stack.provider)
    const beacon = new Contract(stack.suite.beacon, artifact("WalletBeacon").abi, owner)
    const upgrade = async (to: string) => (await beacon.getFunction("upgradeTo")(to)).wait()
    await upgrade(replaced)
    const failure = await stack.refused(handed().post(op)).finally(() => upgrade(stack.suite.implementation))
    expect(failure).toMatchObject({
      code: "implementation_changed",
      message: "wallet implementation changed"
    })
  })

  /** Its simulations fail: it cannot predict the ops' payments. */
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
  const unpinned = { profile: { implementationCodeHash: null } }

  it.each<[string, LifeOptions, string, string]>([
    ["wallets while none is pinned", unpinned, "has pinned no wallet implementation", "has pinned no wallet"],
    [
      "a node without simulations",
      { wrapChain },
      "cannot simulate the ops' payment",
      "requires eth_simulateV1"
    ]
  ])("%s, before the signature and when an op comes", async (_, life, refused, told) => {
    const op = await fresh()
    const operations = [stack.transfer("payer", recipient())]
    await during(life, async (other) => {
      expect(await other.refused(handed().post(op))).toMatchObject({
        ...unpaid,
        details: [{ message: expect.stringContaining(refused) }]
      })
      const { settings } = handed()
      const hashed = await other.ask(PasskeyHash.run(stack.caller(), { operations, settings }))
      expect(hashed.results).toMatchObject([{ signingHash: null, error: expect.stringContaining(told) }])
      if (life === unpinned) return
      const estimate = (settings: EstimateGas.Request["settings"]) =>
        other.ask(EstimateGas.run(stack.caller(), { operations, settings }))
      const error = expect.stringContaining(told)
      expect(await estimate(settings)).toMatchObject({ status: 0, userOps: [], error })
      expect(await estimate(stack.settings)).toMatchObject({ status: 1, error: null })
    })
  })

  it("an account over its cost limit", async () => {
    const op = await fresh()
    await during({ profile: { serviceSubmission: { dailyLoss: 1n, maxInFlight: 16 } } }, async (other) => {
      expect(await other.refused(handed().post(op))).toMatchObject({
        code: "submission_limit",
        message: "too much is submitted for this account: it may cost the service 1 wei in one day"
      })
      expect(await figures(other.runtime)).toEqual(nothing)
    })
  })
})

describe("the service's own EOA", () => {
  it("has at most the profile's number of one account's ops under way", async () => {
    const [one, two, third] = [await fresh(), await fresh(), await fresh()]
    const before = await wei()
    const open = Effect.flatMap(Budgets, (budgets) => budgets.open(BigInt(stack.anvil.chainId)))
    await during({ profile: { serviceSubmission: { dailyLoss: ether, maxInFlight: 2 } } }, async (other) => {
      await stack.automine(false)
      const waiting = [one, two].map((op) => other.ask(handed().post(op)))
      const underWay = async () => (await other.runtime.runPromise(open)).length
      await expect.poll(underWay, { timeout: 10_000 }).toBe(2)
      expect((await figures(other.runtime)).held).toBeGreaterThan(0n)
      await expect.poll(async () => (await stack.pool(eoa)).length, { timeout: 10_000 }).toBeGreaterThan(0)
      expect(await other.refused(handed().post(third))).toMatchObject({
        code: "submission_limit",
        message: "too much is submitted for this account: 2 of its ops are under way"
      })
      await stack.automine(true)
      await stack.mine()
      for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(1)
      expect((await other.ask(handed().post(third))).status).toBe(1)
      expect(await figures(other.runtime)).toEqual(nothing)
    })
    expect(await wei()).toBeGreaterThanOrEqual(before)
  })

  it("reads only the chain id of the caller's node", async () => {
    const node = await startFaultyNode(stack.anvil.url)
    const asked = new Set<string>()
    node.behave(({ method }, ask) => {
      asked.add(method)
      const lie = { error: { code: -32_000, message: "a lie" } }
      return method === "eth_chainId" ? ask() : Promise.resolve(lie)
    })
    const op = await fresh()
    const before = await wei()
    expect((await stack.ask(handed().post(op, { settings: { rpc: node.url } }))).status).toBe(1)
    expect([...asked]).toEqual(["eth_chainId"])
    expect(await wei()).toBeGreaterThanOrEqual(before)
    await node.stop()
  })

  it("books its losses to the account, and stops when they are too much", async () => {
    const [poor = ""] = await stack.create("poor")
    await stack.mint(poor, 100n)
    // The wallet is empty when the transaction is sent.
    const wrapChain: LifeOptions["wrapChain"] = (nodes) => ({
      connect: (url, by) =>
        Effect.map(nodes.connect(url, by), (chain) => ({
          ...chain,
          sendRawTransaction: (raw) =>
            Effect.andThen(
              Effect.promise(() => stack.fund(poor, 0n)),
              chain.sendRawTransaction(raw)
            )
        }))
    })
    const dailyLoss = 10n ** 15n
    const profile = { serviceSubmission: { dailyLoss, maxInFlight: 16 } }
    await during({ wrapChain, profile }, async (other) => {
      const drained = async () => {
        await stack.fund(poor, ether)
        // Bound to the EOA: once its transaction has failed no other party can land it.
        const op = await fresh(handed(), {}, "poor")
        return other.ask(Effect.result(handed().post(op, { over: op.signingHash })))
      }
      const before = await wei()
      expect(await drained()).toMatchObject({ _tag: "Success", success: { status: 0 } })
      const lost = before - (await wei())
      expect(lost).toBeGreaterThan(0n)
      expect(await figures(other.runtime)).toEqual({ held: 0n, booked: lost })
      let refused = false
      for (let tries = 0; tries < 40 && !refused; tries += 1) {
        const answer = await drained()
        refused = answer._tag === "Failure" && answer.failure.code === "submission_limit"
      }
      expect(refused).toBe(true)
      const { booked } = await figures(other.runtime)
      expect(booked).toBe(before - (await wei()))
      expect(booked).toBeLessThanOrEqual(dailyLoss)
    })
  })
})
