import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Address from "../../../src/domain/primitives/Address.js"
import { type Asked, callsOf, honest, json } from "../../support/HostileNode.js"
import * as InterruptedAt from "../../support/InterruptedAt.js"
import { balances, connect, http, reasonOf } from "./support.js"

/** The number of an account of `balances`. */
const numberOf = ({ params }: Asked): number => Number(BigInt(String(params[0])))
const told = (asked: Asked): string => `0x${numberOf(asked).toString(16)}`

/** A quantity that no node should give, of about so many characters. */
const lots = (characters: number): string => "x".repeat(characters)

const reasons = (answers: Effect.Success<ReturnType<typeof balances>>) =>
  answers.map((answer) => (answer._tag === "Success" ? answer.success : answer.failure.reason))

describe("answers that are too large together", () => {
  it.live("oversized replies fail only their calls, at any place in the batch", () =>
    Effect.gen(function* () {
      for (const culprits of [[0], [255], [97], [3, 200]]) {
        const node = yield* http((response, body) =>
          honest(response, body, (asked) => (culprits.includes(numberOf(asked)) ? lots(70_000) : told(asked)))
        )
        const chain = yield* connect(node)
        const answers = reasons(yield* balances(chain, 256))
        expect(answers).toEqual(answers.map((_, n) => (culprits.includes(n) ? "notAnRpc" : BigInt(n))))
        expect(node.seen.length).toBeLessThanOrEqual(1 + 2 * 8 * culprits.length)
      }
    })
  )

  it.live("oversized replies are read one at a time", () =>
    Effect.gen(function* () {
      let open = 0
      let most = 0
      const node = yield* http((response, body) => {
        most = Math.max(most, ++open)
        response.on("close", () => {
          open -= 1
        })
        setImmediate(() =>
          honest(response, body, (asked) => (numberOf(asked) % 16 === 0 ? lots(70_000) : told(asked)))
        )
      })
      const chain = yield* connect(node)
      const answers = reasons(yield* balances(chain, 64))
      expect(answers.filter((answer) => answer !== "notAnRpc").length).toBeGreaterThan(32)
      expect(node.seen.length).toBeGreaterThan(8)
      expect(most).toBe(1)
    })
  )

  it.live("oversized replies are read in parts when each is small", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => {
        const answers = callsOf(body).map((asked) => ({
          jsonrpc: "2.0",
          id: asked.id,
          result: told(asked),
          extra: lots(10_000)
        }))
        json(response, body.startsWith("[") ? answers : answers[0])
      })
      const chain = yield* connect(node)
      expect(reasons(yield* balances(chain, 20))).toEqual(Array.from({ length: 20 }, (_, n) => BigInt(n)))
    })
  )

  it.live("oversized replies of a node that always sends them end the retries", () =>
    Effect.gen(function* () {
      const node = yield* http((response) => response.writeHead(200).end(lots(100_000)))
      const chain = yield* connect(node)
      const answers = yield* balances(chain, 256)
      for (const answer of answers) {
        expect(answer._tag === "Failure" && answer.failure.reason).toBe("notAnRpc")
        expect(answer._tag === "Failure" && answer.failure.message).toContain("larger than 65536 bytes")
      }
      expect(node.seen.length).toBeLessThanOrEqual(33)
    })
  )

  it.live("make no later batch smaller", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body, turn) => {
        if (turn === 0) response.writeHead(200).end(lots(100_000))
        else honest(response, body, told)
      })
      const chain = yield* connect(node)
      yield* balances(chain, 64)
      const before = node.seen.length
      yield* balances(chain, 64)
      expect(node.seen.length).toBe(before + 1)
    })
  )
})

describe("a node that breaks a batch off", () => {
  for (const error of [
    { code: -32_003, message: "response too large" },
    { code: -32_002, message: "request timed out" }
  ])
    it.live(`a batch broken off with ${error.message} is completed by further requests`, () =>
      Effect.gen(function* () {
        const node = yield* http((response, body) => {
          const answers = callsOf(body).map((asked, place) => ({
            jsonrpc: "2.0",
            id: asked.id,
            ...(place < 30 ? { result: told(asked) } : { error })
          }))
          json(response, body.startsWith("[") ? answers : answers[0])
        })
        const chain = yield* connect(node)
        expect(reasons(yield* balances(chain, 100))).toEqual(Array.from({ length: 100 }, (_, n) => BigInt(n)))
        expect(node.seen.length).toBeLessThan(12)
      })
    )

  it.live("a batch broken off at a single call fails that call", () =>
    Effect.gen(function* () {
      const error = { code: -32_002, message: "request timed out" }
      const node = yield* http((response, body) =>
        json(response, { jsonrpc: "2.0", id: callsOf(body)[0]?.id, error })
      )
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.balance(Address.zero), node)).toBe("rejected")
      expect(node.seen.length).toBe(1)
    })
  )
})

describe("a node that takes no batches", () => {
  it.live("refuses but a few on the way to single calls", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => {
        if (body.startsWith("["))
          json(response, { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "batch not allowed" } })
        else honest(response, body, () => "0x1")
      })
      const chain = yield* connect(node)
      const answers = yield* balances(chain, 256)
      expect(answers.every(({ _tag }) => _tag === "Success")).toBe(true)
      expect(node.seen.filter(({ body }) => body.startsWith("[")).length).toBe(8)
      expect(node.seen.length).toBe(8 + 256)
    })
  )
})

describe("shared reads", () => {
  it.live("shared reads reply to all callers, whenever the first caller is interrupted", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => honest(response, body, () => "0x89"))
      for (let step = 1; step <= 30; step += 1) {
        const chain = yield* connect(node)
        yield* InterruptedAt.step(step, chain.chainId)
        expect(yield* chain.chainId).toBe(137n)
      }
    })
  )
})
