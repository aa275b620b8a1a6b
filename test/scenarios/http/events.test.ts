import { describe, expect, it } from "vitest"
import * as Client from "../../../src/client/Client.js"
import type { Envelope } from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

interface Event {
  readonly requestId: string
  readonly sequence: number
  readonly type: string
  readonly at: number
  readonly data: Readonly<Record<string, unknown>>
}

const service = perFile()

const pay = async (value: number): Promise<string> => {
  const { body } = await service.ask<{ readonly requestId: string }>(
    "/transactSigner",
    service.payment(value),
    { headers: { prefer: "respond-async" } }
  )
  return body.requestId
}

const follow = (requestId: string, after = "0", key = service.info.apiKeys.enterprise) =>
  fetch(`${service.info.baseUrl}/requests/${requestId}/events`, {
    headers: { "x-api-key": key, "last-event-id": after }
  })

const eventsOf = async (answer: Promise<Response>): Promise<ReadonlyArray<Event>> =>
  [...(await (await answer).text()).matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data))

describe("GET /requests/{requestId}/events", () => {
  it("follows a request to its end, which comes while it is followed", async () => {
    await service.automine(false)
    const requestId = await pay(1)
    const events = eventsOf(follow(requestId))
    await service.automine(true)
    const told = await events
    expect(told.map(({ sequence }) => sequence)).toEqual(told.map((_, at) => at + 1))
    const kinds = told.map(({ type }) => type)
    expect(kinds.slice(0, 4)).toEqual(["accepted", "signed", "submitted", "included"])
    expect(kinds.filter((kind) => kind !== "settled").at(-1)).toBe("final")
    const { txHashes } = (await service.request(requestId)).body
    expect(told[1]?.data.txHash).toBe(txHashes[0])
    expect(told[2]?.data.txHash).toBe(txHashes[0])
    expect(told[3]?.data).toMatchObject({ txHash: txHashes[0], success: true })
    expect(told.find(({ type }) => type === "final")?.data).toMatchObject({ httpStatus: 200, status: 1 })
  })

  it("resumes after a known event, and reports the end of the stream", async () => {
    const requestId = await pay(2)
    const all = await eventsOf(follow(requestId))
    const rest = await eventsOf(follow(requestId, "2"))
    expect(rest.slice(0, all.length - 2)).toEqual(all.slice(2))
    const known = (await eventsOf(follow(requestId, "1"))).at(-1)?.sequence ?? 0
    expect([200, 204]).toContain((await follow(requestId, String(known))).status)
    const answer = await follow(requestId, "999")
    expect([answer.status, await answer.text()]).toEqual([204, ""])
  })

  it("is followed by the client to the end, over connections cut after every event", async () => {
    const { apiKeys, baseUrl } = service.info
    let connections = 0
    /** Sends the part of an answer that has come so far, and then cuts the connection. */
    const cutting: typeof globalThis.fetch = async (input, init) => {
      connections += 1
      const answer = await fetch(input, init)
      const reader = answer.body?.getReader()
      if (reader === undefined || answer.status === 204) return answer
      let text = ""
      while (!/\ndata: .*\n\n/.test(text)) {
        const { done, value } = await reader.read()
        if (done) break
        text += new TextDecoder().decode(value)
      }
      await reader.cancel()
      const first = text.slice(0, text.indexOf("\n\n", text.indexOf("\ndata: ")) + 2)
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          if (text === "") return controller.error(new TypeError("terminated"))
          text = ""
          controller.enqueue(new TextEncoder().encode(first))
        }
      })
      return new Response(body, { status: answer.status, headers: answer.headers })
    }
    const requestId = await pay(4)
    const whole = await eventsOf(follow(requestId))
    const client = Client.make({ baseUrl, apiKey: apiKeys.enterprise })
    const cut = Client.make({ baseUrl, apiKey: apiKeys.enterprise, fetch: cutting })
    for (const one of [client, cut]) {
      const told: Array<Client.RequestEvent> = []
      for await (const event of one.events(requestId)) told.push(event)
      const end = told.findIndex(({ type }) => type === "final")
      expect(end).toBeGreaterThan(0)
      expect(told.slice(0, end + 1)).toEqual(whole.slice(0, end + 1))
    }
    expect(connections).toBeGreaterThanOrEqual(whole.findIndex(({ type }) => type === "final") + 1)
    const other = Client.make({ baseUrl, apiKey: apiKeys.pro })
    await expect(other.events(requestId).next()).rejects.toMatchObject({ code: "request_not_found" })
  })

  it("is not found of another account", async () => {
    const requestId = await pay(3)
    const answer = await follow(requestId, "0", service.info.apiKeys.pro)
    const { code } = (await answer.json()) as Envelope
    expect([answer.status, code]).toEqual([404, "request_not_found"])
  })
})
