import * as Http from "castellan/http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Client from "../../src/client/Client.js"
import * as Configured from "../support/web/Configured.js"

const configured = Configured.make({
  signers: [{ accounts: ["acme"], clientId: "treasury", versionId: "1", privateKey: `0x${"11".repeat(32)}` }]
})
const service = Http.toWebHandler(configured.config, { basePath: "/wallets", log: () => {} })
beforeAll(() => service.ready)
afterAll(async () => {
  await service.dispose()
  configured.remove()
})

/** The service below a path of a host, without a socket. */
const client = (apiKey = configured.key) =>
  Client.make({
    baseUrl: "http://host.test/wallets",
    apiKey,
    retries: 0,
    fetch: (url, init) => service.handler(new Request(url, init))
  })

const signer = { clientId: "treasury", versionId: "1" }

describe("the client at the service", () => {
  it("reads, signs and registers", async () => {
    const { address, type } = await client().getSigner({ signer })
    expect(type).toBe("PRIVATE_KEY")
    const [signed] = await client().sign({ messages: ["hello"], signer })
    expect(signed).toMatchObject({ address, errors: null })
    const error = { type: "error", name: "Sealed", inputs: [{ name: "by", type: "address" }] } as const
    expect(await client().addError({ errorABI: error })).toEqual({
      status: 200,
      errorDef: "error Sealed(address by)"
    })
    expect(await client().requests({ limit: "5" })).toMatchObject({ requests: [] })
  })

  it("the client rejects with the service's error code", async () => {
    await expect(client("nobody's").getSigner({ signer })).rejects.toMatchObject({
      code: "unauthorized",
      status: 401
    })
    await expect(client().request("no-such-request")).rejects.toMatchObject({
      code: "request_not_found",
      status: 404
    })
    const sending = {
      to: `0x${"12".repeat(20)}`,
      value: "1",
      settings: { rpc: "ftp://node.example", signer }
    }
    await expect(client().transactSigner(sending, { idempotencyKey: "mine" })).rejects.toMatchObject({
      status: 400,
      idempotencyKey: "mine"
    })
  })
})
