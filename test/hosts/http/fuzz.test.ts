import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as fc from "fast-check"
import type { Front } from "../../../src/hosts/http/Front.js"
import * as Server from "../../../src/hosts/node/Server.js"
import { requests, type Sent, valid } from "../../support/http/Bodies.js"
import { endpoints, posts } from "../../support/http/Contract.js"
import * as MemoryService from "../../support/http/MemoryService.js"
import { untruths } from "../../support/http/OpenApiDocument.js"
import { key } from "../../support/http/Service.js"

/** `FUZZ_SEED` repeats a run, `FUZZ_REQUESTS` makes a longer one. */
const seed = Number(process.env.FUZZ_SEED ?? Date.now() & 0x7fffffff)
const total = Number(process.env.FUZZ_REQUESTS ?? 20_000)
const overSocket = Math.ceil(total / 20)

/** How many are under way at a time. */
const crowd = 20

/** Longest time that a request may take, milliseconds: no node is slow here. */
const patience = 20_000

const request = requests(
  endpoints.filter(({ withKey }) => withKey),
  key
)

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")
const MiB = 2 ** 20

/** MiB in use once all that nobody refers to is gone. */
const heap = (): number => {
  collect()
  return Math.round(process.memoryUsage().heapUsed / MiB)
}

/** The service, and what it logged of its own failures. */
const started = async () => {
  const causes: Array<string> = []
  const logger = Logger.make(({ cause, logLevel, message }) => {
    if (LogLevel.greaterThanEqual(logLevel, LogLevel.Error))
      causes.push(`${String(message)}: ${Cause.pretty(cause)}`)
  })
  const layer = Logger.replace(Logger.defaultLogger, logger)
  const scope = await Effect.runPromise(Scope.make())
  const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
    Effect.runPromise(Effect.provide(Scope.extend(effect, scope), layer))
  const front = await run(MemoryService.make)
  return { causes, front, run, stop: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

interface Got {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

const inProcess =
  (front: Front) =>
  ({ body, headers, method, target }: Sent): Effect.Effect<Got, Error> =>
    front
      .handle({
        method,
        target,
        headers: { ...headers, "content-length": String(body.length) },
        remoteAddress: "203.0.113.1",
        readBody: (collector) =>
          Effect.sync(() => {
            // In two pieces: a character may lie across them.
            const half = body.length >> 1
            if (collector.take(body.subarray(0, half))) collector.take(body.subarray(half))
          })
      })
      .pipe(
        Effect.map((answer) => ({
          status: answer.status,
          headers: new Headers(answer.headers),
          text: answer.body
        })),
        Effect.timeoutFail({ duration: patience, onTimeout: () => new Error("it hangs") })
      )

const byFetch =
  (url: string) =>
  ({ body, headers, method, target }: Sent): Effect.Effect<Got, Error> =>
    Effect.tryPromise({
      try: async () => {
        const named = Object.fromEntries(
          Object.entries(headers).filter(([, value]) => /^[\x20-\xff]*$/.test(value))
        )
        const answer = await fetch(`${url}${target}`, {
          method,
          headers: named,
          ...(method === "POST" ? { body } : {}),
          signal: AbortSignal.timeout(patience)
        })
        return { status: answer.status, headers: answer.headers, text: await answer.text() }
      },
      catch: (error) => new Error(`it broke off: ${String(error)}`)
    })

const show = ({ body, headers, method, target }: Sent): string =>
  `${method} ${target.slice(0, 100)} ${headers["content-type"] ?? ""} ${body.toString().slice(0, 1_500)}`

/** What is wrong with an answer, whatever the request was; empty when nothing is. */
const wrong = (sent: Sent, { headers, status, text }: Got): ReadonlyArray<string> => {
  const { body, method, target } = sent
  const problems = [...untruths({ method, target, sent: body.toString(), status, headers, text })]
  if (status >= 500) problems.push(`answered ${status}`)
  if (text === "") problems.push("answered with nothing")
  if (status !== 200 && text.length > 100_000) problems.push("refused at great length")
  return problems
}

type Statuses = Map<string, number>

/** Sends so many requests in crowds, and stops at the first crowd with an answer that is wrong. */
const campaign = async (
  { causes, run }: Awaited<ReturnType<typeof started>>,
  count: number,
  send: (sent: Sent) => Effect.Effect<Got, Error>,
  statuses: Statuses,
  after: (sent: number) => void = () => undefined
): Promise<void> => {
  for (let sent = 0; sent < count; ) {
    const sample = fc.sample(request, { numRuns: Math.min(500, count - sent), seed: seed + sent })
    for (let at = 0; at < sample.length; at += crowd) {
      const batch = sample.slice(at, at + crowd)
      const problems = await run(
        Effect.forEach(
          batch,
          (one) =>
            Effect.match(send(one), {
              onFailure: ({ message }) => [`${message} <- ${show(one)}`],
              onSuccess: (got) => {
                const path = one.target.replace(/\?.*$/s, "").replace(/^\/requests\/.*$/s, "/requests")
                const name = `${path} ${got.status}`
                statuses.set(name, (statuses.get(name) ?? 0) + 1)
                return wrong(one, got).map((problem) => `${problem} <- ${show(one)}`)
              }
            }),
          { concurrency: "unbounded" }
        )
      )
      expect([...problems.flat(), ...causes.splice(0)]).toEqual([])
      // Requests that wait for nothing would leave nobody else his turn: timers, and who runs the test.
      await new Promise((resolve) => setImmediate(resolve))
    }
    sent += sample.length
    after(sent)
  }
}

const decodes = (schema: Schema.Schema<unknown, unknown>, body: unknown): boolean =>
  Either.isRight(Schema.decodeUnknownEither(schema, { onExcessProperty: "error" })(body))

describe("every endpoint, asked whatever its schema can say and much that it can not", () => {
  it("is asked what is valid: most of what is made of a schema is a request of it", () => {
    for (const { path, payload } of posts) {
      if (payload === null) continue
      const sample = fc.sample(valid(payload), { numRuns: 200, seed: 1 })
      const fitting = sample.filter((body) => decodes(payload, body)).length
      expect([path, fitting > 100 ? "most" : fitting]).toEqual([path, "most"])
    }
  })

  it(`answers ${total} requests: never 500, never nothing, never late, always as documented, and keeps no memory of them`, {
    timeout: 900_000
  }, async () => {
    console.log(`seed of the fuzz test: ${seed}`)
    const service = await started()
    const statuses: Statuses = new Map()
    const sizes: Array<number> = []
    const quarter = total / 4
    await campaign(service, total, inProcess(service.front), statuses, (sent) => {
      if (sent >= quarter * (sizes.length + 1)) sizes.push(heap())
    })
    await service.stop()
    console.log(`MiB of heap at each quarter: ${sizes.join(", ")}`)
    console.log(
      [...statuses]
        .sort()
        .map(([name, count]) => `${name}: ${count}`)
        .join("; ")
    )
    // Both sides of every endpoint were really exercised.
    for (const { path } of posts) {
      const count = (...wanted: ReadonlyArray<number>) =>
        wanted.reduce((sum, status) => sum + (statuses.get(`${path} ${status}`) ?? 0), 0)
      expect([path, count(400) > total / 500]).toEqual([path, true])
      expect([path, count(200, 422) > total / 2_000]).toEqual([path, true])
    }
    // What was accepted is kept, on purpose: chain, journal and registry are in this memory too.
    const [first = 0] = sizes
    expect((sizes.at(-1) ?? 0) - first).toBeLessThan(64)
  })

  it(`answers ${overSocket} of them over a socket just so`, { timeout: 300_000 }, async () => {
    const service = await started()
    const { url } = await service.run(Server.serve(service.front, { host: "127.0.0.1", port: 0 }))
    const statuses: Statuses = new Map()
    await campaign(service, overSocket, byFetch(url), statuses)
    await service.stop()
    expect([...statuses.values()].reduce((sum, count) => sum + count, 0)).toBe(overSocket)
  })
})
