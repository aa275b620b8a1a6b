import { connect } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type DevService, type Envelope, start } from "../../support/http/DevService.js"

let service: DevService
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.stop())

const keyed = [
  "/predict",
  "/check",
  "/create",
  "/execute",
  "/estimateGas",
  "/executeEncoded",
  "/receipt",
  "/getSigner",
  "/getbundleraddress"
]

const predict = (accounts = 1) => ({
  accounts: Array.from({ length: accounts }, (_, n) => ({ salt: `s${n}`, walletCustody: 1 })),
  settings: service.info.settings
})

const envelopeKeys = ["code", "details", "error", "requestId"]

describe("an API key", () => {
  it("is asked for by every endpoint, before anything of the request is looked at", async () => {
    for (const path of keyed)
      for (const key of [null, "", "x", `cst_${"A".repeat(43)}`, "x".repeat(5_000)]) {
        const { body, headers, status } = await service.ask<Envelope>(path, "{", { key })
        expect({ path, status, code: body.code, error: body.error }).toEqual({
          path,
          status: 401,
          code: "unauthorized",
          error: "invalid API key"
        })
        expect(Object.keys(body).sort()).toEqual(envelopeKeys)
        expect(headers.get("x-request-id")).toBe(body.requestId)
        expect(headers.get("ratelimit-limit")).toBeNull()
      }
  })

  it.each(["free", "pro", "enterprise"] as const)("of the %s account signs and predicts", async (tier) => {
    const key = service.info.apiKeys[tier]
    const signer = await service.ask("/getSigner", { signer: service.info.settings.signer }, { key })
    expect(signer.status).toBe(200)
    expect((await service.ask("/predict", predict(), { key })).status).toBe(200)
  })

  it("in another case, with a blank or twice is another key", async () => {
    const { free } = service.info.apiKeys
    for (const key of [free.toUpperCase(), free.slice(0, -1), `${free}x`, `${free}, ${free}`]) {
      const { status } = await service.ask("/predict", predict(), { key })
      expect(status, key).toBe(401)
    }
  })
})

describe("a rate limit", () => {
  it.each([
    ["pro", 300],
    ["enterprise", 1_000]
  ] as const)("of the %s tier is %d a minute, and every answer says what is left", async (tier, limit) => {
    const key = service.info.apiKeys[tier]
    const { headers } = await service.ask("/predict", predict(), { key })
    expect(Number(headers.get("ratelimit-limit"))).toBe(limit)
    const left = Number(headers.get("ratelimit-remaining"))
    const next = await service.ask("/predict", "{", { key })
    const minuteIsOver = Number(next.headers.get("ratelimit-reset")) > Number(headers.get("ratelimit-reset"))
    if (!minuteIsOver) expect(Number(next.headers.get("ratelimit-remaining"))).toBe(left - 1)
    expect(Number(headers.get("ratelimit-reset"))).toBeGreaterThan(0)
    expect(Number(headers.get("ratelimit-reset"))).toBeLessThanOrEqual(60)
  })

  it("of the free tier takes 60 requests of a minute, good ones and bad ones alike, and refuses the rest", async () => {
    const key = service.info.apiKeys.free
    const minute = () => Math.floor(Date.now() / 60_000)
    /** The answers of one whole minute's allowance and a little more. */
    const burst = async () => {
      const bodies: ReadonlyArray<unknown> = [predict(), "{", { accounts: 1 }]
      const began = minute()
      const answers = await Promise.all(
        Array.from({ length: 130 }, (_, n) => service.ask<Envelope>("/predict", bodies[n % 3], { key }))
      )
      return { answers, whole: began === minute() }
    }
    // Earlier tests have used a few requests of this minute, unless it has just begun.
    let { answers, whole } = await burst()
    if (!whole) ({ answers, whole } = await burst())
    const limited = answers.filter(({ status }) => status === 429)
    expect(limited.length).toBeGreaterThanOrEqual(70)
    expect(limited.length).toBeLessThanOrEqual(130)
    for (const { body, headers } of limited) {
      expect({ code: body.code, error: body.error }).toEqual({
        code: "rate_limited",
        error: "rate limit exceeded"
      })
      const wait = Number(headers.get("retry-after"))
      expect(wait).toBeGreaterThan(0)
      expect(wait).toBeLessThanOrEqual(60)
      expect(headers.get("ratelimit-limit")).toBe("60")
      expect(headers.get("ratelimit-remaining")).toBe("0")
    }
    const others = await service.ask("/predict", predict())
    expect(others.status).toBe(200)
    const unlimited = await fetch(`${service.info.baseUrl}/health/live`, { headers: { "x-api-key": key } })
    expect(unlimited.status).toBe(200)
    await unlimited.text()
  })
})

describe("the envelope of a failure", () => {
  it("is the same for an unknown path and a wrong method", async () => {
    for (const path of [
      "/",
      "/nothing",
      "/predict/",
      "/Predict",
      "/predict/x",
      "//predict",
      "/%2e%2e/etc/passwd"
    ]) {
      const { body, status } = await service.ask<Envelope>(path, {})
      expect({ path, status, code: body.code }).toEqual({ path, status: 404, code: "not_found" })
      expect(Object.keys(body).sort()).toEqual(envelopeKeys)
    }
    for (const method of ["GET", "PUT", "DELETE", "PATCH"]) {
      const { body, headers, status } = await service.ask<Envelope>("/predict", undefined, { method })
      expect({ method, status, code: body.code }).toEqual({ method, status: 405, code: "method_not_allowed" })
      expect(headers.get("allow")).toBe("POST")
    }
  })

  it("is the same for another content type", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/jsonx",
      "application/json; charset=latin1"
    ]) {
      const { body, status } = await service.ask<Envelope>("/predict", predict(), {
        headers: { "content-type": type }
      })
      expect({ type, status, code: body.code }).toEqual({ type, status: 400, code: "invalid_content_type" })
    }
    for (const type of [
      "application/json; charset=utf-8",
      "application/json;charset=UTF-8",
      "Application/JSON"
    ]) {
      const { status } = await service.ask("/predict", predict(), { headers: { "content-type": type } })
      expect({ type, status }).toEqual({ type, status: 200 })
    }
  })

  it("names its own request in body and header, another one each time", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => service.ask<Envelope>("/predict", "{"))
    )
    expect(new Set(answers.map(({ body }) => body.requestId)).size).toBe(20)
    for (const { body, headers } of answers) expect(headers.get("x-request-id")).toBe(body.requestId)
  })

  it("comes to a caller who sends bad UTF-8", async () => {
    const answer = await fetch(`${service.info.baseUrl}/predict`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": service.info.apiKeys.enterprise },
      body: Buffer.from([0x22, 0xc3, 0x28, 0x22])
    })
    const body: Envelope = JSON.parse(await answer.text())
    expect({ code: body.code, status: answer.status }).toEqual({ code: "invalid_json", status: 400 })
  })

  it("comes to a caller whose request is no HTTP", async () => {
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(service.info.baseUrl).port), "127.0.0.1")
      let said = ""
      socket.on("data", (chunk) => {
        said += chunk.toString()
      })
      socket.on("close", () => resolve(said))
      socket.on("error", reject)
      socket.write("NONSENSE\r\n\r\n")
    })
    expect(text).toMatch(/^HTTP\/1\.1 400/)
    expect(Object.keys(JSON.parse(text.slice(text.indexOf("\r\n\r\n")))).sort()).toEqual(envelopeKeys)
  })
})

describe("a body", () => {
  const padded = (bytes: number) => {
    const text = JSON.stringify(predict())
    return `${text}${" ".repeat(bytes - Buffer.byteLength(text))}`
  }
  const mebi = 1_048_576

  it("of a mebibyte is read, of one byte more it is refused, and the answer arrives", async () => {
    expect((await service.ask("/predict", padded(mebi))).status).toBe(200)
    for (const bytes of [mebi + 1, 4 * mebi, 8 * mebi]) {
      const { body, status } = await service.ask<Envelope>("/predict", padded(bytes))
      expect({ bytes, status, code: body.code, error: body.error }).toEqual({
        bytes,
        status: 400,
        code: "body_too_large",
        error: "request body too large"
      })
    }
  })

  it("without a length is counted all the same", async () => {
    const stream = (bytes: number) =>
      new ReadableStream({
        start(controller) {
          const chunk = new Uint8Array(65_536).fill(32)
          for (let sent = 0; sent < bytes; sent += chunk.length) controller.enqueue(chunk)
          controller.enqueue(new TextEncoder().encode(JSON.stringify(predict())))
          controller.close()
        }
      })
    const ask = async (bytes: number) => {
      const answer = await fetch(`${service.info.baseUrl}/predict`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": service.info.apiKeys.enterprise },
        body: stream(bytes),
        duplex: "half"
      })
      return { status: answer.status, text: await answer.text() }
    }
    expect((await ask(65_536)).status).toBe(200)
    const refused = await ask(2 * mebi)
    expect(refused.status).toBe(400)
    expect(refused.text).toContain("body_too_large")
  })

  it("of 256 accounts with the longest salts fits", async () => {
    const accounts = Array.from({ length: 256 }, (_, n) => ({
      salt: `${n}`.padEnd(256, "x"),
      walletCustody: 1
    }))
    const answers = await service.ok<ReadonlyArray<unknown>>("/predict", {
      accounts,
      settings: service.info.settings
    })
    expect(answers).toHaveLength(256)
  })
})
