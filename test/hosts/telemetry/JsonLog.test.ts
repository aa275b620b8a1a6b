import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import * as JsonLog from "../../../src/hosts/telemetry/JsonLog.js"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe("lines of the log", () => {
  it("that come together are written at once, in their order", () => {
    const written: Array<string> = []
    const { write } = JsonLog.batched((lines) => void written.push(lines))
    write("a\n")
    write("b\n")
    expect(written).toEqual([])
    vi.runAllTimers()
    expect(written).toEqual(["a\nb\n"])
    write("c\n")
    vi.runAllTimers()
    expect(written).toEqual(["a\nb\n", "c\n"])
  })

  it("do not pile up: many are written before their time", () => {
    const written: Array<string> = []
    const { write } = JsonLog.batched((lines) => void written.push(lines))
    for (let count = 0; count < 1_000; count++) write(`${"x".repeat(99)}\n`)
    expect(written.join("").length).toBeGreaterThan(60_000)
  })

  it("are written when the process ends, none twice", () => {
    const written: Array<string> = []
    const { flush, write } = JsonLog.batched((lines) => void written.push(lines))
    write("last\n")
    flush()
    vi.runAllTimers()
    expect(written).toEqual(["last\n"])
  })
})
