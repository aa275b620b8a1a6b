import { createHash, sign } from "node:crypto"
import * as Either from "effect/Either"
import { concat, getBytes, hexlify, id } from "ethers"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import * as ClientData from "../../../src/domain/op/ClientData.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as WebAuthn from "../../../src/domain/signature/WebAuthn.js"
import { at, type Chain, devKey, startChain } from "../../support/suite/Chain.js"
import { configOf, ecdsa, newPasskey } from "../../support/suite/Keys.js"
import { type Config, mixedProof, type PasskeyProof } from "../../support/suite/Layouts.js"

/** What the validator makes of client data and configurations that no honest party writes. */

let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

const verify = (config: Config, hash: string, proof: string): Promise<boolean> =>
  at("CustodyValidator", chain.suite.validator, chain).getFunction("verify").staticCall(config, hash, proof)

const hash = id("client data")
const challenge = Buffer.from(getBytes(hash)).toString("base64url")
const passkey = newPasskey()
const config = configOf(5, [], [passkey])
const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
const word = (value: bigint) => `0x${value.toString(16).padStart(64, "0")}`

const [type, member] = [`"type":"webauthn.get"`, `"challenge":"${challenge}"`]

/** The passkey's own signature over these client data, whatever they are. */
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
    contract: await verify(config, hash, mixedProof("0x", [{ index: 0, auth }])),
    service: Either.isRight(service)
  }
}

const bytesBefore = (json: string, text: string, from = 0): number =>
  Buffer.byteLength(json.slice(0, Math.max(json.indexOf(text, from), 0)))

const judged = (json: string) => verdicts(signed(json, bytesBefore(json, type), bytesBefore(json, member)))

const both = (verdict: boolean) => ({ contract: verdict, service: verdict })

describe("type and challenge are members of the object itself", () => {
  test.each([
    [
      "the order of the specification",
      `{${type},${member},"origin":"https://a.example","crossOrigin":false}`
    ],
    ["nothing else", `{${type},${member}}`],
    ["challenge first", `{${member},${type}}`],
    ["at the end", `{"origin":"https://a.example","crossOrigin":false,${member},${type}}`],
    ["behind brackets in a string", `{"origin":"}{][\\"}","x":{"y":[{"z":"]}"}]},${type},${member}}`],
    ["behind a long string", `{"origin":"${"o".repeat(300)}\\\\",${member},"x":[[],{}],${type}}`],
    [
      "behind a string of every length modulo 32",
      `{"a":"${"é".repeat(17)}","b":"${"b".repeat(31)}",${type},${member}}`
    ],
    ["in white space", ` \t\r\n{ ${type} , ${member} }`]
  ])("%s counts", async (_, json) => {
    expect(await judged(json)).toEqual(both(true))
  })

  test.each([
    [
      "in an object under a registration",
      `{"type":"webauthn.create","challenge":"AA","x":{${type},${member}}}`
    ],
    ["the type in an object", `{"type":"webauthn.create",${member},"x":{${type}}}`],
    ["the challenge in an object", `{${type},"challenge":"AA","x":{${member}}}`],
    ["in the place of the specification, in an object", `{"x":{${type},${member}}}`],
    ["in an array of objects", `[{${type},${member}}]`],
    ["in an array", `[${type},${member}]`],
    ["in a string", `{"x":"\\",${type.replaceAll('"', '\\"')}",${member}}`],
    ["behind the object", `{}${type},${member}`],
    ["without an object", `${type},${member}`],
    ["in a second object", `{"x":1}{${type},${member}}`],
    ["in an object that a bracket of the other kind ends", `{"x":{]${type},${member}}`.replace("{]", "[")],
    ["behind a byte order mark", `\ufeff{${type},${member}}`],
    ["without a comma between", `{${type};${member}}`.replace("{", "[")]
  ])("%s does not", async (_, json) => {
    expect(await judged(json)).toEqual(both(false))
  })

  test("indexes that point elsewhere, far behind the end too, are wrong and no error", async () => {
    const json = `{"x":"",${type},${member}}`
    const [t, m] = [bytesBefore(json, type), bytesBefore(json, member)]
    expect(await verdicts(signed(json, t, m))).toEqual(both(true))
    for (const [first, second] of [
      [t + 1, m],
      [t, m - 1],
      [m, t],
      [t, t],
      [0, 0],
      [json.length, m],
      [t, 2 ** 48]
    ] as const)
      expect(await verdicts(signed(json, first, second))).toEqual(both(false))
  })

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

  test("contract and service agree on whatever is written around them", async () => {
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
      { numRuns: 1_000 }
    )
    expect(Math.min(count.accepted, count.refused)).toBeGreaterThan(50)
  }, 120_000)
})

describe("a configuration with more validators than a wallet can have", () => {
  const owner = devKey(20)
  const strangers = (count: number) =>
    Array.from({ length: count }, (_, index) => `0x${(index + 1).toString(16).padStart(40, "0")}`)
  const rule = (owners: ReadonlyArray<string>): Config => ({ custody: 3, threshold: 2, owners, passkeys: [] })

  test.each([16, 17, 255, 256, 257, 300])(
    "counts nobody twice who stands behind %i others",
    async (count) => {
      const twice = concat([ecdsa(hash, owner), ecdsa(hash, owner)])
      expect(await verify(rule([...strangers(count), owner.address]), hash, twice)).toBe(false)
    }
  )

  test("proves nothing, however many sign", async () => {
    const signers = [devKey(20), devKey(21)]
    const proof = ecdsa(hash, ...signers)
    const own = signers.map(({ address }) => address)
    expect(await verify(rule([...strangers(14), ...own]), hash, proof)).toBe(true)
    expect(await verify(rule([...strangers(15), ...own]), hash, proof)).toBe(false)
    const keys = Array.from({ length: 17 }, () => passkey.publicKey)
    const single = mixedProof("0x", [{ index: 0, auth: signed(`{${type},${member}}`, 1, 23) }])
    expect(await verify({ ...config, passkeys: keys.slice(0, 16) }, hash, single)).toBe(true)
    expect(await verify({ ...config, passkeys: keys }, hash, single)).toBe(false)
  })
})
