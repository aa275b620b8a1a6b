import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { create } from "../../support/suite/Chain.js"

const ether = 10n ** 18n
const passkeyPubKey = [Authenticator.make().spki.toString("base64")]

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

describe("a creation", () => {
  let journey: Journey.Journey
  beforeAll(() => {
    journey = Journey.make(stack, "v0.7")
  })

  const deposit = async (paymaster: string, value: bigint) => {
    const data = `0xb760faf9${paymaster.slice(2).padStart(64, "0")}`
    const sent = await stack.faucet.sendTransaction({ to: journey.settings.entryPoint, data, value })
    await sent.wait()
  }
  const deployed = async (name: string, ...args: ReadonlyArray<unknown>) => {
    const contract = await create(name, args, keyOf(9).connect(stack.provider))
    return Address.unsafe(await contract.getAddress())
  }
  const account = (salt: string): Journey.Account => ({
    salt: `${salt}`,
    walletCustody: 5,
    passkeyPubKey
  })
  it("is paid for by a paymaster that asks for nothing but its address", async () => {
    const paymaster = await deployed("OpenPaymaster")
    await deposit(paymaster, ether)
    expect((await stack.ask(journey.create([account("open")], { paymaster }))).status).toBe(1)
  })

  it("for an aggregator is 422: no wallet of the suite names one", async () => {
    const wanted = account("aggregated")
    await stack.fund(await journey.addressOf(wanted.salt ?? "", 5), ether)
    const aggregator = await deployed("ProofAggregator")
    const failure = await stack.refused(journey.create([wanted], { aggregator }))
    expect(failure.code).toBe("aggregator_refused")
    expect(await stack.provider.getCode(await journey.addressOf(wanted.salt ?? "", 5))).toBe("0x")
  })

  it("takes nothing from a wallet that has a balance, where a paymaster is named", async () => {
    const [rich, poor] = [account("rich"), account("poor")]
    const wallet = await journey.addressOf(rich.salt ?? "", 5)
    await stack.fund(wallet, ether)
    expect((await stack.ask(journey.create([rich, poor], journey.sponsored))).status).toBe(1)
    expect(await stack.provider.getBalance(wallet)).toBe(ether)
  })
})
