import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import { type Stack, startStack } from "../../support/stack/Stack.js"

const ether = 10n ** 18n
const second = { clientId: "dev", versionId: "2" }

describe("create", () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack()
  })
  afterAll(() => stack.stop())

  const request = (salts: ReadonlyArray<string>, settings = {}): CreateWallets.Request => ({
    accounts: salts.map((salt) => ({ salt, walletCustody: 1 })),
    settings: { ...stack.settings, ...settings }
  })
  const create = (salts: ReadonlyArray<string>, settings = {}) =>
    CreateWallets.run(stack.caller(), request(salts, settings))
  const nonce = () => stack.provider.getTransactionCount(stack.signer.address)

  it("a wallet that exists already gives status 2, and nothing is sent", async () => {
    const [wallet] = await stack.create("exists")
    const before = await nonce()
    const again = await stack.ask(create(["exists"]))
    expect(again).toMatchObject({
      status: 2,
      txHash: "",
      gasUsed: 0,
      effectiveGasPrice: "0",
      logs: [],
      returnData: [{ "0": { salt: "exists", wallet } }]
    })
    expect(await nonce()).toBe(before)
  })

  it("an existing wallet beside a new one gives status 3", async () => {
    await stack.create("old")
    await stack.fund(stack.predict("new"), ether)
    const result = await stack.ask(create(["old", "new"]))
    expect(result.status).toBe(3)
    expect(await stack.provider.getCode(stack.predict("new"))).not.toBe("0x")
  })

  it("an unfunded wallet beside a funded one gives status 3 and says what it lacks", async () => {
    await stack.fund(stack.predict("rich"), ether)
    const result = await stack.ask(create(["rich", "poor"]))
    expect(result.status).toBe(3)
    expect(result.returnData[1]?.["1"]?.error).toMatch(/^insufficient funds: wallet 0x\w+ lacks \d+ wei$/)
  })

  it("when no wallet is funded the answer is 422 with what each lacks, and exactly that is enough", async () => {
    const before = await nonce()
    const failure = await stack.refused(create(["none-1", "none-2"]))
    expect(failure).toMatchObject({
      _tag: "Unprocessable",
      code: "insufficient_funds",
      message: "insufficient funds"
    })
    expect(failure.details.map(({ path, wallet }) => [path, wallet])).toEqual([
      ["accounts[0]", stack.predict("none-1")],
      ["accounts[1]", stack.predict("none-2")]
    ])
    expect(await nonce()).toBe(before)
    for (const detail of failure.details)
      await stack.fund(String(detail.wallet), (BigInt(String(detail.missing)) * 13n) / 10n)
    expect((await stack.ask(create(["none-1", "none-2"]))).status).toBe(1)
  })

  it("a wallet of another owner is 422 account already exists, whatever else the request wants", async () => {
    await stack.create("taken")
    await stack.fund(stack.predict("free"), ether)
    const failure = await stack.refused(create(["free", "taken"], { signer: second }))
    expect(failure).toMatchObject({ _tag: "Unprocessable", message: "account already exists" })
    expect(await stack.provider.getCode(stack.predict("free"))).toBe("0x")
  })

  it("two requests for one wallet at the same moment deploy it once", async () => {
    await stack.fund(stack.predict("race"), ether)
    const [a, b] = await Promise.all([stack.ask(create(["race"])), stack.ask(create(["race"]))])
    expect([a.status, b.status].sort()).toEqual([1, 2])
  })

  it("two owners who want one address at the same moment do not both get an authorisation", async () => {
    await stack.fund(stack.predict("contested"), ether)
    const results = await Promise.allSettled([
      stack.ask(create(["contested"])),
      stack.ask(create(["contested"], { signer: second }))
    ])
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
  })

  it("a foreign factory is refused before anything is signed", async () => {
    const failure = await stack.refused(create(["any"], { factory: stack.suite.validator }))
    expect(failure).toMatchObject({ _tag: "InvalidRequest", code: "factory_not_allowed" })
  })

  it("a wrong validator is refused, the right one is not", async () => {
    const failure = await stack.refused(create(["val"], { validator: stack.suite.factory }))
    expect(failure).toMatchObject({ _tag: "InvalidRequest", code: "validator_mismatch" })
    await stack.fund(stack.predict("val"), ether)
    expect((await stack.ask(create(["val"], { validator: stack.suite.validator }))).status).toBe(1)
  })

  it.each([
    [{ salt: "a", walletCustody: 3 as const }, "invalid request"],
    [{ wallet: "0x000000000000000000000000000000000000dEaD", walletCustody: 1 as const }, "salt is required"],
    [{ walletCustody: 1 as const }, "salt is required"],
    [{ salt: " a", walletCustody: 1 as const }, "invalid salt format"],
    [{ salt: "a", walletCustody: 1 as const, threshold: "1" }, "invalid request"]
  ])("%j is refused: %s", async (account, message) => {
    const failure = await stack.refused(
      CreateWallets.run(stack.caller(), { accounts: [account], settings: stack.settings })
    )
    expect(failure).toMatchObject({ _tag: "InvalidRequest", message })
    expect(failure.details[0]?.path).toMatch(/^accounts\[0\]\./)
  })

  it("a hundred and twenty wallets go in as few transactions as the gas bound allows", async () => {
    const salts = Array.from({ length: 120 }, (_, n) => `many-${n}`)
    for (const salt of salts) await stack.fund(stack.predict(salt), ether)
    const result = await stack.ask(create(salts))
    expect(result.status).toBe(1)
    expect(result.txHashes.length).toBeGreaterThan(1)
    expect(result.txHashes.length).toBeLessThan(5)
    for (const salt of salts) expect(await stack.provider.getCode(stack.predict(salt))).not.toBe("0x")
  })
})
