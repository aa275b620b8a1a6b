import * as Effect from "effect/Effect"
import { id, Wallet } from "ethers"
import { afterEach, beforeAll, describe, expect, it } from "vitest"
import * as Capabilities from "../../../src/application/chain/Capabilities.js"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as PasskeyHash from "../../../src/application/endpoints/operations/PasskeyHash.js"
import { ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { startStack } from "../../support/stack/Stack.js"
import { ecdsa } from "../../support/suite/Keys.js"
import { use } from "../../support/Use.js"

/** Address where the wallets expect the P-256 precompile; chains before Osaka have none there. */
const place = `0x${"100".padStart(40, "0")}`
const codes = [
  ["answers 1 to everything", "0x600160005260206000f3"],
  ["answers a word of what it is given", "0x60003560005260206000f3"],
  ["answers one byte that is not zero", "0x600160005360016000f3"],
  ["answers more than a word", "0x600160005260406000f3"]
] as const

const stack = use(() => startStack({ anvil: ["--hardfork", "prague"] }))
let journey: Journey.Journey
const alice = new Wallet(id("alice"))
const phone = Authenticator.make()
const passkeyPubKey = [phone.spki.toString("base64")]
const accountOf = (salt: string, walletCustody: 2 | 4 | 5) => ({
  salt,
  walletCustody,
  passkeyPubKey,
  ...(walletCustody === 4 && { signers: [alice.address], threshold: "1" })
})
const wallets = { 1: "", 2: "", 4: "", 5: "" }

const put = (code: string) => stack.provider.send("anvil_setCode", [place, code])
const p256 = () =>
  stack.runtime.runPromise(
    Effect.gen(function* () {
      const chain = yield* (yield* ChainRpc).connect(stack.settings.rpc, "operator")
      return (yield* Capabilities.ask(chain)).p256
    })
  )

beforeAll(async () => {
  journey = Journey.make(stack, "v0.7")
  wallets[1] = await journey.created({ salt: "no passkey", walletCustody: 1 })
  for (const custody of [2, 4, 5] as const)
    wallets[custody] = await journey.created(accountOf(`${custody}`, custody))
})
afterEach(() => put("0x"))

const refused = {
  code: "passkeys_forgeable",
  message: "the chain takes forged passkey signatures"
}

describe.each(codes)("where something at 0x100 %s", (name, code) => {
  it("a wallet with passkeys rejects writes by every signer, and sends no transaction", async () => {
    const to = Journey.recipient()
    const hashed = await Promise.all(
      [wallets[2], wallets[5]].map((wallet) => journey.hashed(journey.transfer(wallet, to)))
    )
    const estimated = await journey.estimated(journey.transfer(wallets[4], to))
    expect(await p256()).toBe("absent")

    await put(code)
    expect(await p256()).toBe("broken")
    const block = await stack.provider.getBlockNumber()
    for (const custody of [2, 4, 5] as const)
      expect(await stack.refused(journey.create([accountOf(`${custody} ${name}`, custody)]))).toMatchObject(
        refused
      )
    for (const op of hashed)
      expect(await stack.refused(journey.executePasskey(op, phone.get(op.signingHash)))).toMatchObject(
        refused
      )
    const signature = ecdsa(estimated.signingHash, alice)
    expect(await stack.refused(journey.executeEncoded(estimated, signature))).toMatchObject(refused)
    expect(await stack.refused(journey.execute(journey.transfer(wallets[2], to)))).toMatchObject(refused)
    expect(await stack.provider.getBlockNumber()).toBe(block)
    expect(await stack.balanceOf(to)).toBe(0n)
  })
})

describe("where something at 0x100 answers 1 to everything", () => {
  it("hashes and estimates are refused", async () => {
    await put(codes[0][1])
    const operations = [journey.transfer(wallets[5], Journey.recipient())]
    const { signer: _, ...settings } = journey.settings
    const hash = PasskeyHash.run(stack.caller(), { operations, settings })
    const none = [{ encodedUserOp: null, signingHash: null, error: refused.message }]
    expect((await stack.ask(hash)).results).toMatchObject(none)
    // A service that does not know the wallet.
    const life = stack.begin()
    expect((await life.runPromise(hash)).results).toMatchObject(none)
    await life.dispose()
    const estimate = await stack.ask(
      EstimateGas.run(stack.caller(), { operations, settings: journey.settings })
    )
    expect(estimate).toMatchObject({ status: 0, error: expect.stringContaining(refused.message) })
  })

  it("wallets without passkeys write, also in a request with others, and existing wallets are found", async () => {
    await put(codes[0][1])
    const to = Journey.recipient()
    const operations = [journey.transfer(wallets[2], to), journey.transfer(wallets[1], to)]
    const answer = await stack.ask(
      ExecuteOperations.run(stack.caller(), { operations, settings: journey.settings })
    )
    expect(answer.returnData).toMatchObject([
      { "0": { success: false, error: refused.message } },
      { "1": { success: true } }
    ])
    const found = await stack.ask(journey.create([accountOf("5", 5)]))
    expect(found.returnData).toMatchObject([{ "0": { wallet: wallets[5] } }])
  })
})

it("wallets with passkeys write as soon as the address is empty again", async () => {
  await put(codes[0][1])
  const to = Journey.recipient()
  expect(await stack.refused(journey.execute(journey.transfer(wallets[2], to)))).toMatchObject(refused)
  await put("0x")
  await journey.transferred(
    await stack.ask(journey.execute(journey.transfer(wallets[2], to))),
    wallets[2],
    to
  )
})

it("the precompile check adds no round trip for wallets seen for the first time", async () => {
  const to = Journey.recipient()
  const hashed = await journey.hashed(journey.transfer(wallets[5], to))
  const operation = { ...journey.transfer(wallets[2], to), walletCustody: 2 as const }
  const { signer: _, ...settings } = journey.settings
  const asked = [
    PasskeyHash.run(stack.caller(), { operations: [journey.transfer(wallets[5], to)], settings }),
    EstimateGas.run(stack.caller(), { operations: [operation], settings: journey.settings }),
    ExecuteOperations.run(stack.caller(), { operations: [operation], settings: journey.settings }),
    journey.executePasskey(hashed, phone.get(hashed.signingHash))
  ]
  for (const ask of asked) {
    const exchanges: Array<ReadonlyArray<string>> = []
    const life = stack.begin({ onExchange: (methods) => void exchanges.push(methods) })
    expect(await life.runPromise<unknown, unknown>(ask)).toMatchObject({})
    await life.dispose()
    // The code of wallets, the configuration of this one, and a forged signature.
    const first = exchanges.find((methods) => methods.includes("eth_feeHistory")) ?? []
    expect(first.filter((method) => method === "eth_call")).toHaveLength(3)
  }
})
