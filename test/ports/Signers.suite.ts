import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { computeAddress, recoverAddress } from "ethers"
import * as fc from "fast-check"
import {
  type SignerError,
  type SignerRef,
  Signers,
  SystemSigners
} from "../../src/application/ports/Signers.js"
import type { AccountId } from "../../src/application/ports/Tenants.js"
import { bytes32 } from "../domain/generators.js"

/** Fixture of an adapter's test: two accounts with keys, and the operator's. */
export interface Fixture {
  readonly layer: Layer.Layer<Signers | SystemSigners, unknown>
  readonly account: AccountId
  /** References of `account`'s keys. */
  readonly refs: ReadonlyArray<SignerRef>
  readonly otherAccount: AccountId
  /** A reference that only the other account has. */
  readonly otherRef: SignerRef
}

const halfOrder = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/** The laws of every implementation of the key ports. */
export const signersSuite = (name: string, fixture: Fixture): void => {
  const run = <A, E>(effect: Effect.Effect<A, E, Signers | SystemSigners>) =>
    Effect.runPromise(Effect.provide(effect, fixture.layer).pipe(Effect.orDie))
  const resolve = (account: AccountId, ref: SignerRef) =>
    Effect.flatMap(Signers, (signers) => signers.resolve(account, ref))
  const refusal = (account: AccountId, ref: SignerRef): Promise<SignerError> =>
    run(Effect.flip(resolve(account, ref)))

  describe(`${name}: keys of accounts`, () => {
    it("address and public key belong together", () =>
      run(
        Effect.forEach(fixture.refs, (ref) =>
          Effect.map(resolve(fixture.account, ref), (signer) => {
            expect(signer.publicKey).toMatch(/^04[0-9a-f]{128}$/)
            expect(computeAddress(`0x${signer.publicKey}`)).toBe(signer.address)
          })
        )
      ))

    it("signs any digest with r, s and v 27 or 28, s in the lower half, recovering to the address", () =>
      run(
        Effect.gen(function* () {
          const signers = yield* Effect.forEach(fixture.refs, (ref) => resolve(fixture.account, ref))
          const samples = fc.sample(bytes32, 20)
          for (const signer of signers)
            for (const digest of samples) {
              const signature = yield* signer.sign(digest)
              expect(signature).toMatch(/^0x[0-9a-f]{128}1[bc]$/)
              expect(BigInt(`0x${signature.slice(66, 130)}`)).toBeLessThanOrEqual(halfOrder)
              expect(recoverAddress(digest, signature)).toBe(signer.address)
            }
        })
      ))

    it("the same reference is the same key", () =>
      run(
        Effect.forEach(fixture.refs, (ref) =>
          Effect.gen(function* () {
            const first = yield* resolve(fixture.account, ref)
            const second = yield* resolve(fixture.account, { ...ref })
            expect(second.address).toBe(first.address)
          })
        )
      ))

    it("an unknown client, a key of another account and an unknown account are one and the same refusal", async () => {
      const known = fixture.refs[0] ?? { clientId: "" }
      for (const error of [
        await refusal(fixture.account, { ...known, clientId: "nobody" }),
        await refusal(fixture.account, fixture.otherRef),
        await refusal("no such account" as AccountId, known),
        await refusal(fixture.account, { clientId: "__proto__", versionId: "constructor" })
      ]) {
        expect(error.reason).toBe("clientIdIncorrect")
        expect(error.message).toBe("invalid client ID: client ID incorrect")
      }
    })

    it("a known client with an unknown version or asset names the wrong one", async () => {
      const clientId = fixture.refs[0]?.clientId ?? ""
      const version = await refusal(fixture.account, { clientId, versionId: "no such" })
      expect([version.reason, version.message]).toEqual([
        "versionNotFound",
        "version not found: HSM version does not exist"
      ])
      const asset = await refusal(fixture.account, { clientId, assetId: "no such" })
      expect([asset.reason, asset.message]).toEqual([
        "assetNotSupported",
        "asset not supported: MPC asset unavailable"
      ])
    })

    it("a client alone, or with version and asset together, names no key", async () => {
      const ref = fixture.refs[0] ?? { clientId: "" }
      expect((await refusal(fixture.account, { clientId: ref.clientId })).reason).toBe("versionNotFound")
      const both = { clientId: ref.clientId, versionId: ref.versionId ?? "x", assetId: ref.assetId ?? "x" }
      expect((await refusal(fixture.account, both)).reason).toBe("versionNotFound")
    })
  })

  describe(`${name}: keys of the operator`, () => {
    it("deployer, service EOA and sponsor are three keys that no account reaches", () =>
      run(
        Effect.gen(function* () {
          const system = yield* SystemSigners
          const deployer = yield* system.deployer
          const serviceEoa = yield* system.serviceEoa
          const sponsor = yield* system.sponsor
          const own = yield* Effect.forEach(fixture.refs, (ref) => resolve(fixture.account, ref))
          const other = yield* resolve(fixture.otherAccount, fixture.otherRef)
          const all = [deployer, serviceEoa, sponsor, other, ...own].map((signer) => signer.address)
          expect(new Set(all).size).toBe(all.length)
        })
      ))
  })
}
