import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Inclusions from "../../../src/application/chain/Inclusions.js"
import {
  type ChainClient,
  ChainRpcError,
  type LogFilter
} from "../../../src/application/ports/chain/ChainRpc.js"
import * as Make from "../../support/journal/Make.js"
import * as Landings from "../../support/lanes/Landings.js"
import { test } from "../../support/Test.js"

const hash = Make.word(0x0b)

/** A chain at block 9,000 with an op in block 100; its node returns logs of at most this many blocks. */
const world = (most: bigint) => {
  const chain = Landings.makeChain()
  chain.mine(9_000)
  chain.land(hash, 1n, 100n)
  let asked = 0
  const logs = (filter: LogFilter) => {
    asked += 1
    const to = typeof filter.toBlock === "bigint" ? filter.toBlock : 9_000n
    return to - BigInt(filter.fromBlock) + 1n > most
      ? Effect.fail(
          new ChainRpcError({
            reason: "rejected",
            origin: "http://node",
            message: `eth_getLogs is limited to a ${most} block range`
          })
        )
      : chain.client.logs(filter)
  }
  const client: ChainClient = { ...chain.client, logs }
  const find = (block: bigint, since: number | null = null) =>
    Effect.map(
      Inclusions.find(client, Landings.entryPoint, [hash], block, since),
      (found) => found.get(hash)?.blockNumber
    )
  return { asked: () => asked, find }
}

/** Unix milliseconds of a block, and ten minutes more: the clocks of a chain and of a process differ. */
const timeOf = (block: number) => block * 10_000 + 600_000

describe("an op that has landed", () => {
  test("is found up to 1,024 blocks back without a starting block", function* () {
    const { asked, find } = world(100_000n)
    expect(yield* find(1_124n)).toBe(100n)
    expect(yield* find(1_125n)).toBeUndefined()
    expect(asked()).toBe(2)
  })

  test("is found in every block since its acceptance, however many blocks ago", function* () {
    const { find } = world(100_000n)
    expect(yield* find(9_000n, timeOf(100))).toBe(100n)
    expect(yield* find(9_000n, 0)).toBe(100n)
    expect(yield* find(9_000n, timeOf(8_500))).toBeUndefined()
  })

  test("is found at a node that returns logs of few blocks at a time", function* () {
    const { asked, find } = world(500n)
    expect(yield* find(1_124n)).toBe(100n)
    expect(yield* find(9_000n, timeOf(100))).toBe(100n)
    expect(asked()).toBeLessThan(64)
  })

  test("is not reported missing by a node that lacks the last block of the range", function* () {
    const chain = Landings.makeChain()
    chain.mine(200)
    chain.land(hash, 1n, 150n)
    const find = Effect.map(
      Inclusions.find(chain.client, Landings.entryPoint, [hash], 160n),
      (found) => found.get(hash)?.blockNumber
    )
    const within = (known: bigint | null) =>
      Effect.map(
        Inclusions.within(chain.client, Landings.entryPoint, [hash], { from: 0n, to: 200n }, { known }),
        (found) => found.has(hash)
      )
    chain.fallBehindWithLogs(41)
    expect(yield* Effect.flip(find)).toMatchObject({ _tag: "ChainRpcError", reason: "unreachable" })
    chain.fallBehindWithLogs(51)
    expect(yield* Effect.flip(within(160n))).toMatchObject({ _tag: "ChainRpcError", reason: "unreachable" })
    expect(yield* within(null)).toBe(false)
    chain.fallBehindWithLogs(40)
    expect(yield* find).toBe(150n)
    expect(yield* within(160n)).toBe(true)
  })

  test("is not reported missing when the search would need unbounded queries", function* () {
    const error = yield* Effect.flip(world(2n).find(9_000n, 0))
    expect(error).toMatchObject({ _tag: "ChainRpcError", reason: "rejected" })
  })
})
