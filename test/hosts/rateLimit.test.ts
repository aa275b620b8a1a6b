import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { ask, type Castellan, make } from "../support/accounts/Castellan.js"
import * as Postgres from "../support/postgres/Postgres.js"
import * as PostgresServer from "../support/postgres/Server.js"
import * as CommandLine from "../support/process/CommandLine.js"
import * as RedisServer from "../support/redis/Redis.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-limits-"))
const databases = Postgres.perFile()
let redis: RedisServer.Server
beforeAll(async () => {
  redis = await RedisServer.start()
})
afterAll(async () => {
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** An account of the free tier, its key, and a number of services on one database. */
const replicas = async (count: number, file: Readonly<Record<string, unknown>>, url: string) => {
  const accounts = [{ id: "acme", name: "Acme", tier: "free", keys: [] }]
  const castellan = make(folder, { accounts, ...file }, { DATABASE: url, REDIS: redis.url })
  const services: Array<Awaited<ReturnType<Castellan["serve"]>>> = []
  for (let n = 0; n < count; n++) services.push(await castellan.serve())
  const issued = await Effect.runPromise(CommandLine.run(["keys", "create", "acme", "--json"], castellan.env))
  const { key }: { key: string } = JSON.parse(issued)
  return {
    ask: (n: number) => ask(services[n % count]?.url ?? "", key),
    stop: async () => {
      for (const { stop } of services) await stop()
    }
  }
}

type Ask = Awaited<ReturnType<typeof replicas>>["ask"]

/** The clocks of service and test differ by less, milliseconds. */
const skew = 1_000

/** Asks until the key is known everywhere, then more often than the tier allows; and in how many UTC minutes that was. */
const burst = async (ask: Ask) => {
  const began = Date.now()
  const answers: Array<Awaited<ReturnType<Ask>>> = []
  for (let n = 0; n < 6; n++)
    for (let tries = 0; tries < 100; tries++) {
      const answer = await ask(n)
      answers.push(answer)
      if (answer.code !== "unauthorized") break
      await new Promise((done) => setTimeout(done, 50))
    }
  answers.push(...(await Promise.all(Array.from({ length: 150 }, (_, n) => ask(n)))))
  const minute = (at: number) => Math.floor(at / 60_000)
  return {
    answers: answers.filter(({ code }) => code !== "unauthorized"),
    minutes: minute(Date.now() + skew) - minute(began - skew) + 1
  }
}

const postgres = async () => {
  const options = await Effect.runPromise(databases.fresh)
  return "url" in options ? Redacted.value(options.url) : ""
}

describe("the requests of an account", () => {
  it.each([
    ["one PostgreSQL", { database: { url: { env: "DATABASE" } } }],
    ["one Redis", { database: { url: { env: "DATABASE" } }, rateLimit: { redis: { env: "REDIS" } } }]
  ])("are counted together by two services with %s", async (_, file) => {
    const { ask, stop } = await replicas(2, file, await postgres())
    try {
      const { answers, minutes } = await burst(ask)
      const limited = answers.filter(({ status }) => status === 429)
      for (const { code, headers } of limited) {
        expect(code).toBe("rate_limited")
        expect(headers.get("ratelimit-limit")).toBe("60")
        expect(headers.get("ratelimit-remaining")).toBe("0")
        expect(headers.get("retry-after")).toBe(headers.get("ratelimit-reset"))
      }
      const left = answers.filter(({ status }) => status !== 429)
      /** How often it was told that so many remain: once a minute, from 59 down. */
      const told = Array.from(
        { length: 60 },
        (_, n) => left.filter(({ headers }) => headers.get("ratelimit-remaining") === String(n)).length
      )
      expect(told.reduce((all, times) => all + times, 0)).toBe(left.length)
      expect(Math.max(...told)).toBeLessThanOrEqual(minutes)
      expect(told).toEqual(told.toSorted((a, b) => a - b))
      expect(limited.length === 0 || told[0] !== 0).toBe(true)
    } finally {
      await stop()
    }
  })

  it("are counted by the database while Redis is away, and refused where there is none to count them", async () => {
    const rateLimit = { redis: { env: "REDIS" } }
    const shared = await replicas(1, { database: { url: { env: "DATABASE" } }, rateLimit }, await postgres())
    const alone = await replicas(1, { database: { path: "limits.sqlite" }, rateLimit }, "")
    try {
      for (const { ask } of [shared, alone]) await burst(ask)
      await redis.end()
      const counted = await shared.ask(0)
      expect([counted.status, counted.headers.get("ratelimit-limit")]).toEqual([400, "60"])
      const refused = await alone.ask(0)
      expect([refused.status, refused.code, refused.headers.get("retry-after")]).toEqual([
        503,
        "unavailable",
        "1"
      ])
      await redis.begin()
      const back = async () => {
        for (let n = 0; n < 400; n++) {
          const { status } = await alone.ask(0)
          if (status !== 503) return status
          await new Promise((done) => setTimeout(done, 50))
        }
        return 503
      }
      expect(await back()).toBe(400)
    } finally {
      await shared.stop()
      await alone.stop()
    }
  })
})

describe("a database that goes away", () => {
  it("lets nobody in, and says so in the envelope", async () => {
    const server = await PostgresServer.start()
    const { ask, stop } = await replicas(
      1,
      { database: { url: { env: "DATABASE" } } },
      server.url("postgres")
    )
    try {
      await burst(ask)
      await server.stop()
      const answer = async () => {
        for (let n = 0; n < 100; n++) {
          const { code, headers, status } = await ask(0)
          if (status === 503) return { code, retryAfter: headers.get("retry-after") }
          await new Promise((done) => setTimeout(done, 50))
        }
        return null
      }
      expect(await answer()).toEqual({ code: "unavailable", retryAfter: "1" })
    } finally {
      await stop()
    }
  })
})
