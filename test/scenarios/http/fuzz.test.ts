import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Bodies from "../../support/http/Bodies.js"
import { endpoints } from "../../support/http/Contract.js"
import { type DevService, first, start } from "../../support/http/DevService.js"
import * as Fuzz from "../../support/http/Fuzz.js"

let service: DevService
let wallet: string
beforeAll(async () => {
  service = await start()
  wallet = first(await service.create("main"))
})
afterAll(() => service.stop())

/** Below what the tier allows in a minute. */
const count = 400

describe("every endpoint of a service on a real chain, asked what its schema can say and more", () => {
  it(`answers ${count} requests: never 500, never nothing, never late, always as documented`, async () => {
    const { apiKeys, baseUrl, settings, token } = service.info
    const { body } = await service.ask<{ readonly webhookId: string }>(
      "/webhooks",
      { url: "https://example.com/hook" },
      { key: apiKeys.enterprise }
    )
    const { webhookId } = body
    const bodies = Bodies.at({
      rpc: settings.rpc,
      noRpc: "http://127.0.0.1:1",
      signer: settings.signer,
      wallet,
      salt: "main",
      factory: settings.factory,
      beacon: settings.beaconAdminAddress,
      validator: settings.validator,
      creationCode: settings.beaconAdminCreationCode,
      token,
      webhookId
    })
    const all = endpoints.filter(({ withKey }) => withKey)
    // What needs a chain that answers is asked more often here.
    const deep = all.filter(({ name }) =>
      /^(execute|create|estimateGas|transactSigner|passkeyHash)$/.test(name)
    )
    const targets = [...all, ...Array.from({ length: 6 }, () => deep).flat()]
    console.log(`seed of the fuzz test: ${Fuzz.seed}`)
    const statuses = await Fuzz.campaign({
      count,
      requests: bodies.requests(targets, apiKeys.enterprise),
      send: Fuzz.byFetch(baseUrl),
      run: Effect.runPromise,
      complaints: () =>
        service
          .log()
          .split("\n")
          .filter((line) => line.includes("request failed"))
    })
    console.log(Fuzz.told(statuses))
    const done = ["/execute", "/create", "/estimateGas", "/transactSigner", "/passkeyHash"].map(
      (path) => statuses.get(`${path} 200`) ?? 0
    )
    expect(done.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(5)
  }, 300_000)
})
