import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { elementFailure } from "../../../../../src/application/failures/Elements.js"
import { invalid, unprocessable } from "../../../../../src/application/failures/Failure.js"
import * as Opening from "../../../../../src/application/lanes/worker/rules/Opening.js"
import type { PreparedOp } from "../../../../../src/application/ports/journal/Records.js"
import type { OpCall } from "../../../../../src/application/prepare/Call.js"
import { nothing, type Prepared } from "../../../../../src/application/prepare/Preparation.js"
import * as Hex from "../../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../../support/journal/Make.js"

const call = (index: number, dependsOn: number | null = null): OpCall => ({
  requestId: "r",
  index,
  kind: "op",
  wallet: Make.address(1 + (index % 3)),
  custody: 0,
  to: Make.address(9),
  value: 0n,
  data: Hex.empty,
  window: null,
  dependsOn
})
const op = (index: number) => ({ requestId: "r", index }) as PreparedOp
const clock = { now: 1_000_000, timestamp: 1_000 }

/** Result of opening these calls, all prepared; `waiting`: calls left out as too early. */
const opened = (
  calls: ReadonlyArray<OpCall>,
  prepared: Partial<Prepared>,
  {
    lacks = [],
    waiting = []
  }: {
    readonly lacks?: ReadonlyArray<PreparedOp>
    readonly waiting?: ReadonlyArray<readonly [OpCall, number]>
  } = {}
) =>
  Result.match(
    Opening.of(
      {
        left: [...calls, ...waiting.map(([early]) => early)],
        waiting: new Map(waiting.map(([{ index }, time]) => [index, time])),
        batch: { requestId: "r", calls, revert: String, isAccepted: true, mayWait: true }
      },
      Result.succeed({ ...nothing, ...prepared }),
      new Map(lacks.map((lack) => [lack, elementFailure("sponsorship_exhausted")])),
      clock
    ),
    {
      onFailure: ({ why }) => why,
      onSuccess: ({ failed, ops, schedule }) => ({
        ops: ops.map(({ index }) => index),
        failed: failed.map(({ code, index }) => [index, code]),
        schedule
      })
    }
  )

const reverts = elementFailure("execution_failed")
const delayed = elementFailure("paymaster_unavailable")

describe("opening elements", () => {
  it("yields ops or failures", () => {
    expect(opened([call(0), call(1)], { ops: [op(0)], failed: new Map([[1, reverts]]) })).toEqual({
      ops: [0],
      failed: [[1, "execution_failed"]],
      schedule: null
    })
  })

  it("postpones delayed elements with their component", () => {
    const calls = [call(0), call(1, 2), call(2), call(3, 1)]
    const failed = new Map([
      [1, delayed],
      [3, elementFailure("dependency_failed")]
    ])
    expect(opened(calls, { ops: [op(0), op(2)], failed })).toEqual({ ops: [0], failed: [], schedule: null })
  })

  it("postpones elements without money", () => {
    const [first, second] = [op(0), op(1)]
    expect(opened([call(0), call(1)], { ops: [first, second] }, { lacks: [second] })).toEqual({
      ops: [0],
      failed: [],
      schedule: null
    })
    expect(opened([call(0)], { ops: [first] }, { lacks: [first] })).toBe(
      elementFailure("sponsorship_exhausted").message
    )
  })

  it("schedules the rest for its first window when only early elements remain", () => {
    const waiting = [
      [call(5), 2_000],
      [call(6), 3_000]
    ] as const
    const schedule = { notBefore: 2_000, dueAt: 2_001_000 }
    expect(opened([call(0)], { ops: [op(0)] }, { waiting })).toMatchObject({ ops: [0], schedule })
    expect(opened([], {}, { waiting })).toMatchObject({ ops: [], schedule })
    const failed = new Map([[1, delayed]])
    expect(opened([call(0), call(1)], { ops: [op(0)], failed }, { waiting })).toMatchObject({
      ops: [0],
      schedule: null
    })
  })

  it("waits for a nonce key of the wallet", () => {
    expect(opened([call(0)], {})).toBe(Opening.busy.why)
  })

  it("applies a request's failure to its elements, unless it passes", () => {
    const of = (failure: Parameters<typeof Result.fail>[0]) =>
      Opening.of(
        {
          left: [call(0), call(1)],
          waiting: new Map(),
          batch: {
            requestId: "r",
            calls: [call(0), call(1)],
            revert: String,
            isAccepted: true,
            mayWait: true
          }
        },
        Result.fail(failure as never),
        new Map(),
        clock
      )
    const bad = of(invalid("custody_mismatch"))
    expect(Result.isSuccess(bad) && bad.success.failed.map(({ index }) => index)).toEqual([0, 1])
    expect(Result.isFailure(of(unprocessable("fees_above_cap")))).toBe(true)
  })
})

describe("the next elements to open", () => {
  it("are neither opened nor failed, and exclude cancelled requests", () => {
    const body = { cancelled: null, failed: [{ index: 1, code: "", message: "", figures: {} }], opened: [0] }
    const calls = [call(0), call(1), call(2)]
    expect(Opening.unopenedOf(body, calls).map(({ index }) => index)).toEqual([2])
    expect(Opening.unopenedOf({ ...body, cancelled: "request_cancelled" }, calls)).toEqual([])
  })

  it("are as many as one preparation takes", () => {
    const calls = Array.from({ length: 700 }, (_, index) => call(index))
    const first = Opening.firstOf(calls)
    expect(first).toHaveLength(256)
    expect(new Set(first.map(({ wallet }) => wallet)).size).toBeLessThan(3)
    expect(Opening.firstOf(calls.slice(0, 200))).toHaveLength(200)
  })
})
