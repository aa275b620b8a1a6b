import { describe, expect, it } from "vitest"
import * as Backoff from "../../../src/application/webhooks/Backoff.js"

const now = 1_000_000_000
const day = 86_400_000

describe("an event that failed", () => {
  it("is sent again after pauses that double, up to four hours", () => {
    const pauses = [0, 1, 2, 11, 12, 500].map(
      (attempts) => (Backoff.next({ attempts, failingSince: now }, now) ?? 0) - now
    )
    expect(pauses).toEqual([5_000, 10_000, 20_000, 10_240_000, 14_400_000, 14_400_000])
  })

  it("waits as long as the endpoint asks, but not beyond the end of the three days", () => {
    const next = (failingSince: number | null, asked: number) =>
      Backoff.next({ attempts: 1, failingSince }, now, asked)
    expect(next(null, 60_000)).toBe(now + 60_000)
    expect(next(null, 1_000)).toBe(now + 10_000)
    expect(next(null, 30 * day)).toBe(now + 3 * day)
    expect(next(now - day, 30 * day)).toBe(now + 2 * day)
    expect(next(now - 3 * day + 1, 0)).toBe(now + 1)
    expect(next(now - 3 * day, 60_000)).toBe(null)
  })

  it("is delayed by Retry-After only for 429 and 503", () => {
    const statuses = [200, 301, 400, 410, 429, 500, 503, 504]
    expect(statuses.filter((status) => Backoff.requestedMillis({ status, retryAfterMillis: 1 }) > 0)).toEqual(
      [429, 503]
    )
  })
})
