import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { KeyProvider, KeyProviderError } from "../../../src/application/ports/KeyProvider.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import type * as Server from "./Server.js"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

export const digest = Hex.unsafe32(`0x${"5a".repeat(32)}`)

/** What a test of faults needs of a provider's stand-in. */
export interface Fixture {
  readonly serve: Effect.Effect<Server.Server, unknown, Scope.Scope>
  readonly open: (
    server: Server.Server,
    timeoutMillis: number
  ) => Effect.Effect<KeyProvider, KeyProviderError, Scope.Scope>
  readonly keyName: string
  /** Never in an error: secrets, and what the service remarks. */
  readonly secrets: ReadonlyArray<string>
  /** Requests that are about a key, as against those for permission to ask. */
  readonly concerns: (asked: Server.Asked) => boolean
}

/** Nothing of the secrets is in what an operator or a caller may get to see. */
export const expectQuiet = (error: KeyProviderError, secrets: ReadonlyArray<string>) => {
  const shown = `${error} ${JSON.stringify(error)} ${error.message} ${error.stack}`
  for (const secret of secrets) expect(shown).not.toContain(secret)
}

const wires = [
  ["that gives no answer", "hang"],
  ["that never comes to an end", "drip"],
  ["that cuts the connection", "cut"],
  ["that cuts its answer short", "cutInBody"],
  ["that answers no JSON", { status: 200, body: "<html>a page</html>" }],
  ["that answers with another object", { status: 200, body: "{}" }],
  ["that answers with nothing", { status: 200, body: "" }],
  ["in trouble", { status: 500, body: "<html>trouble</html>" }],
  ["that is too busy", { status: 503, body: "" }]
] as const satisfies ReadonlyArray<readonly [string, Server.Fault]>

/** What a broken wire does, the same for all services. */
export const wireFacts = (fixture: Fixture): void => {
  for (const [what, fault] of wires)
    it.live(
      `a service ${what} is unavailable, asked once and no longer than the time limit, and serves again`,
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const server = yield* fixture.serve
            const provider = yield* fixture.open(server, 1_500)
            const key = provider.key(fixture.keyName)
            const publicKey = yield* key.publicKey
            yield* key.sign([digest])
            for (const call of [Effect.asVoid(key.publicKey), Effect.asVoid(key.sign([digest]))]) {
              server.fault = (asked) => (fixture.concerns(asked) ? fault : null)
              const before = server.asked.length
              const error = yield* Effect.flip(call)
              expect(error.reason).toBe("unavailable")
              expect(server.asked.slice(before).filter(fixture.concerns)).toHaveLength(1)
              expectQuiet(error, fixture.secrets)
              server.fault = null
              expect(yield* key.publicKey).toBe(publicKey)
              expect(yield* key.sign([digest])).toHaveLength(1)
            }
          })
        )
    )

  it.live("a service that is gone is unavailable", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const gone = yield* Effect.scoped(fixture.serve)
        const provider = yield* fixture.open(gone, 1_500)
        const error = yield* Effect.flip(provider.key(fixture.keyName).publicKey)
        expect(error.reason).toBe("unavailable")
        expect(error.message).toContain("ECONNREFUSED")
        expectQuiet(error, fixture.secrets)
      })
    )
  )

  it.live("the time limit of a call outlives a collection of garbage", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* fixture.serve
        const provider = yield* fixture.open(server, 1_500)
        const key = provider.key(fixture.keyName)
        yield* key.sign([digest])
        const asked = server.asked.length
        server.fault = () => "hang"
        const call = yield* Effect.fork(Effect.flip(key.sign([digest])))
        yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => server.asked.length > asked })
        collect()
        const error = yield* Effect.timeoutFail(Fiber.join(call), {
          duration: "30 seconds",
          onTimeout: () => new Error("the call waits without end")
        })
        expect(error).toMatchObject({ reason: "unavailable" })
      })
    )
  )

  it.live("an interrupted call ends, whatever time it has still", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* fixture.serve
        const provider = yield* fixture.open(server, 600_000)
        const key = provider.key(fixture.keyName)
        yield* key.sign([digest])
        server.fault = () => "hang"
        expect(Option.isNone(yield* Effect.timeoutOption(key.sign([digest]), 100))).toBe(true)
      })
    )
  )

  it.live("connections are kept between calls, and closed with the scope", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* fixture.serve
        yield* Effect.scoped(
          Effect.gen(function* () {
            const provider = yield* fixture.open(server, 5_000)
            const key = provider.key(fixture.keyName)
            for (let turn = 0; turn < 4; turn++) yield* key.sign([digest])
            expect(server.connections()).toBe(1)
          })
        )
        yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => server.connections() === 0 }).pipe(
          Effect.timeout("5 seconds")
        )
      })
    )
  )
}
