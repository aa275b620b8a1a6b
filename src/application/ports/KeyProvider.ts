import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { Signer } from "./Signers.js"

/**
 * A provider of keys did not do what was asked. `message` holds no secret, and nothing that the provider wrote
 * beyond the name of its error.
 *
 * - `unavailable`: no answer in time, throttled, session or connection lost: the same again may succeed
 * - `refused`: it answered that it will not: permission, policy, state of the key
 * - `notFound`: it has no such key
 * - `unsuitable`: the key is no secp256k1 key that signs digests
 */
export class KeyProviderError extends Data.TaggedError("KeyProviderError")<{
  readonly reason: "unavailable" | "refused" | "notFound" | "unsuitable"
  readonly message: string
}> {}

/** A signature as a provider makes it: s in either half, and nobody has checked whose it is. */
export interface RawSignature {
  readonly r: bigint
  readonly s: bigint
}

/**
 * One secp256k1 key at a provider. Providers do no more than that: retries, time limits, the low s, the recovery id and
 * the check that a signature is the key's own are the same for all of them, and stand in the key ring.
 */
export interface ProviderKey {
  readonly type: Signer["type"]
  /** Uncompressed point, 130 lower-case hex digits without 0x, starting with 04. Asks the provider each time. */
  readonly publicKey: Effect.Effect<string, KeyProviderError>
  /** How many digests one `sign` may carry, at least 1. */
  readonly maxBatch: number
  /** Signs the digests as they are, without hashing them again; the signatures are in their order. */
  readonly sign: (
    digests: ReadonlyArray<Bytes32>
  ) => Effect.Effect<ReadonlyArray<RawSignature>, KeyProviderError>
}

/** A place that holds keys: an HSM token, a KMS, a vault, a file. */
export interface KeyProvider {
  /** The key of this name in the provider's own terms (label, ARN, resource name...), without any traffic. */
  readonly key: (name: string) => ProviderKey
}
