import { describe, expect, it } from "@effect/vitest"
import * as TokenFailure from "../../../../src/adapters/keys/pkcs11/TokenFailure.js"
import { binding } from "./SoftHsm.js"

const from = (message: string, code?: number) => {
  const { message: text, reason } = TokenFailure.from(TokenFailure.refusal(message, code))
  return { reason, text }
}

const values = Object.entries(binding).filter(
  (entry): entry is [string, number] => /^CKR_/.test(entry[0]) && typeof entry[1] === "number"
)

describe("what a PKCS #11 library refuses", () => {
  it("a PKCS #11 failure shows only the name of its return value, whatever the binding's message", () => {
    expect(values.length).toBeGreaterThan(80)
    for (const [name, code] of values) {
      if (name === "CKR_VENDOR_DEFINED") continue
      for (const wording of [name, `${name}:${code}`, `${name}:${code}\n    at C_Sign /opt/vendor/lib.so`])
        expect(from(wording, code).text).toBe(`PKCS #11: ${name}`)
    }
  })

  it("a vendor-defined PKCS #11 failure shows its number, and is retried", () => {
    expect(from("CKR_VENDOR_DEFINED", 0x80000123)).toEqual({
      reason: "unavailable",
      text: "PKCS #11: CKR_VENDOR_DEFINED 0x80000123"
    })
  })

  it("a PKCS #11 failure has its name even when unknown to the binding", () => {
    expect(from("CKR_VENDOR_DEFINED", 0x140)).toEqual({
      reason: "unsuitable",
      text: "PKCS #11: CKR_CURVE_NOT_SUPPORTED"
    })
  })

  it("a PKCS #11 failure omits the rest of the binding's message", () => {
    expect(from("/opt/vendor/libsecret.so: cannot open shared object file")).toEqual({
      reason: "refused",
      text: "PKCS #11: the library cannot be loaded"
    })
  })

  it("a PKCS #11 failure is retried after losing session, token or device, never for the PIN", () => {
    const reasons = new Map(values.map(([name, code]) => [name, from(name, code).reason]))
    const lost = values.filter(([name]) =>
      /^CKR_(SESSION_(HANDLE_INVALID|CLOSED|COUNT)|DEVICE_|TOKEN_NOT_|USER_NOT_LOGGED_IN|CRYPTOKI_NOT)/.test(
        name
      )
    )
    expect(lost.length).toBeGreaterThan(8)
    for (const [name] of lost) expect([name, reasons.get(name)]).toEqual([name, "unavailable"])
    const pins = values.filter(([name]) => /^CKR_PIN_/.test(name))
    expect(pins.length).toBeGreaterThan(4)
    for (const [name] of pins) expect([name, reasons.get(name)]).toEqual([name, "refused"])
  })
})
