import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Code, catalogue } from "../../../src/application/request/Catalogue.js"
import { api } from "../../../src/hosts/http/contract/Api.js"
import * as OpenApi from "../../../src/hosts/http/docs/OpenApi.js"
import * as Reference from "../../../src/hosts/http/docs/Reference.js"
import * as Statuses from "../../../src/hosts/http/message/Statuses.js"
import { exchanges, pages, stale } from "../../../tools/docs.js"
import { endpoints, exampleOf } from "../../support/http/Contract.js"
import { violations } from "../../support/http/OpenApiDocument.js"
import { send, start } from "../../support/http/Service.js"

const document = OpenApi.fromApi(api)

/** Everything inside of a JSON value, with its path. */
function* parts(value: unknown, path = "#"): Generator<readonly [string, unknown]> {
  yield [path, value]
  if (typeof value === "object" && value !== null)
    for (const [name, inner] of Object.entries(value))
      yield* parts(inner, `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`)
}

const everything = new Map(parts(JSON.parse(JSON.stringify(document))))
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation }))
)

describe("the OpenAPI document", () => {
  it.scopedLive("is served as JSON without a key", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const answer = yield* send(url, "/openapi.json", { method: "GET", headers: { "x-api-key": "" } })
      expect(answer.headers.get("content-type")).toBe("application/json")
      expect(JSON.parse(answer.text)).toEqual(JSON.parse(JSON.stringify(document)))
    })
  )

  it("is version 3.1 with the fields that the specification requires, and the package's version", () => {
    expect(document.openapi).toBe("3.1.0")
    const { version } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"))
    expect(document.info).toMatchObject({ title: "castellan", version })
  })

  it("has no reference that leads nowhere", () => {
    const refs = [...everything].filter(([path]) => path.endsWith("/$ref"))
    expect(refs.length).toBeGreaterThan(100)
    for (const [, ref] of refs) expect([ref, everything.has(String(ref))]).toEqual([ref, true])
  })

  it("has only keywords of the specifications, each with a value of its kind", () => {
    const kinds: Record<string, (value: unknown) => boolean> = {
      $ref: (value) => typeof value === "string",
      type: (value) =>
        ["string", "number", "integer", "boolean", "object", "array", "null"].includes(String(value)),
      description: (value) => typeof value === "string",
      default: (value) => value !== null,
      properties: (value) => typeof value === "object",
      required: Array.isArray,
      additionalProperties: (value) => typeof value === "boolean" || typeof value === "object",
      items: (value) => typeof value === "object",
      allOf: (value) => Array.isArray(value) && value.length > 0,
      anyOf: (value) => Array.isArray(value) && value.length > 0,
      oneOf: (value) => Array.isArray(value) && value.length > 0,
      enum: (value) => Array.isArray(value) && new Set(value).size === value.length,
      pattern: (value) => typeof value === "string" && new RegExp(value) instanceof RegExp,
      minimum: (value) => typeof value === "number",
      maximum: (value) => typeof value === "number"
    }
    const check = (schema: unknown, path: string): void => {
      expect([path, typeof schema]).toEqual([path, "object"])
      for (const [keyword, value] of Object.entries(Object(schema))) {
        expect([path, keyword, kinds[keyword]?.(value)]).toEqual([path, keyword, true])
        if (keyword === "properties")
          for (const [name, inner] of Object.entries(Object(value))) check(inner, `${path}.${name}`)
        if (keyword === "items" || (keyword === "additionalProperties" && typeof value === "object"))
          check(value, `${path}/${keyword}`)
        if (["allOf", "anyOf", "oneOf"].includes(keyword))
          for (const inner of Object.values(Object(value))) check(inner, `${path}/${keyword}`)
      }
      const { properties, required } = Object(schema)
      for (const name of required ?? []) expect(Object.keys(properties)).toContain(name)
    }
    for (const [path, value] of everything)
      if (path.endsWith("/schema") || /^#\/components\/schemas\/[^/]+$/.test(path)) check(value, path)
  })

  it("has every endpoint of the contract once", () => {
    expect(operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)).toEqual(
      endpoints.map(({ method, path }) => `${method} ${OpenApi.templateOf(path)}`)
    )
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it("has for every endpoint its request, its answer, the key, and every status that it may answer with", () => {
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
      const refusals = ["400", "401", ...(path === "/requests/{requestId}" ? ["404"] : []), "422", "429"]
      const open = path.startsWith("/health/") ? ["400"] : ["400", "429"]
      const statuses = ["200", ...(endpoint?.withKey ? refusals : open), "500", "503"]
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

  it("has for every parameter of a path, and for the idempotency key, what to put there", () => {
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
        endpoint?.idempotent ? ["Idempotency-Key"] : []
      )
      for (const parameter of parameters) {
        expect(parameter.required).toBe(parameter.in === "path")
        expect(parameter.description).not.toBe("")
        expect(violations(parameter.schema, parameter.example)).toEqual([])
      }
    }
  })

  it("tells the defaults of the interface", () => {
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
    expect(defaults("SignRequest")).toEqual({ format: "rsv", hashed: false })
    expect(defaults("UnstuckRequest")).toEqual({ dryRun: false, fillUnknown: false })
    expect(defaults("Account")).toEqual({ legacyWallet: false })
    const required = (name: string) => document.components.schemas[name]?.required
    expect(required("Settings")).toEqual(["rpc", "entryPoint"])
    expect(required("Operation")).toEqual(["walletCustody", "to", "funcSignature"])
    expect(required("EventQuery")).toEqual(["rpc"])
    expect(required("SignRequest")).toEqual(["messages", "signer"])
    expect(required("EncodedOperation")).toEqual(["encodedUserOp", "userOpHash", "walletCustody"])
  })

  it("lists for each status exactly the codes that the catalogue has for it", () => {
    const codes = Object.values(document.components.responses).flatMap(({ content }) => {
      const ref = content["application/json"]?.schema.$ref ?? ""
      return Object(everything.get(ref)).properties.code.enum
    })
    const expected = (Object.keys(catalogue) as Array<Code>).filter((code) => Statuses.of(code) !== 405)
    expect(codes.toSorted()).toEqual(expected.toSorted())
  })

  it("describes every field of a request that the schemas describe", () => {
    const settings = document.components.schemas.Settings?.properties
    expect(settings?.entryPoint?.description).toContain("EntryPoint")
    expect(settings?.factory?.description).toContain("factory")
  })
})

describe("the documentation page", () => {
  it.scopedLive("shows every endpoint, field and failure, and loads and runs nothing", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const { headers, text } = yield* send(url, "/docs", { method: "GET" })
      expect(headers.get("content-type")).toBe("text/html; charset=utf-8")
      for (const { method, path } of endpoints)
        expect(text).toContain(`<span class="method">${method}</span> ${OpenApi.templateOf(path)}`)
      for (const code of Object.keys(catalogue)) expect(text).toContain(`<code>${code}</code>`)
      for (const { endpoints: ones } of Reference.fromDocument(document).groups)
        for (const { answer, parameters, request } of ones) {
          for (const { path } of [...request, ...answer])
            expect(text).toContain(`<code>${path.replaceAll("<", "&lt;").replaceAll(">", "&gt;")}</code>`)
          for (const { name } of parameters) expect(text).toContain(`<code>${name}</code>`)
        }
      expect(text).not.toMatch(/<script|<link|<img|<iframe|@import|url\(|\son[a-z]+=|\sstyle=|javascript:/i)
      expect(text).not.toMatch(/(?:src|href)="(?!#|openapi\.json")/)
      expect(new TextEncoder().encode(text).byteLength).toBeLessThan(200_000)
    })
  )

  it.scopedLive("has a policy that allows its own style and nothing else", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const { headers, text } = yield* send(url, "/docs", { method: "GET" })
      const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? ""
      const digest = yield* Effect.promise(() =>
        globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(style))
      )
      const hash = Buffer.from(digest).toString("base64")
      expect(headers.get("content-security-policy")).toBe(
        `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
      )
    })
  )

  it.scopedLive(
    "can be read by everyone: language, landmarks, headings in order, table headers, unique anchors",
    () =>
      Effect.gen(function* () {
        const { url } = yield* start()
        const { text } = yield* send(url, "/docs", { method: "GET" })
        expect(text).toMatch(/^<!DOCTYPE html>\n<html lang="en">/)
        for (const landmark of [
          "<header>",
          "<nav aria-label=",
          '<main id="main">',
          'class="skip" href="#main"'
        ])
          expect(text.split(landmark)).toHaveLength(2)
        const levels = [...text.matchAll(/<h([1-6])/g)].map(([, level]) => Number(level))
        expect(levels.filter((level) => level === 1)).toHaveLength(1)
        for (const [index, level] of levels.entries())
          expect(level - (levels[index - 1] ?? 0)).toBeLessThanOrEqual(1)
        const ids = [...text.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id)
        expect(new Set(ids).size).toBe(ids.length)
        for (const [, target] of text.matchAll(/href="#([^"]*)"/g)) expect(ids).toContain(target)
        for (const [, target] of text.matchAll(/aria-labelledby="([^"]*)"/g)) expect(ids).toContain(target)
        for (const table of text.split("<table>").slice(1)) {
          expect(table).toMatch(/^<caption>[^<]/)
          expect(table).toContain('<th scope="col">')
        }
        const open = [
          ...text.matchAll(
            /<(\/?)(section|table|tr|td|th|ul|li|p|div|pre|code|h[1-6]|span|a|strong|nav|main|header)\b/g
          )
        ]
        const depth: Array<string> = []
        for (const [, closing, name = ""] of open) {
          if (closing === "") depth.push(name)
          else expect(depth.pop()).toBe(name)
        }
        expect(depth).toEqual([])
      })
  )

  it("keeps a contrast of 7 to 1 and more in both colour schemes", () => {
    const page = readFileSync(new URL("../../../src/hosts/http/docs/Style.ts", import.meta.url), "utf8")
    const schemes = [...page.matchAll(/:root \{([^}]*)\}/g)].map(([, body = ""]) =>
      Object.fromEntries(
        [...body.matchAll(/--(\w+): (#[0-9a-f]{6})/g)].map(([, name, value]) => [name, value])
      )
    )
    const light = (hex = "#000000") => {
      const [r = 0, g = 0, b = 0] = [1, 3, 5]
        .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
        .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    expect(schemes).toHaveLength(2)
    for (const { back, link, mark, soft, text } of schemes)
      for (const front of [text, link, mark])
        for (const ground of [back, soft]) {
          const [high = 0, low = 0] = [light(front), light(ground)].sort((a, b) => b - a)
          expect((high + 0.05) / (low + 0.05)).toBeGreaterThan(7)
        }
  })
})

describe("the generated pages", () => {
  it("are what the contract and the catalogue say now; npm run docs writes them", () => {
    expect(stale()).toEqual([])
  })

  it("name every endpoint, code and text", () => {
    const { "docs/errors.md": errors = "", "docs/reference.md": reference = "" } = pages()
    for (const { method, path } of endpoints)
      expect(reference).toContain(`### ${method} ${OpenApi.templateOf(path)}\n`)
    for (const [code, { text }] of Object.entries(catalogue))
      expect(errors).toContain(`| \`${code}\` | ${text} |`)
  })

  it("show a command for every endpoint, its path filled in", () => {
    const { "docs/reference.md": reference = "" } = pages()
    const commands = [...reference.matchAll(/^curl \S+/gm)].map(([command]) => command)
    expect(commands).toEqual(endpoints.map((one) => `curl http://127.0.0.1:8080${exampleOf(one)}`))
  })

  it("show exchanges whose requests and answers are of the contract", () => {
    const { "docs/reference.md": reference = "" } = pages()
    expect(exchanges().size).toBeGreaterThan(0)
    for (const [path, { answer, request }] of exchanges()) {
      const endpoint = endpoints.find((one) => one.path === path && one.payload !== null)
      if (endpoint === undefined || endpoint.payload === null) throw new Error(`no endpoint takes ${path}`)
      const { payload, success } = endpoint
      const strict = { onExcessProperty: "error" } as const
      expect(() => Schema.decodeUnknownSync(payload, strict)(request)).not.toThrow()
      expect(() => Schema.decodeUnknownSync(success, strict)(answer)).not.toThrow()
      expect(reference).toContain(`\`\`\`json\n${JSON.stringify(answer, null, 2)}\n\`\`\`\n`)
    }
  })
})
