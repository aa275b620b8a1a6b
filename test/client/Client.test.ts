import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it, vi } from "vitest"
import * as Client from "../../src/client/Client.js"

interface Sent {
  readonly url: string
  readonly method: string
  readonly headers: Headers
  readonly body: unknown
}

/** A service of prepared answers, one after the other; a failure is a connection that broke. */
const scripted = (...answers: ReadonlyArray<Response | "broken">) => {
  const sent: Array<Sent> = []
  const fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const body = typeof init.body === "string" ? JSON.parse(init.body) : undefined
    sent.push({ url: String(url), method: init.method ?? "GET", headers: new Headers(init.headers), body })
    const answer = answers[sent.length - 1]
    if (answer === undefined) throw new Error("one request too many")
    if (answer === "broken") throw new TypeError("fetch failed")
    return answer
  }
  const client = Client.make({ baseUrl: "https://castellan.example/wallets/", apiKey: "key", fetch })
  return { client, sent }
}

const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(body), { status, headers })

const problem = (code: string, more: object = {}) => ({
  error: "the problem",
  code,
  requestId: "r1",
  details: [{ path: "settings.rpc", message: "why" }],
  ...more
})

const soon = { "retry-after": "0.001" }
const accounts = [{ salt: "bob", walletCustody: 1 as const }]
const prediction = {
  accounts,
  settings: { factory: "0x1", beaconAdminAddress: "0x2", beaconAdminCreationCode: "0x" }
}
const signer = { clientId: "c", versionId: "1" }
const writing = { to: "0x1", value: "1", settings: { rpc: "https://node.example", signer } }
const result = { status: 1, txHash: "0xab" }

describe("a request", () => {
  it("a request goes to its path below the base with the key, and returns the body", async () => {
    const { client, sent } = scripted(json(200, [{ salt: "bob", wallet: "0x3", error: null }]))
    const [predicted] = await client.predict(prediction)
    expect(predicted?.wallet).toBe("0x3")
    expect(sent[0]).toMatchObject({
      url: "https://castellan.example/wallets/predict",
      method: "POST",
      body: prediction
    })
    expect(sent[0]?.headers.get("x-api-key")).toBe("key")
    expect(sent[0]?.headers.has("idempotency-key")).toBe(false)
  })

  it("a refused request rejects with the service's code, details and whole body", async () => {
    const body = problem("invalid_rpc", { txHash: "0xab" })
    const { client, sent } = scripted(json(400, body))
    const error = await client.predict(prediction).catch((why) => why)
    expect(error).toBeInstanceOf(Client.CastellanError)
    expect(error).toMatchObject({ code: "invalid_rpc", status: 400, requestId: "r1", body })
    expect(error.message).toBe("the problem; settings.rpc: why")
    expect(sent).toHaveLength(1)
  })

  it("a reply of a proxy has no error code of the service", async () => {
    const { client } = scripted(new Response("<html>", { status: 403 }))
    await expect(client.predict(prediction)).rejects.toMatchObject({ code: "no_answer", status: 403 })
  })
})

describe("a write", () => {
  it("a write keeps its own idempotency key in every repeat", async () => {
    const { client, sent } = scripted("broken", json(503, problem("overloaded"), soon), json(200, result))
    expect(await client.transactSigner(writing)).toEqual(result)
    const keys = sent.map(({ headers }) => headers.get("idempotency-key"))
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/)
    const other = scripted(json(200, result))
    await other.client.transactSigner(writing)
    expect(other.sent[0]?.headers.get("idempotency-key")).not.toBe(keys[0])
  })

  it("a write sends its metadata in ASCII", async () => {
    const { client, sent } = scripted(json(200, result))
    await client.transactSigner(writing, { metadata: { order: "№ 4711 🏰" } })
    const header = sent[0]?.headers.get("request-metadata") ?? ""
    expect(header).toMatch(/^[ -~]+$/)
    expect(JSON.parse(header)).toEqual({ order: "№ 4711 🏰" })
  })

  it("a write takes the caller's key, and names it when the outcome is unknown", async () => {
    const { client } = scripted(
      ...Array.from({ length: 5 }, () => new Response("", { status: 502, headers: soon }))
    )
    await expect(client.transactSigner(writing, { idempotencyKey: "mine" })).rejects.toMatchObject({
      code: "no_answer",
      idempotencyKey: "mine"
    })
  })

  it("a write is not sent again after a refusal", async () => {
    const { client, sent } = scripted(json(422, problem("insufficient_funds")))
    await expect(client.transactSigner(writing)).rejects.toMatchObject({ code: "insufficient_funds" })
    expect(sent).toHaveLength(1)
  })

  it("an asynchronous write is accepted, and awaited until it is final", async () => {
    const { client, sent } = scripted(
      json(202, { requestId: "r7" }),
      json(200, { requestId: "r7", state: "pending", httpStatus: null, answer: null }),
      json(200, { requestId: "r7", state: "final", httpStatus: 200, answer: result })
    )
    const accepted = await client.transactSigner(writing, { async: true })
    expect(await client.waitFor<"transactSigner">(accepted.requestId)).toEqual(result)
    expect(sent[0]?.headers.get("prefer")).toBe("respond-async")
    expect(sent[1]?.url).toBe("https://castellan.example/wallets/requests/r7?wait=30")
  })

  it("waitFor rejects a failed write as a synchronous call does", async () => {
    const answer = problem("request_cancelled")
    const { client } = scripted(json(200, { requestId: "r7", state: "final", httpStatus: 422, answer }))
    await expect(client.waitFor("r7")).rejects.toMatchObject({ code: "request_cancelled", status: 422 })
  })
})

describe("a repeat", () => {
  it("a repeat follows a 429 with a short wait, and not with a long one", async () => {
    const patient = scripted(json(429, problem("rate_limited"), soon), json(200, []))
    expect(await patient.client.predict(prediction)).toEqual([])
    const { client, sent } = scripted(json(429, problem("rate_limited"), { "retry-after": "3600" }))
    await expect(client.predict(prediction)).rejects.toMatchObject({ code: "rate_limited" })
    expect(sent).toHaveLength(1)
  })

  it("a signature whose reply was lost is not repeated", async () => {
    const { client, sent } = scripted("broken")
    await expect(client.sign({ messages: ["m"], signer })).rejects.toMatchObject({
      code: "no_answer",
      status: 0
    })
    expect(sent).toHaveLength(1)
  })

  it("a repeat ends with the caller's signal", async () => {
    const abort = new AbortController()
    const { client, sent } = scripted(json(429, problem("rate_limited"), { "retry-after": "9" }))
    const asked = client.predict(prediction, { signal: abort.signal })
    abort.abort(new Error("enough"))
    await expect(asked).rejects.toThrow("enough")
    expect(sent).toHaveLength(1)
  })
})

it("the client loads nothing but its own files", () => {
  const folder = fileURLToPath(new URL("../../src/client/", import.meta.url))
  for (const file of readdirSync(folder))
    for (const [line, kind, path] of readFileSync(`${folder}${file}`, "utf8").matchAll(
      /^(?:import|export)( type)? .*from "([^"]+)"$/gm
    ))
      expect(kind === " type" || path?.startsWith("./") === true, line).toBe(true)
})

describe("a client", () => {
  const made =
    (baseUrl: string, apiKey = "key") =>
    () =>
      Client.make({ baseUrl, apiKey })

  it("a client refuses an unusable URL or key without its value", () => {
    for (const baseUrl of [
      "",
      "/wallets",
      "castellan.example",
      "localhost:8080",
      "https//castellan.example",
      "https://",
      "ftp://castellan.example",
      "https://me:secret@castellan.example"
    ]) {
      expect(made(baseUrl)).toThrow(/^baseUrl: expected /)
      expect(made(baseUrl)).not.toThrow(/secret/)
    }
    for (const apiKey of ["secret\n", "", " ", "\t", undefined as unknown as string])
      expect(() => Client.make({ baseUrl: "https://castellan.example", apiKey })).toThrow(
        "apiKey: expected text that fits a header, and is not empty"
      )
  })

  it("a client takes a URL of the service, and any URL with a custom fetch", async () => {
    for (const baseUrl of ["https://castellan.example", "http://[::1]:8080/wallets/"])
      expect(made(baseUrl)).not.toThrow()
    const asked: Array<string> = []
    const fetch = async (url: string | URL | Request) => {
      asked.push(String(url))
      return json(200, [])
    }
    await Client.make({ baseUrl: "/wallets", apiKey: "key", fetch }).predict(prediction)
    expect(asked).toEqual(["/wallets/predict"])
  })

  it("a client in a web page takes a path of the page's origin", () => {
    vi.stubGlobal("location", { href: "https://castellan.example/page" })
    try {
      expect(made("/wallets")).not.toThrow()
      expect(made("ftp://castellan.example")).toThrow(/^baseUrl: expected /)
    } finally {
      vi.unstubAllGlobals()
    }
  })
})
