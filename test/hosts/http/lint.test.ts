import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import { type Code, catalogue } from "../../../src/application/failures/Catalogue.js"
import * as Conformance from "../../support/http/Conformance.js"
import { document, type Exchange, untruths } from "../../support/http/OpenApiDocument.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-lint-"))
afterAll(() => rmSync(folder, { recursive: true }))

const local = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** The linter's findings on a document; its network access is off. */
const lint = (content: unknown) => {
  const file = join(folder, "openapi.json")
  writeFileSync(file, JSON.stringify(content))
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    [
      local("../../../node_modules/@redocly/cli/bin/cli.js"),
      "lint",
      "--config",
      local("redocly.yaml"),
      "--format",
      "json",
      file
    ],
    {
      cwd: folder,
      encoding: "utf8",
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        REDOCLY_TELEMETRY: "off",
        REDOCLY_SUPPRESS_UPDATE_NOTICE: "true"
      }
    }
  )
  const from = stdout.indexOf("{")
  if (from < 0) throw new Error(`the linter said nothing: ${stderr}`)
  const { problems } = JSON.parse(stdout.slice(from))
  return {
    status,
    problems: problems.map(
      ({ message, ruleId }: { message: string; ruleId: string }) => `${ruleId}: ${message}`
    )
  }
}

describe("the OpenAPI document, linted", () => {
  it("the OpenAPI document has no lint finding", () => {
    expect(lint(document)).toEqual({ status: 0, problems: [] })
  })

  it("the linter finds planted faults", () => {
    const { paths } = document
    const broken = {
      ...document,
      security: undefined,
      paths: {
        ...paths,
        "/predict": {
          post: { ...paths["/predict"]?.post, operationId: "check", summary: undefined, responses: {} }
        }
      }
    }
    const { problems, status } = lint(broken)
    expect(status).not.toBe(0)
    for (const rule of ["operation-operationId-unique", "operation-summary", "operation-2xx-response"])
      expect(problems.join("\n")).toContain(rule)
  })
})

const exchange = (change: Partial<Exchange>): Exchange => ({
  method: "POST",
  target: "/predict",
  sent: JSON.stringify(document.paths["/predict"]?.post?.requestBody?.content["application/json"]?.example),
  status: 200,
  headers: new Headers({ "content-type": "application/json", "x-request-id": "r" }),
  text: '[{"salt":"a","wallet":"0x","error":null}]',
  ...change
})

const error = (code: Code, message = "m", text: string = catalogue[code].text) =>
  JSON.stringify({ error: text, code, requestId: "r", details: [{ path: "", message }] })

describe("an exchange", () => {
  const lies: ReadonlyArray<readonly [string, Partial<Exchange>]> = [
    ["an answer of another shape", { text: '[{"salt":"a","wallet":1,"error":null}]' }],
    ["an answer that lacks a field", { text: '[{"salt":"a","wallet":"0x"}]' }],
    ["no JSON", { text: "<html>" }],
    ["an empty body", { text: "" }],
    ["another content type", { headers: new Headers({ "content-type": "text/plain", "x-request-id": "r" }) }],
    ["a status that is not listed", { status: 418 }],
    ["a code of another status", { status: 400, text: error("internal_error") }],
    ["a plain text body", { status: 400, text: error("invalid_rpc", "m", "bad request") }],
    ["an error without an envelope", { status: 400, text: '{"message":"no"}' }],
    ["429 without Retry-After", { status: 429, text: error("rate_limited") }],
    ["success to a body with a field too many", { sent: '{"accounts":[],"settings":{},"more":1}' }],
    ["success to half a body", { sent: '{"accounts":' }],
    ["an unknown field in a good request", { status: 400, text: error("unknown_field", "unknown field") }],
    ["a crash at an unknown path", { target: "/nope", status: 500, text: error("internal_error") }]
  ]

  it("a correct exchange conforms to the document", () => {
    expect(untruths(exchange({}))).toEqual([])
    expect(untruths(exchange({ status: 400, text: error("invalid_request"), sent: "{" }))).toEqual([])
    expect(untruths(exchange({ target: "/nope", status: 404, text: error("not_found") }))).toEqual([])
  })

  it.each(lies)("a wrong exchange is found: %s", (_, change) => {
    expect(untruths(exchange(change))).not.toEqual([])
  })

  it("an exchange is checked against the document on every fetch from the service, in every test file", async () => {
    const voice = {
      fetch: async () =>
        new Response(JSON.stringify({ status: "well" }), {
          headers: {
            "content-type": "application/json",
            "x-request-id": globalThis.crypto.randomUUID(),
            "referrer-policy": "no-referrer"
          }
        })
    }
    const planted = Conformance.install(voice)
    await (voice as { fetch: typeof globalThis.fetch }).fetch("http://127.0.0.1/health/live")
    planted.remove()
    expect(planted.take()).toEqual([expect.stringContaining("GET /health/live 200: /status")])
    expect(readFileSync(local("../../../vitest.config.ts"), "utf8")).toContain('"test/support/http/setup.ts"')
  })
})
