import { mkdirSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { keccak256 } from "ethers"
import * as Pkcs11KeyProvider from "../../../../src/adapters/keys/pkcs11/KeyProvider.js"
import type { KeyProvider, KeyProviderError } from "../../../../src/application/ports/KeyProvider.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Interposer from "./Interposer.js"
import * as SoftHsm from "./SoftHsm.js"

const { CKR_DEVICE_REMOVED, CKR_SESSION_COUNT, CKR_SESSION_HANDLE_INVALID, CKR_USER_NOT_LOGGED_IN } =
  SoftHsm.binding

const hsm = SoftHsm.make()
const between = Interposer.make(hsm)
afterAll(() => hsm.remove())
beforeAll(() => {
  SoftHsm.within(hsm, (pkcs11, session) => SoftHsm.generate(pkcs11, session, "main"))
})
beforeEach(() => between.forget())

const digest = Hex.unsafe32(keccak256("0x5a"))

const open = (more: Partial<Pkcs11KeyProvider.Options> = {}) =>
  Pkcs11KeyProvider.make({
    module: between.library,
    token: hsm.token,
    pin: Redacted.make(hsm.pin),
    ...more
  })

const over = <A, E>(
  body: (provider: KeyProvider) => Effect.Effect<A, E, Scope.Scope>,
  more: Partial<Pkcs11KeyProvider.Options> = {}
) => Effect.scoped(Effect.flatMap(open(more), body))

const told = ({ message, reason }: KeyProviderError) => ({ reason, message })

/** Signs as the key ring does: again while the token is unavailable, a bounded number of times. */
const again = (provider: KeyProvider, times: number) =>
  Effect.retry(provider.key("main").sign([digest]), {
    times,
    while: ({ reason }) => reason === "unavailable"
  })

/** Acts on the token as another part of the process, unknown to the adapter. */
const behind = (body: (pkcs11: ReturnType<typeof SoftHsm.loaded>, slot: Buffer) => void) =>
  Effect.sync(() => {
    const pkcs11 = SoftHsm.loaded()
    body(pkcs11, SoftHsm.slotOf(pkcs11, hsm.token))
  })

const closeSessions = behind((pkcs11, slot) => pkcs11.C_CloseAllSessions(slot))
const logOut = behind((pkcs11, slot) => {
  const session = pkcs11.C_OpenSession(slot, SoftHsm.binding.CKF_SERIAL_SESSION)
  pkcs11.C_Logout(session)
  pkcs11.C_CloseSession(session)
})

const away = join(hsm.folder, "away")
const takeAway = Effect.sync(() => {
  renameSync(hsm.tokens, away)
  mkdirSync(hsm.tokens)
})
const bringBack = Effect.sync(() => {
  rmSync(hsm.tokens, { recursive: true })
  renameSync(away, hsm.tokens)
})

describe("a PKCS #11 provider that loses its token", () => {
  for (const [what, happens] of [
    ["its sessions are closed", closeSessions],
    ["it is logged out", logOut]
  ] as const) {
    it.live(`a PKCS #11 provider signs at the next attempt after ${what}`, () =>
      over((provider) =>
        Effect.gen(function* () {
          yield* provider.key("main").sign([digest])
          yield* happens
          const error = yield* Effect.flip(provider.key("main").sign([digest]))
          expect(error.reason).toBe("unavailable")
          expect(error.message).toMatch(/^PKCS #11: CKR_[A-Z_]+$/)
          expect(yield* provider.key("main").sign([digest])).toHaveLength(1)
        })
      )
    )

    it.live(`a PKCS #11 provider never takes a key for missing because ${what}`, () =>
      over((provider) =>
        Effect.gen(function* () {
          const publicKey = yield* provider.key("main").publicKey
          yield* happens
          expect((yield* Effect.flip(provider.key("main").publicKey)).reason).toBe("unavailable")
          expect(yield* provider.key("main").publicKey).toBe(publicKey)
        })
      )
    )
  }

  it.live("a PKCS #11 provider is unavailable while the token is away, and signs once it is back", () =>
    over((provider) =>
      Effect.gen(function* () {
        yield* provider.key("main").sign([digest])
        yield* Effect.andThen(closeSessions, takeAway)
        for (let attempt = 0; attempt < 4; attempt += 1)
          expect((yield* Effect.flip(provider.key("main").sign([digest]))).reason).toBe("unavailable")
        yield* bringBack
        expect(yield* again(provider, 2)).toHaveLength(1)
      })
    )
  )

  it.live("a PKCS #11 provider works when the token arrives after the first use", () =>
    Effect.gen(function* () {
      yield* takeAway
      const first = yield* Effect.exit(Effect.scoped(open()))
      yield* bringBack
      expect(Exit.isFailure(first)).toBe(true)
      expect(yield* over((provider) => again(provider, 0))).toHaveLength(1)
    })
  )

  for (const [name, value] of Object.entries({
    CKR_DEVICE_REMOVED,
    CKR_SESSION_HANDLE_INVALID,
    CKR_USER_NOT_LOGGED_IN
  }))
    for (const call of ["C_SignInit", "C_Sign"] as const)
      it.live(`logs in again after ${name} from ${call}`, () =>
        over((provider) =>
          Effect.gen(function* () {
            yield* provider.key("main").sign([digest])
            between.forget()
            between.will(call, { value })
            expect(told(yield* Effect.flip(provider.key("main").sign([digest])))).toEqual({
              reason: "unavailable",
              message: `PKCS #11: ${name}`
            })
            yield* provider.key("main").sign([digest])
            expect(between.count("C_Login")).toBe(1)
          })
        )
      )

  it.live("a PKCS #11 provider closes every opened session, even a lost one", () =>
    over((provider) =>
      Effect.gen(function* () {
        for (let round = 0; round < 5; round += 1) {
          between.will("C_Sign", { value: CKR_USER_NOT_LOGGED_IN })
          yield* Effect.forEach([1, 2, 3, 4], () => Effect.exit(provider.key("main").sign([digest])), {
            concurrency: "unbounded"
          })
        }
        expect(between.count("C_OpenSession") - between.count("C_CloseSession")).toBeLessThanOrEqual(3)
      })
    )
  )

  it.live("a PKCS #11 provider keeps its sessions when the token opens no further ones", () =>
    over((provider) =>
      Effect.gen(function* () {
        between.will("C_OpenSession", { value: CKR_SESSION_COUNT, times: 2 })
        const signed = yield* Effect.forEach(
          [1, 2, 3],
          () => Effect.exit(provider.key("main").sign([digest])),
          { concurrency: "unbounded" }
        )
        expect(signed.filter(Exit.isSuccess)).toHaveLength(1)
        expect(between.count("C_Login")).toBe(1)
        expect(yield* again(provider, 0)).toHaveLength(1)
      })
    )
  )

  it.live("a PKCS #11 provider restarts the library only without other users in the process", () =>
    over((provider) =>
      Effect.gen(function* () {
        for (let attempt = 0; attempt < 3; attempt += 1)
          expect(told(yield* Effect.flip(Effect.scoped(open({ token: "nowhere" })))).reason).toBe(
            "unavailable"
          )
        expect(between.count("C_Finalize")).toBe(0)
        expect(yield* again(provider, 0)).toHaveLength(1)
      })
    )
  )
})

describe("the library of PKCS #11 providers", () => {
  it.live("the PKCS #11 library is initialized once per process, and finalized after the last provider", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* Scope.make(), yield* Scope.make()]
      const first = yield* Scope.provide(open(), one)
      const second = yield* Scope.provide(open(), two)
      yield* Effect.all([again(first, 0), again(second, 0)], { concurrency: 2 })
      yield* Scope.close(one, Exit.void)
      expect(between.count("C_Finalize")).toBe(0)
      expect(yield* again(second, 0)).toHaveLength(1)
      expect((yield* Effect.flip(again(first, 0))).reason).toBe("unavailable")
      yield* Scope.close(two, Exit.void)
      expect([between.count("C_Initialize"), between.count("C_Finalize")]).toEqual([1, 1])
      expect((yield* Effect.flip(again(second, 0))).reason).toBe("unavailable")
    })
  )

  it.live("the PKCS #11 library is initialized again for a provider made after the last ended", () =>
    Effect.gen(function* () {
      yield* over((provider) => again(provider, 0))
      yield* over((provider) => again(provider, 0))
      expect([between.count("C_Initialize"), between.count("C_Finalize")]).toEqual([2, 2])
    })
  )

  it.live("the PKCS #11 library is not finalized under a signature that is being made", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const provider = yield* Scope.provide(open(), scope)
      yield* again(provider, 0)
      between.will("C_Sign", { millis: 700 })
      const signing = yield* Effect.forkChild(again(provider, 0))
      yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => between.count("C_Sign") === 2 })
      yield* Scope.close(scope, Exit.void)
      expect(between.count("C_Finalize")).toBe(1)
      expect(yield* Fiber.join(signing)).toHaveLength(1)
    })
  )

  const slow = 2_000

  for (const name of ["C_Initialize", "C_Login", "C_FindObjectsInit", "C_SignInit", "C_Sign"] as const)
    it.live(`the process keeps running while ${name} takes its time`, () =>
      Effect.gen(function* () {
        between.will(name, { millis: slow })
        const signing = yield* Effect.forkChild(over((provider) => again(provider, 0)))
        yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => between.count(name) > 0 })
        // The function has begun. If it blocked the process, the process would be here after its end, with the signature.
        for (let turn = 0; turn < 10; turn++) yield* Effect.sleep("5 millis")
        expect(yield* Effect.sync(() => Option.fromUndefinedOr(signing.pollUnsafe()))).toEqual(Option.none())
        yield* Fiber.join(signing)
      })
    )

  it.live("a PKCS #11 provider signs over several sessions concurrently", () =>
    over((provider) =>
      Effect.gen(function* () {
        yield* again(provider, 0)
        between.forget()
        between.will("C_Sign", { millis: slow, times: 3 })
        const signing = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(again(provider, 0)))
        yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => between.count("C_Sign") === 3 })
        for (const fiber of signing)
          expect(yield* Effect.sync(() => Option.fromUndefinedOr(fiber.pollUnsafe()))).toEqual(Option.none())
        for (const fiber of signing) yield* Fiber.join(fiber)
        expect(between.count("C_OpenSession")).toBe(2)
      })
    )
  )

  it.live("a session is reused only after the signature of an interrupted caller is made", () =>
    over(
      (provider) =>
        Effect.gen(function* () {
          yield* again(provider, 0)
          between.will("C_Sign", { millis: 500 })
          const signing = yield* Effect.forkChild(again(provider, 0))
          const given = yield* Effect.timeoutOption(Fiber.join(signing), "100 millis")
          expect(given).toEqual(Option.none())
          yield* Effect.sync(() => signing.interruptUnsafe())
          expect(yield* again(provider, 0)).toHaveLength(1)
          expect(between.count("C_OpenSession")).toBe(1)
        }),
      { sessions: 1 }
    )
  )
})
