import { describe, expect, it } from "vitest"
import * as Receiver from "../../support/http/Receiver.js"
import { perFile } from "../../support/http/SharedService.js"
import { use } from "../../support/Use.js"

interface Told {
  readonly type: string
  readonly sequence: number
}

const service = perFile({ confirmations: 1, settledDepth: 4 })
const receiver = use(Receiver.start)

const send = (method: string, ...params: ReadonlyArray<unknown>) => service.provider.send(method, [...params])

/** A stream's events after an event, until it ends. */
const follow = async (requestId: string, after: number): Promise<ReadonlyArray<Told>> => {
  const answer = await fetch(`${service.info.baseUrl}/requests/${requestId}/events`, {
    headers: { "x-api-key": service.info.apiKeys.enterprise, "last-event-id": String(after) }
  })
  expect(answer.status).toBe(200)
  return [...(await answer.text()).matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data))
}

describe("a request that is final and whose block a reorganisation takes back", () => {
  it("is reported as reopened over stream and webhook, then with its new end, in one sequence without a gap", async () => {
    const hook = await service.ask("/webhooks", { url: receiver.url })
    expect(hook.status).toBe(200)
    const nonce = () => service.provider.getTransactionCount(service.signer.address)
    const before = await nonce()
    const snapshot = await send("evm_snapshot")
    const { body } = await service.ask<{ readonly requestId: string }>("/transactSigner", service.payment(), {
      headers: { prefer: "respond-async" }
    })
    const { requestId } = body
    const first = await follow(requestId, 0)
    expect(first.map(({ type }) => type)).toEqual(["accepted", "signed", "submitted", "included", "final"])

    await service.automine(false)
    expect(await send("evm_revert", snapshot)).toBe(true)
    await send("evm_mine")
    await expect
      .poll(async () => (await service.request(requestId)).body.state, { timeout: 20_000 })
      .toBe("pending")
    const rest = follow(requestId, first.length)
    await expect.poll(async () => (await send("txpool_status")).pending, { timeout: 20_000 }).toBe("0x1")
    await send("evm_mine")
    const second = await rest
    expect(second[0]?.type).toBe("reopened")
    expect(second.map(({ type }) => type).filter((type) => type !== "submitted")).toEqual([
      "reopened",
      "included",
      "final"
    ])
    const told = [...first, ...second]
    expect(told.map(({ sequence }) => sequence)).toEqual(told.map((_, at) => at + 1))
    expect(await nonce()).toBe(before + 1)

    for (let block = 0; block < 4; block++) await send("evm_mine")
    const messages = await receiver.until((sent) => {
      const found = sent.map(({ body }) => {
        const { data, type } = JSON.parse(body)
        return {
          type: String(type).replace("request.", ""),
          sequence: data.sequence,
          requestId: data.requestId
        }
      })
      return found.some(({ type }) => type === "settled") ? found : undefined
    })
    expect(messages.map(({ sequence, type }) => ({ sequence, type }))).toEqual([
      ...told.map(({ sequence, type }) => ({ sequence, type })),
      { sequence: told.length + 1, type: "settled" }
    ])
  }, 90_000)
})
