import { beforeAll, describe, expect, it } from "vitest"
import { type Envelope, first, type RequestState } from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

const service = perFile()
let wallet: string
beforeAll(async () => {
  wallet = first(await service.create("payroll"))
  await service.fund(wallet, 10n ** 20n)
})

const async = { headers: { prefer: "respond-async" } }
const mebibyte = 1024 * 1024

/** Mints 1 this many times, to the wallet itself. */
const mints = (count: number) => ({
  operations: Array.from({ length: count }, () => ({
    wallet,
    walletCustody: 1,
    to: service.info.token,
    funcSignature: "mint(address,uint256)",
    funcParams: [wallet, "1"]
  })),
  settings: service.info.settings
})

/** The same value as JSON text of that length. */
const padded = (value: unknown, length: number): string => {
  const text = JSON.stringify(value)
  return `${" ".repeat(length - text.length)}${text}`
}

describe("an /execute of many operations", () => {
  it("is accepted from a caller that does not wait, with a body of several MiB, and reports its progress", async () => {
    const before = await service.token.getFunction("balanceOf")(wallet)
    const answer = await service.keyed<{ readonly requestId: string }>(
      "/execute",
      padded(mints(300), 4 * mebibyte),
      "many",
      async
    )
    expect([answer.status, answer.body]).toMatchObject([202, { state: "pending" }])
    const { requestId } = answer.body
    const { body } = await service.request<RequestState & { readonly progress: object }>(
      `${requestId}?wait=60`
    )
    expect(body).toMatchObject({
      state: "final",
      httpStatus: 200,
      progress: { total: 300, waiting: 0, sent: 0, succeeded: 300, failed: 0 }
    })
    expect(await service.token.getFunction("balanceOf")(wallet)).toBe(before + 300n)
    const repeat = await service.keyed<{ readonly status: number }>(
      "/execute",
      padded(mints(300), 4 * mebibyte),
      "many",
      async
    )
    expect([repeat.status, repeat.body.status]).toEqual([200, 1])
    expect(await service.token.getFunction("balanceOf")(wallet)).toBe(before + 300n)
  })

  it("has the usual bounds when its caller waits, and so has every other endpoint", async () => {
    const refused = async (path: string, body: unknown, ask = {}) => {
      const { code, details } = await service.refused(400, path, body, ask)
      return [code, details[0]?.path, details[0]?.message]
    }
    const many = ["invalid_request", "operations", "expected at most 256 elements"]
    const long = ["body_too_large", "", "expected at most 1048576 bytes"]
    const more = (told: ReadonlyArray<unknown>, most: string) => [
      ...told.slice(0, 2),
      `${told[2]}; with Prefer: respond-async, ${most}`
    ]
    expect(await refused("/execute", mints(257))).toEqual(more(many, "10000 elements"))
    expect(await refused("/execute", padded(mints(2), mebibyte + 1))).toEqual(
      more(long, `${8 * mebibyte} bytes`)
    )
    expect(await refused("/executeEncoded", mints(257), async)).toEqual(many)
    expect(await refused("/executeEncoded", padded(mints(2), mebibyte + 1), async)).toEqual(long)
    expect(await refused("/estimateGas", mints(257), async)).toEqual(many)
  })

  it("is bounded by operations and by bytes, and its other lists keep their usual bound", async () => {
    const refused = async (body: unknown) => {
      const answer = await service.ask<Envelope>("/execute", body, async)
      return [answer.status, answer.body.code, answer.body.details[0]?.path, answer.body.details[0]?.message]
    }
    const most = "expected at most 10000 elements"
    expect(await refused(mints(10_001))).toEqual([400, "invalid_request", "operations", most])
    expect(await refused(padded(mints(2), 8 * mebibyte + 1))).toEqual([
      400,
      "body_too_large",
      "",
      `expected at most ${8 * mebibyte} bytes`
    ])
    const { operations, settings } = mints(1)
    const useABI = Array.from({ length: 257 }, () => "error E()")
    expect(await refused({ operations, settings: { ...settings, useABI } })).toEqual([
      400,
      "invalid_request",
      "settings.useABI",
      "expected at most 256 elements"
    ])
    const [operation] = operations
    const funcParams = Array.from({ length: 257 }, () => "1")
    expect(await refused({ operations: [{ ...operation, funcParams }], settings })).toEqual([
      400,
      "invalid_request",
      "operations[0].funcParams",
      "expected at most 256 elements"
    ])
  })

  it("is refused as a whole for one invalid operation, which it names", async () => {
    const { operations, settings } = mints(2_000)
    const wrong = operations.map((each, index) => (index === 1_999 ? { ...each, to: "0x12" } : each))
    const answer = await service.ask<Envelope>("/execute", { operations: wrong, settings }, async)
    expect([answer.status, answer.body.details[0]?.path]).toEqual([400, "operations[1999].to"])
  })
})
