import * as Redacted from "effect/Redacted"
import { ZeroAddress } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type StandIn, startStandIn } from "../../support/bundler/StandIn.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, type Stack, startStack } from "../../support/stack/Stack.js"

let bundler: StandIn
let stack: Stack
beforeAll(async () => {
  bundler = await startStandIn()
  stack = await startStack({ profile: { remoteBundler: Redacted.make(bundler.url) } })
  bundler.attach(stack.provider, keyOf(8))
})
afterAll(async () => {
  await stack.stop()
  await bundler.stop()
})

describe("through somebody else's bundler", () => {
  it("a passkey wallet is created and executes, bound to nobody", async () => {
    const journey = Journey.make(stack, "v0.7")
    const phone = Authenticator.make()
    const wallet = await journey.created({
      salt: "remote passkey",
      walletCustody: 5,
      passkeyPubKey: [phone.spki.toString("base64")]
    })
    const to = Journey.recipient()
    const op = await journey.hashed(journey.transfer(wallet, to))
    expect(op.bundler).toBe(ZeroAddress)
    const answer = await stack.ask(journey.executePasskey(op, phone.get(op.signingHash)))
    await journey.transferred(answer, wallet, to)
    expect((await stack.provider.getTransactionReceipt(answer.txHash))?.from).toBe(keyOf(8).address)
  })

  it("a multisig wallet with no balance is created and executes where the operator's paymaster pays", async () => {
    const journey = Journey.make(stack, "v0.7")
    const wallet = await journey.createdPoor({
      salt: "remote multisig",
      walletCustody: 3,
      signers: [keyOf(1).address, Journey.second],
      threshold: "2"
    })
    const to = Journey.recipient()
    const settings = { cosigners: [Journey.second], ...journey.sponsored }
    const answer = await stack.ask(journey.execute(journey.transfer(wallet, to), settings))
    await journey.transferred(answer, wallet, to)
    expect(await stack.provider.getBalance(wallet)).toBe(0n)
  })
})
