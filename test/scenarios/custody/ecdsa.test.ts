import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { ecdsa, personal } from "../../support/suite/Keys.js"

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

const own = keyOf(1)

describe.each(entryPointVersions)("a wallet of custody 1 on EntryPoint %s", (version) => {
  let journey: Journey.Journey
  let wallet: string
  beforeAll(async () => {
    journey = Journey.make(stack, version)
    wallet = await journey.created({ salt: `ecdsa ${version}`, walletCustody: 1 })
  })

  it("executes with its owner", async () => {
    const to = Journey.recipient()
    const answer = await stack.ask(journey.execute(journey.transfer(wallet, to)))
    await journey.transferred(answer, wallet, to)
  })

  it("is none of another signer's business", async () => {
    const failure = await stack.refused(
      journey.execute(journey.transfer(wallet, Journey.recipient()), { signer: Journey.second })
    )
    expect(failure).toMatchObject({
      code: "threshold_not_met",
      message: "threshold not met: have 0 of 1"
    })
  })

  it("executes what its owner signed elsewhere, submitted by somebody else", async () => {
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to), { signer: Journey.second })
    const answer = await stack.ask(
      journey.executeEncoded(op, ecdsa(op.signingHash, own), { signer: Journey.second })
    )
    await journey.transferred(answer, wallet, to)
  })

  it("executes what its owner signed as a personal message, unbound", async () => {
    const to = Journey.recipient()
    const op = await journey.estimated(journey.transfer(wallet, to))
    const answer = await stack.ask(journey.executeEncoded(op, personal(op.userOpHash, own)))
    await journey.transferred(answer, wallet, to)
  })

  it("is created and executes with no balance where the operator's paymaster pays", async () => {
    const poor = await journey.createdPoor({ salt: `poor ecdsa ${version}`, walletCustody: 1 })
    const to = Journey.recipient()
    const answer = await stack.ask(journey.execute(journey.transfer(poor, to), journey.sponsored))
    await journey.transferred(answer, poor, to)
    const next = Journey.recipient()
    const op = await journey.estimated(journey.transfer(poor, next), journey.sponsored)
    const signed = journey.executeEncoded(op, ecdsa(op.signingHash, own), journey.sponsored)
    await journey.transferred(await stack.ask(signed), poor, next)
    expect(await stack.provider.getBalance(poor)).toBe(0n)
  })
})
