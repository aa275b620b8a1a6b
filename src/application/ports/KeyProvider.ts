import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { Signer } from "./Signers.js"

/**
 * A key provider failed. `message` holds no secret, and of the provider's own words only the name of its error.
 *
 * - `unavailable`: no answer in time, throttled, session or connection lost; a retry may succeed
 * - `refused`: the provider refuses because of a permission, a policy or the key's state
 * - `notFound`: the provider has no such key
 * - `unsuitable`: not a secp256k1 key that signs digests
 */
export class KeyProviderError extends Data.TaggedError("KeyProviderError")<{
  readonly reason: "unavailable" | "refused" | "notFound" | "unsuitable"
  readonly message: string
}> {}

/** A provider's unverified signature, with s in either half. */
export interface RawSignature {
  readonly r: bigint
  readonly s: bigint
  /** Parity of the point, where the provider knows it: 27 even, 28 odd. */
  readonly v?: 27 | 28
}

/**
 * One secp256k1 key at a provider. The key ring adds everything else for all providers: retries, time limits, the low
 * s, the recovery id and the check that the key made the signature.
 */
export interface ProviderKey {
  readonly type: Signer["type"]
  /** Uncompressed point, 130 lower-case hex digits without 0x, starting with 04. Queries the provider each time. */
  readonly publicKey: Effect.Effect<string, KeyProviderError>
  /** Most digests per `sign` call, at least 1. */
  readonly maxBatch: number
  /** Signs the digests without hashing them again, and returns the signatures in the same order. */
  readonly sign: (
    digests: ReadonlyArray<Bytes32>
  ) => Effect.Effect<ReadonlyArray<RawSignature>, KeyProviderError>
  /** Signs like `sign`, but synchronously: for a key in this process. The ring neither bounds nor repeats it. */
  readonly signNow?: (digest: Bytes32) => RawSignature
}

/** A store of keys: an HSM token, a KMS, a vault, a file. */
export interface KeyProvider {
  /** Returns the key with this name in the provider's terms (label, ARN, resource name...), without any traffic. */
  readonly key: (name: string) => ProviderKey
}
