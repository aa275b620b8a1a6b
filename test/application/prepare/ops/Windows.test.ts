import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import type { Window } from "../../../../src/application/ports/journal/Records.js"
import * as Windows from "../../../../src/application/prepare/ops/Windows.js"
import { type Version, versions } from "../../../../src/domain/erc4337/EntryPoint.js"

const now = 1_700_000_000
const at = { timestamp: now }

const of = (bounds: Partial<Window>): Window => ({ validAfter: 0, validUntil: 0, ...bounds })

const codeOf = (bounds: Partial<Window>, version: Version = "v0.8") =>
  Result.match(Windows.check(of(bounds), "operations[0]", at, version), {
    onFailure: ({ code }) => code,
    onSuccess: () => "holds"
  })

describe("a window", () => {
  it("has no bound where it names none, or zero", () => {
    for (const fields of [{}, { validAfter: 0 }, { validUnitl: 0 }, { validAfter: 0, validUnitl: 0 }])
      expect(Windows.read(fields, "")).toEqual(Result.succeed(null))
    for (const window of [null, of({})])
      for (const block of [at, { timestamp: 0 }])
        for (const version of versions)
          expect(Windows.check(window, "", block, version)).toEqual(Result.succeed(of({})))
  })

  it("has the bounds that the op's signature covers", () => {
    const window = { validUntil: now + 9, validAfter: now - 9 }
    expect(Windows.read({ validAfter: now - 9, validUnitl: now + 9 }, "")).toEqual(Result.succeed(window))
    expect(Windows.check(window, "", at, "v0.8")).toEqual(Result.succeed(window))
  })

  it("is rejected by the field that ends it when impossible", () => {
    expect(Windows.read({ validAfter: 7, validUnitl: 6 }, "operations[3]")).toMatchObject(
      Result.fail({
        code: "invalid_request",
        details: [{ path: "operations[3].validUnitl", message: "is before validAfter: 6 < 7" }]
      })
    )
    expect(Result.isSuccess(Windows.read({ validAfter: 7, validUnitl: 7 }, ""))).toBe(true)
    expect(Result.isSuccess(Windows.read({ validAfter: 7 }, ""))).toBe(true)
  })

  it("holds to its last second, and is over in the next", () => {
    expect(codeOf({ validUntil: now })).toBe("holds")
    expect(codeOf({ validUntil: now - 1 })).toBe("window_over")
    expect(Windows.notOver(of({ validUntil: now - 1 }), "operations[0]", at)).toMatchObject(
      Result.fail({
        details: [{ path: "operations[0].validUnitl", message: `the chain's time is now ${now}` }]
      })
    )
  })

  it("begins with the second of validAfter; on EntryPoint v0.8 with the next one", () => {
    for (const version of versions) {
      expect(codeOf({ validAfter: now - 1 }, version)).toBe("holds")
      expect(codeOf({ validAfter: now }, version)).toBe(version === "v0.8" ? "not_valid_yet" : "holds")
      expect(codeOf({ validAfter: now + 1 }, version)).toBe("not_valid_yet")
    }
    expect(Windows.check(of({ validAfter: now }), "", at, "v0.8")).toMatchObject(
      Result.fail({
        code: "not_valid_yet",
        figures: { validAfter: `${now}`, chainTime: `${now}` }
      })
    )
  })

  it("may lie in the future but may not have expired", () => {
    expect(Result.isSuccess(Windows.notOver(of({ validAfter: now + 1 }), "", at))).toBe(true)
    expect(Result.isFailure(Windows.notOver(of({ validUntil: now - 1 }), "", at))).toBe(true)
  })
})
