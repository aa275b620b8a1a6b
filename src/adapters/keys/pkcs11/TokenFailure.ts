import * as Data from "effect/Data"
import { KeyProviderError } from "../../../application/ports/KeyProvider.js"

/** A PKCS #11 error: the name of the return value other than CKR_OK, or the library's fault. */
export class Refusal extends Data.TaggedError("Pkcs11Refusal")<{ readonly name: string }> {}

type Reason = KeyProviderError["reason"]

/** Return values of PKCS #11 v3 without a name in the binding. */
const unnamed: Readonly<Record<number, string>> = { 320: "CKR_CURVE_NOT_SUPPORTED" }

/** The binding's other errors concern the library's file, and quote its path. */
const unreadable = "the library cannot be loaded"

/** Converts an error of the binding. Vendor return values are named by number. */
export const refusal = (message: string, code: unknown): Refusal => {
  const name = /CKR_[A-Z0-9_]+/.exec(message)?.[0] ?? unreadable
  return new Refusal({
    name:
      name === "CKR_VENDOR_DEFINED" && typeof code === "number"
        ? (unnamed[code] ?? `${name} 0x${code.toString(16)}`)
        : name
  })
}

/** Errors that pass by themselves or with a fresh session. Vendors report "connection lost" under their own numbers. */
const passing: ReadonlySet<string> = new Set([
  "CKR_CANCEL",
  "CKR_CRYPTOKI_NOT_INITIALIZED",
  "CKR_DEVICE_ERROR",
  "CKR_DEVICE_MEMORY",
  "CKR_DEVICE_REMOVED",
  "CKR_FUNCTION_CANCELED",
  "CKR_FUNCTION_FAILED",
  "CKR_GENERAL_ERROR",
  "CKR_HOST_MEMORY",
  "CKR_KEY_HANDLE_INVALID",
  "CKR_OBJECT_HANDLE_INVALID",
  "CKR_OPERATION_ACTIVE",
  "CKR_OPERATION_NOT_INITIALIZED",
  "CKR_SESSION_CLOSED",
  "CKR_SESSION_COUNT",
  "CKR_SESSION_HANDLE_INVALID",
  "CKR_SLOT_ID_INVALID",
  "CKR_TOKEN_NOT_PRESENT",
  "CKR_TOKEN_NOT_RECOGNIZED",
  "CKR_USER_NOT_LOGGED_IN"
])

/** The digest is well-formed, so the key or the token does not support it. */
const misfit: ReadonlySet<string> = new Set([
  "CKR_CURVE_NOT_SUPPORTED",
  "CKR_DATA_INVALID",
  "CKR_DATA_LEN_RANGE",
  "CKR_DOMAIN_PARAMS_INVALID",
  "CKR_KEY_FUNCTION_NOT_PERMITTED",
  "CKR_KEY_SIZE_RANGE",
  "CKR_KEY_TYPE_INCONSISTENT",
  "CKR_MECHANISM_INVALID",
  "CKR_MECHANISM_PARAM_INVALID"
])

/** The PIN was refused: each attempt brings the token closer to locking itself. */
const ofPin: ReadonlySet<string> = new Set([
  "CKR_PIN_EXPIRED",
  "CKR_PIN_INCORRECT",
  "CKR_PIN_INVALID",
  "CKR_PIN_LEN_RANGE",
  "CKR_PIN_LOCKED"
])

export const isOfPin = ({ name }: Refusal): boolean => ofPin.has(name)

/** Whether sessions, login and handles are invalid after the error. */
export const isLoss = ({ name }: Refusal): boolean =>
  reasonOf(name) === "unavailable" && name !== "CKR_SESSION_COUNT"

const reasonOf = (name: string): Reason => {
  if (passing.has(name) || name.startsWith("CKR_VENDOR_DEFINED")) return "unavailable"
  return misfit.has(name) ? "unsuitable" : "refused"
}

export const make = (reason: Reason, what: string): KeyProviderError =>
  new KeyProviderError({ reason, message: `PKCS #11: ${what}` })

export const from = ({ name }: Refusal): KeyProviderError => make(reasonOf(name), name)
