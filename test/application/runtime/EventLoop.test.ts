import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import * as EventLoop from "../../../src/application/runtime/EventLoop.js"

/** Computes for this CPU time, whatever else the machine does. */
const compute = (millis: number): void => {
  const start = process.cpuUsage()
  for (;;) {
    const { system, user } = process.cpuUsage(start)
    if (user + system > millis * 1_000) return
  }
}

/** Turns of the event loop while the effect ran. */
const turns = async (effect: Effect.Effect<unknown>): Promise<number> => {
  let count = 0
  let running = true
  const turn = (): void => {
    count += 1
    if (running) setImmediate(turn)
  }
  setImmediate(turn)
  await Effect.runPromise(effect)
  running = false
  return count
}

const items = Array.from({ length: 40 }, (_, index) => index)
const step = (index: number): number => {
  compute(3)
  return index
}

const works: ReadonlyArray<readonly [string, Effect.Effect<unknown>]> = [
  ["map", EventLoop.map(items, step)],
  ["each", EventLoop.each(items, (item) => Effect.sync(() => step(item)))]
]

describe("the event loop", () => {
  it.each(works)("turns while %s works", async (_, work) => {
    expect(await turns(work)).toBeGreaterThan(5)
  })

  it("returns the results in order", async () => {
    expect(await Effect.runPromise(EventLoop.map(items, (item) => item * 2))).toEqual(
      items.map((item) => item * 2)
    )
    expect(await Effect.runPromise(EventLoop.each(items, (item) => Effect.succeed(item)))).toEqual(items)
  })
})
