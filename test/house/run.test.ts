import { type SpawnOptions, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Command from "../support/run/Command.js"
import * as Counts from "../support/run/Counts.js"
import * as LeftBehind from "../support/run/LeftBehind.js"
import * as Machine from "../support/run/Machine.js"
import * as Report from "../support/run/Report.js"
import * as Schedule from "../support/run/Schedule.js"
import * as Seconds from "../support/run/Seconds.js"
import * as Survivors from "../support/run/Survivors.js"

const text = (...lines: ReadonlyArray<Report.Line>): string =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join("")

const end = (file: string, more: Partial<Report.FileResult> = {}): Report.Line => ({
  event: "end",
  file,
  millis: 5,
  passed: 2,
  failed: [],
  skipped: [],
  broken: [],
  ...more
})
const failed = (name: string) => ({ failed: [{ name, message: "expected 1 to be 2" }], passed: 1 })
const alone = (file: string, ok: boolean, ...lines: ReadonlyArray<Report.Line>): Report.Repeated => ({
  file,
  ok,
  report: Report.read(text(...lines))
})

describe("the summary of a test run", () => {
  it("counts what passed and names what failed, by file and test, with what it said", () => {
    const report = Report.read(text(end("a"), end("b", failed("is one")), end("c", { broken: ["no hook"] })))
    const { failures, passed } = Report.verdict(report, [])
    expect(passed).toBe(5)
    expect(failures.map(Report.line)).toEqual(["b > is one: expected 1 to be 2", "c: no hook"])
  })

  it("takes for unsteady, and counts as passed, what fails in the run and not alone", () => {
    const first = Report.read(text(end("a"), end("b", failed("is one"))))
    expect(Report.toRepeat(first)).toEqual(["b"])
    const verdict = Report.verdict(first, [alone("b", true, end("b"))])
    expect(verdict).toMatchObject({ passed: 4, failures: [] })
    expect(verdict.unsteady.map(Report.line)).toEqual(["b > is one: expected 1 to be 2"])
  })

  it("leaves a failure what fails alone too, even where another test failed in the run", () => {
    const first = Report.read(text(end("b", failed("is one"))))
    const same = Report.verdict(first, [alone("b", false, end("b", failed("is one")))])
    expect([same.failures.length, same.unsteady.length, same.passed]).toEqual([1, 0, 1])
    const other = Report.verdict(first, [alone("b", false, end("b", failed("is two")))])
    expect(other.failures.map(({ test }) => test)).toEqual(["is two"])
    expect(other.unsteady.map(({ test }) => test)).toEqual(["is one"])
    const silent = Report.verdict(first, [alone("b", false, end("b"))])
    expect(silent.failures.map(Report.line)).toEqual(["b: did not come to its end"])
  })

  it("names files that did not come to their end, those that had begun first", () => {
    const first = Report.read(
      text(
        { event: "run", files: ["a", "b", "c"] },
        { event: "start", file: "c" },
        { event: "start", file: "a" },
        end("a")
      )
    )
    expect(first.unfinished).toEqual(["c", "b"])
    expect(Report.toRepeat(first)).toEqual(["c", "b"])
    expect(Report.verdict(first, []).failures.map(Report.line)).toEqual([
      "c: did not come to its end",
      "b: did not come to its end"
    ])
  })

  it("has what nobody caught as a failure, run again where its file is known", () => {
    const nowhere = { event: "unhandled", file: null, message: "Error: lost" } as const
    const first = Report.read(text(end("a"), nowhere, { ...nowhere, file: "a" }))
    expect(Report.toRepeat(first)).toEqual(["a"])
    const { failures, unsteady } = Report.verdict(first, [alone("a", true, end("a"))])
    expect(failures.map(Report.line)).toEqual(["in an unknown file: Error: lost"])
    expect(unsteady.map(Report.line)).toEqual(["a: Error: lost"])
  })

  it("has the whole run repeated for what nobody caught in an unknown file, unless more fails than chance explains", () => {
    const nowhere = { event: "unhandled", file: null, message: "Error: lost" } as const
    const failing = (count: number) => Array.from({ length: count }, (_, n) => end(`${n}`, failed("is one")))
    expect(Report.isToRepeatWhole(Report.read(text(end("a"), nowhere)))).toBe(true)
    expect(Report.isToRepeatWhole(Report.read(text(...failing(Report.mostByChance), nowhere)))).toBe(true)
    expect(Report.isToRepeatWhole(Report.read(text(...failing(Report.mostByChance + 1), nowhere)))).toBe(
      false
    )
    expect(Report.isToRepeatWhole(Report.read(text(...failing(1))))).toBe(false)
  })

  it("has nothing run again when more fails than chance explains", () => {
    const files = Array.from({ length: Report.mostByChance + 1 }, (_, n) => end(`${n}`, failed("is one")))
    expect(Report.toRepeat(Report.read(text(...files)))).toEqual([])
  })

  it("names what was skipped, and why, but not what a failed hook skipped", () => {
    const skipped = [{ name: "a test", reason: "no browser here" }]
    const report = Report.read(text(end("a", { skipped }), end("b", { skipped, broken: ["no hook"] })))
    expect(Report.verdict(report, []).skipped).toEqual(skipped)
  })

  it("tells how many exchanges with the service were held against its document", () => {
    const lines = '{"requests":2,"answers":3}\n{"requests":0,"answers":0}\n{"requests":1,"answers":1}\n'
    expect(Counts.exchanges(lines)).toEqual({ requests: 3, answers: 4 })
    expect(Counts.exchanges("")).toEqual({ requests: 0, answers: 0 })
  })

  it("has a failure when the tests in Solidity left no counts", () => {
    expect(Counts.solidity('{"passed":3,"failures":[]}')).toEqual({ passed: 3, failures: [] })
    expect(Counts.solidity("").failures).toHaveLength(1)
  })
})

describe("a command of a test run", () => {
  const node = (code: string, limitMinutes = 1) =>
    Command.run([process.execPath, "-e", code], { env: process.env, limitMinutes, quiet: true })

  it("leaves its last lines, without colours", async () => {
    const ended = await node(
      "for (let n = 0; n < 40; n++) console.error('\\u001b[31mline ' + n); process.exit(3)"
    )
    expect(ended.ok).toBe(false)
    expect(ended.tail).toHaveLength(15)
    expect(ended.tail.at(-1)).toBe("line 39")
    expect((await node("")).ok).toBe(true)
  })

  it("is killed when its time is over, with what it started", async () => {
    const endless = "setInterval(() => {}, 1000)"
    const ended = await node(
      `require("node:child_process").spawn(process.execPath, ["-e", "${endless}"], { stdio: "inherit" }); ${endless}`,
      0.01
    )
    expect(ended.ok).toBe(false)
    expect(ended.tail).toEqual(["killed after 0.01 minutes"])
  })
})

describe("a machine without what tests start", () => {
  it("is told so with the remedy, of what the steps need alone", () => {
    const { CHROMIUM, PATH } = process.env
    try {
      process.env.PATH = "/nowhere"
      process.env.CHROMIUM = "/nowhere/chromium"
      const lines = Machine.missing(["integration"])
      for (const name of ["redis-server", "softhsm2-util", "g++", "chromium"])
        expect(lines.join("\n")).toContain(`${name} is missing: apt-get install `)
      expect(Machine.missing(["lint", "units"])).toEqual([])
    } finally {
      process.env.PATH = PATH
      if (CHROMIUM === undefined) delete process.env.CHROMIUM
      else process.env.CHROMIUM = CHROMIUM
    }
  })
})

describe("what a test file changes in its process", () => {
  it("is undone once: by the file, or for the next one, the last change first", () => {
    const undone: Array<string> = []
    const [first, second, third] = ["first", "second", "third"].map((name) =>
      LeftBehind.remember(() => void undone.push(name))
    )
    second?.()
    expect(undone).toEqual(["second"])
    LeftBehind.undoAll()
    expect(undone.slice(0, 3)).toEqual(["second", "third", "first"])
    first?.()
    third?.()
    LeftBehind.undoAll()
    expect(undone).toHaveLength(3)
  })
})

describe("what outlives a test run", () => {
  it("is ended, also in a process group of its own: what has its folder for temporary files, or works in it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "castellan-survivors-"))
    mkdirSync(join(folder, "data"))
    const program = ["-e", "setInterval(() => {}, 1_000)"]
    const start = (options: SpawnOptions) =>
      spawn(process.execPath, program, { stdio: "ignore", detached: true, ...options })
    const [mine, inside, foreign] = [
      start({ env: { ...process.env, TMPDIR: folder } }),
      start({ cwd: join(folder, "data") }),
      start({ env: { ...process.env, TMPDIR: `${folder}-of-another-run` } })
    ]
    const ends = [mine, inside].map((child) => once(child, "exit"))
    try {
      await Promise.all([mine, inside, foreign].map((child) => once(child, "spawn")))
      expect(Survivors.end(folder)).toBe(2)
      expect((await Promise.all(ends)).map(([, signal]) => signal)).toEqual(["SIGKILL", "SIGKILL"])
      expect(foreign.exitCode ?? foreign.signalCode).toBeNull()
    } finally {
      for (const child of [mine, inside, foreign]) child.kill("SIGKILL")
      rmSync(folder, { recursive: true })
    }
  })
})

describe("the steps of a test run", () => {
  /** Jobs that say when they begin, and end when they are told to. */
  const jobs = (...wanted: ReadonlyArray<Schedule.Job["processors"]>) => {
    const begun: Array<number> = []
    const ends: Array<() => void> = []
    return {
      begun,
      end: async (place: number) => {
        ends[place]?.()
        await new Promise((resolve) => setImmediate(resolve))
      },
      list: wanted.map((processors, place) => ({
        processors,
        run: () => {
          begun.push(place)
          return new Promise<void>((resolve) => {
            ends[place] = resolve
          })
        }
      }))
    }
  }
  const never = () => false

  it("run side by side as far as the processors go, one alone after all others", async () => {
    const { begun, end, list } = jobs(1, 1, 1, "alone", 1)
    const done = Schedule.run(list, 2, never)
    expect(begun).toEqual([0, 1])
    await end(1)
    expect(begun).toEqual([0, 1, 2])
    await end(0)
    expect(begun).toEqual([0, 1, 2])
    await end(2)
    expect(begun).toEqual([0, 1, 2, 3])
    await end(3)
    expect(begun).toEqual([0, 1, 2, 3, 4])
    await end(4)
    await done
  })

  it("that want more than the machine has run alone, and none begins once the run is stopped", async () => {
    let stopped = false
    const { begun, end, list } = jobs(8, 1, 1)
    const done = Schedule.run(list, 1, () => stopped)
    expect(begun).toEqual([0])
    await end(0)
    expect(begun).toEqual([0, 1])
    stopped = true
    await end(1)
    await done
    expect(begun).toEqual([0, 1])
  })
})

describe("the seconds of test files", () => {
  it("are those of files that there are, and of the longer ones only", () => {
    const read = Object.keys(Seconds.read())
    expect(read.length).toBeGreaterThan(10)
    expect(read.filter((path) => !existsSync(path))).toEqual([])
    const report = Report.read(text(end("short"), end("b", { millis: 7_400 }), end("a", { millis: 9_600 })))
    expect(Seconds.text([report])).toBe('{\n  "a": 10,\n  "b": 7\n}\n')
  })
})
