import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { KeyProvider } from "../../../src/application/ports/KeyProvider.js"
import * as Secp256k1 from "../../../src/domain/crypto/Secp256k1.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"

export interface Slow extends KeyProvider {
  /** Calls so far, and the highest number of concurrent calls. */
  readonly calls: () => number
  readonly most: () => number
}

/** A provider with one key, named `key`; each call takes `latencyMillis`, like a network call. */
export const make = (privateKey: string, latencyMillis: number, maxBatch = 1): Slow => {
  const key = Result.getOrThrow(Secp256k1.privateKey(Hex.unsafe32(privateKey)))
  let calls = 0
  let now = 0
  let most = 0
  return {
    calls: () => calls,
    most: () => most,
    key: () => ({
      type: "KMS",
      maxBatch,
      publicKey: Effect.succeed(key.publicKey),
      sign: (digests) =>
        Effect.suspend(() => {
          calls += 1
          now += 1
          most = Math.max(most, now)
          const signatures = digests.map((digest) => key.sign(digest))
          return Effect.ensuring(
            Effect.as(Effect.sleep(latencyMillis), signatures),
            Effect.sync(() => {
              now -= 1
            })
          )
        })
    })
  }
}
