import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Deposits from "../../../src/application/payers/Deposits.js"
import { heldMillis } from "../../../src/application/payers/Payer.js"
import * as Paymaster from "../../../src/application/payers/Paymaster.js"
import type { Budgets } from "../../../src/application/ports/Budgets.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"
import * as Site from "./Site.js"

const { codes, cost, dataOf, entryPoint, op, part, paymaster } = Site

describe("a paymaster that wants no data", () => {
  const world = (deposit: bigint, over: Parameters<typeof Site.make>[1] = {}) =>
    Effect.gen(function* () {
      const { answer, calls, site } = yield* Site.make(deposit, over)
      const stored = yield* InMemory.makeBudgets
      const givenBack: Array<number> = []
      const budgets: Budgets["Service"] = {
        ...stored,
        release: (of, ids) =>
          Effect.andThen(
            Effect.sync(() => givenBack.push(ids.length)),
            stored.release(of, ids)
          )
      }
      const held = Effect.map(budgets.open(Make.chainId), (holds) => holds.map(({ wei }) => wei))
      return { answer, budgets, calls, givenBack, held, payer: Paymaster.plain(budgets, site), site }
    })

  test("is named in an op without a paymaster, and other ops stay unchanged", function* () {
    const { payer } = yield* world(cost)
    expect(payer.paymaster).toBe(paymaster)
    expect(yield* payer.draft(op)).toEqual({ ...op, paymasterAndData: dataOf(Hex.empty) })
    const named = { ...op, paymasterAndData: dataOf(Hex.unsafe("0x01")) }
    expect(yield* payer.draft(named)).toBe(named)
  })

  test("pays for ops in order up to its deposit, to the last wei", function* () {
    const { held, payer } = yield* world(3n * cost - 1n)
    const ops = [1n, 2n, 3n].map((nonce, index) => part({ ...op, nonce }, index + 4))
    const failed = yield* payer.reserve(ops)
    expect(codes(failed)).toEqual([[2, "insufficient_funds"]])
    expect(failed[2]?.figures).toEqual({
      paymaster,
      required: `${cost}`,
      available: `${cost - 1n}`,
      missing: "1"
    })
    expect(yield* held).toEqual([cost, cost])
  })

  test("has its deposit reduced by its own charges", function* () {
    const { budgets, payer } = yield* world(2n * cost)
    yield* payer.reserve([part(op)])
    for (const { id } of yield* budgets.open(Make.chainId)) yield* budgets.settle(Make.chainId, id, cost)
    const later = [2n, 3n].map((nonce, index) => part({ ...op, nonce }, index + 1))
    expect(codes(yield* payer.reserve(later))).toEqual([])
  })

  test("has its deposit read at the EntryPoint, and a node without a reply is refused", function* () {
    const { answer, calls, held, payer } = yield* world(cost)
    expect(codes(yield* payer.reserve([part(op)]))).toEqual([])
    expect(calls).toEqual([
      {
        to: entryPoint,
        data: Hex.unsafe(`0x70a08231${paymaster.slice(2).toLowerCase().padStart(64, "0")}`)
      }
    ])
    const word = answer.call
    for (const call of [
      { ...word, success: false },
      { ...word, data: Hex.empty },
      { ...word, data: Hex.concat(word.data, Hex.unsafe("0x00")) }
    ]) {
      answer.call = call
      expect(yield* Effect.flip(payer.reserve([part({ ...op, nonce: 2n }, 1)]))).toMatchObject({
        code: "node_refused"
      })
    }
    expect(yield* held).toEqual([cost])
  })

  test("holds its money for each request with the op, and for no other account's", function* () {
    const { budgets, payer } = yield* world(2n * cost - 1n)
    yield* payer.reserve([part(op)])
    expect(codes(yield* payer.reserve([part(op, 0, "another")]))).toEqual([[0, "insufficient_funds"]])
    const foreign = yield* Site.make(2n * cost - 1n, { accountId: Make.bob })
    expect(
      codes(yield* Paymaster.plain(budgets, foreign.site).reserve([part({ ...op, nonce: 2n })]))
    ).toEqual([])
  })

  test("releases its holds for ops that are not sent and for ended ops", function* () {
    const { givenBack, held, payer } = yield* world(10n * cost)
    const ops = [1n, 2n, 3n].map((nonce, index) => part({ ...op, nonce }, index))
    yield* payer.reserve(ops)
    yield* payer.release(ops.slice(1, 2))
    expect(yield* held).toEqual([cost, cost])
    yield* payer.reserve(ops.slice(1, 2))
    expect(yield* held).toEqual([cost, cost, cost])
    yield* payer.release(ops)
    expect(yield* held).toEqual([])
    expect(givenBack).toEqual([1, 3])
  })

  test("raises its hold for an op that costs more, and keeps it for an op that costs less", function* () {
    const { held, payer } = yield* world(2n * cost)
    for (const [maxFeePerGas, most] of [
      [100n, cost],
      [150n, (cost * 3n) / 2n],
      [100n, (cost * 3n) / 2n]
    ] as const) {
      expect(codes(yield* payer.reserve([part({ ...op, maxFeePerGas })]))).toEqual([])
      expect(yield* held).toEqual([most])
    }
    expect(codes(yield* payer.reserve([part({ ...op, maxFeePerGas: 201n })]))).toEqual([
      [0, "insufficient_funds"]
    ])
  })

  test("holds it for ten minutes: a dead process blocks no money for longer", function* () {
    const { held, payer } = yield* world(cost)
    yield* Time.adjust(1_000)
    yield* payer.reserve([part(op)])
    yield* Time.adjust(heldMillis - 1)
    expect(yield* held).toEqual([cost])
    yield* Time.adjust(2)
    expect(codes(yield* payer.reserve([part({ ...op, nonce: 2n }, 1)]))).toEqual([])
  })

  it("has one name of its budget for each EntryPoint and paymaster", () => {
    const names = [
      { entryPoint, paymaster },
      { entryPoint, paymaster: Make.address(1) },
      { entryPoint: Make.entryPoint, paymaster }
    ].map(Deposits.budget)
    expect(new Set(names).size).toBe(3)
  })
})
