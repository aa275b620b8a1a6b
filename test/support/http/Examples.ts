import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { expect } from "vitest"
import * as Sample from "../../../src/hosts/http/contract/Sample.js"
import type { DevService } from "./DevService.js"

/**
 * Sends a request to a real service and holds what it answered against `docs/examples/<endpoint>.json`, which
 * `npm run docs` puts into the reference below the endpoint. One call per endpoint in the whole test suite:
 *
 *     await documented(service, "/read", { reads: [...], rpc: service.info.rpc })
 *
 * After a change: `npx vitest run -u <test file>`, then `npm run docs`.
 *
 * The answer must be the same in every run: a service of its own (`start()`), asked for nothing that depends on time,
 * on a random key or on the order of concurrent transactions. Transactions that it shows are sent one after another
 * with fees that are given, in blocks whose base fee is set (anvil_setNextBlockBaseFeePerGas). The node's URL is replaced by that of the other examples.
 */
export const documented = async <Body>(service: DevService, path: string, request: object): Promise<Body> => {
  const answer = await service.ok<Body>(path, request)
  const text = `${JSON.stringify({ request, answer }, null, 2)}\n`
  const file = new URL(`../../../docs/examples${path}.json`, import.meta.url)
  await expect(text.replaceAll(service.info.rpc, Sample.rpc)).toMatchFileSnapshot(file.pathname)
  return answer
}

/** The members of a JSON value, without what is in them. */
const skeleton = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(skeleton)
  if (typeof value !== "object" || value === null) return value === null ? null : typeof value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, skeleton(member)]))
}

/**
 * The same for answers that depend on time or on random keys: what was answered once stays in the file, and what is
 * answered now has to have the same members. To record anew, delete the file, run the test, then `npm run docs`.
 */
export const recorded = async <Body>(service: DevService, path: string, request: object): Promise<Body> => {
  const answer = await service.ok<Body>(path, request)
  const file = new URL(`../../../docs/examples${path}.json`, import.meta.url)
  const text = `${JSON.stringify({ request, answer }, null, 2)}\n`.replaceAll(service.info.rpc, Sample.rpc)
  if (!existsSync(file)) writeFileSync(file, text)
  expect(skeleton(JSON.parse(text))).toEqual(skeleton(JSON.parse(readFileSync(file, "utf8"))))
  return answer
}
