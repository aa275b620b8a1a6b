import * as Data from "effect/Data"
import type { KeyProviderError } from "../ports/KeyProvider.js"

/**
 * A key of the ring can not be used. `message` is for the operator and holds no secret.
 *
 * - what its provider says: `unavailable`, `refused`, `notFound`, `unsuitable`
 * - `addressMismatch`: it is not the key that the configuration pins
 * - `wrongSignature`: its provider gave what is no signature of this key
 */
export class RingKeyError extends Data.TaggedError("RingKeyError")<{
  readonly reason: KeyProviderError["reason"] | "addressMismatch" | "wrongSignature"
  readonly message: string
}> {}
