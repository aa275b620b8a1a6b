import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { MiB } from "../../support/Heap.js"
import { type Asked, callsOf } from "../../support/HostileNode.js"
import * as Bundle from "../../support/process/Bundle.js"
import { run } from "../../support/process/Program.js"
import { http } from "./support.js"

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

describe("a caller's node that answers at length", () => {
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
    // Nearly a gigabyte, and a process of its own.
    240_000
  )
})
