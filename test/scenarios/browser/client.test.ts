import { fileURLToPath } from "node:url"
import { buildSync } from "esbuild"
import { beforeAll, describe, expect, test } from "vitest"
import type * as Client from "../../../src/client/Client.js"
import * as DevService from "../../support/http/DevService.js"
import { use } from "../../support/Use.js"
import * as Browser from "./Browser.js"

/** `castellan/client` in a page, bundled for browsers. */
const bundled = (): string => {
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(new URL("../../../src/client/Client.ts", import.meta.url))],
    bundle: true,
    format: "iife",
    globalName: "castellan",
    platform: "browser",
    target: "es2022",
    write: false
  })
  return `${outputFiles[0]?.text};globalThis.castellan = castellan`
}

const service = use(DevService.start, 120_000)
const browser = use(Browser.start, 120_000)

beforeAll(async () => {
  const [wallet] = await service.create("in a page")
  await (await service.token.getFunction("mint")(wallet, 100n)).wait()
  await browser.page.goto(`${service.info.baseUrl}/docs`)
  await browser.page.evaluate(bundled())
}, 120_000)

const given = () => ({
  options: { baseUrl: service.info.baseUrl, apiKey: service.info.apiKeys.pro },
  settings: service.info.settings,
  operation: {
    salt: "in a page",
    walletCustody: 1 as const,
    to: service.info.token,
    funcSignature: "transfer(address,uint256)",
    funcParams: ["0x000000000000000000000000000000000000dEaD", "1"]
  }
})

describe("castellan/client in a browser", () => {
  test("writes, follows the request's events and waits for its answer", async () => {
    const seen = await browser.page.evaluate(async ({ operation, options, settings }) => {
      const { make }: typeof Client = Reflect.get(globalThis, "castellan")
      const client = make(options)
      const accepted = await client.execute({ operations: [operation], settings }, { async: true })
      if (!("requestId" in accepted)) throw new Error("it was waited for")
      const { requestId } = accepted
      const types: Array<string> = []
      for await (const { type } of client.events(requestId)) types.push(type)
      return { types, answer: await client.waitFor(requestId) }
    }, given())
    expect(seen.types).toContain("included")
    expect(seen.answer).toMatchObject({ status: 1 })
    expect(browser.complaints).toEqual([])
  })

  test("rejects with the service's code", async () => {
    const refusal = await browser.page.evaluate(async ({ options }) => {
      const { CastellanError, make }: typeof Client = Reflect.get(globalThis, "castellan")
      const refused = await make({ ...options, apiKey: "none" })
        .networks()
        .catch((error: unknown) => error)
      return refused instanceof CastellanError ? { code: refused.code, status: refused.status } : null
    }, given())
    expect(refusal).toEqual({ code: "unauthorized", status: 401 })
  })
})
