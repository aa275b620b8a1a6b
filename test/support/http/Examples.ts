import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { expect } from "vitest"
import * as Sample from "../../../src/hosts/http/contract/Sample.js"
import { type Endpoint, endpoints } from "./Contract.js"
import type { DevService } from "./DevService.js"

/** Values of this run, each with its replacement in the documentation. */
export type Stand = ReadonlyArray<readonly [actual: string, shown: string]>

const fileOf = ({ name }: Endpoint): URL => new URL(`../../../docs/examples/${name}.json`, import.meta.url)

const poster = (path: string): Endpoint => {
  const endpoint = endpoints.find((one) => one.method === "POST" && one.path === path)
  if (endpoint === undefined) throw new Error(`nothing is posted to ${path}`)
  return endpoint
}

const textOf = (service: DevService, exchange: object, stand: Stand = []): string =>
  [...stand, [service.info.rpc, Sample.rpc] as const].reduce(
    (text, [actual, shown]) => text.replaceAll(actual, shown),
    `${JSON.stringify(exchange, null, 2)}\n`
  )

/**
 * Sends a request to a real service and compares the response with `docs/examples/<endpoint>.json`, which
 * `npm run docs` puts into the reference below the endpoint. One call per endpoint in the whole test suite:
 *
 *     await documented(service, "/read", { reads: [...], rpc: service.info.rpc })
 *
 * After a change: `npx vitest run -u <test file>`, then `npm run docs`.
 *
 * Every run must return the same answer. Use a separate service (`start()`), and request no data that depends on time,
 * on a random key or on the order of concurrent transactions. Send the shown transactions one after another with fixed
 * fees, in blocks with a set base fee (anvil_setNextBlockBaseFeePerGas). The node's URL becomes that of other examples.
 */
export const documented = async <Body>(service: DevService, path: string, request: object): Promise<Body> => {
  const answer = await service.ok<Body>(path, request)
  await expect(textOf(service, { request, answer })).toMatchFileSnapshot(fileOf(poster(path)).pathname)
  return answer
}

/** The member names of a JSON value, or the line names of a stream's text. */
const skeleton = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(skeleton)
  if (typeof value === "string" && value.includes("\n"))
    return [...new Set(value.split("\n").map((line) => line.split(":")[0]))]
  if (typeof value !== "object" || value === null) return value === null ? null : typeof value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, skeleton(member)]))
}

const hold = (endpoint: Endpoint, text: string): void => {
  const file = fileOf(endpoint)
  if (!existsSync(file)) writeFileSync(file, text)
  expect(skeleton(JSON.parse(text))).toEqual(skeleton(JSON.parse(readFileSync(file, "utf8"))))
}

/**
 * Likewise for answers that depend on time or on random keys: the file keeps the first answer, and later answers must
 * have the same members. To record again, delete the file, run the test, then `npm run docs`.
 */
export const recorded = async <Body>(service: DevService, path: string, request: object): Promise<Body> => {
  const answer = await service.ok<Body>(path, request)
  hold(poster(path), textOf(service, { request, answer }))
  return answer
}

/** Likewise for an endpoint of any method, by its contract name and path parameters; `key`: default the enterprise's. */
export const recordedBy = async <Body>(
  service: DevService,
  name: string,
  parameters: Readonly<Record<string, string>>,
  stand: (answer: Body) => Stand,
  request?: object,
  key = service.info.apiKeys.enterprise
): Promise<Body> => {
  const endpoint = endpoints.find((one) => one.name === name)
  if (endpoint === undefined) throw new Error(`the contract has no ${name}`)
  const path = endpoint.path.replace(/:([A-Za-z]+)/g, (_, parameter: string) => parameters[parameter] ?? "")
  const said = await fetch(service.info.baseUrl + path, {
    method: endpoint.method,
    headers: {
      "x-api-key": key,
      ...(request !== undefined && { "content-type": "application/json" })
    },
    ...(request !== undefined && { body: JSON.stringify(request) })
  })
  const text = await said.text()
  expect([said.status, text]).toEqual([200, expect.any(String)])
  const isJson = said.headers.get("content-type")?.startsWith("application/json") === true
  const answer = isJson ? JSON.parse(text) : text.trimEnd()
  hold(endpoint, textOf(service, { ...(request !== undefined && { request }), answer }, stand(answer)))
  return answer
}
