import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { recoverAddress, solidityPacked, TypedDataEncoder } from "ethers"
import * as fc from "fast-check"
import { versions } from "../../../../src/domain/erc4337/EntryPoint.js"
import * as Sponsorship from "../../../../src/domain/erc4337/paymaster/Sponsorship.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import vectors from "../../../vectors/sponsorship.json" with { type: "json" }
import { address, bytes32, forAll, hex, uint, uint48 } from "../../generators.js"

const terms: fc.Arbitrary<Sponsorship.Terms> = fc.record({
  paymaster: address,
  validUntil: uint48,
  validAfter: uint48,
  limits: fc.record({ verificationGasLimit: uint(128), postOpGasLimit: uint(128) }),
  unbound: fc.boolean()
})
const notUint48 = fc.constantFrom(-1, 0.5, 2 ** 48, Number.NaN, Number.POSITIVE_INFINITY)
const none = { verificationGasLimit: 0n, postOpGasLimit: 0n }

describe.each(versions)("Sponsorship on %s", (version) => {
  it("a sponsorship's terms are packed as in Solidity, and read back", () => {
    forAll([terms], (given) => {
      const { limits, paymaster, unbound, validAfter, validUntil } = given
      const packed = Sponsorship.paymasterData(version, given)
      const window = [validUntil, validAfter]
      const fields =
        version === "v0.6"
          ? solidityPacked(["address", "uint48", "uint48"], [paymaster, ...window])
          : solidityPacked(
              ["address", "uint128", "uint128", "uint48", "uint48"],
              [paymaster, limits.verificationGasLimit, limits.postOpGasLimit, ...window]
            )
      expect(packed).toBe(unbound ? `${fields}01` : fields)
      expect(Sponsorship.read(version, packed)).toEqual(
        Result.succeed(version === "v0.6" ? { ...given, limits: none } : given)
      )
    })
  })

  it("a sponsorship is read at its own length, and at one byte more when that is 0x01", () => {
    const right = version === "v0.6" ? 32 : 64
    const read = (bytes: string) => Sponsorship.read(version, Hex.unsafe(`0x${bytes}`))
    for (const length of [0, 19, 20, 31, 32, 33, 52, 63, 64, 65, 96])
      expect(Result.isSuccess(read("11".repeat(length))), `${length}`).toBe(length === right)
    const bare = "11".repeat(right)
    expect(read(bare)).toMatchObject(Result.succeed({ unbound: false }))
    expect(read(`${bare}01`)).toMatchObject(Result.succeed({ unbound: true }))
    for (const mark of ["00", "02", "ff", "0101", "0100"])
      expect(Result.isFailure(read(`${bare}${mark}`)), mark).toBe(true)
  })

  it("a sponsorship with impossible times never becomes unbounded", () => {
    forAll([terms, notUint48, fc.boolean()], (given, wrong, first) => {
      const bad = { ...given, ...(first ? { validUntil: wrong } : { validAfter: wrong }) }
      expect(Sponsorship.paymasterData(version, bad)).toBe(
        Sponsorship.paymasterData(version, { ...given, validUntil: 1, validAfter: 2 ** 48 - 1 })
      )
    })
  })
})

describe("Sponsorship", () => {
  it("a sponsorship signs the EIP-712 digest of userOpHash and submitter", () => {
    forAll([bytes32, address, uint(64), address], (userOpHash, paymaster, chainId, bundler) => {
      expect(Sponsorship.digest({ chainId, paymaster }, userOpHash, bundler)).toBe(
        TypedDataEncoder.hash(
          { name: "castellan", version: "1", chainId, verifyingContract: paymaster },
          {
            Sponsorship: [
              { name: "userOpHash", type: "bytes32" },
              { name: "bundler", type: "address" }
            ]
          },
          { userOpHash, bundler }
        )
      )
    })
  })

  it("a sponsorship is the last 65 bytes of the op's signature, whatever is in front", () => {
    forAll([hex(), fc.uint8Array({ minLength: 65, maxLength: 65 })], (signature, bytes) => {
      const sponsor = Hex.unsafe(`0x${Buffer.from(bytes).toString("hex")}`)
      const whole = Sponsorship.append(signature, sponsor)
      expect(Hex.size(whole)).toBe(Hex.size(signature) + Sponsorship.tail)
      expect(Sponsorship.split(whole)).toEqual(Result.succeed({ signature, sponsor }))
    })
    for (const length of [0, 64])
      expect(Result.isFailure(Sponsorship.split(Hex.unsafe(`0x${"11".repeat(length)}`)))).toBe(true)
  })

  it("a sponsorship's dummy costs as much as a signature, by an unowned account", () => {
    expect(Hex.size(Sponsorship.dummy)).toBe(65)
    expect(Sponsorship.dummy.slice(2).match(/../g)).not.toContain("00")
    const hash = `0x${"42".repeat(32)}`
    expect(recoverAddress(hash, Sponsorship.dummy)).toMatch(/^0x/)
  })

  it("a sponsorship matches the published vectors", () => {
    expect(vectors.vectors.length).toBeGreaterThan(3)
    for (const each of vectors.vectors) {
      const { limits, ...terms } = each.terms
      const paymaster = Address.unsafe(terms.paymaster)
      const [verificationGasLimit, postOpGasLimit] = [limits?.verificationGasLimit, limits?.postOpGasLimit]
      const given = {
        ...{ ...terms, paymaster },
        limits: {
          verificationGasLimit: BigInt(verificationGasLimit ?? 0),
          postOpGasLimit: BigInt(postOpGasLimit ?? 0)
        }
      }
      const version = each.version as (typeof versions)[number]
      expect(Sponsorship.paymasterData(version, given)).toBe(each.paymasterAndData)
      const [hash, bundler] = [Hex.unsafe32(each.userOpHash), Address.unsafe(each.bundler)]
      const digest = Sponsorship.digest({ chainId: BigInt(each.chainId), paymaster }, hash, bundler)
      expect(digest).toBe(each.digest)
      expect(recoverAddress(digest, each.sponsorSignature)).toBe(each.sponsor)
      const [own, sponsor] = [Hex.unsafe(each.walletSignature), Hex.unsafe(each.sponsorSignature)]
      expect(Sponsorship.append(own, sponsor)).toBe(each.signature)
    }
  })
})

describe("a malformed sponsorship", () => {
  it("a malformed sponsorship is refused with the expected form", () => {
    const texts = (["v0.6", "v0.7"] as const).map((version) => Sponsorship.read(version, Hex.empty))
    expect(texts).toEqual([
      Result.fail(
        "expected paymaster, validUntil and validAfter: 32 bytes, and 0x01 when any EOA may submit"
      ),
      Result.fail(
        "expected paymaster, its two gas limits, validUntil and validAfter: 64 bytes, and 0x01 when any EOA may submit"
      )
    ])
    expect(Sponsorship.split(Hex.empty)).toEqual(
      Result.fail("expected the sponsor's 65 bytes behind the wallet's signature")
    )
  })
})
