import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { concat } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Proof from "../../../src/domain/signature/Proof.js"
import * as ProofVerification from "../../../src/domain/signature/ProofVerification.js"
import * as Custody from "../../../src/domain/wallet/Custody.js"
import * as Passkey from "../../../src/domain/wallet/Passkey.js"
import * as WalletConfig from "../../../src/domain/wallet/WalletConfig.js"
import { type Answer, respond } from "../../support/passkeys/Authenticator.js"
import { at, devKey, startChain } from "../../support/suite/Chain.js"
import {
  assertionOf,
  configOf,
  ecdsa,
  highS,
  indexIn,
  newPasskey,
  parityV,
  personal
} from "../../support/suite/Keys.js"
import { type Config, mixedProof } from "../../support/suite/Layouts.js"
import { use } from "../../support/Use.js"

const chain = use(startChain)

const owners = [devKey(20), devKey(21), devKey(22)]
const passkeys = [newPasskey(), newPasskey()]
const [stranger, thief] = [devKey(30), newPasskey()]
const other = `0x${"77".repeat(32)}`

/** Defect of a signature; most often none. */
const flaw = fc.oneof(
  { weight: 8, arbitrary: fc.constant("none" as const) },
  { weight: 1, arbitrary: fc.constantFrom("other hash" as const, "stranger" as const) }
)
const signature = fc.record({
  by: fc.nat(2),
  form: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom("raw", "personal", "parity") },
    { weight: 1, arbitrary: fc.constant("high s") }
  ),
  flaw
})

const answers: Readonly<Record<string, Answer>> = {
  none: {},
  "further members": { more: ',"x":"é"' },
  "backed up": { flags: 0x1d },
  "not verified": { flags: 0x01 },
  "not present": { flags: 0x04 },
  "backed up, not eligible": { flags: 0x15 },
  registration: { type: "webauthn.create" }
}
const assertion = fc.record({
  by: fc.nat(1),
  flaw,
  answer: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom("none", "further members", "backed up") },
    { weight: 1, arbitrary: fc.constantFrom(...Object.keys(answers)) }
  ),
  twist: fc.oneof(
    { weight: 8, arbitrary: fc.constant("none" as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "index" as const,
        "typeIndex" as const,
        "challengeIndex" as const,
        "high s" as const
      )
    }
  )
})

type Generated<A> = A extends fc.Arbitrary<infer Value> ? Value : never

const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

const domainConfig = (config: Config): WalletConfig.WalletConfig => {
  const point = ({ x, y }: { readonly x: string; readonly y: string }) =>
    Buffer.from(x.slice(2) + y.slice(2), "hex").toString("base64")
  return Result.getOrThrow(
    WalletConfig.make({
      custody: Result.getOrThrow(Custody.ofWallet(config.custody)),
      owners: config.owners.map(Address.unsafe),
      passkeys: Result.getOrThrow(Passkey.parse(config.passkeys.map(point))),
      threshold: config.threshold
    })
  )
}

const proofOf = (
  config: Config,
  hash: string,
  signatures: ReadonlyArray<Generated<typeof signature>>,
  assertions: ReadonlyArray<Generated<typeof assertion>>
): string => {
  const parts = signatures.map(({ by, flaw, form }) => {
    const signer = (flaw === "stranger" ? stranger : owners[by]) ?? stranger
    const signed = flaw === "other hash" ? other : hash
    if (form === "personal") return personal(signed, signer)
    const raw = ecdsa(signed, signer)
    return form === "parity" ? parityV(raw) : form === "high s" ? highS(raw) : raw
  })
  const proofs = assertions.map(({ answer, by, flaw, twist }) => {
    const named = passkeys[by] ?? thief
    const signer = flaw === "stranger" ? thief : named
    const auth = assertionOf(respond(flaw === "other hash" ? other : hash, signer, answers[answer]))
    const index = indexIn(config, named)
    return {
      index: twist === "index" ? index + 1 : index,
      auth: {
        ...auth,
        typeIndex: auth.typeIndex + (twist === "typeIndex" ? 1 : 0),
        challengeIndex: auth.challengeIndex + (twist === "challengeIndex" ? 1 : 0),
        s: twist === "high s" ? `0x${(order - BigInt(auth.s)).toString(16).padStart(64, "0")}` : auth.s
      }
    }
  })
  return proofs.length === 0 && parts.length > 0 ? concat(parts) : mixedProof(concat(parts), proofs)
}

describe("A proof of signatures and passkeys", () => {
  it("has the same validity in the domain and in the validator on the chain", async () => {
    const verify = at("CustodyValidator", chain.suite.validator, chain).getFunction("verify")
    const seen = { good: 0, invalid: 0, threshold: 0 }
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(
          configOf(2, owners.slice(0, 1), passkeys),
          configOf(3, owners, [], 2),
          configOf(4, owners, passkeys, 2),
          configOf(4, owners, passkeys, 3),
          configOf(5, [], passkeys)
        ),
        fc.bigUintN(256).map((word) => `0x${word.toString(16).padStart(64, "0")}`),
        fc.uniqueArray(signature, { maxLength: 2, selector: ({ by, flaw }) => `${by}${flaw}` }),
        fc.array(assertion, { maxLength: 2 }),
        async (config, hash, signatures, assertions) => {
          const used = config.owners.length === 0 ? [] : signatures
          const asserted = config.passkeys.length === 0 ? [] : assertions
          const proof = proofOf(config, hash, used, asserted)
          const verdict = ProofVerification.verify(
            domainConfig(config),
            Hex.unsafe32(hash),
            Hex.unsafe(proof)
          )
          seen[Result.isSuccess(verdict) ? "good" : verdict.failure.kind] += 1
          const normal = Result.getOrElse(Proof.normalise(Hex.unsafe(proof)), () => proof)
          expect(await verify.staticCall(config, hash, normal)).toBe(Result.isSuccess(verdict))
        }
      ),
      { numRuns: 200 }
    )
    console.log(`proofs judged alike: ${JSON.stringify(seen)}`)
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0)
  })

  it("accepted by the domain is accepted by the validator, however a good one was changed", async () => {
    const verify = at("CustodyValidator", chain.suite.validator, chain).getFunction("verify")
    const config = configOf(5, [], passkeys)
    const hash = `0x${"5a".repeat(32)}`
    const good = proofOf(config, hash, [], [{ by: 0, flaw: "none", answer: "none", twist: "none" }])
    let taken = 0
    await fc.assert(
      fc.asyncProperty(fc.nat(good.length - 3), fc.integer({ min: 0, max: 15 }), async (place, digit) => {
        const changed = good.slice(0, 2 + place) + digit.toString(16) + good.slice(3 + place)
        if (
          Result.isFailure(
            ProofVerification.verify(domainConfig(config), Hex.unsafe32(hash), Hex.unsafe(changed))
          )
        )
          return
        taken += 1
        expect(await verify.staticCall(config, hash, changed)).toBe(true)
        expect(Result.isSuccess(Proof.normalise(Hex.unsafe(changed)))).toBe(true)
      }),
      { numRuns: 300 }
    )
    expect(taken).toBeGreaterThan(0)
  })
})
