import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as EthersChainRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as Egress from "../../../src/adapters/json-rpc/transport/Egress.js"
import * as JsonRpc from "../../../src/adapters/json-rpc/transport/JsonRpc.js"
import * as Refusal from "../../../src/adapters/json-rpc/transport/Refusal.js"

const error = (code: number, message: string, data?: unknown): JsonRpc.RpcError => ({ code, message, data })
const data = "0x08c379a0000000000000000000000000000000000000000000000000000000000000002a"

describe("an error of eth_call is a revert", () => {
  const reverts: ReadonlyArray<readonly [string, JsonRpc.RpcError, string]> = [
    ["Geth, Erigon, anvil", error(3, "execution reverted: no", data), data],
    ["Geth without data", error(3, "execution reverted", "0x"), "0x"],
    ["older Geth, data lost on the way", error(-32_000, "execution reverted"), "0x"],
    ["Besu", error(-32_000, "Execution reverted", data), data],
    ["OpenEthereum", error(-32_015, "VM execution error.", `Reverted ${data}`), data],
    ["OpenEthereum without data", error(-32_015, "VM execution error.", "Reverted"), "0x"],
    [
      "Nethermind",
      error(-32_015, "execution reverted: 0x08c3", data.toUpperCase().replace("0X", "0x")),
      data
    ],
    [
      "Hardhat",
      error(-32_603, "Error: VM Exception while processing transaction: reverted", {
        message: "x",
        txHash: `0x${"11".repeat(32)}`,
        data
      }),
      data
    ],
    [
      "Ganache",
      error(-32_000, "VM Exception while processing transaction: revert no", {
        [`0x${"22".repeat(32)}`]: { error: "revert", program_counter: 7, return: data, reason: "no" },
        stack: "x",
        name: "RuntimeError"
      }),
      data
    ],
    [
      "a proxy",
      error(-32_603, "Internal JSON-RPC error.", {
        originalError: { code: 3, message: "execution reverted", data }
      }),
      data
    ],
    ["a library", error(-32_000, "call failed", { error: { data: { data } } }), data],
    ["bare revert data", error(-32_603, "failed", "0xdeadbeef"), "0xdeadbeef"],
    ["odd data of a revert", error(3, "execution reverted", "0xabc"), "0x"],
    ["a revert that talks of rate limits", error(3, "execution reverted: rate limit exceeded", data), data]
  ]
  for (const [name, given, expected] of reverts)
    it(name, () => expect(Refusal.revertData(given)).toBe(expected))
})

describe("an error of eth_call is a halt, a failure without data", () => {
  for (const message of [
    "out of gas",
    "invalid opcode: INVALID",
    "invalid jump destination",
    "stack underflow (0 <=> 1)",
    "stack limit reached 1024 (1023)",
    "write protection",
    "max code size exceeded",
    "max initcode size exceeded: code size 50000 limit 49152",
    "gas uint64 overflow",
    "EVM error OutOfGas",
    "EVM error InvalidFEOpcode",
    "VM execution error.",
    "Bad instruction fe"
  ])
    it(message, () => expect(Refusal.revertData(error(-32_000, message))).toBe("0x"))
})

describe("an error of eth_call is a refusal", () => {
  for (const refused of [
    error(-32_000, "insufficient funds for gas * price + value: address 0x00 have 0 want 1"),
    error(-32_003, "Insufficient funds for gas * price + value"),
    error(-32_000, "err: intrinsic gas too low: have 16, want 21000 (supplied gas 16)"),
    error(-32_000, "intrinsic gas too high -- CallGasCostMoreThanGasLimit"),
    error(-32_000, "Out of gas: gas required exceeds allowance: 30000000"),
    error(-32_000, "max fee per gas less than block base fee"),
    error(-32_000, "nonce too low"),
    error(-32_000, "header not found"),
    error(-32_000, "execution timeout"),
    error(-32_601, "the method eth_call does not exist/is not available"),
    error(-32_602, "invalid argument 0: json: cannot unmarshal hex string"),
    error(-32_603, "Internal error"),
    error(-32_603, "failed", "0x"),
    error(-32_603, "failed", { message: "no hex", other: data }),
    error(-32_603, "failed", null)
  ])
    it(refused.message, () => expect(Refusal.revertData(refused)).toBeUndefined())

  it("data that never end are not followed", () => {
    let nested: unknown = data
    for (let depth = 0; depth < 10_000; depth++) nested = { data: nested }
    expect(Refusal.revertData(error(-32_603, "failed", nested))).toBeUndefined()
  })
})

describe("a node limits the rate", () => {
  for (const limited of [
    error(429, "Your app has exceeded its compute units per second capacity."),
    error(-32_029, ""),
    error(-32_005, "daily request count exceeded, request rate limited"),
    error(-32_005, "limit exceeded"),
    error(-32_000, "Too many requests, please retry later"),
    error(-32_090, "rate limit exceeded"),
    error(-32_016, "over rate-limit"),
    error(-32_007, "15/second request limit reached - reduce calls per second"),
    error(-32_005, "project ID request rate exceeded"),
    error(-32_090, "Too many requests, reason: call rate limit exhausted, retry in 10s"),
    error(-32_097, "exceeded"),
    error(-32_000, "You have exceeded the quota usage for your plan"),
    error(-32_000, "Monthly capacity limit exceeded"),
    error(-32_603, "request throttled")
  ])
    it(limited.message, () => expect(Refusal.isRateLimit(limited)).toBe(true))

  for (const other of [
    error(-32_005, "query returned more than 10000 results"),
    error(-32_005, "block range is too wide"),
    error(-32_000, "execution reverted: rate limit exceeded"),
    error(3, "rate limit"),
    error(3, "Too many requests"),
    error(-32_000, "gas required exceeds allowance"),
    error(-32_000, "exceeds block gas limit"),
    error(-32_000, "nonce too low"),
    error(-32_000, "txpool is full")
  ])
    it(`not when it says: ${other.message}`, () => expect(Refusal.isRateLimit(other)).toBe(false))
})

describe("a node does not know a block yet", () => {
  it.each([
    "header not found",
    "header for hash not found",
    "unknown block",
    "Unknown block",
    "block not found",
    "block 123 not found",
    "Block not found",
    "could not find block",
    "block is out of range",
    "BlockOutOfRangeError: block height is 5 but requested was 256"
  ])("%s", (message) => expect(Refusal.isBehind(error(-32_000, message))).toBe(true))

  it.each([
    error(3, "execution reverted: header not found"),
    error(-32_000, "nonce too low"),
    error(-32_000, "BlockOutOfRangeError: block height is 39 but requested was 0")
  ])("not when it says: $message", (other) => expect(Refusal.isBehind(other)).toBe(false))
})

describe("the text of a node", () => {
  const target = Result.getOrThrow(
    Egress.target(
      "https://rpc.example/v3/0123456789abcdef/k%C3%A9y-k%C3%A9y?token=tok-tok-tok&x=1",
      "operator",
      EthersChainRpc.defaults.egress
    )
  )
  const scrub = Refusal.scrubber(target)

  it("a node's text is shown without its URL, in any quoting", () => {
    for (const text of [
      `failed: ${target.href}`,
      `failed: ${target.path}`,
      "key 0123456789abcdef is wrong",
      "at /v3/0123456789abcdef",
      "k%C3%A9y-k%C3%A9y or kéy-kéy",
      "wss://rpc.example/ws/0123456789abcdef",
      "token=tok-tok-tok"
    ]) {
      const shown = scrub(text)
      for (const part of ["0123456789abcdef", "tok-tok-tok", "%C3%A9", "kéy"])
        expect(shown).not.toContain(part)
    }
  })

  it("a node's text is one bounded line of printable text", () => {
    expect(scrub("a\r\nb\u0000\u001b[31mc\u202ed\u2028e")).toBe("a b [31mc d e")
    expect(scrub("x".repeat(10_000)).length).toBeLessThanOrEqual(303)
  })

  it("a node's text is shown quickly, even when hostile", () => {
    for (const text of ["a".repeat(4_096), "a+".repeat(2_048), "://".repeat(1_365)])
      expect(scrub(text).length).toBeLessThanOrEqual(303)
  })
})

describe("decoding what a node sends", () => {
  it("decoding replies of a node never throws, and takes only replies to its calls", () => {
    const calls = [1, 2].map((id) => ({ id, method: "m", params: [] }))
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((text) => `[${text}]`)
        ),
        (text) => {
          const decoded = JsonRpc.decode(text, calls)
          if (Result.isSuccess(decoded) && decoded.success._tag === "each")
            for (const id of decoded.success.byId.keys()) expect([1, 2]).toContain(id)
        }
      )
    )
  })
})
