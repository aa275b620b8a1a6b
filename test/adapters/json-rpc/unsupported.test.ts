import { describe, expect, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { callsOf, json } from "../../support/HostileNode.js"
import * as SetClock from "../../support/SetClock.js"
import * as Time from "../../support/Time.js"
import { call, connect, http } from "./support.js"

type Refuse = (
  calls: ReturnType<typeof callsOf>,
  batch: boolean
) => { readonly status?: number; readonly body: unknown } | null

/** Answers every call with 0x7, except what `refuse` refuses. */
const asking = <A, E>(
  refuse: Refuse,
  use: (chain: ChainClient, bodies: ReadonlyArray<ReadonlyArray<string>>) => Effect.Effect<A, E>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const bodies: Array<ReadonlyArray<string>> = []
      const running = yield* http((response, body) => {
        const calls = callsOf(body)
        bodies.push(calls.map(({ method }) => method))
        const batch = body.startsWith("[")
        const refused = refuse(calls, batch)
        if (refused !== null) {
          const { body: said, status = 200 } = refused
          response.writeHead(status, { "content-type": "application/json" })
          response.end(typeof said === "string" ? said : JSON.stringify(said))
          return
        }
        const answers = calls.map(({ id }) => ({ jsonrpc: "2.0", id, result: "0x7" }))
        json(response, batch ? answers : answers[0])
      })
      return yield* use(yield* connect(running), bodies)
    })
  )

const simulating = "eth_simulateV1"

/** The error object for each call of that method; other calls get replies. */
const refusingEach =
  (error: unknown): Refuse =>
  (calls, batch) => {
    const answers = calls.map(({ id, method }) =>
      method === simulating ? { jsonrpc: "2.0", id, error } : { jsonrpc: "2.0", id, result: "0x7" }
    )
    return { body: batch ? answers : answers[0] }
  }

/** The whole request refused as soon as that method is in it. */
const refusingAll =
  (status: number, body: unknown): Refuse =>
  (calls) =>
    calls.some(({ method }) => method === simulating) ? { status, body } : null

const beside = (chain: ChainClient) =>
  Effect.all(
    [
      Effect.result(chain.simulate([call])),
      chain.transactionCount(Address.zero, "pending"),
      chain.balance(Address.zero)
    ],
    { concurrency: "unbounded" }
  )

const words: ReadonlyArray<readonly [number, string]> = [
  [-32_601, "the method eth_simulateV1 does not exist/is not available"],
  [-32_601, ""],
  [-32_601, "Method not found"],
  [-32_004, "Method not supported"],
  [-32_600, "Unsupported method: eth_simulateV1 on this network"],
  [-32_600, "method is not whitelisted"],
  [-32_000, "rpc method is unsupported"],
  [-32_000, "The method 'eth_simulateV1' is not supported."],
  [-32_602, "eth_simulateV1 is not available on this plan"],
  [-32_000, "eth_simulateV1 isn't supported here"],
  [-32_603, "unknown method eth_simulateV1"],
  [35, "this method is not currently available on the free tier"],
  [403, "Method eth_simulateV1 is blocked"]
]

describe("a node without eth_simulateV1", () => {
  it.live.each(words)("a node that refuses eth_simulateV1 with %i %s is not asked again", ([code, message]) =>
    asking(refusingEach({ code, message }), (chain, bodies) =>
      Effect.gen(function* () {
        for (let n = 0; n < 3; n += 1) {
          const [simulated, nonce, balance] = yield* beside(chain)
          expect(simulated).toMatchObject({
            _tag: "Failure",
            failure: { _tag: "ChainRpcError", reason: "unsupported", rpcCode: code }
          })
          expect([nonce, balance]).toEqual([7n, 7n])
        }
        expect(bodies.flat().filter((method) => method === simulating)).toHaveLength(1)
      })
    )
  )

  it.live("a node without eth_simulateV1 gets it again after the clock was set back", () =>
    asking(refusingEach({ code: -32_601, message: "Method not found" }), (chain, bodies) =>
      Effect.gen(function* () {
        yield* beside(chain)
        yield* SetClock.by(-3_600_000)(beside(chain))
        expect(bodies.flat().filter((method) => method === simulating)).toHaveLength(2)
      })
    )
  )

  const unsupported = { code: -32_600, message: "Unsupported method: eth_simulateV1" }
  it.live.each([
    ["HTTP 400", 400, "no"],
    ["HTTP 403", 403, "forbidden"],
    ["HTTP 404", 404, ""],
    ["HTTP 405", 405, "<html></html>"],
    ["HTTP 501", 501, "{}"],
    ["one error object", 200, { jsonrpc: "2.0", id: null, error: unsupported }],
    ["one error object and HTTP 400", 400, { jsonrpc: "2.0", id: null, error: unsupported }]
  ] as const)(
    "a node that refuses a whole batch with %s gets the other calls without eth_simulateV1",
    ([_, status, body]) =>
      asking(refusingAll(status, body), (chain, bodies) =>
        Effect.gen(function* () {
          for (let n = 0; n < 3; n += 1) {
            const [simulated, nonce, balance] = yield* beside(chain)
            expect(simulated).toMatchObject({ _tag: "Failure", failure: { reason: "unsupported" } })
            expect([nonce, balance]).toEqual([7n, 7n])
          }
          const rest = ["eth_getTransactionCount", "eth_getBalance"]
          // All three calls, then separately the refused call and the others, then only the others, together.
          expect([...bodies].sort((a, b) => b.length - a.length)).toEqual([
            [simulating, ...rest],
            rest,
            rest,
            rest,
            [simulating]
          ])
        })
      )
  )

  it.effect("a node without eth_simulateV1 gets it again after an hour", () =>
    asking(refusingEach({ code: -32_601, message: "" }), (chain, bodies) =>
      Effect.gen(function* () {
        const ask = Effect.result(chain.simulate([call]))
        const asked = () => bodies.flat().length
        yield* ask
        yield* Time.adjust(Duration.minutes(59))
        yield* ask
        expect(asked()).toBe(1)
        yield* Time.adjust(Duration.minutes(1))
        yield* ask
        expect(asked()).toBe(2)
      })
    )
  )
})

describe("a node that has the method", () => {
  it.live.each([
    [3, "execution reverted: method not found"],
    [-32_000, "execution reverted: the method is not supported"],
    [-32_602, "invalid argument 0: json: cannot unmarshal"],
    [-32_602, "invalid params: unknown field `validation`"],
    [-32_000, "missing trie node: state is not available"],
    [-32_603, "invalid params in method handler"]
  ] as const)("a node that refuses eth_simulateV1 with %i %s gets it again", ([code, message]) =>
    asking(refusingEach({ code, message }), (chain, bodies) =>
      Effect.gen(function* () {
        for (let n = 0; n < 2; n += 1)
          expect((yield* Effect.flip(chain.simulate([call]))).reason).toBe("rejected")
        expect(bodies.flat()).toHaveLength(2)
      })
    )
  )

  it.live("a node that refuses every call is unreachable, not without a method", () =>
    asking(
      () => ({ status: 403, body: "forbidden" }),
      (chain) =>
        Effect.map(Effect.flip(chain.balance(Address.zero)), ({ reason }) =>
          expect(reason).toBe("unreachable")
        )
    )
  )
})
