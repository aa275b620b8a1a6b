import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Queue from "../../../../../src/application/lanes/worker/rules/Queue.js"
import * as Make from "../../../../support/journal/Make.js"
import { candidate, candidates } from "../../../../support/worker/Candidates.js"

const indexes = (ops: ReadonlyArray<Queue.Candidate>) => ops.map(({ opId }) => opId)
const numbered = (count: number, rest: (opId: number) => Partial<Queue.Candidate> = () => ({})) =>
  Array.from({ length: count }, (_, at) =>
    candidate({ opId: at, requestId: `r${at}`, index: 0, ...rest(at) })
  )

describe("the queue of a lane's worker", () => {
  it("holds all ready ops", () => {
    const queue = Queue.of(numbered(3), false)
    expect(indexes(queue.ops)).toEqual([0, 1, 2])
    expect(queue.hasMore).toBe(false)
    expect(Queue.isLow(queue)).toBe(false)
  })

  it("holds at most two bundles, and knows of more", () => {
    const queue = Queue.of(numbered(Queue.rows), true)
    expect(queue.ops).toHaveLength(Queue.most)
    expect(queue.hasMore).toBe(true)
    expect(Queue.isLow(queue)).toBe(false)
    const left = Queue.without(queue, new Set(indexes(queue.ops).slice(Queue.bundle - 1)))
    expect(left.ops).toHaveLength(Queue.bundle - 1)
    expect(Queue.isLow(left)).toBe(true)
  })

  it("holds the rest of a component at the cut", () => {
    const last = Queue.most - 1
    const queue = Queue.of(
      numbered(Queue.rows, (opId) =>
        opId >= last && opId < last + 3
          ? { requestId: "chain", index: opId, dependsOn: opId === last ? [] : [opId - 1] }
          : {}
      ),
      true
    )
    expect(indexes(queue.ops).slice(-3)).toEqual([last, last + 1, last + 2])
  })

  it("always has whole components, and no ops beyond them", () => {
    fc.assert(
      fc.property(candidates(Queue.rows), (ops) => {
        const queue = Queue.of(ops, ops.length === Queue.rows)
        const kept = new Set(queue.ops)
        const components = Queue.componentsOf(ops)
        const of = (name: string | undefined) => ops.filter(({ opId }) => components.get(opId) === name)
        for (const op of queue.ops)
          expect(of(components.get(op.opId)).every((each) => kept.has(each))).toBe(true)
        expect(ops.slice(0, Queue.most).every((op) => kept.has(op))).toBe(true)
      }),
      { numRuns: 5 }
    )
  })

  it("orders accounts by turns, least recently served first", () => {
    const ops = numbered(4, (opId) => ({ accountId: opId < 3 ? Make.alice : Make.bob }))
    expect(indexes(Queue.inTurn(ops, new Map()))).toEqual([0, 1, 2, 3])
    expect(indexes(Queue.inTurn(ops, new Map([[Make.alice, 1]])))).toEqual([3, 0, 1, 2])
    expect(
      indexes(
        Queue.inTurn(
          ops,
          new Map([
            [Make.alice, 1],
            [Make.bob, 2]
          ])
        )
      )
    ).toEqual([0, 1, 2, 3])
  })
})

describe("components", () => {
  it("contain ops linked within one request, in any number of steps", () => {
    const ops = [
      candidate({ opId: 1, requestId: "a", index: 0 }),
      candidate({ opId: 2, requestId: "a", index: 1, dependsOn: [0] }),
      candidate({ opId: 3, requestId: "a", index: 2, dependsOn: [1] }),
      candidate({ opId: 4, requestId: "b", index: 1, dependsOn: [0] }),
      candidate({ opId: 5, requestId: "b", index: 2 })
    ]
    const components = Queue.componentsOf(ops)
    expect(new Set([1, 2, 3].map((opId) => components.get(opId))).size).toBe(1)
    expect(new Set([1, 4, 5].map((opId) => components.get(opId))).size).toBe(3)
  })
})
