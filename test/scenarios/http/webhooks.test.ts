import { Webhook } from "standardwebhooks"
import { beforeAll, describe, expect, it } from "vitest"
import type { Envelope } from "../../support/http/DevService.js"
import * as Receiver from "../../support/http/Receiver.js"
import { perFile } from "../../support/http/SharedService.js"
import { use } from "../../support/Use.js"

interface Message {
  readonly type: string
  readonly data: { readonly requestId: string; readonly sequence: number; readonly metadata: unknown }
}

interface Hook {
  readonly webhookId: string
  readonly secret?: string
  readonly origin: string
  readonly kinds: ReadonlyArray<string>
  readonly state: string
}

const service = perFile()
const receiver = use(Receiver.start)
let url: string
let messages: Receiver.Receiver["sent"]

beforeAll(async () => {
  url = receiver.url
  messages = receiver.sent
})

const ask = <Body>(method: string, path = "", body?: unknown, key = service.info.apiKeys.enterprise) =>
  service.ask<Body>(`/webhooks${path}`, body, { method, key })

const pay = async (): Promise<string> => {
  const { headers, status } = await service.ask("/transactSigner", service.payment(), {
    headers: { "request-metadata": '{"order":"4711"}' }
  })
  expect(status).toBe(200)
  return headers.get("x-request-id") ?? ""
}

const told = (requestId: string, type: string): Promise<Message & { readonly at: number }> =>
  receiver.until((sent) => {
    const at = sent.findIndex(({ body }) => {
      const message: Message = JSON.parse(body)
      return message.type === type && message.data.requestId === requestId
    })
    const found = sent[at]
    return found === undefined ? undefined : { ...(JSON.parse(found.body) as Message), at }
  })

describe("webhooks by HTTP", () => {
  it("are added, receive the selected kinds, signed with a secret that is shown once", async () => {
    const added = await ask<Hook>("POST", "", { url, kinds: ["submitted", "final"] })
    expect(added.status).toBe(200)
    const { secret = "", webhookId } = added.body
    expect(added.body).toMatchObject({ state: "enabled", kinds: ["submitted", "final"] })
    const requestId = await pay()
    const { at, data } = await told(requestId, "request.final")
    expect(data).toMatchObject({ metadata: { order: "4711" } })
    const sent = messages[at]
    expect(() => new Webhook(secret).verify(sent?.body ?? "", sent?.headers ?? {})).not.toThrow()
    const types = messages.map(({ body }) => JSON.parse(body).type)
    expect(types).toEqual(["request.submitted", "request.final"])
    for (const path of ["", `/${webhookId}`, `/${webhookId}/dead`]) {
      const { body, status } = await ask<unknown>("GET", path)
      expect(status).toBe(200)
      for (const hidden of [secret, Receiver.secretPath]) expect(JSON.stringify(body)).not.toContain(hidden)
    }
    expect((await ask("DELETE", `/${webhookId}`)).status).toBe(200)
    expect((await ask<Envelope>("GET", `/${webhookId}`)).body.code).toBe("webhook_not_found")
  })

  it("are paused and resumed, and change their kinds and secret", async () => {
    messages.length = 0
    const { body } = await ask<Hook>("POST", "", { url })
    const at = `/${body.webhookId}`
    const paused = await ask<Hook>("PATCH", at, { state: "paused", kinds: ["final"] })
    expect(paused.body).toMatchObject({ state: "paused", kinds: ["final"] })
    const requestId = await pay()
    expect(messages).toEqual([])
    const unchanged = await ask<Envelope>("PATCH", at, {})
    expect([unchanged.status, unchanged.body.details]).toEqual([
      400,
      [{ path: "", message: "expected state, kinds or both" }]
    ])
    const rotated = await ask<{ readonly secret: string; readonly oldUntil: number }>(
      "POST",
      `${at}/rotate`,
      {
        overlapHours: 0
      }
    )
    expect(rotated.body.secret).not.toBe(body.secret)
    expect((await ask<Hook>("PATCH", at, { state: "enabled" })).body.state).toBe("enabled")
    const { at: place } = await told(requestId, "request.final")
    const sent = messages[place]
    expect(() => new Webhook(rotated.body.secret).verify(sent?.body ?? "", sent?.headers ?? {})).not.toThrow()
    expect(() => new Webhook(body.secret ?? "").verify(sent?.body ?? "", sent?.headers ?? {})).toThrow()
    expect((await ask("POST", `${at}/redeliver`, {})).body).toEqual({ owed: 0 })
    expect((await ask("GET", `${at}/dead`)).body).toEqual({ events: [] })
    expect((await ask("DELETE", at)).body).toEqual({ webhookId: body.webhookId, state: "removed" })
  })

  it.each([
    ["url", { url: "ftp://example.com/" }],
    ["url", { url: "http://169.254.169.254/" }],
    ["url", {}],
    ["kinds[0]", { url: "https://example.com/", kinds: ["everything"] }]
  ])("are refused for their %s: %j", async (path, body) => {
    const { body: refused, status } = await ask<Envelope>("POST", "", body)
    expect([status, refused.code, refused.details[0]?.path]).toEqual([400, "invalid_request", path])
  })

  it("are ten for an account at most", async () => {
    const made = await Promise.all(
      Array.from({ length: 11 }, () => ask<Hook & Envelope>("POST", "", { url, kinds: ["expired"] }))
    )
    const refused = made.filter(({ status }) => status !== 200)
    expect(refused.map(({ body, status }) => [status, body.code])).toEqual([[400, "too_many_webhooks"]])
    for (const { body, status } of made) if (status === 200) await ask("DELETE", `/${body.webhookId}`)
    expect((await ask("GET")).body).toEqual({ webhooks: [] })
  })
})
