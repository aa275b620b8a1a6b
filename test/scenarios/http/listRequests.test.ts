import { beforeAll, describe, expect, it } from "vitest"
import { type Envelope, first } from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

interface List {
  readonly requests: ReadonlyArray<{
    readonly requestId: string
    readonly endpoint: string
    readonly chainId: number
    readonly state: "pending" | "final"
    readonly acceptedAt: number
    readonly metadata: Readonly<Record<string, string>>
  }>
  readonly next: string | null
}

const recipient = "0x000000000000000000000000000000000000dEaD"

const service = perFile()
/** In the order of their acceptance; the last two are not mined. */
const ids: Array<string> = []

const pay = async (value: number): Promise<string> => {
  const { body, status } = await service.ask<{ readonly requestId: string }>(
    "/transactSigner",
    service.payment(value),
    {
      headers: {
        prefer: "respond-async",
        "request-metadata": JSON.stringify({ value: String(value), "is.even": String(value % 2 === 0) })
      }
    }
  )
  expect(status).toBe(202)
  return body.requestId
}

beforeAll(async () => {
  for (const value of [1, 2, 3]) {
    const id = await pay(value)
    expect((await service.request(`${id}?wait=60`)).body.state).toBe("final")
    ids.push(id)
  }
  await service.automine(false)
  for (const value of [4, 5]) ids.push(await pay(value))
})

const get = <Body = List>(query: string, key = service.info.apiKeys.enterprise) =>
  service.ask<Body>(`/requests${query}`, undefined, { method: "GET", key })
const listed = async (query: string) => (await get(query)).body.requests.map(({ requestId }) => requestId)
const newestFirst = () => ids.toReversed()

describe("GET /requests", () => {
  it("has the account's requests, the newest first", async () => {
    const { body, status } = await get("")
    expect([status, body.next]).toEqual([200, null])
    expect(body.requests.map(({ requestId }) => requestId)).toEqual(newestFirst())
    const { acceptedAt, endpoint, metadata, requestId, state } = (await service.request(String(ids[0]))).body
    expect(body.requests.at(-1)).toEqual({ requestId, endpoint, state, acceptedAt, metadata, chainId: 31337 })
    expect(metadata).toEqual({ value: "1", "is.even": "false" })
    expect((await get("", service.info.apiKeys.pro)).body).toEqual({ requests: [], next: null })
  })

  it("returns page after page, each request once", async () => {
    const found: Array<string> = []
    let query = "?limit=2"
    for (let pages = 0; query !== ""; pages += 1) {
      expect(pages).toBeLessThan(3)
      const { next, requests } = (await get(query)).body
      found.push(...requests.map(({ requestId }) => requestId))
      query = next === null ? "" : `?limit=2&cursor=${next}`
    }
    expect(found).toEqual(newestFirst())
  })

  it("has those of a state and of a time alone", async () => {
    expect(await listed("?state=pending")).toEqual(newestFirst().slice(0, 2))
    expect(await listed("?state=final")).toEqual(newestFirst().slice(2))
    const [newest] = (await get("?limit=1")).body.requests
    const at = newest?.acceptedAt ?? 0
    expect(await listed(`?since=${at}`)).toContain(newest?.requestId)
    expect(await listed(`?until=${at}`)).not.toContain(newest?.requestId)
    expect(await listed(`?since=${at + 60}`)).toEqual([])
    expect(await listed(`?since=0&until=${at + 60}&state=pending&limit=1`)).toEqual([newest?.requestId])
  })

  it("has those of a wallet, with a member of their metadata and of a state alone, a page at a time", async () => {
    expect(await listed(`?wallet=${recipient}`)).toEqual([])
    expect(await listed(`?wallet=${recipient}&metadata=value:2`)).toEqual([])
    await service.automine(true)
    const wallet = first(await service.create("one"))
    const operation = {
      salt: "one",
      walletCustody: 1,
      to: service.info.token,
      funcSignature: "mint(address,uint256)",
      funcParams: [wallet, "1"]
    }
    const executed: Array<string> = []
    for (const order of ["a", "b", "a", "a"]) {
      const { headers } = await service.ask(
        "/execute",
        { operations: [operation], settings: service.info.settings },
        { headers: { "request-metadata": JSON.stringify({ order }) } }
      )
      executed.push(String(headers.get("x-request-id")))
    }
    const own = `?wallet=${wallet}&metadata=order:a`
    const { next, requests } = (await get(`${own}&state=final&since=0&limit=2`)).body
    expect(requests.map(({ requestId }) => requestId)).toEqual([executed[3], executed[2]])
    expect(await listed(`${own}&state=final&since=0&cursor=${next}`)).toEqual([executed[0]])
    expect(await listed(`${own}&state=pending`)).toEqual([])
    expect((await get(own, service.info.apiKeys.pro)).body.requests).toEqual([])
  })

  it.each([
    ["metadata", "value"],
    ["metadata", ":2"],
    ["wallet", "0x1"],
    ["state", "open"],
    ["since", "-1"],
    ["until", "1.5"],
    ["limit", "0"],
    ["limit", "101"],
    ["cursor", ""],
    ["cursor", "x"],
    ["cursor", "MS4x.MQ"]
  ])("refuses %s=%s", async (name, value) => {
    const { body, status } = await get<Envelope>(`?${name}=${value}`)
    expect([status, body.code, body.details[0]?.path]).toEqual([400, "invalid_request", name])
  })
})
