import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { type Stack, startStack } from "../../support/stack/Stack.js"
import { configOf, newPasskey } from "../../support/suite/Keys.js"

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

const phone = Authenticator.make()
const tablet = Authenticator.make()

describe.each(entryPointVersions)("a wallet of custody 5 on EntryPoint %s", (version) => {
  let journey: Journey.Journey
  let wallet: string
  beforeAll(async () => {
    journey = Journey.make(stack, version)
    wallet = await journey.created({
      salt: `passkey ${version}`,
      walletCustody: 5,
      passkeyPubKey: [phone, tablet].map(({ spki }) => spki.toString("base64"))
    })
  })

  it("was created by a signer that has no part in it", async () => {
    expect(await journey.configurationOf(wallet)).toEqual(configOf(5, [], [phone.passkey, tablet.passkey]))
    const failure = await stack.refused(journey.execute(journey.transfer(wallet, Journey.recipient())))
    expect(failure.message).toBe("signer has no authority over this wallet")
  })

  it.each<[string, Authenticator.GetOptions]>([
    ["as browsers answer", {}],
    ["in base64, with members that browsers add", { encoding: "base64", extra: { other: "x", n: 1 } }],
    ["with s in the upper half", { s: "high" }],
    ["as r and s alone", { form: "ieee-p1363" }]
  ])("executes with its passkey, %s", async (_, options) => {
    const to = Journey.recipient()
    const op = await journey.hashed(journey.transfer(wallet, to))
    const answer = await stack.ask(journey.executePasskey(op, tablet.get(op.signingHash, options)))
    await journey.transferred(answer, wallet, to)
  })

  it.each<[string, Authenticator.GetOptions]>([
    ["without user verification", { flags: 0x01 }],
    ["without user presence", { flags: 0x04 }],
    ["of a registration", { type: "webauthn.create" }]
  ])("refuses an assertion %s before anything is sent", async (_, options) => {
    const to = Journey.recipient()
    const op = await journey.hashed(journey.transfer(wallet, to))
    const failure = await stack.refused(journey.executePasskey(op, phone.get(op.signingHash, options)))
    expect(failure).toMatchObject({ _tag: "Unprocessable", code: "invalid_signature" })
    expect(await stack.balanceOf(to)).toBe(0n)
  })

  it("refuses somebody else's passkey", async () => {
    const op = await journey.hashed(journey.transfer(wallet, Journey.recipient()))
    const stranger = Authenticator.make(newPasskey())
    const failure = await stack.refused(journey.executePasskey(op, stranger.get(op.signingHash)))
    expect(failure.code).toBe("invalid_signature")
  })

  it("is created and executes with no balance where the operator's paymaster pays", async () => {
    const poor = await journey.createdPoor({
      salt: `poor passkey ${version}`,
      walletCustody: 5,
      passkeyPubKey: [phone.spki.toString("base64")]
    })
    const to = Journey.recipient()
    const op = await journey.hashed(journey.transfer(poor, to), journey.sponsored)
    const signed = journey.executePasskey(op, phone.get(op.signingHash), journey.sponsored)
    await journey.transferred(await stack.ask(signed), poor, to)
    expect(await stack.provider.getBalance(poor)).toBe(0n)
  })
})
