import { readFileSync } from "node:fs"
import { Webhook } from "standardwebhooks"
import { beforeAll, describe, expect, it } from "vitest"
import * as Client from "../../../src/client/Client.js"
import type { Envelope } from "../../support/http/DevService.js"
import * as Receiver from "../../support/http/Receiver.js"
import { perFile } from "../../support/http/SharedService.js"
import { use } from "../../support/Use.js"

const eventDef = "event Transfer(address indexed from, address indexed to, uint256 value)"
const recipient = "0x000000000000000000000000000000000000dEaD"
const other = "0x000000000000000000000000000000000000bEEF"

interface Message {
  readonly type: string
  readonly data: {
    readonly watchId: string
    readonly sequence: number
    readonly args: { readonly value: string }
  }
}

const service = perFile()
const receiver = use(Receiver.start)
let client: Client.Client
let webhook: { readonly webhookId: string; readonly secret: string }

beforeAll(async () => {
  client = Client.make({ baseUrl: service.info.baseUrl, apiKey: service.info.apiKeys.enterprise, retries: 0 })
  webhook = await client.webhooks.add({ url: receiver.url, kinds: ["expired"] })
})

/** The receiver's code as docs/watches.md shows it. */
const shown = async (): Promise<(events: Map<string, Message["data"]>, message: Message) => unknown> => {
  const [, code = ""] = /```js\n([\s\S]*?)```/.exec(readFileSync("docs/watches.md", "utf8")) ?? []
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)).apply
}

const mint = async (to: string, value: number) => {
  await (await service.token.getFunction("mint")(to, value)).wait()
}

const toldOf = (watchId: string): ReadonlyArray<Message> =>
  receiver.sent.map(({ body }): Message => JSON.parse(body)).filter(({ data }) => data.watchId === watchId)

/** A watch's events, once there are `count`: kinds with values. */
const told = (watchId: string, count: number) =>
  receiver.until(() => {
    const all = toldOf(watchId)
    return all.length < count
      ? undefined
      : all.map(({ data, type }) => [data.sequence, type, Number(data.args.value)])
  })

const add = (fields: object = {}) =>
  client.watches.add({
    webhookId: webhook.webhookId,
    contracts: [service.info.token],
    eventDef,
    fields: { to: recipient },
    rpc: service.info.rpc,
    ...fields
  })

const ask = <Body>(method: string, path = "", body?: unknown, key = service.info.apiKeys.enterprise) =>
  service.ask<Body>(`/watches${path}`, body, { method, key })

describe("watches by HTTP", () => {
  it("are added, receive events, pause, resume, receive a reorganisation, and are removed", async () => {
    const { webhookId } = webhook
    const watch = await add()
    const { watchId } = watch
    expect(watch).toMatchObject({
      webhookId,
      chainId: 31_337,
      origin: new URL(service.info.rpc).origin,
      contracts: [service.info.token],
      events: [eventDef],
      fields: { to: recipient },
      confirmations: 1,
      state: "enabled",
      told: 0,
      problem: null
    })
    await mint(recipient, 1)
    await mint(other, 2)
    await mint(recipient, 3)
    expect(await told(watchId, 2)).toEqual([
      [1, "watch.event", 1],
      [2, "watch.event", 3]
    ])
    const [sent] = receiver.sent
    expect(() => new Webhook(webhook.secret).verify(sent?.body ?? "", sent?.headers ?? {})).not.toThrow()
    expect((await client.watches.change(watchId, { state: "paused" })).state).toBe("paused")
    // It receives the next one, and the paused watch does not.
    const barrier = await add({ fields: { to: [recipient, other] } })
    await mint(recipient, 4)
    await told(barrier.watchId, 1)
    expect(toldOf(watchId)).toHaveLength(2)
    expect((await client.watches.change(watchId, { state: "enabled" })).state).toBe("enabled")
    expect((await told(watchId, 3)).at(-1)).toEqual([3, "watch.event", 4])
    const fork = await service.provider.send("evm_snapshot", [])
    await mint(recipient, 5)
    await told(watchId, 4)
    await service.provider.send("evm_revert", [fork])
    await service.provider.send("anvil_mine", ["0x3"])
    expect((await told(watchId, 5)).slice(3)).toEqual([
      [4, "watch.event", 5],
      [5, "watch.removed", 5]
    ])
    expect((await client.watches.get(watchId)).told).toBe(5)
    const [apply, standing] = [await shown(), new Map<string, Message["data"]>()]
    for (const message of toldOf(watchId)) apply(standing, message)
    expect([...standing.values()].map(({ args }) => args.value)).toEqual(["1", "3", "4"])
    for (const each of [watchId, barrier.watchId])
      expect(await client.watches.remove(each)).toEqual({ watchId: each, state: "removed" })
    await expect(client.watches.get(watchId)).rejects.toMatchObject({ code: "watch_not_found", status: 404 })
  }, 60_000)

  it("are listed by pages in the order of their making, and show no more of a URL than where it leads", async () => {
    const made: Array<string> = []
    const rpc = `${service.info.rpc}/?${Receiver.secretPath}`
    for (let n = 0; n < 5; n++) made.push((await add({ rpc })).watchId)
    const listed: Array<string> = []
    let cursor: string | null = null
    do {
      const page: Awaited<ReturnType<typeof client.watches.list>> = await client.watches.list({
        limit: "2",
        ...(cursor !== null && { cursor })
      })
      expect(JSON.stringify(page)).not.toContain(Receiver.secretPath)
      expect(page.watches.length).toBeLessThanOrEqual(2)
      listed.push(...page.watches.map(({ watchId }) => watchId))
      cursor = page.next
    } while (cursor !== null)
    expect(listed).toEqual(made)
    expect(service.log()).not.toContain(Receiver.secretPath)
    for (const [path, query] of [
      ["cursor", "?cursor=x"],
      ["limit", "?limit=101"],
      ["limit", "?limit=0"]
    ] as const) {
      const { body, status } = await ask<Envelope>("GET", query)
      expect([status, body.details[0]?.path]).toEqual([400, path])
    }
    await Promise.all(made.map((watchId) => client.watches.remove(watchId)))
    expect(await client.watches.list()).toEqual({ watches: [], next: null })
  })

  it.each([
    ["webhookId", { webhookId: "none" }],
    ["webhookId", { webhookId: "\u0000" }],
    ["eventDef", { eventDef: "event Transfer(" }],
    ["eventDef", { eventDef: "event T(uint256 a) anonymous" }],
    ["contracts[0]", { contracts: ["0x12"] }],
    ["contracts", { contracts: Array.from({ length: 257 }, () => recipient) }],
    ["fields.amount", { fields: { amount: "1" } }],
    ["fields.to", { fields: { to: Array.from({ length: 2_000 }, () => recipient) } }],
    ["fromBlock", { fromBlock: "9000000" }],
    ["fromBlock", { fromBlock: "yesterday" }],
    ["confirmations", { confirmations: 0 }],
    ["confirmations", { confirmations: 65 }],
    ["rpc", { rpc: "http://169.254.169.254/" }],
    ["rpc", { rpc: "ftp://127.0.0.1/" }],
    ["chainId", { chainId: 1 }]
  ])("are refused for their %s (%#)", async (path, fields) => {
    const body = { webhookId: webhook.webhookId, eventDef, rpc: service.info.rpc, ...fields }
    const { body: refused, status } = await ask<Envelope>("POST", "", body)
    expect([status, refused.details[0]?.path]).toEqual([400, path])
  })

  it("need a key with the scope webhooks, and change only as the body says", async () => {
    const { watchId } = await add()
    expect((await ask("PATCH", `/${watchId}`, { state: "held" })).status).toBe(400)
    expect((await ask("PATCH", `/${watchId}`, {})).status).toBe(400)
    expect((await ask<Envelope>("GET", "/%00")).body.code).toBe("watch_not_found")
    expect((await ask("GET", `/${watchId}`, undefined, "nobody's")).status).toBe(401)
    await client.watches.remove(watchId)
  })

  it("are a hundred without an indexed field for an account at most", async () => {
    const made = []
    for (let n = 0; n < 100; n++) made.push(await add({ fields: {} }))
    await expect(add({ fields: { value: "1" } })).rejects.toMatchObject({
      code: "too_many_watches",
      status: 400
    })
    expect((await add()).state).toBe("enabled")
    // They go with their webhook.
    await client.webhooks.remove(webhook.webhookId)
    expect(await client.watches.list()).toEqual({ watches: [], next: null })
  })
})
