import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import * as JsonLog from "../../../src/hosts/service/JsonLog.js"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe("lines of the log", () => {
  it("lines that arrive together are written in order in one write", () => {
    const written: Array<string> = []
    const { write } = JsonLog.batch((lines) => void written.push(lines))
    write("a\n")
    write("b\n")
    expect(written).toEqual([])
    vi.runAllTimers()
    expect(written).toEqual(["a\nb\n"])
    write("c\n")
    vi.runAllTimers()
    expect(written).toEqual(["a\nb\n", "c\n"])
  })

  it("a large backlog of lines is written early", () => {
    const written: Array<string> = []
    const { write } = JsonLog.batch((lines) => void written.push(lines))
    for (let count = 0; count < 1_000; count++) write(`${"x".repeat(99)}\n`)
    expect(written.join("").length).toBeGreaterThan(60_000)
  })

  it("lines are written once when the process ends", () => {
    const written: Array<string> = []
    const { flush, write } = JsonLog.batch((lines) => void written.push(lines))
    write("last\n")
    flush()
    vi.runAllTimers()
    expect(written).toEqual(["last\n"])
  })

  it("lines keep only the host of a URL and the first digits of a key", () => {
    const written: Array<string> = []
    const logger = Logger.layer([JsonLog.make((line) => void written.push(line))])
    const key = `0x${"5e".repeat(32)}`
    const failed = Effect.logError("asked https://me:pw@node.example/v3/pw?k=pw", Cause.fail(`no ${key}`))
    Effect.runSync(
      failed.pipe(Effect.annotateLogs({ rpc: "wss://node.example:1/v3/pw" }), Effect.provide(logger))
    )
    const [line = ""] = written
    expect(JSON.parse(line)).toMatchObject({
      message: "asked https://node.example",
      rpc: "wss://node.example:1",
      cause: expect.stringContaining(`no ${key.slice(0, 10)}...`)
    })
    expect(line).not.toMatch(/pw|5e5e5e5e5e/)
  })
})
