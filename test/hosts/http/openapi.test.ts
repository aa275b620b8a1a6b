import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Code, catalogue } from "../../../src/application/failures/Catalogue.js"
import * as Guide from "../../../src/hosts/http/docs/Guide.js"
import * as OpenApi from "../../../src/hosts/http/docs/OpenApi.js"
import * as Statuses from "../../../src/hosts/http/message/Statuses.js"
import { exchanges, pages, stale } from "../../../tools/docs.js"
import { document } from "../../../tools/reference/OpenApiDocument.js"
import { shown as shownAs } from "../../../tools/reference/Reference.js"
import { endpoints, exampleOf } from "../../support/http/Contract.js"
import { violations } from "../../support/http/OpenApiDocument.js"
import { send, start } from "../../support/http/Service.js"
import { finished } from "../../support/process/Finished.js"
import * as Port from "../../support/process/Port.js"
import * as Tools from "../../support/Tools.js"

/** All values within a JSON value, with their paths. */
function* parts(value: unknown, path = "#"): Generator<readonly [string, unknown]> {
  yield [path, value]
  if (typeof value === "object" && value !== null)
    for (const [name, inner] of Object.entries(value))
      yield* parts(inner, `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`)
}

const everything = new Map(parts(document))
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation }))
)

describe("the OpenAPI document", () => {
  it.live("is served as JSON without a key", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const answer = yield* send(url, "/openapi.json", { method: "GET", headers: { "x-api-key": "" } })
      expect(answer.headers.get("content-type")).toBe("application/json")
      expect(JSON.parse(answer.text)).toEqual(document)
    })
  )

  it("has version 3.1, the required fields and the package's version", () => {
    expect(document.openapi).toBe("3.1.0")
    const { version } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"))
    expect(document.info).toMatchObject({ title: "castellan", version })
  })

  it("has every endpoint of the contract once", () => {
    expect(operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)).toEqual(
      endpoints.map(({ method, path }) => `${method} ${OpenApi.templateOf(path)}`)
    )
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it("has request, response, key and every possible status of every endpoint", () => {
    const tags = document.tags.map(({ name }) => name)
    for (const { method, operation, path } of operations) {
      const endpoint = endpoints.find(
        (one) => OpenApi.templateOf(one.path) === path && one.method === method.toUpperCase()
      )
      expect(operation.summary).not.toBe("")
      expect(tags).toContain(operation.tags[0])
      expect(operation.security).toEqual(endpoint?.withKey ? [{ apiKey: [] }] : [])
      expect(operation.requestBody === undefined).toBe(endpoint?.payload === null)
      if (operation.requestBody !== undefined) {
        expect(operation.requestBody.required).toBe(endpoint?.bodyOptional === false)
        expect(operation.requestBody.content["application/json"]).toHaveProperty("schema")
        expect(operation.requestBody.content["application/json"]).toHaveProperty("example")
      }
      const isOfOne = /^\/(?:requests|webhooks|watches|policies|topups)\/\{/.test(path)
      const refusals = ["400", "401", ...(isOfOne ? ["404"] : []), "422", "429"]
      const open = path.startsWith("/health/") ? ["400"] : ["400", "429"]
      const more = path.endsWith("/events") ? ["204"] : []
      const success = ["200", ...(endpoint?.idempotent ? ["202"] : more)]
      const statuses = [...success, ...(endpoint?.withKey ? refusals : open), "500", "503"]
      expect(Object.keys(operation.responses)).toEqual(statuses)
      for (const response of Object.values(operation.responses)) {
        const resolved = "$ref" in response ? everything.get(response.$ref) : response
        expect(resolved).toHaveProperty("description")
        for (const media of Object.values(Object(resolved).content)) expect(media).toHaveProperty("schema")
      }
    }
    expect(document.components.securitySchemes.apiKey).toMatchObject({
      type: "apiKey",
      in: "header",
      name: "X-API-Key"
    })
  })

  it("describes every path and query parameter, and the headers of writes", () => {
    for (const { method, operation, path } of operations) {
      const endpoint = endpoints.find(
        (one) => OpenApi.templateOf(one.path) === path && one.method === method.toUpperCase()
      )
      const parameters = (operation.parameters ?? []).map((parameter) =>
        Object("$ref" in parameter ? everything.get(parameter.$ref) : parameter)
      )
      const names = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name)
      expect(path).not.toContain(":")
      expect(parameters.filter((one) => one.in === "path").map(({ name }) => name)).toEqual(names)
      expect(parameters.filter((one) => one.in === "header").map(({ name }) => name)).toEqual(
        endpoint?.idempotent
          ? ["Idempotency-Key", "Request-Metadata", "Prefer"]
          : path.endsWith("/events")
            ? ["Last-Event-ID"]
            : ["setPolicy", "removePolicy"].includes(endpoint?.name ?? "")
              ? ["If-Match"]
              : []
      )
      for (const parameter of parameters) {
        expect(parameter.required).toBe(parameter.in === "path")
        expect(parameter.description).not.toBe("")
        expect(violations(parameter.schema, parameter.example)).toEqual([])
      }
    }
  })

  it("describes the members of a described schema where it is used", () => {
    expect(document.components.schemas.SignRequest?.properties).toMatchObject({
      eip712: { $ref: "#/components/schemas/Eip712", description: expect.any(String) }
    })
    expect(document.components.schemas.Eip712?.properties).toMatchObject({
      address: { description: "verifyingContract of the domain." },
      chainId: { description: "Of any chain." }
    })
  })

  it("states the defaults of the interface", () => {
    const defaults = (name: string) =>
      Object.fromEntries(
        Object.entries(document.components.schemas[name]?.properties ?? {}).flatMap(([field, schema]) =>
          "default" in schema ? [[field, schema.default]] : []
        )
      )
    expect(defaults("Settings")).toEqual({
      cosigners: [],
      percentUserOpGasOvershoot: "50",
      percentTxGasOvershoot: "50",
      percentTxGasPriceOvershoot: "20",
      useABI: []
    })
    expect(defaults("Operation")).toEqual({ funcParams: [], value: "0", validAfter: 0, validUnitl: 0 })
    expect(defaults("EventQuery")).toEqual({
      contracts: [],
      fields: {},
      fromBlock: "latest",
      toBlock: "latest",
      useABI: []
    })
    expect(defaults("SignRequest")).toEqual({ allowOperationHash: false, format: "rsv", hashed: false })
    expect(defaults("UnstuckRequest")).toEqual({ dryRun: false, fillUnknown: false })
    expect(defaults("Account")).toEqual({ legacyWallet: false })
    const required = (name: string) => document.components.schemas[name]?.required ?? []
    expect(required("Settings")).toEqual(["entryPoint"])
    expect(required("Operation")).toEqual(["walletCustody", "to", "funcSignature"])
    expect(required("EventQuery")).toEqual([])
    expect(required("SignRequest")).toEqual(["messages", "signer"])
    expect(required("EncodedOperation")).toEqual(["encodedUserOp", "userOpHash", "walletCustody"])
  })

  it("lists exactly the catalogue's codes for each status", () => {
    const { Accepted: _, ...failures } = document.components.responses
    const codes = Object.values(failures).flatMap(({ content }) => {
      const ref = content["application/json"]?.schema.$ref ?? ""
      return Object(everything.get(ref)).properties.code.enum
    })
    const expected = (Object.keys(catalogue) as Array<Code>).filter((code) => Statuses.of(code) !== 405)
    expect(codes.toSorted()).toEqual(expected.toSorted())
  })
})

describe("the documentation page", () => {
  it.live("loads only the service's own files, by paths that work under any base path", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const { headers, text } = yield* send(url, "/docs", { method: "GET" })
      expect(headers.get("content-type")).toBe("text/html; charset=utf-8")
      expect(text).toMatch(/^<!DOCTYPE html>\n<html lang="en">/)
      const links = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = ""]) => link)
      expect(links).toEqual([
        "data:,",
        "docs/swagger-ui.css",
        "docs/page.css",
        "docs/swagger-ui-bundle.js",
        "docs/start.js",
        "openapi.json"
      ])
      expect(text).not.toMatch(/<style|<script(?! defer src=)|\son[a-z]+=|\sstyle=|javascript:/i)
      for (const file of links.slice(1, -1)) {
        const loaded = yield* send(url, `/${file}`, { method: "GET" })
        expect([file, loaded.status, loaded.text.length > 0]).toEqual([file, 200, true])
        const type = file.endsWith(".css") ? "text/css" : "text/javascript"
        expect(loaded.headers.get("content-type")).toBe(`${type}; charset=utf-8`)
      }
      expect((yield* send(url, "/docs/start.js", { method: "POST" })).status).toBe(405)
      expect((yield* send(url, "/docs/package.json", { method: "GET" })).status).toBe(404)
    })
  )

  it("shows rules that no schema states next to the document", () => {
    for (const { title } of Guide.chapters) expect(document.info.description).toContain(`## ${title}\n`)
    expect(document.info.summary).toContain("ERC-4337")
  })
})

describe("the generated pages", () => {
  const written = pages()
  /** The pages of all endpoint groups, concatenated. */
  const reference = Object.entries(written)
    .flatMap(([path, text]) => (path.startsWith("docs/reference/") ? [text] : []))
    .join("\n")

  it("generated pages match the contract and the catalogue; npm run docs writes them", () => {
    expect(stale()).toEqual([])
  })

  it("generated pages name every endpoint, code and message", () => {
    const { "docs/errors.md": errors = "", "docs/reference.md": first = "" } = written
    for (const { method, path } of endpoints) {
      expect(reference).toContain(`## ${method} ${OpenApi.templateOf(path)}\n`)
      expect(first).toContain(`[${method} ${OpenApi.templateOf(path)}](reference/`)
    }
    for (const [code, { text }] of Object.entries(catalogue))
      expect(errors).toContain(`| \`${code}\` | ${text} |`)
  })

  it("generated pages show a valid command for every endpoint with a body", async () => {
    await Tools.need("curl")
    const commands = [...reference.matchAll(/^curl [\s\S]*?(?=\n```$)/gm)].map(([command]) => command)
    const came: Array<string> = []
    const server = createServer(async (incoming, outgoing) => {
      let body = ""
      for await (const text of incoming.setEncoding("utf8")) body += text
      const key = incoming.headers["x-api-key"] === undefined ? "" : " key"
      const payload = body === "" ? "" : ` ${JSON.stringify(JSON.parse(body))}`
      came.push(`${incoming.method} ${incoming.url}${key}${payload}`)
      outgoing.end()
    })
    const port = await Port.listen(server)
    const script = commands.map((command) =>
      command.replace("curl http://127.0.0.1:8080", `curl -s http://127.0.0.1:${port}`)
    )
    const ran = await finished("bash", ["-c", ["set -e", ...script].join("\n")], ".")
    server.close()
    expect([ran.status, ran.stderr]).toEqual([0, ""])
    const shown = exchanges()
    expect(came.sort()).toEqual(
      endpoints
        .filter(({ payload }) => payload !== null)
        .map((one) => {
          const body = shown.get(one.name)?.request ?? one.example
          return `${one.method} ${exampleOf(one)} key ${JSON.stringify(body)}`
        })
        .sort()
    )
  })

  it("generated pages show exchanges of the contract for all but the two documents", () => {
    const shown = exchanges()
    const strict = { onExcessProperty: "error" } as const
    const without = endpoints.flatMap((endpoint) => {
      const exchange = shown.get(endpoint.name)
      if (exchange === undefined) return [endpoint.name]
      const { answer, request } = exchange
      const { name, payload, success } = endpoint
      expect(request === undefined, name).toBe(payload === null)
      if (payload !== null) expect(() => Schema.decodeUnknownSync(payload, strict)(request)).not.toThrow()
      const { text } = shownAs(answer)
      if (typeof answer !== "string")
        expect(() => Schema.decodeUnknownSync(success, strict)(answer)).not.toThrow()
      const [, section = ""] = reference.split(`## ${endpoint.method} ${OpenApi.templateOf(endpoint.path)}\n`)
      const [own = ""] = section.split("\n## ")
      const isShown = own.includes(`\n${text}\n\`\`\`\n`)
      // An endpoint that answers as another one of the page refers to it.
      const refers = /^Answer: (?:in `\S+` the fields of |the fields of [^,]*\.$)/m.test(own)
      expect([name, isShown !== refers]).toEqual([name, true])
      return []
    })
    expect(without).toEqual(["openapi", "docs"])
    expect([...shown.keys()].filter((name) => !endpoints.some((one) => one.name === name))).toEqual([])
  })
})
