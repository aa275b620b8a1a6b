import * as Effect from "effect/Effect"
import { SigningKey } from "ethers"
import * as KeyRing from "../../../src/application/keys/KeyRing.js"
import type { RingKeyLimits } from "../../../src/application/keys/RingKeyCall.js"
import {
  type KeyProvider,
  KeyProviderError,
  type RawSignature
} from "../../../src/application/ports/KeyProvider.js"
import type { Signer } from "../../../src/application/ports/Signers.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import type { Bytes32 } from "../../../src/domain/primitives/Hex.js"

type Signatures = Effect.Effect<ReadonlyArray<RawSignature>, KeyProviderError>

export const failing = (reason: KeyProviderError["reason"], message = "as told") =>
  Effect.fail(new KeyProviderError({ reason, message }))

/** A scripted provider with one key, named `key`. */
export interface Script {
  readonly privateKey: string
  readonly maxBatch?: number
  readonly type?: Signer["type"]
  /** Result of a call; `honest` are the correct signatures. */
  readonly sign?: (
    digests: ReadonlyArray<Bytes32>,
    honest: ReadonlyArray<RawSignature>,
    call: number
  ) => Signatures
  /** The key is in this process, and returns this signature; `honest` is the correct one. */
  readonly signNow?: (honest: RawSignature) => RawSignature
  readonly publicKey?: (honest: string, call: number) => Effect.Effect<string, KeyProviderError>
}

export interface Scripted extends KeyProvider {
  /** Digests of each signing call so far. */
  readonly calls: Array<ReadonlyArray<Bytes32>>
  readonly asked: () => number
}

export const signatureBy = (key: SigningKey, digest: string): RawSignature => {
  const { r, s } = key.sign(digest)
  return { r: BigInt(r), s: BigInt(s) }
}

export const make = (script: Script): Scripted => {
  const key = new SigningKey(script.privateKey)
  const { signNow } = script
  const calls: Array<ReadonlyArray<Bytes32>> = []
  let asked = 0
  const publicKey = key.publicKey.slice(2)
  return {
    calls,
    asked: () => asked,
    key: (name) => ({
      type: script.type ?? "HSM",
      maxBatch: script.maxBatch ?? 1,
      publicKey: Effect.suspend(() => {
        asked += 1
        if (name !== "key") return failing("notFound")
        return script.publicKey?.(publicKey, asked) ?? Effect.succeed(publicKey)
      }),
      ...(signNow !== undefined && {
        signNow: (digest: Bytes32) => signNow(signatureBy(key, digest))
      }),
      sign: (digests) =>
        Effect.suspend(() => {
          calls.push(digests)
          const honest = digests.map((digest) => signatureBy(key, digest))
          return script.sign?.(digests, honest, calls.length) ?? Effect.succeed(honest)
        })
    })
  }
}

export const account = "acme" as AccountId
export const ref = { clientId: "client", versionId: "1" }

/** A key ring with only this key; `address` pins it. */
export const ring = (
  provider: KeyProvider,
  options: {
    readonly address?: Signer["address"]
    readonly limits?: Partial<RingKeyLimits>
    readonly key?: string
  } = {}
) =>
  KeyRing.make({
    providers: { it: { open: Effect.succeed(provider), limits: options.limits } },
    signers: [
      {
        accountIds: [account],
        ...ref,
        source: { provider: "it", key: options.key ?? "key", address: options.address }
      }
    ],
    system: {}
  })

/** The signer of that key. */
export const signer = (...args: Parameters<typeof ring>) =>
  Effect.flatMap(ring(...args), ({ signers }) => signers.resolve(account, ref))
