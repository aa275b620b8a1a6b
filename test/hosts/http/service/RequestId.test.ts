import { describe, expect, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { requestIdAt } from "../../../../src/hosts/http/service/Exchange.js"

describe("the id of a request", () => {
  it("a request id is a UUID of version 7 with the time", () => {
    const now = Date.UTC(2026, 10, 24)
    const id = requestIdAt(now)
    expect(Schema.is(Schema.String.check(Schema.isUUID()))(id)).toBe(true)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toBe(now)
  })

  it("request ids are unique within a moment, and grow with time", () => {
    const ids = Array.from({ length: 1_000 }, () => requestIdAt(1))
    expect(new Set(ids).size).toBe(1_000)
    expect(requestIdAt(2) > requestIdAt(1)).toBe(true)
    expect(requestIdAt(2 ** 48 - 1) > requestIdAt(2 ** 47)).toBe(true)
  })
})
