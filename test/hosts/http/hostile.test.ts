import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as fc from "fast-check"
import * as PredictWallets from "../../../src/application/wallet/PredictWallets.js"
import { posts } from "../../support/http/Contract.js"
import { type Answered, envelope, key, start } from "../../support/http/Service.js"

/** A value that fits nowhere in particular. */
const junk = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    null,
    "",
    "\ud800",
    "0x",
    -0,
    -1,
    2 ** 53,
    1e-7,
    [],
    {},
    "__proto__",
    "constructor",
    { constructor: { prototype: 1 } },
    { toString: 1, hasOwnProperty: 2 },
    "0x".padEnd(10_000, "0"),
    "\u0000",
    "NaN",
    [[[[[[]]]]]]
  ),
  fc.bigInt().map(String)
)

/** A request with some of its parts replaced, removed or added. */
const mutated = (example: unknown): fc.Arbitrary<unknown> => {
  if (Array.isArray(example))
    return fc.oneof(
      { weight: 6, arbitrary: fc.tuple(...example.map(mutated)) },
      { weight: 1, arbitrary: fc.array(junk, { maxLength: 4 }) },
      { weight: 1, arbitrary: junk }
    )
  if (typeof example === "object" && example !== null) {
    const members = Object.entries(example).map(([name, value]) =>
      fc.tuple(
        fc.oneof({ weight: 8, arbitrary: fc.constant(name) }, { weight: 1, arbitrary: fc.string() }),
        mutated(value)
      )
    )
    return fc.oneof(
      { weight: 6, arbitrary: fc.tuple(...members).map((entries) => Object.fromEntries(entries)) },
      { weight: 1, arbitrary: fc.dictionary(fc.string(), junk, { maxKeys: 4 }) },
      { weight: 1, arbitrary: junk }
    )
  }
  return fc.oneof({ weight: 5, arbitrary: fc.constant(example) }, { weight: 1, arbitrary: junk })
}

const endpoint = fc.constantFrom(...posts)

const request = endpoint.chain(({ example, path }) =>
  fc.record({
    path: fc.constant(path),
    body: fc.oneof(
      { weight: 5, arbitrary: mutated(example).map((value) => Buffer.from(JSON.stringify(value) ?? "")) },
      { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
      { weight: 1, arbitrary: fc.string().map((text) => Buffer.from(text)) },
      // A number beyond every double, which JSON.parse makes infinite.
      { weight: 1, arbitrary: fc.constant(Buffer.from(JSON.stringify(example).replace(/:\d+/g, ":1e400"))) },
      {
        weight: 2,
        arbitrary: fc.tuple(fc.nat(), fc.nat(255)).map(([at, byte]) => {
          const bytes = Buffer.from(JSON.stringify(example))
          bytes[at % bytes.length] = byte
          return bytes
        })
      }
    )
  })
)

const quiet = Layer.merge(Logger.remove(Logger.defaultLogger), Layer.empty)

describe("hostile bodies", () => {
  it.scopedLive("are answered with success or with a 400 that says where, never with a 500 or nothing", () =>
    Effect.gen(function* () {
      // This use case is pure and real: what passes the schema reaches it.
      const { url } = yield* start({
        handlers: { predict: (caller, input) => PredictWallets.run(caller, input) }
      })
      const statuses = new Map<number, number>()
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(request, async ({ body, path }) => {
            const response = await fetch(`${url}${path}`, {
              method: "POST",
              headers: { "content-type": "application/json", "x-api-key": key },
              body
            })
            const answer: Answered = {
              status: response.status,
              headers: response.headers,
              text: await response.text()
            }
            statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
            expect(answer.text).not.toBe("")
            if (answer.status === 200) return
            expect([400, 422]).toContain(answer.status)
            const { details } = envelope(answer)
            expect(details.length).toBeGreaterThan(0)
            expect(answer.text.length).toBeLessThan(12_000)
          }),
          { numRuns: 1_500 }
        )
      )
      // Both sides were really exercised.
      expect(statuses.get(200)).toBeGreaterThan(20)
      expect(statuses.get(400)).toBeGreaterThan(500)
    }).pipe(Effect.provide(quiet))
  )
})
