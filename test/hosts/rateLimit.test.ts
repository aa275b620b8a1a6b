import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { ask, make, until } from "../support/accounts/Castellan.js"
import * as Postgres from "../support/postgres/Postgres.js"
import * as PostgresServer from "../support/postgres/Server.js"
import * as CommandLine from "../support/process/CommandLine.js"
import * as RedisServer from "../support/redis/Redis.js"
import { use } from "../support/Use.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-limits-"))
const databases = Postgres.perFile()
const redis = use(RedisServer.start)
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
})

/** A free-tier account on a separate service, and its caller. */
const served = async (file: Readonly<Record<string, unknown>>, url: string) => {
  const accounts = [{ id: "acme", name: "Acme", tier: "free", keys: [] }]
  const castellan = make(folder, { accounts, ...file }, { DATABASE: url, REDIS: redis.url })
  const service = await castellan.serve()
  const issued = await Effect.runPromise(CommandLine.run(["keys", "create", "acme", "--json"], castellan.env))
  const { key }: { key: string } = JSON.parse(issued)
  const again = () => ask(service.url, key)
  await until("invalid_request", again)
  /** The first response whose status is 503 (`is`) or is not. */
  const unavailable = async (is: boolean) => {
    await until(String(is), async () => ({ code: String((await again()).status === 503) }))
    return again()
  }
  return { ask: again, unavailable, stop: service.stop }
}

describe("the requests of an account", () => {
  it("requests are counted in the database while Redis is down, and refused without any counter", async () => {
    const rateLimit = { redis: { env: "REDIS" } }
    const options = await Effect.runPromise(databases.fresh)
    const url = "url" in options ? Redacted.value(options.url) : ""
    const shared = await served({ database: { url: { env: "DATABASE" } }, rateLimit }, url)
    const alone = await served({ database: { path: "limits.sqlite" }, rateLimit }, "")
    try {
      await redis.end()
      const counted = await shared.ask()
      expect([counted.status, counted.headers.get("ratelimit-limit")]).toEqual([400, "60"])
      const refused = await alone.ask()
      expect([refused.status, refused.code, refused.headers.get("retry-after")]).toEqual([
        503,
        "unavailable",
        "1"
      ])
      await redis.begin()
      expect((await alone.unavailable(false)).status).toBe(400)
    } finally {
      await shared.stop()
      await alone.stop()
    }
  })
})

describe("a database that goes away", () => {
  it("an unavailable database refuses every request with an envelope", async () => {
    const server = await PostgresServer.start()
    const { stop, unavailable } = await served(
      { database: { url: { env: "DATABASE" } } },
      server.url("postgres")
    )
    try {
      await server.stop()
      const { code, headers } = await unavailable(true)
      expect([code, headers.get("retry-after")]).toEqual(["unavailable", "1"])
    } finally {
      await stop()
    }
  })
})
