import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Tracer from "effect/Tracer"
import * as fc from "fast-check"
import * as EthersChainRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import { type ChainClient, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { type Asked, callsOf, httpNode, json, secret } from "../../support/HostileNode.js"
import { acme } from "../../support/NamedBy.js"
import { address, block, hash, log, other, receipt, transaction } from "./support.js"

const call = { to: address, data: Hex.empty }

const withNode = <A, E>(
  answer: (asked: Asked) => unknown,
  use: (chain: ChainClient) => Effect.Effect<A, E>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const node = yield* Effect.acquireRelease(
        Effect.promise(() =>
          httpNode((response, body) => {
            const answers = callsOf(body).map((asked) => ({
              jsonrpc: "2.0",
              id: asked.id,
              ...(answer(asked) as object)
            }))
            json(response, body.startsWith("[") ? answers : answers[0])
          })
        ),
        (running) => Effect.promise(running.close)
      )
      const rpc = yield* EthersChainRpc.make({ egress: { allowLoopback: true } })
      return yield* Effect.flatMap(rpc.connect(node.url, acme), use)
    })
  )

const result = (value: unknown) => ({ result: value })
const reasonOf = (effect: Effect.Effect<unknown, ChainRpcError>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason)

const waiting = { ...transaction, blockNumber: null }

describe("blocks", () => {
  it.live("a reply about another block is rejected", () =>
    withNode(
      () => result(block),
      (chain) =>
        Effect.gen(function* () {
          expect((yield* chain.block(5n))?.timestamp).toBe(100)
          expect(yield* reasonOf(chain.block(6n))).toBe("notAnRpc")
        })
    )
  )

  it.live("blocks are read without a base fee, and pending ones without a hash", () =>
    withNode(
      ({ params }) =>
        result({ ...block, ...(params[0] === "pending" ? { hash: null } : { baseFeePerGas: undefined }) }),
      (chain) =>
        Effect.gen(function* () {
          expect((yield* chain.block("latest"))?.baseFeePerGas).toBeNull()
          expect((yield* chain.block("pending"))?.hash).toBe(`0x${"00".repeat(32)}`)
        })
    )
  )

  it.live("a malformed one is named by its member, not by its value", () =>
    withNode(
      () => result({ ...block, timestamp: `0x${"f".repeat(20)}`, extra: secret }),
      (chain) =>
        Effect.map(Effect.flip(chain.block("latest")), ({ message, reason }) => {
          expect(reason).toBe("notAnRpc")
          expect(message).toMatch(
            /^http:\/\/127\.0\.0\.1:\d+: the answer to eth_getBlockByNumber is malformed at timestamp$/
          )
        })
    )
  )
})

describe("receipts and transactions", () => {
  it.live("a receipt is read with its logs; a receipt without a block is missing", () =>
    Effect.gen(function* () {
      const read = (answer: unknown) =>
        withNode(
          () => result(answer),
          (chain) => chain.receipt(hash)
        )
      expect(yield* read(receipt)).toEqual({
        txHash: hash,
        success: true,
        blockNumber: 5n,
        blockHash: other,
        gasUsed: 21_000n,
        cumulativeGasUsed: 21_001n,
        effectiveGasPrice: 1n,
        from: address,
        logs: [{ ...log, logIndex: 3 }]
      })
      expect((yield* read({ ...receipt, status: "0x0", logs: [] }))?.success).toBe(false)
      expect(yield* read({ ...receipt, blockHash: null, blockNumber: null })).toBeNull()
    })
  )

  it.live("replies about another transaction are rejected", () =>
    Effect.gen(function* () {
      expect(
        yield* withNode(
          () => result({ ...receipt, transactionHash: other }),
          (chain) => reasonOf(chain.receipt(hash))
        )
      ).toBe("notAnRpc")
      expect(
        yield* withNode(
          () => result({ ...transaction, hash: other }),
          (chain) => reasonOf(chain.transaction(hash))
        )
      ).toBe("notAnRpc")
    })
  )
})

describe("logs", () => {
  it.live("logs that are pending or removed are left out", () =>
    withNode(
      () => {
        const found = { ...log, transactionHash: hash, blockNumber: "0x5", blockHash: other, removed: false }
        return result([
          found,
          { ...found, blockNumber: null },
          { ...found, blockHash: null },
          { ...found, removed: true },
          { ...found, logIndex: null }
        ])
      },
      (chain) =>
        Effect.map(chain.logs({ topics: [], fromBlock: 1n, toBlock: "latest" }), (logs) =>
          expect(logs).toEqual([{ ...log, logIndex: 3, txHash: hash, blockNumber: 5n, blockHash: other }])
        )
    )
  )
})

describe("transactions", () => {
  const read = (answer: unknown) =>
    withNode(
      () => result(answer),
      (chain) => chain.transaction(hash)
    )

  it.live("a waiting legacy transaction has its gas price for both prices", () =>
    Effect.gen(function* () {
      expect(yield* read(waiting)).toEqual({
        txHash: hash,
        from: address,
        nonce: 7n,
        to: null,
        data: "0x60",
        value: 1n,
        gasLimit: 21_000n,
        maxFeePerGas: 3n,
        maxPriorityFeePerGas: 3n,
        blockNumber: null
      })
    })
  )

  it.live("a mined one has its block, and the prices that it offered", () =>
    Effect.gen(function* () {
      const offered = { maxFeePerGas: "0x9", maxPriorityFeePerGas: "0x2", blockNumber: "0x5", to: address }
      expect(yield* read({ ...waiting, ...offered })).toMatchObject({
        maxFeePerGas: 9n,
        maxPriorityFeePerGas: 2n,
        blockNumber: 5n,
        to: address
      })
    })
  )
})

describe("simulations", () => {
  const simulated = (calls: ReadonlyArray<unknown>) =>
    withNode(
      () => result([{ ...block, calls }]),
      (chain) => Effect.result(chain.simulate([call]))
    )

  it.live("revert data are found where Geth and where anvil put them", () =>
    Effect.gen(function* () {
      const failed = { status: "0x0", gasUsed: "0x5208", logs: [] }
      for (const answer of [
        {
          ...failed,
          returnData: "0x",
          error: { code: 3, message: "execution reverted", data: "0xdeadbeef" }
        },
        { ...failed, returnData: "0xdeadbeef", error: { code: -3_200, message: "execution failed" } }
      ])
        expect(Result.getOrThrow(yield* simulated([answer]))).toEqual([
          { success: false, data: "0xdeadbeef", gasUsed: 21_000n, logs: [] }
        ])
      const halted = { ...failed, returnData: "0x", error: { code: -32_015, message: "out of gas", data: 7 } }
      expect(Result.getOrThrow(yield* simulated([halted]))[0]?.data).toBe("0x")
    })
  )

  it.live("logs without a place are counted", () =>
    Effect.gen(function* () {
      const { logIndex: _, ...placeless } = log
      const answer = { status: "0x1", gasUsed: "0x1", returnData: "0x", logs: [placeless, placeless] }
      const [first] = Result.getOrThrow(yield* simulated([answer]))
      expect(first?.logs.map(({ logIndex }) => logIndex)).toEqual([0, 1])
    })
  )

  it.live("a simulation reply with a wrong number of results or blocks is rejected", () =>
    Effect.gen(function* () {
      const good = { status: "0x1", gasUsed: "0x1", returnData: "0x", logs: [] }
      for (const calls of [[], [good, good]]) {
        const answer = yield* simulated(calls)
        expect(Result.isFailure(answer) && answer.failure.reason).toBe("notAnRpc")
      }
      for (const answer of [[], [{ calls: [good] }, { calls: [good] }], null, {}])
        expect(
          yield* withNode(
            () => result(answer),
            (chain) => reasonOf(chain.simulate([call]))
          )
        ).toBe("notAnRpc")
    })
  )
})

const methods: Readonly<Record<string, (chain: ChainClient) => Effect.Effect<unknown, ChainRpcError>>> = {
  chainId: (chain) => chain.chainId,
  block: (chain) => chain.block("latest"),
  fees: (chain) => chain.fees,
  balance: (chain) => chain.balance(address),
  code: (chain) => chain.code(address),
  transactionCount: (chain) => chain.transactionCount(address, "pending"),
  call: (chain) => chain.call(call),
  simulate: (chain) => chain.simulate([call]),
  sendRawTransaction: (chain) => chain.sendRawTransaction(Hex.unsafe("0x02c0")),
  receipt: (chain) => chain.receipt(hash),
  transaction: (chain) => chain.transaction(hash),
  logs: (chain) => chain.logs({ topics: [], fromBlock: "latest", toBlock: "latest" })
}

/** An honest answer with one member changed into anything. */
const lies = (honest: unknown): fc.Arbitrary<unknown> => {
  if (Array.isArray(honest)) {
    const elements: ReadonlyArray<unknown> = honest
    return fc.oneof(fc.jsonValue(), fc.tuple(...elements.map((element) => lies(element))))
  }
  if (typeof honest !== "object" || honest === null) return fc.oneof(fc.jsonValue(), fc.constant(honest))
  return fc.oneof(
    fc.jsonValue(),
    fc
      .constantFrom(...Object.keys(honest))
      .chain((name) => fc.jsonValue().map((lie) => ({ ...honest, [name]: lie })))
  )
}

const honestAnswers = fc.constantFrom<unknown>(
  "0x1",
  block,
  receipt,
  [log],
  [{ calls: [{ status: "0x1", gasUsed: "0x1", returnData: "0x", logs: [log] }] }],
  { baseFeePerGas: ["0x1", "0x1"], reward: [["0x1"]] },
  { hash }
)

describe("a node that lies", () => {
  it.live(
    "a lying node causes typed errors or wrong values, never a defect",
    () => {
      let lie: unknown = null
      return withNode(
        () => lie as object,
        (chain) =>
          Effect.promise(() =>
            fc.assert(
              fc.asyncProperty(
                honestAnswers.chain(lies),
                fc.constantFrom("result", "error"),
                fc.constantFrom(...Object.keys(methods)),
                async (value, kind, name) => {
                  lie = { [kind]: value }
                  const method = methods[name]
                  if (method === undefined) return
                  const exit = await Effect.runPromiseExit(method(chain))
                  if (Exit.isSuccess(exit)) return
                  const failed = Cause.findErrorOption(exit.cause)
                  expect(Option.isSome(failed) && failed.value).toBeInstanceOf(ChainRpcError)
                }
              ),
              { numRuns: 1_000 }
            )
          )
      )
    },
    60_000
  )
})

describe("traces", () => {
  it.live("traces contain scheme, host and methods of the node, no more of its URL", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const tracer = Tracer.make({
        span: ({ annotations, kind, links, name, parent, sampled, startTime }) => {
          const attributes = new Map<string, unknown>()
          const span: Tracer.Span = {
            _tag: "Span",
            name,
            spanId: String(seen.length),
            traceId: "trace",
            parent,
            annotations,
            links: [...links],
            status: { _tag: "Started", startTime },
            attributes,
            sampled,
            kind,
            end: () => undefined,
            attribute: (key, value) => void attributes.set(key, value),
            event: (event, _, more) => void seen.push(event, more),
            addLinks: () => undefined
          }
          seen.push(name, attributes)
          return span
        }
      })
      yield* withNode(
        () => ({ error: { code: -32_000, message: `wrong key ${secret}` } }),
        (chain) => Effect.result(chain.balance(address))
      ).pipe(Effect.withTracer(tracer))
      const shown = JSON.stringify(seen, (_, value: unknown) => (value instanceof Map ? [...value] : value))
      expect(shown).toContain("ChainRpc.exchange")
      expect(shown).toContain("eth_getBalance")
      expect(shown).not.toContain(secret)
    })
  )
})
