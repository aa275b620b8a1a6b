import { describe, expect, it } from "vitest"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import { useStack } from "../../support/stack/Stack.js"

const ether = 10n ** 18n
const second = { signer: { clientId: "dev", versionId: "2" } }

describe("create", () => {
  const stack = useStack()
  const create = (salts: ReadonlyArray<string>, settings = {}) =>
    stack.ask(stack.createWallets(salts, settings))
  const refused = (salts: ReadonlyArray<string>, settings = {}) =>
    stack.refused(stack.createWallets(salts, settings))
  const exists = async (salt: string) => (await stack.provider.getCode(stack.predict(salt))) !== "0x"

  it("a wallet that exists already gives status 2, and nothing is sent", async () => {
    const [wallet] = await stack.create("exists")
    const before = await stack.nonce()
    expect(await create(["exists"])).toMatchObject({
      status: 2,
      txHash: "",
      gasUsed: 0,
      effectiveGasPrice: "0",
      logs: [],
      returnData: [{ "0": { salt: "exists", wallet } }]
    })
    expect(await stack.nonce()).toBe(before)
  })

  it("an existing wallet, or an unfunded one, beside a new one gives status 3", async () => {
    await stack.create("old")
    for (const salt of ["new", "rich"]) await stack.fund(stack.predict(salt), ether)
    expect((await create(["old", "new"])).status).toBe(3)
    expect(await exists("new")).toBe(true)
    const { returnData, status } = await create(["rich", "poor"])
    expect(status).toBe(3)
    expect(returnData[1]?.["1"]?.error).toMatch(/^insufficient funds: wallet 0x\w+ lacks \d+ wei$/)
  })

  it("when no wallet is funded the answer is 422 with what each lacks, and exactly that is enough", async () => {
    const before = await stack.nonce()
    const failure = await refused(["none-1", "none-2"])
    expect(failure).toMatchObject({
      _tag: "Unprocessable",
      code: "insufficient_funds",
      message: "insufficient funds"
    })
    expect(failure.details.map(({ path, wallet }) => [path, wallet])).toEqual([
      ["accounts[0]", stack.predict("none-1")],
      ["accounts[1]", stack.predict("none-2")]
    ])
    expect(await stack.nonce()).toBe(before)
    for (const detail of failure.details)
      await stack.fund(String(detail.wallet), (BigInt(String(detail.missing)) * 13n) / 10n)
    expect((await create(["none-1", "none-2"])).status).toBe(1)
  })

  it("a wallet of another owner is 422 account already exists, whatever else the request wants", async () => {
    await stack.create("taken")
    await stack.fund(stack.predict("free"), ether)
    const failure = await refused(["free", "taken"], second)
    expect(failure).toMatchObject({ _tag: "Unprocessable", message: "account already exists" })
    expect(await exists("free")).toBe(false)
  })

  it("two requests for one wallet at the same moment deploy it once; two owners do not both get an authorisation", async () => {
    for (const salt of ["race", "contested"]) await stack.fund(stack.predict(salt), ether)
    const both = await Promise.all([create(["race"]), create(["race"])])
    expect(both.map(({ status }) => status).sort()).toEqual([1, 2])
    const results = await Promise.allSettled([create(["contested"]), create(["contested"], second)])
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
  })

  it("a foreign factory and a wrong validator are refused before anything is signed, the right one is not", async () => {
    expect((await refused(["val"], { factory: stack.suite.validator })).code).toBe("factory_not_allowed")
    expect((await refused(["val"], { validator: stack.suite.factory })).code).toBe("validator_mismatch")
    await stack.fund(stack.predict("val"), ether)
    expect((await create(["val"], { validator: stack.suite.validator })).status).toBe(1)
  })

  it.each([
    [{ salt: "a", walletCustody: 3 as const }, "invalid request"],
    [{ wallet: "0x000000000000000000000000000000000000dEaD", walletCustody: 1 as const }, "salt is required"],
    [{ salt: " a", walletCustody: 1 as const }, "invalid salt format"],
    [{ salt: "a", walletCustody: 1 as const, threshold: "1" }, "invalid request"]
  ])("%j is refused: %s", async (account, message) => {
    const request = { accounts: [account], settings: stack.settings }
    const failure = await stack.refused(CreateWallets.run(stack.caller(), request))
    expect(failure).toMatchObject({ _tag: "InvalidRequest", message })
    expect(failure.details[0]?.path).toMatch(/^accounts\[0\]\./)
  })

  it("a hundred and twenty wallets go in as few transactions as the gas bound allows", async () => {
    const salts = Array.from({ length: 120 }, (_, n) => `many-${n}`)
    await Promise.all(salts.map((salt) => stack.fund(stack.predict(salt), ether)))
    const { status, txHashes } = await create(salts)
    expect(status).toBe(1)
    expect(txHashes.length).toBeGreaterThan(1)
    expect(txHashes.length).toBeLessThan(5)
    expect(await Promise.all(salts.map(exists))).toEqual(salts.map(() => true))
  })
})
