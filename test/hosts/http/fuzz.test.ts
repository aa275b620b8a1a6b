import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as fc from "fast-check"
import * as Server from "../../../src/hosts/http/server/Server.js"
import type { HttpService } from "../../../src/hosts/http/service/HttpService.js"
import * as Bodies from "../../support/http/Bodies.js"
import { endpoints, posts } from "../../support/http/Contract.js"
import * as MemoryService from "../../support/http/MemoryService.js"
import { key } from "../../support/http/Service.js"
import * as Fuzz from "./Fuzz.js"

/** `FUZZ_REQUESTS` makes a longer run. */
const total = Number(process.env.FUZZ_REQUESTS ?? 10_400)
const overSocket = Math.ceil(total / 20)

const bodies = Bodies.at(MemoryService.place)

/** Requests to a service whose account has this webhook. */
const requests = (webhookId: string) =>
  Bodies.at({ ...MemoryService.place, webhookId }).requests(
    endpoints.filter(({ withKey }) => withKey),
    key
  )

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")
const MiB = 2 ** 20

/** MiB in use after a garbage collection. */
const heap = (): number => {
  collect()
  return Math.round(process.memoryUsage().heapUsed / MiB)
}

/** The service and its logged failures. */
const started = async () => {
  const causes: Array<string> = []
  const logger = Logger.make(({ cause, logLevel, message }) => {
    if (LogLevel.isGreaterThanOrEqualTo(logLevel, "Error"))
      causes.push(`${String(message)}: ${Cause.pretty(cause)}`)
  })
  const layer = Logger.layer([logger])
  const scope = await Effect.runPromise(Scope.make())
  const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
    Effect.runPromise(Effect.provide(Scope.provide(effect, scope), layer))
  const front = await run(MemoryService.make)
  const body = Buffer.from(JSON.stringify({ url: "https://example.com/hook" }))
  const headers = { "x-api-key": key, "content-type": "application/json" }
  const added = await run(inProcess(front)({ method: "POST", target: "/webhooks", headers, body }))
  return {
    requests: requests(JSON.parse(added.text).webhookId),
    complaints: () => causes.splice(0),
    front,
    run,
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

const inProcess =
  (front: HttpService) =>
  (sent: Bodies.Sent): Effect.Effect<Fuzz.Got, Error> =>
    Effect.timeoutOrElse(MemoryService.inProcess(front)(sent), {
      duration: Fuzz.patience,
      orElse: () => Effect.fail(new Error("it hangs"))
    })

const decodes = (schema: Schema.Codec<unknown, unknown>, body: unknown): boolean =>
  Result.isSuccess(Schema.decodeUnknownResult(schema, { onExcessProperty: "error" })(body))

describe("every endpoint under random valid and invalid requests", () => {
  it("most requests generated from a schema fit it", () => {
    for (const { path, payload } of posts) {
      if (payload === null) continue
      const sample = fc.sample(bodies.valid(payload), { numRuns: 200, seed: 1 })
      const fitting = sample.filter((body) => decodes(payload, body)).length
      expect([path, fitting > 100 ? "most" : fitting]).toEqual([path, "most"])
    }
  })

  it(`answers ${total} requests: never 500, never nothing, never late, always as documented, and keeps no memory of them`, {
    timeout: 900_000
  }, async () => {
    console.log(`seed of the fuzz test: ${Fuzz.seed}`)
    const service = await started()
    const sizes: Array<number> = []
    const quarter = total / 4
    const statuses = await Fuzz.campaign({
      ...service,
      count: total,
      send: inProcess(service.front),
      after: (sent) => {
        if (sent >= quarter * (sizes.length + 1)) sizes.push(heap())
      }
    })
    await service.stop()
    console.log(`MiB of heap at each quarter: ${sizes.join(", ")}`)
    console.log(Fuzz.told(statuses))
    // Every endpoint returned successes and refusals.
    for (const { name, path } of posts) {
      // Only endpoints with a random id in the path may answer 404.
      const isNamed = endpoints.some((endpoint) => endpoint.name === name && endpoint.path.includes(":"))
      const shape = path.replace(/[0-9a-f-]{36}/, "*")
      const count = (...wanted: ReadonlyArray<number>) =>
        wanted.reduce((sum, status) => sum + (statuses.get(`${shape} ${status}`) ?? 0), 0)
      expect([path, count(400) > total / 500]).toEqual([path, true])
      expect([path, count(200, 422, ...(isNamed ? [404] : [])) >= Math.floor(total / 4_000)]).toEqual([
        path,
        true
      ])
      if (!isNamed) expect([path, count(404)]).toEqual([path, 0])
    }
    // Accepted requests stay in memory, as do chain, journal and registry.
    const [first = 0] = sizes
    expect((sizes.at(-1) ?? 0) - first).toBeLessThan(64)
  })

  it(`answers ${overSocket} of them over a socket just so`, { timeout: 300_000 }, async () => {
    const service = await started()
    const { url } = await service.run(Server.serve(service.front, { host: "127.0.0.1", port: 0 }))
    const statuses = await Fuzz.campaign({
      ...service,
      count: overSocket,
      send: Fuzz.byFetch(url)
    })
    await service.stop()
    expect([...statuses.values()].reduce((sum, count) => sum + count, 0)).toBe(overSocket)
  })
})
