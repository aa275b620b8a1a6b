import { concat, id, Wallet } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { ecdsa, personal } from "../../support/suite/Keys.js"
import { mixedProof } from "../../support/suite/Layouts.js"

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

const own = keyOf(1)

const alice = new Wallet(id("alice"))
const mallory = new Wallet(id("mallory"))

describe.each(entryPointVersions)("a wallet of custody 3, 2 of 3, on EntryPoint %s", (version) => {
  let journey: Journey.Journey
  let wallet: string
  beforeAll(async () => {
    journey = Journey.make(stack, version)
    wallet = await journey.created({
      salt: `multisig ${version}`,
      walletCustody: 3,
      signers: [alice.address, { clientId: "dev", versionId: "1" }, Journey.second],
      threshold: "2"
    })
  })

  it("executes with a signer and a cosigner", async () => {
    const to = Journey.recipient()
    const answer = await stack.ask(
      journey.execute(journey.transfer(wallet, to), { cosigners: [Journey.second] })
    )
    await journey.transferred(answer, wallet, to)
  })

  it("does not execute with one signer alone", async () => {
    const failure = await stack.refused(journey.execute(journey.transfer(wallet, Journey.recipient())))
    expect(failure).toMatchObject({
      code: "threshold_not_met",
      message: "threshold not met: have 1 of 2"
    })
  })

  it("executes with two of its signers' compact signatures, alone or in the ABI form", async () => {
    const compact = (hash: string) =>
      concat([own, alice].map((each) => each.signingKey.sign(hash).compactSerialized))
    for (const proof of [compact, (hash: string) => mixedProof(compact(hash), [])]) {
      const to = Journey.recipient()
      const op = await journey.estimated(journey.transfer(wallet, to))
      const answer = await stack.ask(journey.executeEncoded(op, proof(op.signingHash)))
      await journey.transferred(answer, wallet, to)
    }
    const op = await journey.estimated(journey.transfer(wallet, Journey.recipient()))
    const mixed = concat([
      own.signingKey.sign(op.signingHash).compactSerialized,
      ecdsa(op.signingHash, alice)
    ])
    const failure = await stack.refused(journey.executeEncoded(op, mixed))
    expect(failure.code).toBe("invalid_signature")
  })

  it("executes with two of its signers' signatures, raw and personal, in any order", async () => {
    for (const proof of [
      (hash: string) => ecdsa(hash, own, alice),
      (hash: string) => ecdsa(hash, alice) + personal(hash, own).slice(2)
    ]) {
      const to = Journey.recipient()
      const op = await journey.estimated(journey.transfer(wallet, to))
      const answer = await stack.ask(journey.executeEncoded(op, proof(op.signingHash)))
      await journey.transferred(answer, wallet, to)
    }
  })

  it.each([
    ["a stranger's", (hash: string) => ecdsa(hash, own, mallory), `${mallory.address}`],
    [
      "one signer's twice",
      (hash: string) => ecdsa(hash, alice, alice),
      `signature 1 is by ${alice.address}, as signature 0 is already`
    ],
    [
      "one over another hash",
      (hash: string) => ecdsa(hash, own) + ecdsa(id("x"), alice).slice(2),
      "signature 1 is by no owner of the wallet over 0x"
    ]
  ])("refuses %s before anything is sent", async (_, proof, reason) => {
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to))
    const failure = await stack.refused(journey.executeEncoded(op, proof(op.signingHash)))
    expect(failure.code).toBe("invalid_signature")
    expect(failure.details[0]?.message).toContain(reason)
    expect(await stack.balanceOf(to)).toBe(0n)
  })

  it("refuses too few signatures with their number", async () => {
    const op = await journey.estimated(journey.transfer(wallet, Journey.recipient()))
    const failure = await stack.refused(journey.executeEncoded(op, ecdsa(op.signingHash, alice)))
    expect(failure.message).toBe("threshold not met: have 1 of 2")
  })

  it("is created and executes with no balance where the operator's paymaster pays", async () => {
    const poor = await journey.createdPoor({
      salt: `poor multisig ${version}`,
      walletCustody: 3,
      signers: [alice.address, { clientId: "dev", versionId: "1" }, Journey.second],
      threshold: "2"
    })
    const to = Journey.recipient()
    const together = { cosigners: [Journey.second], ...journey.sponsored }
    const answer = await stack.ask(journey.execute(journey.transfer(poor, to), together))
    await journey.transferred(answer, poor, to)
    const next = Journey.recipient()
    const op = await journey.estimated(journey.transfer(poor, next), journey.sponsored)
    const signed = journey.executeEncoded(op, ecdsa(op.signingHash, own, alice), journey.sponsored)
    await journey.transferred(await stack.ask(signed), poor, next)
    expect(await stack.provider.getBalance(poor)).toBe(0n)
  })
})
