import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type DevService, start, type TransactionResult } from "../../support/http/DevService.js"

interface Receipts {
  readonly requestStatus: number
  readonly receipts: ReadonlyArray<{ readonly txHash: string; readonly requestedHash?: string }>
  readonly pending: ReadonlyArray<string>
  readonly unknown: ReadonlyArray<string>
}

let service: DevService
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.stop())

const receiptsOf = async (key: string, ...txHashes: ReadonlyArray<string>): Promise<Receipts> => {
  const { rpc } = service.info
  const { body, status } = await service.ask<Receipts>("/receipt", { txHashes, rpc }, { key })
  expect(status).toBe(200)
  return body
}

/** The hash of the signer's only transaction in the pool, once it is another one than this. */
const pooled = async (previous: string | null): Promise<string> => {
  const hash = async (): Promise<string> => {
    const { pending } = await service.provider.send("txpool_content", [])
    const mine = Object.entries(pending).find(([address]) => address.toLowerCase() === signer())
    const [transaction] = Object.values(Object(mine?.[1]))
    return Object(transaction).hash ?? previous
  }
  await expect.poll(hash, { timeout: 20_000 }).not.toBe(previous)
  return hash()
}
const signer = () => service.signer.address.toLowerCase()

describe("the hash of a transaction that the service has replaced", () => {
  it("waits with its replacement, and leads to it when that is mined; other accounts learn nothing of it", async () => {
    const { apiKeys, settings } = service.info
    const mine = apiKeys.enterprise
    const others = apiKeys.free
    await service.provider.send("evm_setAutomine", [false])
    const sent = service.ok<TransactionResult>("/transactSigner", {
      to: service.info.token,
      value: "0",
      funcSignature: "mint(address,uint256)",
      funcParams: [service.signer.address, "1"],
      settings
    })
    const original = await pooled(null)
    expect(await receiptsOf(mine, original)).toMatchObject({ requestStatus: 202, pending: [original] })

    const { rpc, signer } = settings
    const replacing = service.ok<TransactionResult>("/unstuck", { settings: { rpc, signer } })
    const replacement = await pooled(original)
    expect(await service.provider.getTransaction(original)).toBeNull()
    expect(await receiptsOf(mine, original, replacement)).toEqual({
      requestStatus: 202,
      receipts: [],
      pending: [original, replacement],
      unknown: []
    })

    await service.provider.send("evm_mine", [])
    await service.provider.send("evm_setAutomine", [true])
    expect((await sent).txHash).toBe(replacement)
    await replacing
    const nowhere = `0x${"11".repeat(32)}`
    const answer = await receiptsOf(mine, nowhere, original, replacement)
    expect(answer.receipts.map(({ requestedHash, txHash }) => ({ requestedHash, txHash }))).toEqual([
      { requestedHash: original, txHash: replacement },
      { requestedHash: undefined, txHash: replacement }
    ])
    expect(answer).toMatchObject({ requestStatus: 202, pending: [], unknown: [nowhere] })
    expect((await receiptsOf(mine, original)).requestStatus).toBe(200)
    expect(await receiptsOf(others, original)).toMatchObject({ receipts: [], unknown: [original] })
  })
})
