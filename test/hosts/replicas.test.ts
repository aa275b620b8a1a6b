import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { ask, type Castellan, make, until } from "../support/accounts/Castellan.js"
import * as Postgres from "../support/postgres/Postgres.js"
import * as CommandLine from "../support/process/CommandLine.js"
import * as RedisServer from "../support/redis/Redis.js"
import { use } from "../support/Use.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-replicas-"))
const databases = Postgres.perFile()
const redis = use(RedisServer.start)
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
})

interface Two {
  readonly castellan: Castellan
  readonly urls: ReadonlyArray<string>
  readonly say: (line: string) => Promise<unknown>
  /** A fresh account of a tier with a key, which commands name by `keyId`. */
  readonly account: (
    tier: string
  ) => Promise<{ readonly id: string; readonly key: string; readonly keyId: string }>
  readonly stop: () => Promise<void>
}

/** Two services on one PostgreSQL. */
const two = async (file: Readonly<Record<string, unknown>>): Promise<Two> => {
  const address = await Effect.runPromise(databases.fresh)
  const url = "url" in address ? Redacted.value(address.url) : ""
  const castellan = make(
    folder,
    { database: { url: { env: "DATABASE" } }, ...file },
    { DATABASE: url, REDIS: redis.url }
  )
  const services = [await castellan.serve(), await castellan.serve()]
  const run = (line: string) => CommandLine.run([...line.split(" "), "--json"], castellan.env)
  const say = async (line: string): Promise<unknown> => JSON.parse(await Effect.runPromise(run(line)))
  let accounts = 0
  return {
    castellan,
    urls: services.map((service) => service.url),
    say,
    account: async (tier) => {
      accounts += 1
      const id = `account-${accounts}`
      await say(`accounts create ${id} --tier ${tier}`)
      const made = (await say(`keys create ${id}`)) as { readonly id: string; readonly key: string }
      return { id, key: made.key, keyId: made.id }
    },
    stop: async () => {
      for (const { stop } of services) await stop()
    }
  }
}

const counted = {
  Redis: { rateLimit: { redis: { env: "REDIS" } } },
  PostgreSQL: {},
  "PostgreSQL, because Redis is away,": { rateLimit: { redis: { env: "REDIS" } } }
}

describe.each(Object.entries(counted))("two services whose requests %s counts", (by, file) => {
  let both: Two
  beforeAll(async () => {
    both = await two(file)
    if (by.includes("away")) await redis.end()
  })
  afterAll(async () => {
    await both.stop()
    if (by.includes("away")) await redis.begin()
  })

  it("two services together admit exactly the tier's requests per minute", async () => {
    const minute = () => Math.floor(Date.now() / 60_000)
    for (;;) {
      const { key } = await both.account("free")
      // An unknown key does not count.
      await Promise.all(both.urls.map((url) => until("invalid_request", () => ask(url, key))))
      const began = minute()
      const before = await ask(both.urls[0] ?? "", key)
      const left = Number(before.headers.get("ratelimit-remaining"))
      const answers = await Promise.all(
        Array.from({ length: 120 }, (_, n) => ask(both.urls[n % 2] ?? "", key))
      )
      if (minute() !== began) continue
      expect(answers.filter(({ status }) => status !== 429)).toHaveLength(left)
      return
    }
  })

  it("both services follow a pause, a changed tier and a revoked key", async () => {
    const { id, key, keyId } = await both.account("pro")
    const everywhere = (code: string) => Promise.all(both.urls.map((url) => until(code, () => ask(url, key))))
    await everywhere("invalid_request")
    await both.say(`accounts pause ${id}`)
    await everywhere("account_paused")
    await both.say(`accounts resume ${id}`)
    await everywhere("invalid_request")
    await both.say(`accounts set ${id} --tier enterprise`)
    const limitOf = async (url: string) => ({
      code: (await ask(url, key)).headers.get("ratelimit-limit")
    })
    await Promise.all(both.urls.map((url) => until("1000", () => limitOf(url))))
    await both.say(`keys revoke ${keyId}`)
    await everywhere("unauthorized")
  })
})
