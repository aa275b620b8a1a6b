import * as Equal from "effect/Equal"
import type * as Redacted from "effect/Redacted"
import * as Failure from "./Failure.js"

/** A token of a library, in messages and as a key of what is remembered. */
export interface Place {
  /** Path of the library. */
  readonly module: string
  /** Label of the token. */
  readonly token: string
}

/** Of a token, about the PIN of its user. */
const flags = { finalTry: 0x20000, locked: 0x40000 }

const refused = new Map<string, { readonly pin: Redacted.Redacted<string>; readonly name: string }>()

const idOf = ({ module, token }: Place): string => JSON.stringify([module, token])

/** Keeps in mind, until the process ends, that a token has refused this PIN. */
export const remember = (place: Place, pin: Redacted.Redacted<string>, { name }: Failure.Refusal): void =>
  void refused.set(idOf(place), { pin, name })

/**
 * Why the PIN must not be tried, if it must not. Tokens lock themselves after a few wrong ones, so none is tried twice;
 * and the last attempt is left to a person, lest a supervisor's restarts use it up.
 */
export const objection = (
  place: Place,
  pin: Redacted.Redacted<string>,
  tokenFlags: number
): ReturnType<typeof Failure.make> | null => {
  const before = refused.get(idOf(place))
  if (before !== undefined && Equal.equals(before.pin, pin)) return refusal(before.name)
  if ((tokenFlags & flags.locked) !== 0) return Failure.make("refused", "CKR_PIN_LOCKED")
  if ((tokenFlags & flags.finalTry) !== 0)
    return Failure.make("refused", "CKF_USER_PIN_FINAL_TRY: log in to the token by its own tools first")
  return null
}

export const refusal = (name: string): ReturnType<typeof Failure.make> =>
  Failure.make("refused", `${name} (the PIN is not tried again)`)
