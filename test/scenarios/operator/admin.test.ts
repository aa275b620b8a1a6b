import { request as ask, createServer, type Server } from "node:http"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { getAddress } from "ethers"
import * as DevService from "../../support/http/DevService.js"
import * as Port from "../../support/process/Port.js"

const token = "an operator's token of the tests"

interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
}

interface AuditEntry {
  readonly kind: string
  readonly accountId: string | null
  readonly requestId: string | null
  readonly by: string | null
  readonly signer: string
  readonly hash: string
  readonly chainId: string | null
}

/** A collector that records its input. */
class Collector {
  readonly bodies: Array<{ readonly path: string; readonly body: string; readonly authorization: string }> =
    []
  private waiting: Array<() => void> = []
  private constructor(
    private readonly server: Server,
    readonly url: string
  ) {}

  static async start(): Promise<Collector> {
    const server = createServer((request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        collector.bodies.push({
          path: request.url ?? "",
          body: Buffer.concat(parts).toString("utf8"),
          authorization: request.headers.authorization ?? ""
        })
        for (const resolve of collector.waiting.splice(0)) resolve()
        response.end("{}")
      })
    })
    const port = await Port.listen(server)
    const collector = new Collector(server, `http://127.0.0.1:${port}/otlp/`)
    return collector
  }

  get spans(): ReadonlyArray<Span> {
    return this.bodies
      .filter(({ path }) => path === "/otlp/v1/traces")
      .flatMap(({ body }) =>
        (
          JSON.parse(body) as {
            resourceSpans: ReadonlyArray<{ scopeSpans: ReadonlyArray<{ spans: ReadonlyArray<Span> }> }>
          }
        ).resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
      )
  }

  async until(seen: () => boolean): Promise<void> {
    while (!seen()) await new Promise<void>((resolve) => void this.waiting.push(resolve))
  }

  stop(): Promise<void> {
    this.server.closeAllConnections()
    return new Promise((resolve) => this.server.close(() => resolve()))
  }
}

let service: DevService.DevService
let collector: Collector
let admin: string

beforeAll(async () => {
  collector = await Collector.start()
  service = await Port.withFree((port) => {
    admin = `http://127.0.0.1:${port}`
    return DevService.start({
      network: { lowBalance: "1000000000000000000000000" },
      config: {
        admin: { port, token, hosts: ["castellan.internal", ".pods.internal", "10.0.0.0/8", "fd00::/8"] },
        telemetry: { url: collector.url, authorization: "Bearer of the collector", intervalMillis: 100 }
      }
    })
  })
}, 120_000)

afterAll(async () => {
  await service.stop()
  await collector.stop()
})

const get = (
  path: string,
  headers: Readonly<Record<string, string>> = { authorization: `Bearer ${token}` }
) => fetch(`${admin}${path}`, { headers })

const figures = async (): Promise<ReadonlyMap<string, number>> => {
  const text = await (await get("/metrics")).text()
  return new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => {
        const at = line.lastIndexOf(" ")
        return [line.slice(0, at), Number(line.slice(at + 1))]
      })
  )
}

const audit = async (query: string): Promise<ReadonlyArray<AuditEntry>> =>
  ((await (await get(`/audit?${query}`)).json()) as { entries: ReadonlyArray<AuditEntry> }).entries

const post = (path: string, body: unknown) =>
  fetch(`${service.info.baseUrl}${path}`, {
    method: "POST",
    headers: { "x-api-key": service.info.apiKeys.pro, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

describe("the operator's port", () => {
  it("requires the operator's token", async () => {
    expect((await get("/metrics", {})).status).toBe(401)
    expect((await get("/metrics", { authorization: "Bearer something else" })).status).toBe(401)
    expect((await get("/metrics", { authorization: `Basic ${token}` })).status).toBe(401)
    expect((await get("/audit", { "x-api-key": service.info.apiKeys.enterprise })).status).toBe(401)
    expect((await get("/metrics")).status).toBe(200)
  })

  it("refuses pages of other sites and other host names", async () => {
    const authorization = `Bearer ${token}`
    const status = async (headers: Readonly<Record<string, string>>) =>
      new Promise<number>((resolve, reject) => {
        const sent = ask(`${admin}/metrics`, { headers: { authorization, ...headers } }, (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        })
        sent.on("error", reject).end()
      })
    expect(await status({ host: "evil.example" })).toBe(421)
    expect(await status({ host: "localhost.evil.example:80" })).toBe(421)
    expect(await status({ host: "castellan.internal" })).toBe(200)
    for (const host of ["a.pods.internal:9464", "10.1.2.3:9464", "[fd00::17]:9464", "10.1.2.3"])
      expect([host, await status({ host })]).toEqual([host, 200])
    for (const host of ["pods.internal", "evilpods.internal", "11.1.2.3", "[fe80::17]", "10.evil.example"])
      expect([host, await status({ host })]).toEqual([host, 421])
    expect(await status({ origin: "https://evil.example" })).toBe(403)
    expect(await status({ "sec-fetch-site": "cross-site" })).toBe(403)
    expect(await status({ "sec-fetch-site": "same-site" })).toBe(403)
  })

  it("validates paths, methods and parameters", async () => {
    const headers = { authorization: `Bearer ${token}` }
    expect((await fetch(`${admin}/metrics`, { method: "POST", headers })).status).toBe(405)
    expect((await get("/other")).status).toBe(404)
    const wrong = ["limit=0", "limit=x", "hash=0x12", "signer=me", "from=yesterday", "user=me"]
    for (const query of [...wrong, "request=%00", "account=a%00"]) {
      const answer = await get(`/audit?${query}`)
      expect([query, answer.status]).toEqual([query, 400])
      expect(((await answer.json()) as { error: string }).error).toContain(query.split("=")[0])
    }
  })

  it("shows figures, signatures, transaction and trace of a request", async () => {
    const before = await figures()
    const answer = await post("/transactSigner", {
      to: "0x000000000000000000000000000000000000dEaD",
      value: "1",
      settings: service.info.settings
    })
    const result = (await answer.json()) as { txHash: string }
    expect(answer.status).toBe(200)
    const requestId = answer.headers.get("x-request-id") ?? ""
    const after = await figures()
    const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0)
    const chain = String(service.info.chainId)
    expect(grown('castellan_requests_total{endpoint="POST /transactSigner",status="200",code=""}')).toBe(1)
    expect(grown('castellan_request_seconds_count{endpoint="POST /transactSigner"}')).toBe(1)
    expect(grown('castellan_request_seconds_bucket{endpoint="POST /transactSigner",le="+Inf"}')).toBe(1)
    expect(grown(`castellan_transactions_signed_total{chain="${chain}"}`)).toBe(1)

    const entries = await audit(`request=${requestId}`)
    expect(entries.map(({ accountId, kind }) => [kind, accountId])).toEqual([
      ["transaction", "pro"],
      ["signature", "pro"]
    ])
    const [transaction, signature] = entries
    expect(transaction).toMatchObject({ hash: result.txHash, chainId: chain, by: "/transactSigner" })
    expect(transaction?.signer).toBe(signature?.signer)
    expect(await audit(`hash=${result.txHash}`)).toEqual([transaction])
    const signer = transaction?.signer ?? ""
    expect(getAddress(signer)).toBe(signer)
    const lane = `{chain="${chain}",signer="${signer}"}`
    expect(after.get(`castellan_eoa_balance_wei${lane}`)).toBeGreaterThan(0)
    expect(after.get(`castellan_signature_seconds_count{signer="${signer}"}`)).toBeGreaterThan(0)

    const rootOf = () => collector.spans.find(({ name }) => name === "POST /transactSigner")
    await collector.until(() => rootOf() !== undefined)
    const traceId = rootOf()?.traceId
    const names = () => collector.spans.filter((span) => span.traceId === traceId).map(({ name }) => name)
    await collector.until(() => names().includes("TransactSigner"))
    expect(names()).toContain("Signers.resolve")
    // Requests are accepted together, and signed by the workers of their lanes.
    const all = () => collector.spans.map(({ name }) => name)
    for (const name of ["Journal.accept", "Signer.sign", "Journal.record"])
      await collector.until(() => all().includes(name))
  })

  it("records every digest of /sign in the audit log", async () => {
    const answer = await post("/sign", { messages: ["a", "b"], signer: service.info.settings.signer })
    expect(answer.status).toBe(200)
    const entries = await audit(`request=${answer.headers.get("x-request-id")}`)
    expect(entries.map(({ by, kind }) => `${kind} ${by}`)).toEqual(["signature /sign", "signature /sign"])
  })

  it("records digests that could prove an operation, with the operator that allowed them", async () => {
    const { signer } = service.info.settings
    const hash = `0x${"5a".repeat(32)}`
    const by = async (body: object) => {
      const answer = await post("/sign", { signer, ...body })
      const entries = await audit(`request=${answer.headers.get("x-request-id")}`)
      return entries.map((entry) => entry.by).sort()
    }
    expect(await by({ messages: ["a", hash] })).toEqual(["/sign"])
    expect(await by({ messages: ["a", hash], allowOperationHash: true })).toEqual([
      "/sign",
      "/sign allowOperationHash"
    ])
    expect(await by({ messages: [hash], hashed: true, allowOperationHash: true })).toEqual(["/sign"])
  })

  it("returns Prometheus metrics, with each family declared once", async () => {
    const text = await (await get("/metrics")).text()
    const types = text.split("\n").filter((line) => line.startsWith("# TYPE "))
    expect(new Set(types.map((line) => line.split(" ")[2])).size).toBe(types.length)
    for (const line of text.split("\n").filter((line) => line !== "" && !line.startsWith("#")))
      expect(line).toMatch(/^castellan_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [-+0-9.eInf]+$/)
  })

  it("returns the buckets of a histogram in order and cumulatively", async () => {
    const text = await (await get("/metrics")).text()
    const buckets = new Map<string, ReadonlyArray<readonly [le: number, count: number]>>()
    for (const [, name = "", le = "", count = ""] of text.matchAll(
      /^(castellan_[a-z_]+_bucket\{.*?),?le="([^"]+)"\} ([0-9]+)$/gm
    ))
      buckets.set(name, [
        ...(buckets.get(name) ?? []),
        [le === "+Inf" ? Infinity : Number(le), Number(count)]
      ])
    expect(buckets.size).toBeGreaterThan(1)
    for (const list of buckets.values()) {
      expect(list).toEqual([...list].sort(([a], [b]) => a - b))
      expect(list.map(([, count]) => count)).toEqual(list.map(([, count]) => count).sort((a, b) => a - b))
      expect(list.at(-1)?.[0]).toBe(Infinity)
    }
  })

  it("exports metrics and traces to the collector without secrets", async () => {
    await collector.until(() => collector.bodies.some(({ path }) => path === "/otlp/v1/metrics"))
    expect(new Set(collector.bodies.map(({ authorization }) => authorization))).toEqual(
      new Set(["Bearer of the collector"])
    )
    // Traces omit the operator's own requests and their queries.
    expect(collector.spans.filter(({ name }) => name.startsWith("http.server"))).toEqual([])
    const all = collector.bodies.map(({ body }) => body).join("\n")
    for (const secret of [token, ...Object.values(service.info.apiKeys)]) expect(all).not.toContain(secret)
  })
})
