import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { id, Wallet } from "ethers"
import { describe, expect, it } from "vitest"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import { startStandIn } from "../../support/bundler/StandIn.js"
import * as Journey from "../../support/custody/Journey.js"
import { Address, keyOf, type Stack, startStack, useStack } from "../../support/stack/Stack.js"
import { configOf, ecdsa } from "../../support/suite/Keys.js"
import type { Config } from "../../support/suite/Layouts.js"
import { mined } from "../../support/suite/Receipt.js"

/** A wallet is reconfigured while earlier accepted ops are on their way. */

const [own, alice, elsewhere] = [keyOf(1), new Wallet(id("alice")), keyOf(9)]

/** Alice's op that configures the wallet, submitted by an EOA that the service does not know. */
const rotated = async (stack: Stack, journey: Journey.Journey, wallet: Address.Address, config: Config) => {
  const { custody, owners, passkeys, threshold } = config
  const { encodedUserOp, userOpHash } = await journey.estimated({
    wallet,
    walletCustody: 0,
    to: wallet,
    funcSignature: "setConfig((uint8,uint8,address[],(bytes32,bytes32)[]))",
    funcParams: [[String(custody), String(threshold), owners, passkeys.map(({ x, y }) => [x, y])]]
  })
  const op = Result.getOrThrow(UserOperation.decode("v0.7", Hex.unsafe(encodedUserOp)))
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
  let journey: Journey.Journey
  const stack = useStack({ profile: { bumpAfterMillis: 600_000 } }, async (stack) => {
    journey = Journey.make(stack, "v0.7")
  })

  /** Both transactions are in one block, the rotation first. */
  const overtaken = async <A>(wallet: Address.Address, config: Config, ask: () => Promise<A>) => {
    const submit = await rotated(stack, journey, wallet, config)
    await stack.automine(false)
    const answer = ask()
    await stack.pooled(1)
    const rotation = await submit()
    await stack.mine()
    const receipt = await mined(rotation)
    expect([receipt.status, receipt.index]).toEqual([1, 0])
    await stack.automine(true)
    return answer
  }

  it("an op signed elsewhere ends with the reason, and so does its request", async () => {
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

  it("an op signed by the service goes again under the new configuration, once, and leaves no work behind", async () => {
    const wallet = await shared(journey, "signed here")
    const to = Journey.recipient()
    const answer = await overtaken(wallet, configOf(3, [own], [], 1), () =>
      stack.ask(journey.execute(journey.transfer(wallet, to)))
    )
    await journey.transferred(answer, wallet, to)
    expect(await stack.openOf(stack.runtime)).toEqual([])
  })
})

it("while an external bundler has an op without an end that can no longer land, its request ends with the reason", async () => {
  const bundler = await startStandIn()
  const stack = await startStack({ profile: { remoteBundler: Redacted.make(bundler.url) } })
  try {
    bundler.attach(stack.provider, keyOf(8))
    const journey = Journey.make(stack, "v0.7")
    const wallet = await shared(journey, "kept for ever")
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to))
    const submit = await rotated(stack, journey, wallet, configOf(3, [own, alice], [], 2))
    bundler.behave(() => ({ does: "keep" }))
    const before = bundler.sent.length
    const answer = stack.ask(Effect.result(journey.executeEncoded(op, ecdsa(op.userOpHash, alice))))
    await expect.poll(() => bundler.sent.length, { timeout: 15_000 }).toBe(before + 1)
    await mined(await submit())
    expect(JSON.stringify(await answer)).toContain("configuration has changed")
    expect(await stack.balanceOf(to)).toBe(0n)
  } finally {
    await stack.stop()
    await bundler.stop()
  }
})
