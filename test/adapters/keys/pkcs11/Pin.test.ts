import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Pkcs11KeyProvider from "../../../../src/adapters/keys/pkcs11/KeyProvider.js"
import * as KeyRing from "../../../../src/application/keys/KeyRing.js"
import type { AccountId } from "../../../../src/application/ports/Tenants.js"
import * as Leaks from "../../../support/Leaks.js"
import * as Interposer from "./Interposer.js"
import * as SoftHsm from "./SoftHsm.js"

const hsm = SoftHsm.make()
const between = Interposer.make(hsm)
const tokens = ["one", "two", "three", "four"]
afterAll(() => hsm.remove())
beforeAll(() => {
  for (const token of tokens) SoftHsm.initToken(hsm, token, hsm.pin)
})
beforeEach(() => {
  between.forget()
  between.flags(0)
})

const wrong = "not-the-pin-4711"
const open = (token: string, pin: string) =>
  Pkcs11KeyProvider.make({ module: between.library, token, pin: Redacted.make(pin) })

const refusal = (name: string) => ({
  _tag: "KeyProviderError",
  reason: "refused",
  message: `PKCS #11: ${name}`
})
const incorrect = refusal("CKR_PIN_INCORRECT (the PIN is not tried again)")

describe("the PIN of a token", () => {
  it.live("a wrong PIN stops the start with its error name, and is not shown", () =>
    Effect.gen(function* () {
      const leaks = Leaks.make()
      const error = yield* Effect.flip(Effect.scoped(Effect.provide(open("one", wrong), leaks.layer)))
      expect(error).toMatchObject(incorrect)
      leaks.keep("error", error)
      expect(leaks.found({ pin: wrong })).toEqual([])
    })
  )

  it.live("a wrong PIN is tried once per process, and the right PIN then works", () =>
    Effect.gen(function* () {
      for (let attempt = 0; attempt < 5; attempt += 1)
        expect(yield* Effect.flip(Effect.scoped(open("two", wrong)))).toMatchObject(incorrect)
      expect(between.count("C_Login")).toBe(1)
      yield* Effect.scoped(open("two", hsm.pin))
      expect(between.count("C_Login")).toBe(2)
    })
  )

  it.live("a wrong PIN is tried once by a key ring with many keys on the token", () =>
    Effect.gen(function* () {
      const keys = Array.from({ length: 40 }, (_, index) => String(index))
      const ring = KeyRing.make({
        providers: { hsm: { open: open("three", wrong) } },
        signers: keys.map((key) => ({
          accountIds: ["acme" as AccountId],
          clientId: "acme",
          versionId: key,
          source: { provider: "hsm", key }
        })),
        system: {}
      })
      const error = yield* Effect.flip(Effect.scoped(ring))
      expect(error.problems).toHaveLength(keys.length)
      expect(new Set(error.problems.map(({ reason }) => reason))).toEqual(new Set(["refused"]))
      expect(error.message).toContain("CKR_PIN_INCORRECT")
      expect(between.count("C_Login")).toBe(1)
    })
  )

  it.live("a token's PIN is not tried while the token has one attempt left for it, or none", () =>
    Effect.gen(function* () {
      const { CKF_USER_PIN_FINAL_TRY, CKF_USER_PIN_LOCKED } = SoftHsm.binding
      between.flags(CKF_USER_PIN_FINAL_TRY)
      expect(yield* Effect.flip(Effect.scoped(open("four", hsm.pin)))).toMatchObject(
        refusal("CKF_USER_PIN_FINAL_TRY: log in to the token by its own tools first")
      )
      between.flags(CKF_USER_PIN_LOCKED)
      expect(yield* Effect.flip(Effect.scoped(open("four", hsm.pin)))).toMatchObject(
        refusal("CKR_PIN_LOCKED")
      )
      expect(between.count("C_Login")).toBe(0)
      between.flags(0)
      yield* Effect.scoped(open("four", hsm.pin))
    })
  )
})
