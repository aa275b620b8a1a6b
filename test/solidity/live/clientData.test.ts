import { createHash, sign } from "node:crypto"
import * as Result from "effect/Result"
import { getBytes, hexlify, id } from "ethers"
import fc from "fast-check"
import { expect, test } from "vitest"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as ClientData from "../../../src/domain/signature/ClientData.js"
import * as WebAuthn from "../../../src/domain/signature/WebAuthn.js"
import { at, startChain } from "../../support/suite/Chain.js"
import { configOf, newPasskey } from "../../support/suite/Keys.js"
import { mixedProof, type PasskeyProof } from "../../support/suite/Layouts.js"
import { use } from "../../support/Use.js"

/** Verdicts of the validator and the service on client data that no honest party writes. */

const chain = use(startChain)

const hash = id("client data")
const challenge = Buffer.from(getBytes(hash)).toString("base64url")
const passkey = newPasskey()
const config = configOf(5, [], [passkey])
const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
const word = (value: bigint) => `0x${value.toString(16).padStart(64, "0")}`

const [type, member] = [`"type":"webauthn.get"`, `"challenge":"${challenge}"`]

/** The passkey's own signature over any client data. */
const signed = (json: string, typeIndex: number, challengeIndex: number): PasskeyProof["auth"] => {
  const authenticatorData = Buffer.concat([Buffer.alloc(32, 7), Buffer.from([5, 0, 0, 0, 1])])
  const digest = createHash("sha256").update(json).digest()
  const raw = sign("sha256", Buffer.concat([authenticatorData, digest]), {
    key: passkey.privateKey,
    dsaEncoding: "ieee-p1363"
  })
  const s = BigInt(hexlify(raw.subarray(32)))
  return {
    r: hexlify(raw.subarray(0, 32)),
    s: word(s > order / 2n ? order - s : s),
    challengeIndex,
    typeIndex,
    authenticatorData: hexlify(authenticatorData),
    clientDataJSON: json
  }
}

/** The verdicts of the contract and of the service on one assertion. */
const verdicts = async (auth: PasskeyProof["auth"]) => {
  const service = WebAuthn.check(
    {
      r: Hex.unsafe32(auth.r),
      s: Hex.unsafe32(auth.s),
      challengeIndex: BigInt(auth.challengeIndex),
      typeIndex: BigInt(auth.typeIndex),
      authenticatorData: Hex.unsafe(auth.authenticatorData),
      clientDataJSON: auth.clientDataJSON
    },
    Hex.unsafe32(hash)
  )
  return {
    contract: await at("CustodyValidator", chain.suite.validator, chain)
      .getFunction("verify")
      .staticCall(config, hash, mixedProof("0x", [{ index: 0, auth }])),
    service: Result.isSuccess(service)
  }
}

const piece = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom("{", "}", "[", "]", ",", ":", '"', "\\", '\\"', " ", "\n") },
  {
    weight: 3,
    arbitrary: fc.constantFrom(type, member, `{${type},${member}`, '"x":', '"type":"webauthn.create"')
  },
  { weight: 1, arbitrary: fc.constantFrom('"é"', "é\\", '"\ud83d\udd11"', "true", "0", "\ufeff") },
  { weight: 2, arbitrary: fc.nat(70).map((size) => `"${"s".repeat(size)}"`) }
)
const hostile = fc.tuple(
  fc.array(piece, { maxLength: 10 }).map((pieces) => `{${pieces.join("")}`),
  fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join("")),
  fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join("")),
  fc.boolean()
)

test("contract and service agree on any surrounding bytes", async () => {
  const count = { accepted: 0, refused: 0 }
  await fc.assert(
    fc.asyncProperty(hostile, async ([before, between, behind, swapped]) => {
      const [one, other] = swapped ? [member, type] : [type, member]
      const json = `${before}${one}${between}${other}${behind}`
      const [first, second] = [Buffer.byteLength(before), Buffer.byteLength(`${before}${one}${between}`)]
      const verdict = await verdicts(swapped ? signed(json, second, first) : signed(json, first, second))
      count[verdict.contract ? "accepted" : "refused"] += 1
      // The service pays for less reading than the wallets do.
      const [t, m] = swapped ? [second, first] : [first, second]
      const steps = ClientData.steps(Buffer.from(json), BigInt(t), BigInt(m))
      const isShort = Buffer.byteLength(json) <= WebAuthn.maxClientData
      const service = verdict.contract && isShort && steps <= WebAuthn.maxSteps
      expect(verdict).toEqual({ contract: verdict.contract, service })
    }),
    { numRuns: 500 }
  )
  expect(Math.min(count.accepted, count.refused)).toBeGreaterThan(25)
}, 120_000)
