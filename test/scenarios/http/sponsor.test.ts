import { getAddress, hexlify, randomBytes } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  type CreateResult,
  type DevService,
  first,
  start,
  type TransactionResult
} from "../../support/http/DevService.js"

let service: DevService
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.stop())

describe.each(["free", "pro", "enterprise"] as const)("the development account %s", (tier) => {
  it("creates and executes on the three EntryPoints for wallets that never had a coin", async () => {
    const key = service.info.apiKeys[tier]
    for (const [version, entryPoint] of Object.entries(service.info.entryPoints)) {
      const settings = { ...service.info.settings, entryPoint, paymaster: service.info.paymaster }
      const salt = `sponsored ${tier} ${version}`
      const created = await service.ask<CreateResult>(
        "/create",
        { accounts: [{ salt, walletCustody: 1 }], settings },
        { key }
      )
      expect(created).toMatchObject({ status: 200, body: { status: 1 } })
      const wallet = first(await service.predict(salt))
      const to = hexlify(randomBytes(20))
      const transfer = (target: string, funcSignature: string, funcParams: ReadonlyArray<string>) => ({
        wallet,
        walletCustody: 1,
        to: target,
        funcSignature,
        funcParams
      })
      const { token } = service.info
      const executed = await service.ask<TransactionResult>(
        "/execute",
        {
          operations: [
            transfer(token, "mint(address,uint256)", [wallet, "5"]),
            transfer(token, "transfer(address,uint256)", [to, "5"])
          ],
          settings
        },
        { key }
      )
      expect(executed, version).toMatchObject({ status: 200, body: { status: 1 } })
      expect(await service.token.getFunction("balanceOf")(to)).toBe(5n)
      expect(await service.provider.getBalance(wallet)).toBe(0n)
    }
  })
})

it("a paymaster without a deposit is 422 with its address, AA31 and what it lacks", async () => {
  const paymaster = hexlify(randomBytes(20))
  const envelope = await service.refused(422, "/create", {
    accounts: [{ salt: "unpaid", walletCustody: 1 }],
    settings: { ...service.info.settings, paymaster }
  })
  expect(envelope).toMatchObject({
    code: "insufficient_funds",
    details: [
      {
        path: "accounts[0]",
        paymaster: getAddress(paymaster),
        available: "0",
        message: expect.stringContaining("AA31 paymaster deposit too low")
      }
    ]
  })
})
