import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as EoaTransactions from "../../../src/application/chain/EoaTransactions.js"
import {
  type ChainClient,
  ChainRpcError,
  type KnownTransaction
} from "../../../src/application/ports/chain/ChainRpc.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"

const eoa = Make.address(1)

/** A chain whose blocks have these counts of the EOA's transactions and one foreign transaction each. */
const chainOf = (counts: ReadonlyArray<number>, { hasStates = true, hides = -1n } = {}) => {
  let nonce = 0n
  const transactionOf = (from: typeof eoa, of: bigint, blockNumber: bigint): KnownTransaction => ({
    txHash: Make.word(of),
    from,
    nonce: of,
    to: eoa,
    data: Hex.empty,
    value: 0n,
    gasLimit: 0n,
    maxFeePerGas: 0n,
    maxPriorityFeePerGas: 0n,
    blockNumber
  })
  const blocks = counts.map((count, number) => [
    transactionOf(Make.address(2), BigInt(number), BigInt(number)),
    ...Array.from({ length: count }, () => transactionOf(eoa, nonce++, BigInt(number)))
  ])
  const latest = BigInt(blocks.length - 1)
  const asked = { blocks: 0, counts: 0 }
  const chain = {
    origin: "http://node",
    block: (tag: "latest" | bigint) => {
      const number = tag === "latest" ? latest : tag
      return Effect.succeed({ number, timestamp: Number(number) })
    },
    transactionCount: (_: typeof eoa, at: bigint) =>
      Effect.suspend(() => {
        asked.counts += 1
        return hasStates || at === latest
          ? Effect.succeed(
              BigInt(
                blocks
                  .slice(0, Number(at) + 1)
                  .flat()
                  .filter(({ from }) => from === eoa).length
              )
            )
          : Effect.fail(
              new ChainRpcError({ reason: "rejected", origin: "http://node", message: "missing trie node" })
            )
      }),
    transactionsIn: (block: bigint) =>
      Effect.sync(() => {
        asked.blocks += 1
        return blocks[Number(block)]?.filter(({ from, nonce }) => from !== eoa || nonce !== hides) ?? null
      })
  } as unknown as ChainClient
  return { asked, chain, total: Number(nonce) }
}

const counts = fc.array(fc.constantFrom(0, 0, 0, 1, 3), { minLength: 1, maxLength: 60 })

describe("mined transactions of an EOA", () => {
  it("are found by the requested nonces, with or without past states of the node", () =>
    fc.assert(
      fc.asyncProperty(counts, fc.boolean(), fc.nat(), fc.nat(), (each, hasStates, one, other) =>
        Effect.runPromise(
          Effect.gen(function* () {
            const { chain, total } = chainOf(each, { hasStates })
            const bounds = [one % (total + 1), other % (total + 1)].sort((a, b) => a - b)
            const [from = 0, to = 0] = bounds
            const nonces = Array.from({ length: to - from }, (_, at) => BigInt(from + at))
            const found = yield* EoaTransactions.read(chain, eoa, nonces)
            expect(found.map(({ nonce }) => nonce)).toEqual(nonces)
            expect(found.every((each) => each.from === eoa)).toBe(true)
          })
        )
      )
    ))

  test("are found with few questions among many blocks", function* () {
    const { asked, chain } = chainOf(Array.from({ length: 4_096 }, (_, at) => (at === 1_000 ? 1 : 0)))
    expect(yield* EoaTransactions.read(chain, eoa, [0n])).toHaveLength(1)
    expect(asked.blocks).toBe(1)
    expect(asked.counts).toBeLessThan(40)
  })

  test("are an error where the node returns only some of them", function* () {
    for (const hasStates of [true, false]) {
      const { chain } = chainOf([1, 1, 1], { hasStates, hides: 1n })
      const error = yield* Effect.flip(EoaTransactions.read(chain, eoa, [0n, 1n, 2n]))
      expect(error).toMatchObject({ reason: "rejected" })
    }
  })

  test("since a time are read block by block, as far back as need be", function* () {
    const { asked, chain } = chainOf(Array.from({ length: 500 }, (_, at) => (at % 50 === 0 ? 1 : 0)))
    const found = yield* EoaTransactions.since(chain, eoa, 400_000)
    expect(found.map(({ blockNumber }) => blockNumber)).toEqual([400n, 450n])
    expect(asked.blocks).toBeLessThan(130)
    const gap = chainOf([1, 1, 1, 1], { hasStates: false, hides: 2n })
    expect(yield* Effect.flip(EoaTransactions.since(gap.chain, eoa, 0))).toMatchObject({
      reason: "rejected"
    })
    const long = chainOf(Array.from({ length: 2_000 }, () => 0))
    expect(yield* Effect.flip(EoaTransactions.since(long.chain, eoa, 0))).toMatchObject({
      reason: "rejected"
    })
  })
})
