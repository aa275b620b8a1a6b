import { describe, expect, it } from "vitest"
import { perFile } from "../../support/http/SharedService.js"

const service = perFile()

const predict = (accounts = 1) => ({
  accounts: Array.from({ length: accounts }, (_, n) => ({ salt: `s${n}`, walletCustody: 1 })),
  settings: service.info.settings
})

describe("an API key", () => {
  it.each(["free", "pro", "enterprise"] as const)("signs and predicts for the %s account", async (tier) => {
    const key = service.info.apiKeys[tier]
    const signer = await service.ask("/getSigner", { signer: service.info.settings.signer }, { key })
    expect(signer.status).toBe(200)
    expect((await service.ask("/predict", predict(), { key })).status).toBe(200)
  })
})

describe("a rate limit", () => {
  it.each([
    ["pro", 300],
    ["enterprise", 1_000]
  ] as const)(
    "is per tier: %s has %d a minute, and every answer gives the remainder",
    async (tier, limit) => {
      const key = service.info.apiKeys[tier]
      const { headers } = await service.ask("/predict", predict(), { key })
      expect(Number(headers.get("ratelimit-limit"))).toBe(limit)
      const left = Number(headers.get("ratelimit-remaining"))
      const next = await service.ask("/predict", "{", { key })
      const minuteIsOver =
        Number(next.headers.get("ratelimit-reset")) > Number(headers.get("ratelimit-reset"))
      if (!minuteIsOver) expect(Number(next.headers.get("ratelimit-remaining"))).toBe(left - 1)
      expect(Number(headers.get("ratelimit-reset"))).toBeGreaterThan(0)
      expect(Number(headers.get("ratelimit-reset"))).toBeLessThanOrEqual(60)
    }
  )
})
