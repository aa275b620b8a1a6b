import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import { computeAddress } from "ethers"
import { api } from "../../../../src/hosts/http/contract/Api.js"
import * as Configured from "../../../support/accounts/Castellan.js"
import * as Bundle from "../../../support/process/Bundle.js"
import * as CommandLine from "../../../support/process/CommandLine.js"
import * as Port from "../../../support/process/Port.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-call-"))
const privateKey = `0x${"4d".repeat(32)}`
const castellan = Configured.make(
  folder,
  {
    allowPrivateKeys: true,
    accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [] }],
    providers: [{ kind: "private-key", name: "vault", keys: [{ name: "one", privateKey: { env: "ONE" } }] }],
    signers: [{ accounts: ["acme"], clientId: "c", versionId: "1", provider: "vault", key: "one" }]
  },
  { ONE: privateKey }
)

let service: Awaited<ReturnType<typeof castellan.serve>>
let key = ""
beforeAll(async () => {
  service = await castellan.serve()
  const issued = await Effect.runPromise(CommandLine.run(["keys", "create", "acme", "--json"], castellan.env))
  key = JSON.parse(issued).key
  await Configured.until("unknown_field", () => Configured.ask(service.url, key, "/predict", { not: 1 }))
})
afterAll(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

const env = () => ({ CASTELLAN_URL: service.url, CASTELLAN_API_KEY: key })
const call = (...args: ReadonlyArray<string>) => CommandLine.run(["call", ...args], env())
const signer = { clientId: "c", versionId: "1" }
const networks = expect.arrayContaining([expect.objectContaining({ chainId: 137 })])

/** Requests at a service whose first response is lost. */
const received = async (...args: ReadonlyArray<string>) => {
  const requests: Array<string> = []
  const server = createServer(({ headers, method, socket, url }, response) => {
    requests.push(`${method} ${url} ${headers["idempotency-key"] ?? "without key"}`)
    if (requests.length === 1) socket.destroy()
    else response.end("{}")
  })
  const port = await Port.listen(server)
  try {
    const words = ["call", ...args, "--url", `http://127.0.0.1:${port}`]
    await Effect.runPromise(Effect.result(CommandLine.run(words, env())))
    return requests
  } finally {
    server.close()
  }
}

/** Standard output of the command with a pipe as standard input. */
const piped = async (args: ReadonlyArray<string>, input: Buffer): Promise<string> => {
  const program = await Bundle.of("src/hosts/cli/castellan.ts")
  const child = spawn(process.execPath, [program, ...args], { env: { ...process.env, ...env() } })
  child.stdin.end(input)
  return text(child.stderr)
}

describe("castellan call", () => {
  it("retries only idempotent calls", async () => {
    for (const args of [
      ["webhooks", "{}"],
      ["watches", "{}"],
      ["webhooks/one/rotate", "{}"],
      ["webhooks/one", "--method", "DELETE"],
      ["sign", "{}"],
      ["execute/", "{}"],
      ["unknown", "{}"]
    ])
      expect(await received(...args), args.join(" ")).toHaveLength(1)
    for (const args of [
      ["networks"],
      ["predict", "{}"],
      ["requests/one", "--method", "DELETE"],
      ["webhooks/one", "{}", "--method", "PATCH"]
    ])
      expect(await received(...args), args.join(" ")).toHaveLength(2)
  })

  it("gives a write its idempotency key, with any query after its path", async () => {
    const [first = "", second] = await received("execute?of=mine", "{}")
    expect(first).toMatch(/^POST \/execute\?of=mine [0-9a-f-]{36}$/)
    expect(second).toBe(first)
  })

  it("uses the method of every endpoint", async () => {
    const text = await Effect.runPromise(CommandLine.run(["call", "--help"], {}))
    const asked = new Set<string>()
    HttpApi.reflect(api, {
      onGroup: () => {},
      onEndpoint: ({ endpoint }) => void asked.add(endpoint.method)
    })
    expect(asked.size).toBeGreaterThan(3)
    for (const method of asked) expect(text).toMatch(new RegExp(`--method .*\\b${method}\\b`))
  })

  it("sends JSON and prints JSON, the same with --json", async () => {
    for (const flags of [[], ["--json"]]) {
      const text = await Effect.runPromise(call("getSigner", JSON.stringify({ signer }), ...flags))
      expect(JSON.parse(text)).toMatchObject({ address: computeAddress(privateKey) })
    }
  })

  it("accepts paths with a query, and endpoints without a body", async () => {
    expect(JSON.parse(await Effect.runPromise(call("requests?limit=5")))).toMatchObject({ requests: [] })
    expect(JSON.parse(await Effect.runPromise(call("/networks")))).toEqual(networks)
  })

  it("prints a refusal with its code, status and request id", async () => {
    const none = "requests/5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"
    expect(await Effect.runPromise(Effect.flip(call(none)))).toMatch(/HTTP 404, request_not_found, request /)
    const cancelled = await Effect.runPromise(Effect.flip(call(none, "--method", "DELETE")))
    expect(cancelled).toContain("request_not_found")
    const write = call("execute", '{"operations": []}', "--idempotency-key", "mine", "--async")
    expect(await Effect.runPromise(Effect.flip(write))).toMatch(/HTTP 400, .*idempotency key mine/)
  })

  it("refuses invalid calls without a request", async () => {
    const refused = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>>) =>
      Effect.runPromise(Effect.flip(CommandLine.run(["call", ...args], env)))
    expect(await refused(["networks"], {})).toContain("CASTELLAN_URL")
    expect(await refused(["networks"], { CASTELLAN_URL: service.url })).toContain("CASTELLAN_API_KEY")
    expect(await refused(["networks", "--url", "ftp://host"], env())).toContain("--url")
    expect(await refused(["predict", "{"], env())).toContain("not JSON")
    expect(await refused(["predict", "{}", "--async"], env())).toContain("are for writes")
  })

  it("rejects a body with duplicate names, imprecise numbers or invalid UTF-8", async () => {
    const refused = (body: string) => Effect.runPromise(Effect.flip(call("predict", body)))
    expect(await refused('{"accounts": [{"salt": "a", "salt": "b", "walletCustody": 1}]}')).toBe(
      "the body is not valid: accounts[0].salt: the name occurs twice in one object"
    )
    expect(await refused('{"a": 12345678901234567891}')).toContain("lose digits")
    const latin1 = Buffer.from('{"accounts": [{"salt": "Jos\xe9", "walletCustody": 1}]}', "latin1")
    expect(await piped(["call", "predict", "@-"], latin1)).toContain("the body is not well-formed UTF-8")
    const utf8 = '{"accounts": [{"salt": "Jos\u00e9", "walletCustody": 1}]}'
    expect(await piped(["call", "predict", "@-"], Buffer.from(utf8))).not.toContain("UTF-8")
  })

  it("reports an unreachable service without secrets of the URL or the key", async () => {
    const refused = (url: string, key: string) =>
      Effect.runPromise(
        Effect.flip(CommandLine.run(["call", "networks", "--url", url], { CASTELLAN_API_KEY: key }))
      )
    const closed = `http://127.0.0.1:${await Port.free()}`
    expect(await refused(`${closed}/wallets?secret`, "cst_x")).toBe(
      `the service did not answer at ${closed} (no_answer, ECONNREFUSED)`
    )
    expect(await refused("http://user:hunter2@127.0.0.1:9", "cst_x")).toBe(
      "--url: expected an http or https URL without user information"
    )
    expect(await refused("http://127.0.0.1:9", "cst_hun\nter2")).toBe(
      "CASTELLAN_API_KEY is to hold an API key, and holds what none has"
    )
  })

  it("calls the folder's development stack with its settings, and sends its key to no other URL", async () => {
    const at = join(folder, ".castellan")
    mkdirSync(at)
    const dev = {
      baseUrl: service.url,
      apiKeys: { pro: key },
      settings: { signer, oops: 1 },
      paymaster: "0x1"
    }
    writeFileSync(join(at, "dev.json"), JSON.stringify(dev))
    const before = process.cwd()
    process.chdir(folder)
    try {
      const alone = await Effect.runPromise(CommandLine.run(["call", "networks"], {}))
      expect(JSON.parse(alone)).toEqual(networks)
      const filled = CommandLine.run(["call", "execute", '{"operations": []}'], {})
      expect(await Effect.runPromise(Effect.flip(filled))).toContain("settings.oops")
      const own = CommandLine.run(["call", "execute", '{"operations": [], "settings": {}}'], {})
      expect(await Effect.runPromise(Effect.flip(own))).not.toContain("oops")
      const other = CommandLine.run(["call", "networks", "--url", "http://127.0.0.1:9"], {})
      expect(await Effect.runPromise(Effect.flip(other))).toContain("CASTELLAN_API_KEY")
    } finally {
      process.chdir(before)
    }
  })
})
