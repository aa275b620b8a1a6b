import { describe, expect, it } from "vitest"
import * as CheckWallets from "../../../src/application/usecases/wallets/CheckWallets.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { Address, useStack } from "../../support/stack/Stack.js"

const stack = useStack()

describe.each(entryPointVersions)("the main job on EntryPoint %s", (version) => {
  const settings = { entryPoint: Address.unsafe(entryPoints[version]) }
  const salts = [0, 1, 2, 3, 4].map((n) => `${version}-${n}`)
  const accounts = salts.map((salt) => ({ salt, walletCustody: 1 as const }))

  it("five wallets are deployed in one transaction at their predicted addresses", async () => {
    for (const salt of salts) await stack.fund(stack.predict(salt), 10n ** 18n)
    const created = await stack.ask(stack.createWallets(salts, settings))
    expect(created).toMatchObject({ status: 1, txHashes: [created.txHash] })
    expect(created.returnData).toEqual(
      salts.map((salt, index) => ({ [index]: { salt, wallet: stack.predict(salt) } }))
    )
    for (const salt of salts) expect(await stack.provider.getCode(stack.predict(salt))).not.toBe("0x")
    const { rpc } = stack.settings
    const checked = await stack.ask(CheckWallets.run(stack.caller(), { accounts, settings: { rpc } }))
    expect(checked.every(({ error, exists }) => exists && error === null)).toBe(true)
  })

  it("a transfer moves tokens, alone and by way of an estimate, and its logs are decoded", async () => {
    const [salt = ""] = salts
    const from = stack.predict(salt)
    await stack.mint(from, 100n)
    const to = Address.unsafe("0x000000000000000000000000000000000000dead")
    const before = await stack.balanceOf(to)
    const returns = { funcSignature: "transfer(address,uint256) returns (bool)" }
    const result = await stack.ask(stack.execute([stack.transfer(salt, to, "7", returns)], settings))
    expect(result.status).toBe(1)
    expect(result.returnData[0]?.["0"]).toMatchObject({ success: true, error: null, result: true })
    const { args } = result.logs.find(({ eventName }) => eventName === "Transfer") ?? {}
    expect(args).toEqual({ from, to: expect.stringMatching(new RegExp(to, "i")), value: "7" })
    const { userOps } = await stack.estimate([stack.transfer(salt, to, "2")], settings)
    expect((await stack.ask(stack.post(userOps, "signingHash", settings))).status).toBe(1)
    expect((await stack.balanceOf(to)) - before).toBe(9n)
  })
})
