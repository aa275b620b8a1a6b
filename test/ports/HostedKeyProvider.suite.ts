import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { KeyProvider, KeyProviderError, ProviderKey } from "../../src/application/ports/KeyProvider.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import type * as Server from "../support/kms/Server.js"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

export const digest = Hex.unsafe32(`0x${"5a".repeat(32)}`)

/** A provider's stand-in, and the way to open the provider over it. */
export interface Fixture<More> {
  /** Begins every message of an error. */
  readonly name: string
  readonly serve: Effect.Effect<Server.Server, unknown, Scope.Scope>
  readonly open: (
    server: Server.Server,
    timeoutMillis: number,
    more?: More
  ) => Effect.Effect<KeyProvider, KeyProviderError, Scope.Scope>
  readonly keyName: string
  /** Strings that no error may contain: secrets, and the service's remarks. */
  readonly secrets: ReadonlyArray<string>
  /** Names that no key of the service can have. */
  readonly unknownNames?: ReadonlyArray<string>
  /** Keys that the service, or the provider, does not use. */
  readonly refusals?: ReadonlyArray<
    readonly [key: string, call: Call, reason: KeyProviderError["reason"], message: string]
  >
  /** Replies of the service to any call, and the expected errors. */
  readonly troubles?: ReadonlyArray<
    readonly [answer: Server.Answer, reason: KeyProviderError["reason"], message: string]
  >
}

type Call = "publicKey" | "sign"

const calls = (key: ProviderKey): Readonly<Record<Call, Effect.Effect<void, KeyProviderError>>> => ({
  publicKey: Effect.asVoid(key.publicKey),
  sign: Effect.asVoid(key.sign([digest]))
})

/** No part of the secrets reaches an operator or a caller. */
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

/** The laws of every hosted key service. */
export const hosted = <More>(fixture: Fixture<More>) => {
  const { keyName, name, open, refusals = [], secrets, serve, troubles = [], unknownNames = [] } = fixture

  const expectError = (error: KeyProviderError, reason: KeyProviderError["reason"], message: string) => {
    expect({ reason: error.reason, message: error.message }).toEqual({
      reason,
      message: `${name}: ${message}`
    })
    expectQuiet(error, secrets)
  }

  const within = <A>(
    body: (
      key: (name: string) => ProviderKey,
      server: Server.Server
    ) => Effect.Effect<A, unknown, Scope.Scope>,
    more?: More,
    timeoutMillis = 5_000
  ) =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* serve
        const provider = yield* open(server, timeoutMillis, more)
        return yield* body(provider.key, server)
      })
    )

  describe(`${name} over the wire`, () => {
    it.live.each(wires)(
      "a service %s is unavailable, called once and within the time limit, and serves again",
      ([_, fault]) =>
        within(
          (keyOf, server) =>
            Effect.gen(function* () {
              const key = keyOf(keyName)
              const publicKey = yield* key.publicKey
              yield* key.sign([digest])
              for (const call of Object.values(calls(key))) {
                server.fault = () => fault
                const before = server.asked.length
                const error = yield* Effect.flip(call)
                expect([error.reason, server.asked.length - before]).toEqual(["unavailable", 1])
                expectQuiet(error, secrets)
                server.fault = null
                expect(yield* key.publicKey).toBe(publicKey)
                expect(yield* key.sign([digest])).toHaveLength(1)
              }
            }),
          undefined,
          1_500
        )
    )

    it.live.each(troubles)(
      "an answer %j is reported by only its reason and name",
      ([answer, reason, message]) =>
        within((keyOf, server) =>
          Effect.gen(function* () {
            const key = keyOf(keyName)
            yield* key.sign([digest])
            server.fault = () => answer
            for (const call of Object.values(calls(key))) {
              const before = server.asked.length
              expectError(yield* Effect.flip(call), reason, message)
              if (reason === "unavailable") expect(server.asked.length - before).toBe(1)
            }
          })
        )
    )

    for (const [which, call, reason, message] of refusals)
      it.live(`the key ${which} is ${reason} for ${call}`, () =>
        within((key) =>
          Effect.map(Effect.flip(calls(key(which))[call]), (error) => expectError(error, reason, message))
        )
      )

    it.live("sends no call before a key is used, and none for an impossible name", () =>
      within((key, server) =>
        Effect.gen(function* () {
          key(keyName)
          for (const unknown of unknownNames)
            for (const call of Object.values(calls(key(unknown))))
              expect((yield* Effect.flip(call)).reason).toBe("notFound")
          expect(server.asked).toEqual([])
        })
      )
    )

    it.live("several digests of one call are signed in their order", () =>
      within((key) =>
        Effect.gen(function* () {
          const digests = [1, 2, 3].map((n) => Hex.unsafe32(`0x${`0${n}`.repeat(32)}`))
          const alone = yield* Effect.forEach(digests, (each) => key(keyName).sign([each]))
          const together = yield* key(keyName).sign(digests)
          expect(together.map(({ r }) => r)).toEqual(alone.map(([signature]) => signature?.r))
        })
      )
    )

    it.live("an absent service is unavailable", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const gone = yield* Effect.scoped(serve)
          const provider = yield* open(gone, 1_500)
          const error = yield* Effect.flip(provider.key(keyName).publicKey)
          expect([error.reason, error.message]).toEqual([
            "unavailable",
            expect.stringContaining("ECONNREFUSED")
          ])
          expectQuiet(error, secrets)
        })
      )
    )

    it.live("the time limit of a call outlives a collection of garbage", () =>
      within(
        (keyOf, server) =>
          Effect.gen(function* () {
            const key = keyOf(keyName)
            yield* key.sign([digest])
            const asked = server.asked.length
            server.fault = () => "hang"
            const call = yield* Effect.forkChild(Effect.flip(key.sign([digest])))
            yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => server.asked.length > asked })
            collect()
            const error = yield* Effect.timeoutOrElse(Fiber.join(call), {
              duration: "30 seconds",
              orElse: () => Effect.fail(new Error("the call waits without end"))
            })
            expect(error).toMatchObject({ reason: "unavailable" })
          }),
        undefined,
        1_500
      )
    )

    it.live("an interrupted call ends, whatever its remaining time", () =>
      within(
        (keyOf, server) =>
          Effect.gen(function* () {
            const key = keyOf(keyName)
            yield* key.sign([digest])
            server.fault = () => "hang"
            expect(Option.isNone(yield* Effect.timeoutOption(key.sign([digest]), 100))).toBe(true)
          }),
        undefined,
        600_000
      )
    )

    it.live("connections are kept between calls, and closed with the scope", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const server = yield* serve
          yield* Effect.scoped(
            Effect.gen(function* () {
              const key = (yield* open(server, 5_000)).key(keyName)
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
  })

  return { within, expectError }
}
