import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { computeAddress, keccak256, recoverAddress, toBeHex } from "ethers"
import * as KeyRing from "../../src/application/keys/KeyRing.js"
import type { KeyProvider, RawSignature } from "../../src/application/ports/KeyProvider.js"
import type { AccountId } from "../../src/application/ports/Tenants.js"
import * as Hex from "../../src/domain/primitives/Hex.js"

/** Fixture of a provider's test: a real provider, or one over the wire to a stand-in that speaks its protocol. */
export interface Fixture {
  /** The suite opens it again for each fact; every opening holds the same key. */
  readonly make: () => Effect.Effect<KeyProvider, unknown, Scope.Scope>
  /** A secp256k1 key that signs digests. */
  readonly keyName: string
  readonly missingKeyName: string
  /** Number of digests signed through the ring. Default 1,000; less for a slow provider. */
  readonly digests?: number
}

const account = "acme" as AccountId
const ref = { clientId: "client", versionId: "1" }
const halfOrder = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/** Pseudo-random digests, fixed across runs. */
const digestsOf = (count: number, seed: string): ReadonlyArray<Hex.Bytes32> =>
  Array.from({ length: count }, (_, index) =>
    Hex.unsafe32(keccak256(`0x${Buffer.from(`${seed} ${index}`).toString("hex")}`))
  )

const edges = [`0x${"00".repeat(32)}`, `0x${"00".repeat(31)}01`, `0x${"ff".repeat(32)}`].map(Hex.unsafe32)

/** Possible signers of a raw signature: one of the two recovery ids, in the low form. */
const signersOf = (digest: string, { r, s }: RawSignature): ReadonlyArray<string> => {
  const order = 2n * halfOrder + 1n
  const low = s > halfOrder ? order - s : s
  return [27, 28].flatMap((v) => {
    try {
      return [recoverAddress(digest, { r: toBeHex(r, 32), s: toBeHex(low, 32), v })]
    } catch {
      return []
    }
  })
}

/** The laws of every key provider for the key ring, and of the ring over it. */
export const keyProviderSuite = (name: string, fixture: Fixture): void => {
  const { keyName, missingKeyName } = fixture
  const run = <A, E>(effect: (provider: KeyProvider) => Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
    Effect.runPromise(Effect.scoped(Effect.flatMap(fixture.make(), effect)))

  const ringOver = (provider: KeyProvider, key: string) =>
    KeyRing.make({
      providers: { it: { open: Effect.succeed(provider) } },
      signers: [{ accountIds: [account], ...ref, source: { provider: "it", key } }],
      system: {}
    })

  describe(`${name}: a provider of keys`, () => {
    it("returns the same public key each time, an uncompressed point", () =>
      run((provider) =>
        Effect.gen(function* () {
          const first = yield* provider.key(keyName).publicKey
          const second = yield* provider.key(keyName).publicKey
          expect(first).toMatch(/^04[0-9a-f]{128}$/)
          expect(() => computeAddress(`0x${first}`)).not.toThrow()
          expect(second).toBe(first)
        })
      ))

    it("has the key again after it was closed and opened", async () => {
      const first = await run((provider) => provider.key(keyName).publicKey)
      expect(await run((provider) => provider.key(keyName).publicKey)).toBe(first)
    })

    it("signs digests unchanged, each signature at its digest's index, as many as one call may carry", () =>
      run((provider) =>
        Effect.gen(function* () {
          const key = provider.key(keyName)
          const address = computeAddress(`0x${yield* key.publicKey}`)
          expect(Number.isInteger(key.maxBatch) && key.maxBatch >= 1).toBe(true)
          for (const digests of [
            ...edges.map((edge) => [edge]),
            digestsOf(Math.min(key.maxBatch, 32), "a full call")
          ]) {
            const signatures = yield* key.sign(digests)
            expect(signatures).toHaveLength(digests.length)
            for (const [index, signature] of signatures.entries())
              expect(signersOf(digests[index] ?? "", signature)).toContain(address)
          }
        })
      ))

    it("signs for several callers concurrently", () =>
      run((provider) =>
        Effect.gen(function* () {
          const key = provider.key(keyName)
          const address = computeAddress(`0x${yield* key.publicKey}`)
          const digests = digestsOf(8, "at once")
          const signed = yield* Effect.forEach(digests, (digest) => key.sign([digest]), {
            concurrency: "unbounded"
          })
          for (const [index, [signature]] of signed.entries())
            expect(signature && signersOf(digests[index] ?? "", signature)).toContain(address)
        })
      ))

    it("has no key of another name", () =>
      run((provider) =>
        Effect.gen(function* () {
          const key = provider.key(missingKeyName)
          expect(yield* Effect.flip(key.publicKey)).toMatchObject({
            _tag: "KeyProviderError",
            reason: "notFound"
          })
          expect(yield* Effect.flip(key.sign(edges.slice(0, 1)))).toMatchObject({
            _tag: "KeyProviderError",
            reason: "notFound"
          })
        })
      ))
  })

  describe(`${name}: a signer of the key ring`, () => {
    const count = fixture.digests ?? 1_000

    it(`${count} concurrent digests get r, s in the lower half and v, recovering to the address`, () =>
      run((provider) =>
        Effect.gen(function* () {
          const { signers } = yield* ringOver(provider, keyName)
          const signer = yield* signers.resolve(account, ref)
          expect(computeAddress(`0x${signer.publicKey}`)).toBe(signer.address)
          expect(signer.type).toBe(provider.key(keyName).type)
          const digests = digestsOf(count, "many")
          const signatures = yield* Effect.forEach(digests, signer.sign, { concurrency: 64 })
          for (const [index, signature] of signatures.entries()) {
            expect(signature).toMatch(/^0x[0-9a-f]{128}1[bc]$/)
            expect(BigInt(`0x${signature.slice(66, 130)}`)).toBeLessThanOrEqual(halfOrder)
            expect(recoverAddress(digests[index] ?? "", signature)).toBe(signer.address)
          }
        })
      ))

    it("a missing key stops the start, by its name", () =>
      run((provider) =>
        Effect.gen(function* () {
          const error = yield* Effect.flip(ringOver(provider, missingKeyName))
          expect(error.problems.map(({ reason }) => reason)).toEqual(["notFound"])
          expect(error.message).toContain('signer "client" versionId "1"')
          expect(error.message).toContain(JSON.stringify(missingKeyName))
        })
      ))
  })
}
