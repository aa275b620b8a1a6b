import { beforeAll, describe, expect, it } from "vitest"
import {
  type CreateResult,
  type Envelope,
  first,
  type TransactionResult
} from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

interface Cancelled {
  readonly requestId: string
  readonly state: "pending" | "final"
  readonly cancelled: ReadonlyArray<number>
  readonly kept: ReadonlyArray<number>
}

const service = perFile({ receiptTimeoutMillis: 1_000 })
let wallet: string
beforeAll(async () => {
  wallet = first(await service.create("main"))
})

const nonce = (tag: "latest" | "pending" = "latest") =>
  service.provider.getTransactionCount(service.signer.address, tag)
const mint = (...amounts: ReadonlyArray<number>) => service.mint("main", wallet, ...amounts)
const payment = (value: number) => service.payment(value)
const cancel = <Body = Cancelled>(requestId: string, key?: string) =>
  service.ask<Body>(`/requests/${requestId}`, undefined, { method: "DELETE", ...(key && { key }) })

/** The id of a request whose caller received `outcome_unknown`. */
const pending = async (path: string, body: unknown, key: string): Promise<string> => {
  const { body: answer, status } = await service.keyed<Envelope>(path, body, key.replaceAll(" ", "-"))
  expect([status, answer.code]).toEqual([422, "outcome_unknown"])
  return answer.requestId
}

/** Nothing is mined while it runs: a transaction of one route keeps the other route waiting. */
const whileBlocked = async <A>(blocker: () => Promise<unknown>, body: () => Promise<A>): Promise<A> => {
  await service.automine(false)
  try {
    await blocker()
    return await body()
  } finally {
    await service.automine(true)
  }
}

describe("DELETE /requests/{requestId}", () => {
  it.each([
    ["/execute", () => mint(1, 2), "/transactSigner", () => payment(1), [0, 1]],
    ["/transactSigner", () => payment(2), "/execute", () => mint(3), [0]]
  ] as const)(
    "cancels the waiting, unsigned work of %s permanently",
    async (path, body, other, blocker, all) => {
      const before = await nonce()
      const { requestId, waiting } = await whileBlocked(
        () => pending(other, blocker(), `before ${path}`),
        async () => {
          const requestId = await pending(path, body(), `waits-${path}`)
          const waiting = service.keyed<Envelope>(path, body(), `waits-${path}`)
          const answer = await cancel(requestId)
          expect([answer.status, answer.body]).toEqual([
            200,
            { requestId, state: "final", cancelled: all, kept: [] }
          ])
          expect((await cancel(requestId)).body).toEqual(answer.body)
          return { requestId, waiting }
        }
      )
      const { body: told, status } = await waiting
      expect([status, told.code, told.error]).toEqual([422, "request_cancelled", "request cancelled"])
      expect((await service.request(requestId)).body).toMatchObject({
        state: "final",
        txHashes: [],
        httpStatus: 422,
        answer: { code: "request_cancelled", requestId }
      })
      // The lane continues with the next work, under the next nonce.
      expect((await service.ok<TransactionResult>("/execute", mint(4))).status).toBe(1)
      expect(await nonce()).toBe(before + 2)
    }
  )

  it("cancels creations too", async () => {
    const [address = ""] = await service.predict("never")
    await service.fund(address)
    const body = { accounts: [{ salt: "never", walletCustody: 1 }], settings: service.info.settings }
    await whileBlocked(
      () => pending("/transactSigner", payment(6), "before a creation"),
      async () => {
        const requestId = await pending("/create", body, "creation")
        expect((await cancel(requestId)).body).toMatchObject({ state: "final", cancelled: [0] })
      }
    )
    expect(await service.provider.getCode(address)).toBe("0x")
    expect((await service.ok<CreateResult>("/create", body)).status).toBe(1)
  })

  it("neither finds nor changes another account's or an unknown request", async () => {
    await whileBlocked(
      () => pending("/transactSigner", payment(7), "before the other's"),
      async () => {
        const requestId = await pending("/execute", mint(8), "one's own")
        for (const answer of [
          await cancel<Envelope>(requestId, service.info.apiKeys.pro),
          await cancel<Envelope>("nobody", service.info.apiKeys.pro)
        ])
          expect([answer.status, answer.body.code]).toEqual([404, "request_not_found"])
        expect((await service.request(requestId)).body.state).toBe("pending")
        expect((await cancel(requestId)).body.state).toBe("final")
      }
    )
  })
})
