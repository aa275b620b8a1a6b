import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { MiB } from "../../support/Heap.js"
import { type Asked, callsOf } from "../../support/HostileNode.js"
import * as LoopMonitor from "../../support/LoopMonitor.js"
import * as Bundle from "../../support/process/Bundle.js"
import { run } from "../../support/process/Program.js"
import { connect, http, log, other, receipt, transaction } from "./support.js"

const hash = (n: number) => Hex.unsafe32(`0x${n.toString(16).padStart(64, "0")}`)

const place = { blockNumber: "0x1", blockHash: hash(1) }

const longest = ({ method, params: [first] }: Asked, data: string): unknown => {
  const log = { address: Address.zero, topics: [hash(1)], data, logIndex: "0x0" }
  switch (method) {
    case "eth_getTransactionReceipt":
      return {
        ...place,
        transactionHash: first,
        status: "0x1",
        gasUsed: "0x1",
        cumulativeGasUsed: "0x1",
        effectiveGasPrice: "0x1",
        from: Address.zero,
        logs: [log]
      }
    case "eth_getLogs":
      return [{ ...log, ...place, transactionHash: hash(1) }]
    default:
      return data
  }
}

const times = <A>(count: number, one: A): ReadonlyArray<A> => Array.from({ length: count }, () => one)
const odd = { a: 1, b: 2, c: 3 }
const placed = { ...log, ...place, transactionHash: hash(1), data: "0x" }
const range = { fromBlock: 1n, toBlock: 2n, topics: [] }

/** Answers of millions of bytes, of many small parts, and what asks for them. */
const lengthy: Readonly<
  Record<string, readonly [unknown, (chain: ChainClient) => Effect.Effect<unknown, unknown>]>
> = {
  logs: [times(6_500, placed), (chain) => chain.logs(range)],
  "malformed logs": [times(24_000, odd), (chain) => chain.logs(range, "lenient")],
  "a log of many topics": [[{ ...placed, topics: times(98_000, other) }], (chain) => chain.logs(range)],
  "a receipt": [
    { ...receipt, logs: times(6_500, placed) },
    (chain) => chain.receipt(receipt.transactionHash)
  ],
  "transactions of a block": [
    { transactions: times(4_500, transaction) },
    (chain) => chain.transactionsIn(5n)
  ],
  "past fees": [
    { baseFeePerGas: times(1_000, "0x1"), gasUsedRatio: times(95_000, 0.5), reward: times(1_000, ["0x1"]) },
    (chain) => chain.fees
  ]
}

/** Milliseconds of work between two turns of the event loop. */
const most = 100

describe("a caller's node that answers at length", () => {
  for (const [name, [result, ask]] of Object.entries(lengthy))
    it.live(`a caller's node does not hold the event loop by ${name}`, () =>
      Effect.gen(function* () {
        const text = Buffer.from(JSON.stringify(result))
        const node = yield* http((response, body) => {
          const [before, after] = body.startsWith("[") ? ["[", "}]"] : ["", "}"]
          response.write(`${before}{"jsonrpc":"2.0","id":${callsOf(body)[0]?.id},"result":`)
          response.write(text)
          response.end(after)
        })
        const chain = yield* connect(node, { http: {} })
        const context = yield* Effect.context()
        const { failed, longest } = yield* Effect.promise(() =>
          LoopMonitor.leastOf(most, async () => {
            const monitor = LoopMonitor.start()
            const told = Effect.match(ask(chain), { onFailure: String, onSuccess: () => "" })
            const failed = await Effect.runPromiseWith(context)(told)
            monitor.stop()
            return { failed, longest: monitor.longest() }
          })
        )
        // It was read to its end.
        expect(failed).not.toContain("larger")
        expect(longest).toBeLessThan(most)
      })
    )

  it.live(
    "leaves less than 256 MiB in memory, and never needs more of the heap, when it answers at 8 MiB 100 times",
    () =>
      Effect.gen(function* () {
        const long = Buffer.alloc(8 * MiB - 4_096, "a")
        const node = yield* http((response, body) => {
          const [asked] = callsOf(body)
          if (asked === undefined) return
          // Written around the long part, which is never a text of this process.
          const [before = "", after = ""] = JSON.stringify({
            jsonrpc: "2.0",
            id: asked.id,
            result: longest(asked, "0x-")
          }).split("-")
          response.write(before)
          response.write(long)
          response.end(after)
        })
        const reader = yield* Effect.promise(() => Bundle.of("test/support/memory/LongAnswers.ts"))
        const options = ["--max-old-space-size=256", reader, node.url, "20"]
        const program = yield* Effect.acquireRelease(
          Effect.sync(() => run(options)),
          ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
        )
        expect([yield* Effect.promise(() => program.ended), program.stderr()]).toEqual([0, ""])
        const { answers, inUse } = JSON.parse(program.stdout())
        expect(answers).toBe(100)
        expect(inUse).toBeLessThan(256 * MiB)
      }),
    // Nearly a gigabyte, in a separate process.
    240_000
  )
})
