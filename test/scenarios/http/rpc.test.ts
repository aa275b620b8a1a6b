import type { ServerResponse } from "node:http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { callsOf, type HostileNode, honest, httpNode, json, secret } from "../../support/HostileNode.js"
import type { CreateResult, Envelope, Estimate } from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

const service = perFile()
let wallet: string
const nodes: Array<HostileNode> = []
beforeAll(async () => {
  wallet = String((await service.create("main"))[0])
})
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.close()))
})

const hash = `0x${"11".repeat(32)}`
const account = { salt: "fresh", walletCustody: 1 }
const operation = () => ({
  wallet,
  walletCustody: 1,
  to: service.info.token,
  funcSignature: "mint(address,uint256)",
  funcParams: [wallet, "1"]
})

const read = () => ({ to: service.info.token, funcSignature: "decimals()", returnSignature: "uint8" })

let op: object
beforeAll(async () => {
  const { userOps } = await service.ok<Estimate>("/estimateGas", {
    operations: [operation()],
    settings: service.info.settings
  })
  op = { encodedUserOp: userOps[0]?.encodedUserOp, userOpHash: userOps[0]?.userOpHash, walletCustody: 1 }
})

/** A good request of every endpoint that talks to a node, but for the node. */
const requests = (rpc: string): ReadonlyArray<readonly [string, object]> => {
  const settings = { ...service.info.settings, rpc }
  return [
    ["/check", { accounts: [account], settings }],
    ["/create", { accounts: [account], settings }],
    ["/execute", { operations: [operation()], settings }],
    ["/estimateGas", { operations: [operation()], settings }],
    ["/executeEncoded", { operations: [op], settings }],
    ["/receipt", { txHashes: [hash], rpc }],
    ["/read", { reads: [read(), read()], rpc }]
  ]
}

const sent = () => service.provider.getTransactionCount(service.signer.address)

/** Every endpoint's answer to a node, which must be a refusal that shows only scheme and host of its URL. */
const refuses = async (rpc: string, statuses: ReadonlyArray<number> = [400]) => {
  const before = await sent()
  const answers = await Promise.all(
    requests(rpc).map(async ([path, body]) => ({ path, ...(await service.ask<Envelope>(path, body)) }))
  )
  for (const { body, path, status, text } of answers) {
    expect(statuses, `${path}: ${text}`).toContain(status)
    expect(text).not.toContain(secret)
    if (status !== 200)
      expect(body.details[0]?.path, `${path}: ${text}`).toBe(
        path === "/receipt" || path === "/read" ? "rpc" : "settings.rpc"
      )
  }
  expect(service.log()).not.toContain(secret)
  expect(await sent()).toBe(before)
  return answers.map(({ body }) => body)
}

const invalid = async (rpc: string, why = "") => {
  for (const { code, details, error } of await refuses(rpc)) {
    expect({ code, error }).toEqual({ code: "invalid_rpc", error: "invalid rpc" })
    expect(details[0]?.message).toContain(why)
  }
}

const node = async (made: Promise<HostileNode>): Promise<HostileNode> => {
  const started = await made
  nodes.push(started)
  return started
}

describe("a node", () => {
  it("times out when it never replies", async () => {
    const silent = await node(httpNode(() => undefined))
    await invalid(silent.url)
  })

  const failing = (error: object) => (response: ServerResponse, body: string) => {
    const answers = callsOf(body).map(({ id }) => ({ jsonrpc: "2.0", id, error }))
    json(response, body.startsWith("[") ? answers : answers[0])
  }
  const outages: ReadonlyArray<readonly [string, (response: ServerResponse, body: string) => void]> = [
    ["HTTP 503", (response) => response.writeHead(503, { "retry-after": "0" }).end(secret)],
    ["-32603", failing({ code: -32_603, message: "Internal error" })]
  ]
  it.each(outages)("is unavailable after %s: 503, and when to ask again", async (_, answer) => {
    const away = await node(httpNode(answer))
    for (const { code, details, error } of await refuses(away.url, [503])) {
      expect({ code, error }).toEqual({ code: "node_unavailable", error: "node unavailable" })
      expect(details[0]?.message).toContain(new URL(away.url).origin)
    }
    const { headers } = await service.ask<Envelope>("/receipt", { txHashes: [], rpc: away.url })
    expect(headers.get("retry-after")).toBe("5")
  })

  it.each([31337, "-0x1"])("is not a node with chain id %j", async (chainId) => {
    const odd = await node(httpNode((response, body) => honest(response, body, () => chainId)))
    for (const { code } of await refuses(odd.url))
      expect(["invalid_rpc", "unsupported_chain"]).toContain(code)
  })

  it("is refused by the chain's number when the chain has no profile", async () => {
    const foreign = await node(httpNode((response, body) => honest(response, body, () => "0x1")))
    for (const { code, error } of await refuses(foreign.url))
      expect({ code, error }).toEqual({ code: "unsupported_chain", error: "unsupported chain id 1" })
  })

  it("is unreachable when it does not exist", async () => {
    const gone = await httpNode(() => undefined)
    await gone.close()
    await invalid(gone.url, "network connection failed: RPC endpoint unreachable")
  })

  it("inside the operator's network is refused as forbidden", async () => {
    await invalid(
      `http://169.254.169.254/latest/meta-data/${secret}`,
      "forbidden: the service connects only to public addresses and to addresses that its operator allows"
    )
  })
})

describe("trust in nodes", () => {
  it("limits a caller's node in create to its chain id; the operator's gives the state", async () => {
    const asked = new Set<string>()
    const lying = await node(
      httpNode((response, body) =>
        honest(response, body, ({ method }) => {
          asked.add(method)
          return method === "eth_chainId" ? "0x7a69" : null
        })
      )
    )
    const [fresh = ""] = await service.predict("operator")
    await service.fund(fresh)
    const result = await service.ok<CreateResult>("/create", {
      accounts: [{ salt: "operator", walletCustody: 1 }],
      settings: { ...service.info.settings, rpc: lying.url }
    })
    expect(result.status).toBe(1)
    expect(await service.provider.getCode(fresh)).not.toBe("0x")
    expect([...asked]).toEqual(["eth_chainId"])
    expect(service.log()).not.toContain(secret)
  })

  it("extends in execute to the caller's node, whose lies about the chain's state end as no 500 and send no transaction", async () => {
    for (const lie of ["0x", "0x1", null, {}, [], "x"]) {
      const lying = await node(
        httpNode((response, body) =>
          honest(response, body, ({ method }) => (method === "eth_chainId" ? "0x7a69" : lie))
        )
      )
      const before = await sent()
      for (const [path, body] of requests(lying.url).filter(
        ([path]) => path !== "/create" && path !== "/check"
      )) {
        const { status, text } = await service.ask(path, body)
        expect([200, 400, 422], `${path} ${JSON.stringify(lie)}: ${text}`).toContain(status)
        expect(text).not.toContain(secret)
      }
      expect(await sent()).toBe(before)
    }
    expect(service.log()).not.toContain(secret)
  })
})

describe("a request without a node", () => {
  it("is served by the operator's, whatever the endpoint", async () => {
    const { entryPoint, signer } = service.info.settings
    const settings = { entryPoint, signer }
    const requests = [
      [
        "/create",
        { accounts: [{ salt: "main", walletCustody: 1 }], settings: { ...settings, chainId: 31_337 } }
      ],
      ["/check", { accounts: [{ salt: "without", walletCustody: 1 }], settings: {} }],
      ["/execute", { operations: [operation()], settings }],
      ["/estimateGas", { operations: [operation()], settings }],
      ["/transactSigner", { to: wallet, value: "1", settings: { signer } }],
      ["/receipt", { txHashes: [hash] }],
      ["/read", { reads: [read()], chainId: 31_337 }],
      ["/filterEvent", { eventName: "Transfer", contracts: [service.info.token] }]
    ] as const
    for (const [path, body] of requests) {
      const { status, text } = await service.ask(path, body)
      expect(status, `${path}: ${text}`).toBe(200)
    }
    const other = await service.refused(400, "/check", { accounts: [account], settings: { chainId: 5 } })
    expect(other.error).toBe("unsupported chain id 5")
  })
})

describe("secrets", () => {
  it("stay out of every answer and every log line: rpc URL, API key, signer", async () => {
    const key = "cst_thisIsNoKeyOfAnybody0123456789abcdefghijkl"
    const unknown = await service.ask<Envelope>("/execute", {}, { key })
    expect(unknown.status).toBe(401)
    expect(unknown.text).not.toContain(key)
    const rpc = `${service.info.rpc}/?apikey=${secret}`
    for (const [path, body] of requests(rpc)) {
      const { status, text } = await service.ask(path, body)
      expect([200, 422], `${path}: ${text}`).toContain(status)
      expect(text).not.toContain(secret)
    }
    const stranger = await service.ask<Envelope>("/getSigner", {
      signer: { clientId: secret, versionId: secret }
    })
    expect(stranger.status).toBe(401)
    expect(stranger.text).not.toContain(secret)
    const log = service.log()
    expect(log).toContain("/execute")
    for (const word of [
      secret,
      key,
      service.info.apiKeys.enterprise,
      service.info.faucetPrivateKey,
      service.signer.privateKey
    ])
      expect(log).not.toContain(word)
  })
})
