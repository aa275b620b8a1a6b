import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { configOf, newPasskey } from "../../support/suite/Keys.js"

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

const own = keyOf(1)

const phone = Authenticator.make()
const tablet = Authenticator.make()

describe.each(entryPointVersions)("a wallet of custody 2 on EntryPoint %s", (version) => {
  let journey: Journey.Journey
  let wallet: string
  beforeAll(async () => {
    journey = Journey.make(stack, version)
    wallet = await journey.created({
      salt: `ecdsa or passkey ${version}`,
      walletCustody: 2,
      passkeyPubKey: [phone, tablet].map(({ spki }) => spki.toString("base64"))
    })
  })

  it("belongs to the request's signer and to the passkeys", async () => {
    expect(await journey.configurationOf(wallet)).toEqual(configOf(2, [own], [phone.passkey, tablet.passkey]))
  })

  it("executes with its owner", async () => {
    const to = Journey.recipient()
    const answer = await stack.ask(journey.execute(journey.transfer(wallet, to)))
    await journey.transferred(answer, wallet, to)
  })

  it.each([
    ["phone", phone],
    ["tablet", tablet]
  ])("executes with its passkey on the %s", async (_, authenticator) => {
    const to = Journey.recipient()
    const op = await journey.hashed(journey.transfer(wallet, to))
    const answer = await stack.ask(journey.executePasskey(op, authenticator.get(op.signingHash)))
    await journey.transferred(answer, wallet, to)
  })

  it("refuses somebody else's passkey before anything is sent", async () => {
    const to = Journey.recipient()
    const op = await journey.hashed(journey.transfer(wallet, to))
    const stranger = Authenticator.make(newPasskey())
    const failure = await stack.refused(journey.executePasskey(op, stranger.get(op.signingHash)))
    expect(failure.code).toBe("invalid_signature")
    expect(await stack.balanceOf(to)).toBe(0n)
  })

  it("refuses another signer", async () => {
    const failure = await stack.refused(
      journey.execute(journey.transfer(wallet, Journey.recipient()), { signer: Journey.second })
    )
    expect(failure.message).toBe("threshold not met: have 0 of 1")
  })

  it("is created and executes with no balance where the operator's paymaster pays", async () => {
    const poor = await journey.createdPoor({
      salt: `poor ecdsa or passkey ${version}`,
      walletCustody: 2,
      passkeyPubKey: [phone.spki.toString("base64")]
    })
    const to = Journey.recipient()
    const answer = await stack.ask(journey.execute(journey.transfer(poor, to), journey.sponsored))
    await journey.transferred(answer, poor, to)
    const next = Journey.recipient()
    const op = await journey.hashed(journey.transfer(poor, next), journey.sponsored)
    const signed = journey.executePasskey(op, phone.get(op.signingHash), journey.sponsored)
    await journey.transferred(await stack.ask(signed), poor, next)
    expect(await stack.provider.getBalance(poor)).toBe(0n)
  })
})
