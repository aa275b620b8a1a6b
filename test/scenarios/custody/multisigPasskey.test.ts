import { id, Wallet } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { assertion, configOf, ecdsa, indexIn } from "../../support/suite/Keys.js"
import { mixedProof } from "../../support/suite/Layouts.js"

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

const own = keyOf(1)

const alice = new Wallet(id("alice"))
const phone = Authenticator.make()
const tablet = Authenticator.make()
const config = configOf(4, [own, alice], [phone.passkey, tablet.passkey], 3)

const passkeyPart = (hash: string, { passkey }: Authenticator.Authenticator) =>
  assertion(hash, passkey, { index: indexIn(config, passkey) })

describe.each(entryPointVersions)("a wallet of custody 4, 3 of 4, on EntryPoint %s", (version) => {
  let journey: Journey.Journey
  let wallet: string
  beforeAll(async () => {
    journey = Journey.make(stack, version)
    wallet = await journey.created({
      salt: `multisig with passkeys ${version}`,
      walletCustody: 4,
      signers: [alice.address, { clientId: "dev", versionId: "1" }],
      passkeyPubKey: [phone, tablet].map(({ spki }) => spki.toString("base64url")),
      threshold: "3"
    })
    expect(await journey.configurationOf(wallet)).toEqual(config)
  })

  it.each([
    ["a signer and both passkeys", [alice], [phone, tablet]],
    ["both signers and a passkey", [own, alice], [tablet]]
  ])("executes with %s", async (_, owners, authenticators) => {
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to))
    const hash = op.signingHash
    const parts = authenticators.map((each) => passkeyPart(hash, each))
    const answer = await stack.ask(journey.executeEncoded(op, mixedProof(ecdsa(hash, ...owners), parts)))
    await journey.transferred(answer, wallet, to)
  })

  it("does not execute with its signers alone", async () => {
    const failure = await stack.refused(journey.execute(journey.transfer(wallet, Journey.recipient())))
    expect(failure.message).toBe("threshold not met: have 1 of 3")
  })

  it("does not execute with a signer and a passkey", async () => {
    const op = await journey.estimated(journey.transfer(wallet, Journey.recipient()))
    const proof = mixedProof(ecdsa(op.signingHash, alice), [passkeyPart(op.signingHash, phone)])
    const failure = await stack.refused(journey.executeEncoded(op, proof))
    expect(failure.message).toBe("threshold not met: have 2 of 3")
  })

  it("counts no passkey twice", async () => {
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to))
    const hash = op.signingHash
    const proof = mixedProof(ecdsa(hash, alice), [passkeyPart(hash, phone), passkeyPart(hash, phone)])
    const failure = await stack.refused(journey.executeEncoded(op, proof))
    expect(failure.code).toBe("invalid_signature")
    expect(await stack.balanceOf(to)).toBe(0n)
  })

  it("is created and executes with no balance where the operator's paymaster pays", async () => {
    const poor = await journey.createdPoor({
      salt: `poor multisig with passkeys ${version}`,
      walletCustody: 4,
      signers: [alice.address, { clientId: "dev", versionId: "1" }],
      passkeyPubKey: [phone, tablet].map(({ spki }) => spki.toString("base64")),
      threshold: "3"
    })
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(poor, to), journey.sponsored)
    const hash = op.signingHash
    const proof = mixedProof(ecdsa(hash, own), [passkeyPart(hash, phone), passkeyPart(hash, tablet)])
    const answer = await stack.ask(journey.executeEncoded(op, proof, journey.sponsored))
    await journey.transferred(answer, poor, to)
    expect(await stack.provider.getBalance(poor)).toBe(0n)
  })
})
