import { describe, expect, it } from "vitest"
import { elementAt, start, type TransactionResult } from "../../support/http/DevService.js"

describe.each([
  ["a public test network", { chainId: 80_002 }],
  ["any other chain", { chainId: 424_242 }],
  ["a chain with a block a second", { blockTime: 1 }]
])("on %s", (_, options) => {
  it("wallets are created and operations executed, also twenty concurrently", async () => {
    const service = await start(options)
    try {
      const [wallet = ""] = await service.create("main")
      const mint = {
        wallet,
        walletCustody: 1,
        to: service.info.token,
        funcSignature: "mint(address,uint256)",
        funcParams: [wallet, "1"]
      }
      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          service.ok<TransactionResult>("/execute", { operations: [mint], settings: service.info.settings })
        )
      )
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 1))
      expect(new Set(answers.map(({ returnData }) => elementAt(returnData, 0).userOpHash)).size).toBe(20)
      expect(await service.token.balanceOf?.(wallet)).toBe(20n)
      expect((await service.provider.getNetwork()).chainId).toBe(BigInt(service.info.chainId))
    } finally {
      await service.stop()
    }
  })
})
