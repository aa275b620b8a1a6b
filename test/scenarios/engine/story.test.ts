import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as CheckWallets from "../../../src/application/usecases/wallets/CheckWallets.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const ether = 10n ** 18n

describe.each(["v0.6", "v0.7", "v0.8"] as const)("the main job on EntryPoint %s", (version) => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack({ entryPoint: version })
  })
  afterAll(() => stack.stop())

  it("five wallets are deployed in one transaction at their predicted addresses", async () => {
    const salts = [0, 1, 2, 3, 4].map((n) => `${version}-${n}`)
    for (const salt of salts) await stack.fund(stack.predict(salt), ether)
    const created = await stack.ask(
      CreateWallets.run(stack.caller(), {
        accounts: salts.map((salt) => ({ salt, walletCustody: 1 })),
        settings: stack.settings
      })
    )
    expect(created.status).toBe(1)
    expect(created.txHashes).toHaveLength(1)
    expect(created.returnData).toEqual(
      salts.map((salt, index) => ({ [String(index)]: { salt, wallet: stack.predict(salt) } }))
    )
    for (const salt of salts) expect(await stack.provider.getCode(stack.predict(salt))).not.toBe("0x")
    const checked = await stack.ask(
      CheckWallets.run(stack.caller(), {
        accounts: salts.map((salt) => ({ salt, walletCustody: 1 })),
        settings: { rpc: stack.settings.rpc }
      })
    )
    expect(checked.every(({ error, exists }) => exists && error === null)).toBe(true)
  })

  it("a transfer moves tokens, and its logs are decoded", async () => {
    const wallet = stack.predict(`${version}-0`)
    await stack.mint(wallet, 100n)
    const to = "0x000000000000000000000000000000000000dEaD"
    const result = await stack.ask(
      ExecuteOperations.run(stack.caller(), {
        operations: [
          {
            wallet,
            walletCustody: 1,
            to: Address.unsafe(await stack.token.getAddress()),
            funcSignature: "transfer(address,uint256) returns (bool)",
            funcParams: [to, "7"]
          }
        ],
        settings: stack.settings
      })
    )
    expect(result.status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(7n)
    expect(result.returnData[0]?.["0"]).toMatchObject({ success: true, error: null, result: true })
    expect(result.logs.find(({ eventName }) => eventName === "Transfer")?.args).toEqual({
      from: wallet,
      to,
      value: "7"
    })
  })
})
