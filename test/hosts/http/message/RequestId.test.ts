import { describe, expect, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as RequestId from "../../../../src/hosts/http/message/RequestId.js"

describe("the id of a request", () => {
  it("a request id is a UUID of version 7 with the time", () => {
    const now = Date.UTC(2026, 10, 24)
    const id = RequestId.make(now)
    expect(Schema.is(Schema.String.check(Schema.isUUID()))(id)).toBe(true)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toBe(now)
  })

  it("request ids are unique within a moment, and grow with time", () => {
    const ids = Array.from({ length: 1_000 }, () => RequestId.make(1))
    expect(new Set(ids).size).toBe(1_000)
    expect(RequestId.make(2) > RequestId.make(1)).toBe(true)
    expect(RequestId.make(2 ** 48 - 1) > RequestId.make(2 ** 47)).toBe(true)
  })
})
