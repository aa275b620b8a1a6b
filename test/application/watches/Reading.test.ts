import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Position } from "../../../src/application/ports/Watches.js"
import * as Reading from "../../../src/application/watches/Reading.js"
import { test } from "../../support/Test.js"
import * as Following from "./Following.js"
import { ForkingChain } from "./ForkingChain.js"

const query = { address: [Following.token], topics: [] }
const start: Position = { first: 0n, next: 0n, hashes: [] }
const plan = { depth: 64n, settledBlocks: 1_000n, recentBlocks: 64n, until: null }
const bounds = { asks: 256, concurrency: 4, results: 20, bytes: 1_000_000 }

/** Three transfers in each block. */
const busy = (blocks: number) => {
  const chain = new ForkingChain(0)
  for (let n = 0; n < blocks; n++) chain.mine([1, 2, 3].map((to) => Following.transfer(to)))
  return chain
}

const read = (chain: ForkingChain, from: Position, limits: Reading.Limits) =>
  Reading.next(chain.client, [query], from, chain.head, limits)

describe("blocks that a reorganisation may take back", () => {
  test("are read only as far as their logs fit, and continue from there", function* () {
    const chain = busy(40)
    const first = yield* read(chain, start, { ...plan, bounds })
    expect([first?.position.next, first?.logs.length]).toEqual([8n, 24])
    expect(first?.position.hashes).toEqual(chain.blocks.slice(0, 8).map(({ hash }) => hash))
    expect(chain.asked.filter(({ method }) => method === "logsOf")).toHaveLength(8)
    const second = yield* read(chain, first?.position ?? start, { ...plan, bounds })
    expect([second?.position.next, second?.logs[0]?.blockNumber]).toEqual([16n, 8n])
    const all = yield* read(chain, start, { ...plan, bounds: { ...bounds, results: 1_000 } })
    expect([all?.position.next, all?.logs.length]).toEqual([40n, 120])
    const small = yield* read(chain, start, { ...plan, bounds: { ...bounds, bytes: 1_000 } })
    expect(small?.position.next).toBe(8n)
  })

  test("are read no further after a reorganisation either", function* () {
    const chain = busy(40)
    const before = yield* read(chain, start, { ...plan, bounds: { ...bounds, results: 1_000 } })
    chain.takeBack(38)
    for (let n = 0; n < 38; n++) chain.mine([1, 2, 3].map((to) => Following.transfer(to)))
    chain.mine([])
    chain.asked.length = 0
    const after = yield* read(chain, before?.position ?? start, { ...plan, bounds })
    expect([after?.ancestor, after?.before.next, after?.position.next]).toEqual([1n, 2n, 10n])
    expect(chain.asked.filter(({ method }) => method === "logsOf")).toHaveLength(8)
  })
})

test("a reorganisation to the blocks that were read before is not believed", function* () {
  const chain = busy(40)
  const own = chain.blocks
  chain.takeBack(2)
  for (let n = 0; n < 2; n++) chain.mine([])
  const fork = chain.blocks
  const hashes = own.map(({ hash }) => hash)
  const last = { hash: own[39]?.hash ?? chain.head.hash, logIndex: 0, watch: 1 }
  const positions: ReadonlyArray<readonly [Position, number]> = [
    [{ first: 0n, next: 40n, hashes }, 40],
    [{ first: 0n, next: 39n, hashes: hashes.slice(0, 39), part: last }, 1]
  ]
  for (const [position, replies] of positions) {
    let replied = 0
    chain.view = () => (replied++ < replies ? fork : own)
    const { message } = yield* Effect.flip(read(chain, position, plan))
    expect(message).toContain("it answers for several chains in turn")
  }
})

test("final blocks are read one by one where a single one has more logs than fit", function* () {
  const chain = busy(100)
  const first = yield* read(chain, start, { ...plan, bounds: { ...bounds, results: 2 } })
  expect([first?.position.next, first?.logs.length]).toEqual([1n, 3])
  expect(first?.position.hashes).toEqual([chain.blocks[0]?.hash])
})
