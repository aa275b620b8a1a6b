import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Address from "../../../src/domain/primitives/Address.js"
import { callsOf, json } from "../../support/HostileNode.js"
import { call, connect, http, raw, reasonOf } from "./support.js"

/** A node that answers every call with this error, alone or in a batch. */
const saying = (error: object, status = 200) =>
  http((response, body) => {
    const answers = callsOf(body).map(({ id }) => ({ jsonrpc: "2.0", id, error }))
    json(response, body.startsWith("[") ? answers : answers[0], status)
  })

const outages: ReadonlyArray<readonly [number, string, unknown?]> = [
  [-32_603, "Internal error"],
  [-32_603, "Internal JSON-RPC error."],
  [-32_603, "internal server error", {}],
  [-32_603, ""],
  [-32_603, "failed to get the latest state", "0x"],
  [-32_603, "request to the upstream timed out", { message: "context deadline exceeded" }],
  [-32_603, "invalid character '<' looking for beginning of value"],
  [-32_603, "could not connect to database"],
  [-32_011, "no backends available for method"],
  [-32_011, "no backend is currently healthy to serve traffic"],
  [-32_000, "502 Bad Gateway"],
  [-32_000, "HTTP status code 503"],
  [-32_000, "upstream request timeout: Service Unavailable"],
  [-32_000, "Internal server error"],
  [-32_000, "dial tcp 10.0.0.7:8545: connect: connection refused"],
  [-32_002, "Service temporarily unavailable, try again later"],
  [-32_000, "header not found"],
  [-32_001, "block not found"],
  [0, "unknown block"]
]

const answers: ReadonlyArray<readonly [number, string, unknown?]> = [
  [-32_603, "execution reverted"],
  [-32_603, "Internal JSON-RPC error.", { code: 3, message: "execution reverted: no" }],
  [-32_603, "Internal JSON-RPC error.", { code: -32_000, message: "nonce too low" }],
  [-32_603, "Internal error", { originalError: { message: "already known" } }],
  [-32_603, "nonce too low"],
  [-32_603, "already known"],
  [-32_603, "replacement transaction underpriced"],
  [-32_603, "insufficient funds for gas * price + value"],
  [-32_011, "insufficient funds for transfer"],
  [-32_603, "max fee per gas less than block base fee"],
  [-32_603, "intrinsic gas too low"],
  [-32_603, "out of gas"],
  [-32_603, "exceeds block gas limit"],
  [-32_603, "VM Exception while processing transaction: invalid opcode"],
  [-32_603, "invalid argument 0: hex string without 0x prefix"],
  [-32_603, "the method is not supported"],
  [-32_603, "query returned more than 10000 results"],
  [-32_603, "eth_getLogs is limited to a 10,000 block range"],
  [-32_603, "missing trie node 4a7b"],
  [-32_000, "transaction underpriced"],
  [-32_000, "not today"],
  [3, "execution reverted: header not found"]
]

describe("an error of a node", () => {
  it.live.each(outages)("%i %s %j says that it cannot answer now", ([code, message, data]) =>
    Effect.gen(function* () {
      const node = yield* saying({ code, message, data })
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.balance(Address.zero), node)).toBe("unavailable")
      expect(yield* reasonOf(chain.call(call), node)).toBe("unavailable")
      const before = node.seen.length
      expect(yield* reasonOf(chain.sendRawTransaction(raw), node)).toBe("unavailable")
      expect(node.seen.length).toBe(before + 1)
    })
  )

  it.live.each(answers)("%i %s %j says that it has looked at the request", ([code, message, data]) =>
    Effect.gen(function* () {
      const node = yield* saying({ code, message, data })
      const chain = yield* connect(node)
      expect(["rejected", "unsupported"]).toContain(yield* reasonOf(chain.sendRawTransaction(raw), node))
      expect(node.seen.length).toBe(1)
    })
  )

  it.live("an error with revert data is a revert, with any code and message", () =>
    Effect.gen(function* () {
      const data = `0x08c379a0${"00".repeat(96)}`
      for (const code of [-32_603, -32_011])
        for (const nested of [data, { data }, { originalError: { data } }]) {
          const node = yield* saying({ code, message: "Internal error", data: nested })
          const chain = yield* connect(node)
          expect(yield* chain.call(call)).toEqual({ success: false, data })
        }
    })
  )

  it.live("an error that wraps another error includes its message", () =>
    Effect.gen(function* () {
      const data = { code: -32_000, message: "nonce too low: next nonce 7" }
      const node = yield* saying({ code: -32_603, message: "Internal JSON-RPC error.", data })
      const chain = yield* connect(node)
      const { message } = yield* Effect.flip(chain.sendRawTransaction(raw))
      expect(message).toBe("Internal JSON-RPC error.: nonce too low: next nonce 7")
    })
  )

  it.live("a node that fails an optional fee method is priced by its other methods", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => {
        const told = callsOf(body).map(({ id, method }) => {
          const error = { code: -32_603, message: "Internal error" }
          const isThere = method === "eth_gasPrice" || method === "eth_getBlockByNumber"
          return {
            jsonrpc: "2.0",
            id,
            ...(isThere ? { result: method === "eth_gasPrice" ? "0x7" : null } : { error })
          }
        })
        json(response, body.startsWith("[") ? told : told[0])
      })
      const chain = yield* connect(node)
      expect(yield* chain.fees).toEqual({ nextBaseFee: null, tip: 7n })
    })
  )
})

describe("a gateway without a node", () => {
  it.live.each([
    "<html><head><title>502 Bad Gateway</title></head></html>",
    "503 Service Temporarily Unavailable",
    "no healthy upstream",
    '{"message":"Bad Gateway"}',
    '{"error":"504 Gateway Time-out"}'
  ])("a gateway without a node is unavailable despite HTTP 200: %s", (page) =>
    Effect.gen(function* () {
      const node = yield* http((response) => response.writeHead(200).end(page))
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.balance(Address.zero), node)).toBe("unavailable")
      expect(node.seen.length).toBe(3)
    })
  )

  it.live("a gateway whose page has other text is not an RPC node", () =>
    Effect.gen(function* () {
      for (const page of ["<html>", "welcome", "", '{"status":"ok"}']) {
        const node = yield* http((response) => response.writeHead(200).end(page))
        const chain = yield* connect(node)
        expect(yield* reasonOf(chain.balance(Address.zero), node)).toBe("notAnRpc")
      }
    })
  )
})
