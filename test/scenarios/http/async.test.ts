import { beforeAll, describe, expect, it } from "vitest"
import {
  type Ask,
  type Envelope,
  type Estimate,
  first,
  type RequestState,
  type TransactionResult
} from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

interface Accepted {
  readonly requestId: string
  readonly state: "pending"
}

const prefer = { headers: { prefer: "respond-async" } }

const service = perFile()
let wallet: string
beforeAll(async () => {
  wallet = first(await service.create("main"))
})

const nonce = () => service.provider.getTransactionCount(service.signer.address)
const mint = (amount: number, to = wallet) => service.mint("main", to, amount)
const payment = (value: number) => service.payment(value)
const awaited = (requestId: string, wait: string) =>
  service.request<RequestState>(`${requestId}?wait=${wait}`)

/** Nothing is mined while it runs. */
const unmined = async <A>(body: () => Promise<A>): Promise<A> => {
  await service.automine(false)
  try {
    return await body()
  } finally {
    await service.automine(true)
  }
}

describe("Prefer: respond-async", () => {
  const bodies: Readonly<Record<string, () => Promise<unknown>>> = {
    "/execute": async () => mint(1),
    "/executeEncoded": async () => {
      const { userOps } = await service.ok<Estimate>("/estimateGas", mint(7))
      return {
        operations: userOps.map(({ encodedUserOp, userOpHash }) => ({
          encodedUserOp,
          userOpHash,
          walletCustody: 1
        })),
        settings: service.info.settings
      }
    },
    "/transactSigner": async () => payment(1),
    "/create": async () => {
      const [address = ""] = await service.predict("later")
      await service.fund(address)
      return { accounts: [{ salt: "later", walletCustody: 1 }], settings: service.info.settings }
    }
  }

  it.each(Object.keys(bodies))("answers %s with 202 once it is accepted", async (path) => {
    const body = await bodies[path]?.()
    const before = await nonce()
    const answer = await unmined(() => service.ask<Accepted>(path, body, prefer))
    const { requestId } = answer.body
    expect([answer.status, answer.body]).toEqual([202, { requestId, state: "pending" }])
    expect(answer.headers.get("location")).toBe(`/requests/${requestId}`)
    expect(answer.headers.get("preference-applied")).toBe("respond-async")
    expect(requestId).toBe(answer.headers.get("x-request-id"))
    expect((await awaited(requestId, "30")).body).toMatchObject({
      requestId,
      endpoint: path,
      state: "final",
      httpStatus: 200,
      answer: { status: 1 }
    })
    expect(await nonce()).toBe(before + 1)
  })

  it("is one request under one key: 202 while it is pending, the final answer afterwards", async () => {
    const before = await nonce()
    const ask = (options: Ask = prefer) => service.keyed<Accepted>("/execute", mint(2), "one", options)
    const [one, repeats, waiting] = await unmined(async () => {
      const one = await ask()
      return [one, await Promise.all([ask(), ask(), ask()]), ask({})] as const
    })
    expect(one.status).toBe(202)
    for (const repeat of repeats) expect([repeat.status, repeat.body]).toEqual([202, one.body])
    const final = await waiting
    expect(final.status).toBe(200)
    const late = await ask()
    expect([late.status, late.text, late.headers.get("preference-applied")]).toEqual([200, final.text, null])
    expect(await nonce()).toBe(before + 1)
  })

  it("changes no refusal before acceptance", async () => {
    const invalid = await service.ask<Envelope>("/execute", { operations: [], settings: {} }, prefer)
    expect(invalid.status).toBe(400)
    const refused = await service.ask<Envelope>("/execute", mint(1, "0x12"), prefer)
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_function_parameter"])
    const reverting = {
      operations: [
        { salt: "main", walletCustody: 1, to: service.info.reverter, funcSignature: "failRequire()" }
      ],
      settings: service.info.settings
    }
    const failed = await service.ask<Envelope>("/execute", reverting, prefer)
    expect([failed.status, failed.headers.get("location")]).toEqual([422, null])
    const other = await service.keyed<Envelope>("/execute", mint(99), "one", prefer)
    expect([other.status, other.body.code]).toEqual([400, "idempotency_key_reused"])
  })

  it("is found among other preferences, and no similar one is accepted for it", async () => {
    const asked = (value: string) =>
      service.ask<TransactionResult>("/transactSigner", payment(4), { headers: { prefer: value } })
    const accepted = [
      "wait=10, Respond-Async",
      "handling=lenient,respond-async; foo=bar",
      'respond-async=""',
      'foo="a, b\\"", respond-async'
    ]
    for (const value of accepted) expect([value, (await asked(value)).status]).toEqual([value, 202])
    const waited = [
      "",
      "wait=10",
      "respond-asynchronously",
      "x=respond-async",
      "return=minimal",
      'foo="a, respond-async, b"',
      'foo="\\", respond-async,"',
      "respond-async=no"
    ]
    for (const value of waited) expect([value, (await asked(value)).status]).toEqual([value, 200])
    expect((await service.ask("/predict", {}, prefer)).status).toBe(400)
  })
})

describe("GET /requests/{requestId}?wait", () => {
  it("answers when the request is final, however many wait, or when the time is over", async () => {
    const { pending, waiting } = await unmined(async () => {
      const { requestId } = (await service.ask<Accepted>("/execute", mint(5), prefer)).body
      const waiting = Array.from({ length: 20 }, () => awaited(requestId, "60"))
      const pending = await awaited(requestId, "1")
      return { pending, waiting }
    })
    expect([pending.status, pending.body.state]).toEqual([200, "pending"])
    for (const { body, status } of await Promise.all(waiting))
      expect([status, body.state, body.httpStatus]).toEqual([200, "final", 200])
  })

  it("answers immediately when the request is final, and for an unknown one", async () => {
    const { requestId } = (await service.ask<Accepted>("/execute", mint(6), prefer)).body
    const once = await awaited(requestId, "60")
    expect((await awaited(requestId, "60")).text).toBe(once.text)
    const none = await service.request<Envelope>("nobody?wait=60")
    expect([none.status, none.body.code]).toEqual([404, "request_not_found"])
    const others = await service.request<Envelope>(`${requestId}?wait=60`, { key: service.info.apiKeys.pro })
    expect([others.status, others.body.code]).toEqual([404, "request_not_found"])
  })

  it.each(["", "61", "-1", "1.5", "01", "1e1", "x", "1&wait=2"])("refuses wait=%s", async (wait) => {
    const answer = await service.request<Envelope>(`nobody?wait=${wait}`)
    expect([answer.status, answer.body.code, answer.body.details[0]?.path]).toEqual([
      400,
      "invalid_request",
      "wait"
    ])
  })

  it("refuses any other parameter", async () => {
    const answer = await service.request<Envelope>("nobody?wiat=1")
    expect([answer.status, answer.body.code]).toEqual([400, "unknown_field"])
    expect(answer.body.details[0]).toMatchObject({ path: "wiat", suggestion: "wait" })
  })
})
