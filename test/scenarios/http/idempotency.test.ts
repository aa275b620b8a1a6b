import { beforeAll, describe, expect, it } from "vitest"
import {
  type Answer,
  type CreateResult,
  type Envelope,
  type Estimate,
  first,
  nobody,
  type RequestState,
  type TransactionResult
} from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

const service = perFile({ receiptTimeoutMillis: 1_000 })
let wallet: string
beforeAll(async () => {
  wallet = first(await service.create("main"))
})

let keys = 0
const fresh = (): string => {
  keys += 1
  return `order-${keys}`
}

const nonce = () => service.provider.getTransactionCount(service.signer.address)
const tokens = async (holder: string): Promise<bigint> => service.token.getFunction("balanceOf")(holder)

const mint = (amount: number) => service.mint("main", wallet, amount)
const transfer = (amount: number) => ({
  operations: [
    {
      salt: "main",
      walletCustody: 1,
      to: service.info.token,
      funcSignature: "transfer(address,uint256)",
      funcParams: [nobody, String(amount)]
    }
  ],
  settings: service.info.settings
})
const payment = (value: number) => service.payment(value)

const execute = <Body = TransactionResult>(body: unknown, key: string) =>
  service.keyed<Body>("/execute", body, key)
const refusal = ({ body, status }: Answer<Envelope>) => ({ status, code: body.code })
const reused = { status: 400, code: "idempotency_key_reused" }

/** Reply of GET /requests/{requestId} once the request is final. */
const settled = async (requestId: string): Promise<RequestState> => {
  await expect
    .poll(async () => (await service.request(requestId)).body.state, { timeout: 10_000 })
    .toBe("final")
  return (await service.request(requestId)).body
}

describe("the same key and the same body", () => {
  const bodies: Readonly<Record<string, () => Promise<unknown>>> = {
    "/execute": async () => mint(3),
    "/transactSigner": async () => payment(5),
    "/create": async () => {
      const [address = ""] = await service.predict("twice")
      await service.fund(address)
      return { accounts: [{ salt: "twice", walletCustody: 1 }], settings: service.info.settings }
    },
    "/executeEncoded": async () => {
      const { userOps } = await service.ok<Estimate>("/estimateGas", mint(4))
      const { encodedUserOp, userOpHash } = first(userOps)
      return {
        operations: [{ encodedUserOp, userOpHash, walletCustody: 1 }],
        settings: service.info.settings
      }
    }
  }

  it.each(Object.keys(bodies))("are one transaction and one answer: %s", async (path) => {
    const body = await bodies[path]?.()
    const key = fresh()
    const before = await nonce()
    const one = await service.keyed<TransactionResult>(path, body, key)
    expect([one.status, one.body.status]).toEqual([200, 1])
    for (let n = 0; n < 2; n += 1) {
      const again = await service.keyed<TransactionResult>(path, body, key)
      expect([again.status, again.text]).toEqual([200, one.text])
      expect(again.headers.get("x-request-id")).not.toBe(one.headers.get("x-request-id"))
    }
    expect(await nonce()).toBe(before + 1)
  })

  it("ten times concurrently are one transaction and ten equal answers", async () => {
    for (const [path, body] of [
      ["/execute", mint(7)],
      ["/transactSigner", payment(9)]
    ] as const) {
      const key = fresh()
      const before = { nonce: await nonce(), tokens: await tokens(wallet) }
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => service.keyed<TransactionResult>(path, body, key))
      )
      expect(answers.map(({ status, text }) => [status, text])).toEqual(
        answers.map(() => [200, answers[0]?.text])
      )
      expect(answers[0]?.body.status).toBe(1)
      expect(await nonce()).toBe(before.nonce + 1)
      expect(await tokens(wallet)).toBe(before.tokens + (path === "/execute" ? 7n : 0n))
    }
  })

  it("give the later request a refusal when the key was used with another body, concurrently or later", async () => {
    const key = fresh()
    const before = await tokens(wallet)
    const answers = await Promise.all([1, 2, 3, 4].map((amount) => execute<Envelope>(mint(amount), key)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400])
    const minted = answers.findIndex(({ status }) => status === 200) + 1
    expect(await tokens(wallet)).toBe(before + BigInt(minted))
    for (const answer of answers.filter(({ status }) => status === 400))
      expect(refusal(answer)).toEqual(reused)
  })
})

describe("a key", () => {
  it("holds the bytes of the body, white space, order and escapes included", async () => {
    const key = fresh()
    const text = JSON.stringify(mint(1))
    const one = await execute(text, key)
    const before = await nonce()
    const { operations, settings } = mint(1)
    const others = [
      `${text} `,
      `\n${text}`,
      JSON.stringify(mint(1), null, 1),
      JSON.stringify({ settings, operations }),
      text.replace("mint", "\\u006dint"),
      JSON.stringify(mint(2))
    ]
    for (const other of others) {
      const answer = await execute<Envelope>(other, key)
      expect([other, refusal(answer)]).toEqual([other, reused])
      expect(answer.body.error).toBe("idempotency key reused")
      expect(answer.body.details.map(({ path }) => path)).toEqual(["Idempotency-Key"])
    }
    expect(await nonce()).toBe(before)
    expect((await execute(text, key)).text).toBe(one.text)
  })

  it("belongs to one account: another account uses it for its own request", async () => {
    const key = fresh()
    const before = await nonce()
    const one = await service.keyed<TransactionResult>("/transactSigner", payment(1), key)
    const other = await service.keyed<TransactionResult>("/transactSigner", payment(2), key, {
      key: service.info.apiKeys.pro
    })
    expect([one.status, other.status]).toEqual([200, 200])
    expect(other.body.txHash).not.toBe(one.body.txHash)
    expect(await nonce()).toBe(before + 2)
  })
})

describe("a refusal before acceptance", () => {
  it("leaves the key free, for the same body as soon as it can succeed", async () => {
    const key = fresh()
    const body = transfer(1_000_000)
    const poor = await execute<Envelope>(body, key)
    expect(refusal(poor)).toEqual({ status: 422, code: "execution_failed" })
    const { body: kept } = await service.request(poor.body.requestId)
    expect([kept.state, kept.httpStatus]).toEqual(["refused", 422])
    await (await service.token.getFunction("mint")(wallet, 1_000_000)).wait()
    const rich = await execute(body, key)
    expect([rich.status, rich.body.status]).toEqual([200, 1])
    expect((await execute(body, key)).text).toBe(rich.text)
  })

  it("leaves the key free, for another body too, whatever refused it", async () => {
    const key = fresh()
    const wrong: ReadonlyArray<readonly [unknown, number]> = [
      ["{", 400],
      [{}, 400],
      [{ ...mint(1), settings: { ...service.info.settings, rpc: "http://127.0.0.1:1" } }, 400],
      [
        { ...mint(1), settings: { ...service.info.settings, signer: { clientId: "x", versionId: "1" } } },
        401
      ],
      [transfer(10 ** 9), 422]
    ]
    for (const [body, status] of wrong) expect((await execute<Envelope>(body, key)).status).toBe(status)
    expect((await execute(mint(1), key)).body.status).toBe(1)
    expect(refusal(await execute<Envelope>(mint(2), key))).toEqual(reused)
  })

  it("leaves the key free, and so does an answer without a transaction", async () => {
    const key = fresh()
    const { settings } = service.info
    const existing = { accounts: [{ salt: "main", walletCustody: 1 }], settings }
    const known = await service.keyed<CreateResult>("/create", existing, key)
    expect([known.status, known.body.status]).toEqual([200, 2])
    expect((await service.request<Envelope>(String(known.headers.get("x-request-id")))).status).toBe(404)
    const [address = ""] = await service.predict("later")
    await service.fund(address)
    const created = await service.keyed<CreateResult>(
      "/create",
      { accounts: [{ salt: "later", walletCustody: 1 }], settings },
      key
    )
    expect([created.status, created.body.status]).toEqual([200, 1])
  })
})

describe("a request whose outcome is unknown", () => {
  const cases: ReadonlyArray<readonly [string, () => Promise<unknown>]> = [
    ["/execute", async () => mint(11)],
    ["/transactSigner", async () => payment(13)],
    [
      "/create",
      async () => {
        const [address = ""] = await service.predict("slow")
        await service.fund(address)
        return { accounts: [{ salt: "slow", walletCustody: 1 }], settings: service.info.settings }
      }
    ]
  ]

  it.each(cases)(
    "is pending until it is mined, then final for every way of reading it: %s",
    async (path, make) => {
      const body = await make()
      const key = fresh()
      const before = await nonce()
      const began = Math.floor(Date.now() / 1_000)
      await service.automine(false)
      const unknown = await service.keyed<Envelope>(path, body, key)
      expect(refusal(unknown)).toEqual({ status: 422, code: "outcome_unknown" })
      const { requestId, txHash = "", txHashes } = unknown.body
      expect(requestId).toBe(unknown.headers.get("x-request-id"))
      expect(txHashes).toEqual([txHash])
      expect((await service.provider.getTransaction(txHash))?.blockNumber).toBe(null)

      const pending = await service.request(requestId)
      expect([pending.status, pending.body]).toEqual([
        200,
        {
          requestId,
          endpoint: path,
          state: "pending",
          acceptedAt: expect.any(Number),
          metadata: {},
          notBefore: null,
          previews: null,
          policies: [],
          txHashes: [txHash],
          progress: { total: 1, waiting: 0, sent: 1, succeeded: 0, failed: 0 },
          delay: null,
          httpStatus: null,
          answer: null
        }
      ])
      expect(pending.body.acceptedAt).toBeGreaterThanOrEqual(began)
      expect(pending.body.acceptedAt).toBeLessThanOrEqual(Math.ceil(Date.now() / 1_000))

      const other = await service.keyed<Envelope>(path, `${JSON.stringify(body)} `, key)
      expect(refusal(other)).toEqual(reused)

      const repeat = service.keyed<TransactionResult>(path, body, key)
      await service.automine(true)
      const answer = await repeat
      expect([answer.status, answer.body.status, answer.body.txHash]).toEqual([200, 1, txHash])
      const final = await settled(requestId)
      const progress = { total: 1, waiting: 0, sent: 0, succeeded: 1, failed: 0 }
      expect(final).toEqual({
        ...pending.body,
        state: "final",
        progress,
        httpStatus: 200,
        answer: answer.body
      })
      expect((await service.keyed(path, body, key)).text).toBe(answer.text)
      expect(await nonce()).toBe(before + 1)
    }
  )

  it("is hidden from another account, which gets the answer for an unknown id", async () => {
    await service.automine(false)
    const { body } = await service.ask<Envelope>("/transactSigner", payment(1))
    const key = service.info.apiKeys.pro
    const asked = [body.requestId, globalThis.crypto.randomUUID(), "x", "%00", "..%2Fexecute", "%F0%9F%8F%B0"]
    const told = await Promise.all(asked.map((id) => service.request<Envelope>(id, { key })))
    await service.automine(true)
    await settled(body.requestId)
    told.push(await service.request<Envelope>(body.requestId, { key }))
    for (const { body: envelope, headers, status } of told)
      expect({ status, ...envelope, requestId: headers.get("x-request-id") }).toEqual({
        status: 404,
        error: "request not found",
        code: "request_not_found",
        requestId: envelope.requestId,
        details: []
      })
  })
})

describe("the requestId of a success", () => {
  it("is in its header, and leads to the original answer", async () => {
    const answer = await execute(mint(1), fresh())
    const { body } = await service.request(String(answer.headers.get("x-request-id")))
    expect(body).toMatchObject({
      endpoint: "/execute",
      state: "final",
      httpStatus: 200,
      txHashes: answer.body.txHashes,
      answer: answer.body
    })
  })
})
