/**
 * Faster implementations of what the domain computes, in native code or WebAssembly, where a process has loaded them.
 * A result is the same with and without them: the loader guarantees it, and tests compare both. Without them the domain
 * computes in JavaScript, so it runs anywhere.
 */

/** keccak256, in 64 lower-case hex digits. */
export type Keccak = (bytes: Uint8Array) => string

/** Digests and private keys are of 32 bytes, signatures r || s of 64, in their ranges. */
export interface Secp256k1 {
  /** Deterministic (RFC 6979), with s in the lower half; whether the point of this r has an odd y. */
  readonly sign: (
    digest: Uint8Array,
    privateKey: Uint8Array
  ) => { readonly signature: Uint8Array; readonly odd: boolean }
  /** The uncompressed public key, 65 bytes, of the signature with this point; null: no key has made it. */
  readonly recover: (digest: Uint8Array, signature: Uint8Array, odd: boolean) => Uint8Array | null
}

export interface P256 {
  /**
   * Whether the key, x and y of 32 bytes each, has signed the SHA-256 of the message; s may be in either half. False for
   * coordinates off the curve.
   */
  readonly verify: (key: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean
}

export interface Implementations {
  readonly keccak: Keccak | null
  readonly secp256k1: Secp256k1 | null
  readonly p256: P256 | null
}

export const none: Implementations = { keccak: null, secp256k1: null, p256: null }

let present: Implementations = none

/** The implementations in use in this process. */
export const implementations = (): Implementations => present

/** Computes with these from now on, in the whole process. */
export const use = (loaded: Implementations): void => {
  present = loaded
}
