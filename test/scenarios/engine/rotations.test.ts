import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import { id, Wallet } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import { type StandIn, startStandIn } from "../../support/bundler/StandIn.js"
import * as Journey from "../../support/custody/Journey.js"
import * as Hits from "../../support/stack/Hits.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { configOf, ecdsa } from "../../support/suite/Keys.js"
import type { Config } from "../../support/suite/Layouts.js"
import { mined } from "../../support/suite/Receipt.js"

/** A wallet is configured anew while ops that were accepted before are on their way. */

const [own, alice, elsewhere] = [keyOf(1), new Wallet(id("alice")), keyOf(9)]

const configType = "(uint8,uint8,address[],(bytes32,bytes32)[])"
const setConfig = (wallet: Address.Address, { custody, owners, passkeys, threshold }: Config) => ({
  wallet,
  walletCustody: 0 as const,
  to: wallet,
  funcSignature: `setConfig(${configType})`,
  funcParams: [[String(custody), String(threshold), owners, passkeys.map(({ x, y }) => [x, y])]]
})

/** Alice's op that configures the wallet, submitted by an EOA that the service does not know. */
const rotated = async (stack: Stack, journey: Journey.Journey, wallet: Address.Address, config: Config) => {
  const { encodedUserOp, userOpHash } = await journey.estimated(setConfig(wallet, config))
  const op = Either.getOrThrow(UserOperation.decode("v0.7", Hex.unsafe(encodedUserOp)))
  const signature = Conditions.encodeSignature(Conditions.none, Hex.unsafe(ecdsa(userOpHash, alice)))
  const data = UserOperation.handleOps("v0.7", [{ ...op, signature }], Address.unsafe(elsewhere.address))
  return () =>
    elsewhere.connect(stack.provider).sendTransaction({
      to: stack.settings.entryPoint,
      data,
      gasLimit: 1_000_000n,
      maxFeePerGas: 900n * 10n ** 9n,
      maxPriorityFeePerGas: 90n * 10n ** 9n
    })
}

const shared = (journey: Journey.Journey, salt: string) =>
  journey.created({ salt, walletCustody: 3, signers: [own.address, alice.address], threshold: "1" })

describe("while a transaction with an op waits to be mined", () => {
  let stack: Stack
  let hits: Hits.Hits
  let journey: Journey.Journey
  beforeAll(async () => {
    stack = await startStack({ profile: { bumpAfterMillis: 600_000 } })
    hits = await Hits.make(stack)
    journey = Journey.make(stack, "v0.7")
  })
  beforeEach(() => hits.automine(true))
  afterAll(() => stack.stop())

  /** Both transactions are in one block, the rotation first. */
  const overtaken = async <A>(wallet: Address.Address, config: Config, ask: () => Promise<A>) => {
    const submit = await rotated(stack, journey, wallet, config)
    await hits.automine(false)
    const answer = ask()
    await hits.pooled(1)
    const rotation = await submit()
    await hits.mine()
    const receipt = await mined(rotation)
    expect([receipt.status, receipt.index]).toEqual([1, 0])
    await hits.automine(true)
    return answer
  }

  it("an op that was signed elsewhere ends with the reason, and so does its request", async () => {
    const wallet = await shared(journey, "signed elsewhere")
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to))
    const answer = await overtaken(wallet, configOf(3, [own, alice], [], 2), () =>
      stack.ask(journey.executeEncoded(op, ecdsa(op.signingHash, alice)))
    )
    expect(answer).toMatchObject({
      status: 0,
      returnData: [{ "0": { success: false, error: expect.stringContaining("configuration has changed") } }]
    })
    expect(await stack.balanceOf(to)).toBe(0n)
  })

  it("an op that the service signs goes again under the new configuration, once", async () => {
    const wallet = await shared(journey, "signed here")
    const hit = id("under the new configuration")
    const operation = { ...hits.hit("", hit), salt: "", wallet, walletCustody: 0 as const }
    const answer = await overtaken(wallet, configOf(3, [own], [], 1), () =>
      stack.ask(journey.execute(operation))
    )
    expect(answer).toMatchObject({ status: 1, returnData: [{ "0": { success: true, error: null } }] })
    expect(await hits.countOf(hit)).toBe(1)
  })

  it("nothing is left under way, and the wallet works on", async () => {
    expect(await hits.openOf(stack.runtime)).toEqual([])
    const wallet = await shared(journey, "works on")
    const to = Journey.recipient()
    await journey.transferred(await stack.ask(journey.execute(journey.transfer(wallet, to))), wallet, to)
  })
})

describe("while somebody else's bundler has an op", () => {
  let stack: Stack
  let bundler: StandIn
  beforeAll(async () => {
    bundler = await startStandIn()
    stack = await startStack({ profile: { remoteBundler: Redacted.make(bundler.url) } })
    bundler.attach(stack.provider, keyOf(8))
  })
  afterAll(async () => {
    await stack.stop()
    await bundler.stop()
  })

  it("that has no end of its own and can not land any more, its request ends with the reason", async () => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await shared(journey, "kept for ever")
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to))
    const submit = await rotated(stack, journey, wallet, configOf(3, [own, alice], [], 2))
    bundler.behave(() => ({ does: "keep" }))
    const before = bundler.sent.length
    const answer = stack.runtime.runPromise(
      Effect.either(journey.executeEncoded(op, ecdsa(op.userOpHash, alice)))
    )
    await expect.poll(() => bundler.sent.length, { timeout: 15_000 }).toBe(before + 1)
    await mined(await submit())
    const ended = await answer
    expect(JSON.stringify(ended)).toContain("configuration has changed")
    expect(await stack.balanceOf(to)).toBe(0n)
  }, 40_000)
})
