import { createPublicKey, verify } from "node:crypto"
import { createRequire } from "node:module"
import * as Effect from "effect/Effect"
import * as Accelerated from "../../domain/primitives/Accelerated.js"

/**
 * keccak256 in WebAssembly (hash-wasm), secp256k1 in native code (libsecp256k1, whose signing time is the same for every
 * key) and P-256 in OpenSSL. An implementation that does not load on this machine is left to the domain's own code.
 */

/** Loads a package by name. */
type Require = (name: string) => unknown

/** The used part of hash-wasm's hasher. */
interface Hasher {
  readonly init: () => Hasher
  readonly update: (bytes: Uint8Array) => Hasher
  readonly digest: () => string
}

const keccak = async (require: Require): Promise<Accelerated.Keccak> => {
  // The build with only this hash: the whole package is 25 times as large.
  const { createKeccak } = require("hash-wasm/dist/keccak.umd.min.js") as {
    readonly createKeccak: (bits: number) => Promise<Hasher>
  }
  const hasher = await createKeccak(256)
  return (bytes) => hasher.init().update(bytes).digest()
}

/** The used part of secp256k1. */
interface Native {
  readonly ecdsaSign: (
    digest: Uint8Array,
    privateKey: Uint8Array
  ) => { readonly signature: Uint8Array; readonly recid: number }
  readonly ecdsaRecover: (
    signature: Uint8Array,
    recid: number,
    digest: Uint8Array,
    compressed: boolean
  ) => Uint8Array
}

const secp256k1 = (require: Require): Accelerated.Secp256k1 => {
  // The native binding only: the package's entry would fall back to a JavaScript implementation.
  const native = require("secp256k1/bindings.js") as Native
  return {
    sign: (digest, privateKey) => {
      const { recid, signature } = native.ecdsaSign(digest, privateKey)
      return { signature, odd: (recid & 1) === 1 }
    },
    recover: (digest, signature, odd) => {
      try {
        return native.ecdsaRecover(signature, odd ? 1 : 0, digest, false)
      } catch {
        return null
      }
    }
  }
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url")

const p256: Accelerated.P256 = {
  verify: (key, message, signature) => {
    try {
      const publicKey = createPublicKey({
        key: { kty: "EC", crv: "P-256", x: text(key.subarray(0, 32)), y: text(key.subarray(32)) },
        format: "jwk"
      })
      return verify("sha256", message, { key: publicKey, dsaEncoding: "ieee-p1363" }, signature)
    } catch {
      return false
    }
  }
}

/** Returns the implementation if it loads and passes a test call. */
const find = async <A>(load: () => A | Promise<A>, works: (made: A) => boolean): Promise<A | null> => {
  try {
    const made = await load()
    return works(made) ? made : null
  } catch {
    return null
  }
}

const digest = new Uint8Array(32).fill(0x5a)

/** keccak256 of nothing. */
const ofNothing = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"

/** Loads the implementations that work on this machine. */
export const load = (
  require: Require = createRequire(import.meta.url)
): Effect.Effect<Accelerated.Implementations> =>
  Effect.promise(async () => ({
    keccak: await find(
      () => keccak(require),
      (made) => made(new Uint8Array(0)) === ofNothing
    ),
    secp256k1: await find(
      () => secp256k1(require),
      (made) => {
        const { odd, signature } = made.sign(digest, digest)
        return made.recover(digest, signature, odd)?.length === 65
      }
    ),
    p256
  }))

/** Makes the domain use the loaded implementations, in the whole process. */
export const install: Effect.Effect<void> = Effect.map(load(), Accelerated.use)
