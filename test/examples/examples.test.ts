import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Http from "castellan/http"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as Redacted from "effect/Redacted"
import { computeAddress } from "ethers"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import * as EffectServer from "../../examples/effect.js"
import * as Express from "../../examples/express.js"
import * as Fastify from "../../examples/fastify.js"
import * as Fetch from "../../examples/fetch.js"
import * as HonoApp from "../../examples/hono.js"
import type { Running } from "../../examples/node.js"
import * as Wiring from "../../src/hosts/Wiring.js"
import * as Configured from "../support/web/Configured.js"

/** The examples, all of them in one process and at the same time. */

const keyOf = (n: number): string => `0x${String(n).repeat(64)}`
const signerOf = (n: number) => ({ clientId: "treasury", versionId: "1", privateKey: keyOf(n) })

interface Example {
  readonly running: Running
  readonly apiKey: string
  readonly address: string
}

const removals: Array<() => void> = []

const configured = (n: number) => {
  const made = Configured.make({ signers: [{ accounts: ["acme"], ...signerOf(n) }] })
  removals.push(made.remove)
  return made
}

const byConfig =
  (start: (config: Configured.Configured["config"], port: number) => Promise<Running>) =>
  async (n: number): Promise<Example> => {
    const { config, key } = configured(n)
    return { running: await start(config, 0), apiKey: key, address: computeAddress(keyOf(n)) }
  }

const starts: Readonly<Record<string, (n: number) => Promise<Example>>> = {
  fetch: byConfig(Fetch.start),
  hono: byConfig(HonoApp.start),
  express: byConfig(Express.start),
  fastify: byConfig(Fastify.start),
  effect: async (n) => ({
    running: await EffectServer.start({ networks: [], signers: [signerOf(n)] }, "its own key", 0),
    apiKey: "its own key",
    address: computeAddress(keyOf(n))
  })
}
const names = Object.keys(starts)

const examples = new Map<string, Example>()
beforeAll(async () => {
  await Promise.all(
    Object.entries(starts).map(async ([name, start], n) => {
      examples.set(name, await start(n + 1))
    })
  )
})
afterAll(async () => {
  for (const remove of removals) remove()
})

const of = (name: string): Example => {
  const example = examples.get(name)
  if (example === undefined) throw new Error(`${name} has not started`)
  return example
}

const ask = async (url: string, apiKey: string, body: unknown) => {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": apiKey },
    body: JSON.stringify(body)
  })
  const said: Readonly<Record<string, unknown>> = JSON.parse(await answer.text())
  return { status: answer.status, ...said }
}

const signer = { clientId: "treasury", versionId: "1" }

describe.each(names)("the example with %s", (name) => {
  it("serves its own keys and signers next to the others", async () => {
    const { address, apiKey, running } = of(name)
    const url = `${running.url}/getSigner`
    expect(await ask(url, apiKey, { signer })).toMatchObject({ status: 200, address })
    for (const other of names.filter((each) => each !== name))
      expect(await ask(url, of(other).apiKey, { signer })).toMatchObject({
        status: 401,
        code: "unauthorized"
      })
  })

  it("leaves bodies and paths to the service", async () => {
    const { apiKey, running } = of(name)
    const unknown = await ask(`${running.url}/predict`, apiKey, { account: [] })
    expect(unknown).toMatchObject({ status: 400, code: "unknown_field" })
    expect(await ask(`${running.url}/nothing`, apiKey, {})).toMatchObject({ status: 404, code: "not_found" })
    const live = await fetch(`${running.url}/health/live`)
    expect(live.status).toBe(200)
  })

  if (name !== "fetch")
    it("serves its own pages", async () => {
      const answer = await fetch(new URL("/", of(name).running.url))
      expect(await answer.text()).toBe("the host app")
    })

  it("ends without ending the others", async () => {
    const { running } = of(name)
    await running.close()
    await expect(fetch(`${running.url}/health/live`)).rejects.toThrow()
    const later = names.slice(names.indexOf(name) + 1)
    for (const other of later) expect((await fetch(`${of(other).running.url}/health/live`)).status).toBe(200)
  })
})

describe("the route of Next", () => {
  it("has every method of the contract, each the service's", async () => {
    const route: Readonly<Record<string, unknown>> = await import("../../examples/next/route.js")
    const methods = new Set(["OPTIONS"])
    HttpApi.reflect(Http.api, {
      onGroup: () => {},
      onEndpoint: ({ endpoint }) => void methods.add(endpoint.method)
    })
    expect([...methods].sort()).toEqual(["DELETE", "GET", "OPTIONS", "PATCH", "POST", "PUT"])
    for (const method of methods) expect(route[method], method).toBe(route.GET)
  })

  it("answers the requests of a Next app, and is one service however often its module is loaded", async () => {
    const folder = mkdtempSync(join(tmpdir(), "castellan-next-"))
    const pepper = "of the route, and of nothing else"
    const { hash, key } = Effect.runSync(Wiring.issueKey(Redacted.make(pepper)))
    const file = join(folder, "castellan.json")
    writeFileSync(
      file,
      JSON.stringify({
        profile: "development",
        listen: { host: "127.0.0.1", port: 0 },
        database: { path: "castellan.sqlite" },
        keyPepper: pepper,
        accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [{ hash: hash }] }],
        signers: [{ accounts: ["acme"], ...signerOf(9) }],
        networks: []
      })
    )
    vi.stubEnv("CASTELLAN_CONFIG", file)
    const shared: { castellan?: { readonly dispose: () => Promise<void> } } = globalThis as object
    try {
      const { POST } = await import("../../examples/next/route.js")
      vi.resetModules()
      const again = await import("../../examples/next/route.js")
      for (const route of [POST, again.POST]) {
        const answer = await route(
          new Request("http://app.test/wallets/getSigner", {
            method: "POST",
            headers: { "content-type": "application/json", "x-api-key": Redacted.value(key) },
            body: JSON.stringify({ signer })
          })
        )
        expect(JSON.parse(await answer.text())).toMatchObject({ address: computeAddress(keyOf(9)) })
      }
    } finally {
      await shared.castellan?.dispose()
      delete shared.castellan
      process.removeAllListeners("SIGTERM")
      vi.unstubAllEnvs()
      rmSync(folder, { recursive: true })
    }
  })
})
