import type { ServerResponse } from "node:http"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { concat, zeroPadValue } from "ethers"
import * as fc from "fast-check"
import * as BundlerRpc from "../../../src/adapters/json-rpc/services/BundlerRpc.js"
import * as UserOperations from "../../../src/adapters/json-rpc/services/OperatorServices.js"
import {
  type BundlerClient,
  type BundlerRpcError,
  isCertain
} from "../../../src/application/ports/chain/BundlerRpc.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import type { UserOperation } from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { type HostileNode, secret } from "../../support/HostileNode.js"
import { http } from "./support.js"

const userOpHash = Hex.unsafe32(`0x${"ab".repeat(32)}`)
const op: UserOperation = {
  sender: Address.unsafe(`0x${"11".repeat(20)}`),
  nonce: (5n << 64n) + 1n,
  initCode: Hex.empty,
  callData: Hex.unsafe("0xc0de"),
  callGasLimit: 1n,
  verificationGasLimit: 2n,
  preVerificationGas: 3n,
  maxFeePerGas: 4n,
  maxPriorityFeePerGas: 5n,
  paymasterAndData: Hex.empty,
  signature: Hex.unsafe("0x51")
}
const offer = { version: "v0.7" as const, entryPoint: EntryPoint.canonical["v0.7"], op }

const connect = (node: HostileNode) =>
  Effect.flatMap(
    BundlerRpc.make({ http: { responseBytes: 64 * 1_024 }, retry: { baseMillis: 1, maxMillis: 5 } }),
    ({ connect }) => connect(node.url)
  )
const send = (client: BundlerClient) => client.send(offer, userOpHash)

const reply = (response: ServerResponse, body: string, of: object) => {
  const { id } = JSON.parse(body)
  response.setHeader("content-type", "application/json")
  response.end(JSON.stringify({ jsonrpc: "2.0", id, ...of }))
}
const answering = (of: object) => http((response, body) => reply(response, body, of))

/** The failure of a call; it contains only the origin of the URL. */
const failure = (effect: Effect.Effect<unknown, BundlerRpcError>, node: HostileNode) =>
  Effect.map(Effect.flip(effect), (error) => {
    expect(error.origin).toBe(new URL(node.url).origin)
    expect(JSON.stringify({ ...error, text: String(error), message: error.message })).not.toContain(secret)
    return error
  })

describe("sending an op", () => {
  it.effect.each([
    [-32_500, "validation"],
    [-32_501, "paymaster"],
    [-32_502, "opcode"],
    [-32_503, "expired"],
    [-32_504, "throttled"],
    [-32_505, "stake"],
    [-32_506, "aggregator"],
    [-32_507, "signature"],
    [-32_508, "deposit"],
    [-32_521, "reverted"],
    [-32_602, "invalid"],
    [-32_601, "unsupported"]
  ] as const)("code %i is a certain refusal: %s", ([code, reason]) =>
    Effect.gen(function* () {
      const message = `no, says http://bundler.test/${secret}, nor /v3/${secret}`
      const node = yield* answering({ error: { code, message } })
      const error = yield* failure(send(yield* connect(node)), node)
      expect(error).toMatchObject({ reason, rpcCode: code })
      expect(isCertain(error)).toBe(true)
      expect(node.seen.length).toBe(1)
    })
  )

  it.effect.each([
    ["another error object", { error: { code: -32_000, message: "internal" } }],
    ["an internal error", { error: { code: -32_603, message: "boom" } }],
    ["another op's hash", { result: `0x${"cd".repeat(32)}` }],
    ["no hash", { result: null }],
    ["neither result nor error", {}]
  ] as const)("%s leaves it unknown whether the op is taken", ([_, answer]) =>
    Effect.gen(function* () {
      const node = yield* answering(answer)
      const error = yield* failure(send(yield* connect(node)), node)
      expect(isCertain(error)).toBe(false)
      expect(node.seen.length).toBe(1)
    })
  )

  it.effect.each([
    ["a cut connection", (response: ServerResponse): void => void response.destroy()],
    [
      "a gateway's error",
      (response: ServerResponse): void => void response.writeHead(502).end("bad gateway")
    ],
    ["text other than JSON", (response: ServerResponse): void => void response.end("<html>")],
    ["an answer without end", (response: ServerResponse): void => void response.end("[".repeat(70_000))]
  ] as const)("%s leaves it unknown, and the op was sent once", ([_, answer]) =>
    Effect.gen(function* () {
      const node = yield* http((response) => answer(response))
      const error = yield* failure(send(yield* connect(node)), node)
      expect(isCertain(error)).toBe(false)
      expect(node.seen.length).toBe(1)
    })
  )

  it.effect("a limited rate is a certain refusal, and the op was sent once", () =>
    Effect.gen(function* () {
      const node = yield* http((response) => void response.writeHead(429).end())
      const error = yield* failure(send(yield* connect(node)), node)
      expect(error.reason).toBe("rateLimited")
      expect(isCertain(error)).toBe(true)
      expect(node.seen.length).toBe(1)
    })
  )

  it.effect.each([
    [-32_602, "User operation already present in mempool, bump the gas price by minimum 10%"],
    [-32_000, "already known"],
    [-32_602, "UserOperation already exists"]
  ] as const)("a bundler that already has the op (%i %s) counts as success", ([code, message]) =>
    Effect.gen(function* () {
      const node = yield* answering({ error: { code, message } })
      yield* send(yield* connect(node))
      expect(node.seen.length).toBe(1)
    })
  )

  it.effect("a wallet that exists already is a refusal, not an op that does", () =>
    Effect.gen(function* () {
      const node = yield* answering({ error: { code: -32_500, message: "AA10 sender already constructed" } })
      expect(yield* failure(send(yield* connect(node)), node)).toMatchObject({ reason: "validation" })
    })
  )
})

describe("asking a bundler", () => {
  it.effect("a bundler gets ERC-7769 calls, each in a separate request", () =>
    Effect.gen(function* () {
      const results: Record<string, unknown> = {
        eth_chainId: "0x7a69",
        eth_supportedEntryPoints: Object.values(EntryPoint.canonical).map((address) => address.toLowerCase()),
        eth_estimateUserOperationGas: { preVerificationGas: "0xc350", callGasLimit: "0x1" },
        eth_sendUserOperation: userOpHash,
        eth_getUserOperationByHash: { transactionHash: `0x${"ee".repeat(32)}`, userOperation: {} }
      }
      const node = yield* http((response, body) =>
        reply(response, body, { result: results[JSON.parse(body).method] })
      )
      const client = yield* connect(node)
      const state = new Map([[op.sender, { balance: 7n }]])
      const [chainId, entryPoints] = yield* Effect.all([client.chainId, client.entryPoints], {
        concurrency: "unbounded"
      })
      expect(chainId).toBe(31_337n)
      expect(entryPoints).toEqual(Object.values(EntryPoint.canonical))
      expect(yield* client.preVerificationGas(offer, state)).toBe(50_000n)
      yield* client.send(offer, userOpHash)
      expect(yield* client.find(userOpHash)).toEqual({ txHash: `0x${"ee".repeat(32)}` })
      const asked = node.seen.map(({ body }) => JSON.parse(body))
      const json = UserOperations.toJson("v0.7", op)
      expect(asked.map(({ method, params }) => [method, params])).toEqual(
        expect.arrayContaining([
          ["eth_chainId", []],
          ["eth_supportedEntryPoints", []],
          ["eth_estimateUserOperationGas", [json, offer.entryPoint, { [op.sender]: { balance: "0x7" } }]],
          ["eth_sendUserOperation", [json, offer.entryPoint]],
          ["eth_getUserOperationByHash", [userOpHash]]
        ])
      )
      expect(asked.length).toBe(5)
    })
  )

  it.effect.each([
    ["nothing", null, null],
    ["an op in its pool", { transactionHash: null }, { txHash: null }],
    ["an op without a transaction", { userOperation: {} }, { txHash: null }]
  ] as const)("a bundler that may know an op returns %s", ([_, result, found]) =>
    Effect.gen(function* () {
      const node = yield* answering({ result })
      expect(yield* (yield* connect(node)).find(userOpHash)).toEqual(found)
    })
  )

  it.effect.each([
    ["chainId", (client: BundlerClient) => client.chainId, "31337"],
    ["entryPoints", (client: BundlerClient) => client.entryPoints, ["0x1"]],
    [
      "gas",
      (client: BundlerClient) => client.preVerificationGas(offer, new Map()),
      { preVerificationGas: -1 }
    ],
    ["op", (client: BundlerClient) => client.find(userOpHash), { transactionHash: "0xzz" }]
  ] as const)("senseless answers are refused: %s", ([_, ask, result]) =>
    Effect.gen(function* () {
      const node = yield* answering({ result })
      expect(yield* failure(ask(yield* connect(node)), node)).toMatchObject({ reason: "notAnRpc" })
    })
  )

  it.effect("a senseless member is named, and one EntryPoint that cannot be read hides no other", () =>
    Effect.gen(function* () {
      const odd = yield* answering({ result: { transactionHash: "0xzz" } })
      const { message } = yield* failure((yield* connect(odd)).find(userOpHash), odd)
      expect(message).toMatch(/eth_getUserOperationByHash is malformed at transactionHash$/)
      const mixed = yield* answering({ result: [null, offer.entryPoint, "0x1"] })
      expect(yield* (yield* connect(mixed)).entryPoints).toEqual([offer.entryPoint])
    })
  )

  it.live("reads are repeated when the connection was cut", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body, turn) =>
        turn === 0 ? void response.destroy() : reply(response, body, { result: "0x1" })
      )
      expect(yield* (yield* connect(node)).chainId).toBe(1n)
      expect(node.seen.length).toBe(2)
    })
  )

  it.effect("a URL has one client, and only http and https are URLs", () =>
    Effect.gen(function* () {
      const rpc = yield* BundlerRpc.make()
      const url = "http://10.0.0.1/bundler"
      expect(yield* rpc.connect(url)).toBe(yield* rpc.connect(`${url}#part`))
      for (const wrong of ["ftp://bundler.test", "bundler", "http://user:pass@bundler.test"])
        expect(yield* Effect.flip(rpc.connect(wrong))).toMatchObject({ reason: "invalidUrl" })
    })
  )
})

describe("the JSON of an op", () => {
  const bytes = (least: number, most: number) =>
    fc
      .uint8Array({ minLength: least, maxLength: most })
      .map((list) => Hex.unsafe(`0x${Buffer.from(list).toString("hex")}`))
  const uint = (bits: number) => fc.bigInt(0n, 2n ** BigInt(bits) - 1n)
  const ops = fc.record({
    sender: bytes(20, 20).map(Address.unsafe),
    nonce: uint(256),
    initCode: fc.oneof(fc.constant(Hex.empty), bytes(20, 80)),
    callData: bytes(0, 80),
    callGasLimit: uint(120),
    verificationGasLimit: uint(120),
    preVerificationGas: uint(120),
    maxFeePerGas: uint(120),
    maxPriorityFeePerGas: uint(120),
    paymasterAndData: fc.oneof(fc.constant(Hex.empty), bytes(52, 120)),
    signature: bytes(0, 80)
  })
  const quantities = [
    "nonce",
    "callGasLimit",
    "verificationGasLimit",
    "preVerificationGas",
    "maxFeePerGas",
    "maxPriorityFeePerGas"
  ] as const

  it("v0.6 ops keep every field in JSON; from v0.7 on packed fields are split and restored", () => {
    fc.assert(
      fc.property(ops, (op) => {
        const old = UserOperations.toJson("v0.6", op)
        expect(old).toMatchObject({
          sender: op.sender,
          initCode: op.initCode,
          callData: op.callData,
          paymasterAndData: op.paymasterAndData,
          signature: op.signature
        })
        expect(Object.keys(old).length).toBe(11)
        for (const version of ["v0.7", "v0.8"] as const) {
          const json = UserOperations.toJson(version, op)
          for (const name of quantities) {
            expect(json[name]).toMatch(/^0x(?:0|[1-9a-f][0-9a-f]*)$/)
            expect([BigInt(json[name] ?? ""), BigInt(old[name] ?? "")]).toEqual([op[name], op[name]])
          }
          expect(json.initCode ?? json.paymasterAndData).toBeUndefined()
          const word = (name: string) =>
            zeroPadValue(
              `0x${BigInt(json[name] ?? "")
                .toString(16)
                .padStart(32, "0")}`,
              16
            )
          expect(json.factory === undefined ? "0x" : concat([json.factory, json.factoryData ?? ""])).toBe(
            op.initCode
          )
          expect(
            json.paymaster === undefined
              ? "0x"
              : concat([
                  json.paymaster,
                  word("paymasterVerificationGasLimit"),
                  word("paymasterPostOpGasLimit"),
                  json.paymasterData ?? ""
                ])
          ).toBe(op.paymasterAndData)
        }
      })
    )
  })
})
