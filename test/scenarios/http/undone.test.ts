import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type DevService, start, type TransactionResult } from "../../support/http/DevService.js"

let service: DevService
let wallet: string
beforeEach(async () => {
  service = await start()
  wallet = String((await service.predict("undone"))[0])
  await fund()
})
afterEach(() => service.stop())

const send = (method: string, ...params: ReadonlyArray<unknown>) => service.provider.send(method, [...params])
const fund = () => send("anvil_setBalance", wallet, "0xde0b6b3a7640000")
const height = () => service.provider.getBlockNumber()
const create = () =>
  service.ok<TransactionResult>("/create", {
    accounts: [{ salt: "undone", walletCustody: 1 }],
    settings: service.info.settings
  })
const minting = () => service.mint("undone", wallet, 1)
const mint = async () =>
  expect(await service.ok<TransactionResult>("/execute", minting())).toMatchObject({ status: 1 })
const minted = async () => Number(await service.token.getFunction("balanceOf")(wallet))

describe("a reorganisation deeper than settled depth", () => {
  it("is reported when it also undid a wallet's creation, and the wallet is created and usable", async () => {
    const before = await height()
    await create()
    for (let n = 0; n < 2; n++) await mint()
    await send("anvil_reorg", (await height()) - before, [])
    await fund()
    const { code } = await service.refused(422, "/execute", minting())
    expect(code).toBe("wallet_not_deployed")
    expect([1, 2]).toContain((await create()).status)
    await mint()
    await expect.poll(minted, { timeout: 15_000 }).toBe(3)
  }, 40_000)
})
