import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import {
  type DevService,
  type Envelope,
  first,
  start,
  type TransactionResult
} from "../../support/http/DevService.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-expiry-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The id of a request whose caller received `outcome_unknown`. */
const pending = async (service: DevService, path: string, body: unknown): Promise<string> => {
  const { body: answer, status } = await service.ask<Envelope>(path, body)
  expect([status, answer.code]).toEqual([422, "outcome_unknown"])
  return answer.requestId
}

/** A signed transaction that is not mined, and a request that waits behind it. */
const blocked = async (service: DevService) => {
  const wallet = first(await service.create("main"))
  await service.automine(false)
  const signed = await pending(service, "/transactSigner", service.payment())
  const waiting = await pending(service, "/execute", service.mint("main", wallet, 1))
  return { wallet, signed, waiting }
}

const expired = {
  state: "final",
  txHashes: [],
  httpStatus: 422,
  answer: { code: "request_expired", error: "request expired" }
}
const slow = { bumpAfterMillis: 3_600_000, receiptTimeoutMillis: 1_000 }

describe("an accepted request without a signature in its time", () => {
  it("expires; its signed part and the lane continue", async () => {
    const service = await start({ network: { ...slow, requestExpiryMillis: 2_000 } })
    try {
      const { signed, waiting, wallet } = await blocked(service)
      await expect
        .poll(async () => (await service.request(waiting)).body, { timeout: 20_000 })
        .toMatchObject(expired)
      expect((await service.request(signed)).body.state).toBe("pending")
      await service.automine(true)
      await expect
        .poll(async () => (await service.request(signed)).body, { timeout: 20_000 })
        .toMatchObject({ state: "final", httpStatus: 200 })
      expect((await service.ok<TransactionResult>("/execute", service.mint("main", wallet, 2))).status).toBe(
        1
      )
      expect(await service.token.getFunction("balanceOf")(wallet)).toBe(2n)
    } finally {
      await service.stop()
    }
  })

  it("continues when it has repriced other requests' transactions: its signatures are theirs", async () => {
    const service = await start({ network: { ...slow, requestExpiryMillis: 2_000 } })
    try {
      const { signed, wallet } = await blocked(service)
      const { rpc, settings } = service.info
      const repriced = await pending(service, "/unstuck", { settings: { rpc, signer: settings.signer } })
      const later = await pending(service, "/execute", service.mint("main", wallet, 3))
      await expect
        .poll(async () => (await service.request(later)).body, { timeout: 20_000 })
        .toMatchObject(expired)
      expect((await service.request(repriced)).body.state).toBe("pending")
      await service.automine(true)
      for (const requestId of [signed, repriced])
        await expect
          .poll(async () => (await service.request(requestId)).body, { timeout: 20_000 })
          .toMatchObject({ state: "final", httpStatus: 200 })
    } finally {
      await service.stop()
    }
  })

  it("expires also when no process has the key of its lane, and its node is gone", async () => {
    const database = { path: join(folder, "castellan.sqlite") }
    const before = await start({ network: slow, config: { database } })
    const { signed, waiting } = await blocked(before)
    await before.stop()
    const service = await start({
      network: { ...slow, requestExpiryMillis: 1_000 },
      config: { database, signers: [] }
    })
    try {
      await expect
        .poll(async () => (await service.request(waiting)).body, { timeout: 20_000 })
        .toMatchObject({
          ...expired,
          answer: { ...expired.answer, details: [{ path: "", message: expect.stringMatching(/^delayed: /) }] }
        })
      expect((await service.request(signed)).body.state).toBe("pending")
    } finally {
      await service.stop()
    }
  })
})
