import { describe, expect, it } from "@effect/vitest"
import * as NotBegun from "../../../../src/application/prepare/ops/NotBegun.js"
import type { Version } from "../../../../src/domain/erc4337/EntryPoint.js"

const until = (
  begins: ReadonlyArray<number>,
  dependencies: ReadonlyArray<number | null>,
  isApart = false,
  elements = begins.map((_, index) => index),
  version: Version = "v0.8"
) =>
  Object.fromEntries(
    NotBegun.until(elements, (index) => ({ validAfter: begins[index] ?? 0, validUntil: 0 }), dependencies, {
      timestamp: 1_000,
      isApart,
      version
    })
  )

describe("elements whose windows have not begun", () => {
  it("wait for validAfter by the chain's clock, and on EntryPoint v0.8 for the second after it", () => {
    const begins = [0, 999, 1_000, 1_001]
    const none = [null, null, null, null]
    expect(until(begins, none)).toEqual({ 2: 1_000, 3: 1_001 })
    for (const version of ["v0.6", "v0.7"] as const)
      expect(until(begins, none, false, [0, 1, 2, 3], version)).toEqual({ 3: 1_001 })
  })

  it("hold back all elements executed with them, in either direction of dependency", () => {
    const begins = [0, 2_000, 0, 0, 3_000]
    const dependencies = [null, 0, 1, null, 3]
    expect(until(begins, dependencies)).toEqual({ 0: 2_000, 1: 2_000, 2: 2_000, 3: 3_000, 4: 3_000 })
    expect(until(begins, dependencies, true)).toEqual({ 1: 2_000, 2: 2_000, 4: 3_000 })
  })

  it("are not waited for when they begin after the year 2286, as times in milliseconds do", () => {
    const [latest, never] = [9_999_999_999, 1_795_000_000_000]
    expect(until([latest, latest + 1, never, 2_000], [null, null, null, 2])).toEqual({ 0: latest, 3: 2_000 })
    expect(until([never, 2_000], [null, 0], true)).toEqual({ 1: 2_000 })
  })

  it("count among the elements left alone", () => {
    expect(until([5_000, 0], [null, 0], false, [1])).toEqual({})
  })
})

describe("waiting work resumes", () => {
  const waiting = new Map([
    [3, 5_000],
    [1, 2_000]
  ])
  const schedule = (timestamp: number, now: number) => NotBegun.schedule(waiting, { timestamp }, now)

  it("with its first element", () => {
    expect(schedule(1_000, 1_000_000)).toEqual({ notBefore: 2_000, dueAt: 2_001_000 })
  })

  it("sooner where the chain's clock is ahead", () => {
    expect(schedule(1_100, 1_000_000)).toEqual({ notBefore: 2_000, dueAt: 1_901_000 })
  })

  it("a while later where the chain's clock is behind, sooner or later by how far", () => {
    expect(schedule(2_000, 2_001_000)).toEqual({ notBefore: 2_000, dueAt: 2_002_000 })
    expect(schedule(1_990, 2_001_000)).toEqual({ notBefore: 2_000, dueAt: 2_011_000 })
    expect(schedule(0, 2_001_000)).toEqual({ notBefore: 2_000, dueAt: 2_031_000 })
  })
})
