import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { AbiCoder, concat, getCreate2Address, keccak256, toUtf8Bytes } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Salt from "../../../src/domain/wallet/Salt.js"
import * as WalletAddress from "../../../src/domain/wallet/WalletAddress.js"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { address, bytes32, custody, forAll, hex } from "../generators.js"

const coder = AbiCoder.defaultAbiCoder()

const creationCode = hex(300)
  .filter((code) => code !== "0x")
  .map((code) => Result.getOrThrow(WalletAddress.creationCode(code)))

const zeros = (bytes: number) => "00".repeat(bytes)

const [nobody, dead] = [`0x${zeros(20)}`, `0xdeadbeef${zeros(16)}`]
const [salt0, cafe] = [`0x${zeros(32)}`, `0x${zeros(28)}cafebabe`]

/** The examples of EIP-1014: address, salt, init code, result. */
const eip1014 = [
  [nobody, salt0, "0x00", "0x4D1A2e2bB4F88F0250f26Ffff098B0b30B26BF38"],
  [dead, salt0, "0x00", "0xB928f69Bb1D91Cd65274e3c79d8986362984fDA3"],
  [dead, `0x${zeros(12)}feed${zeros(18)}`, "0x00", "0xD04116cDd17beBE565EB2422F2497E06cC1C9833"],
  [nobody, salt0, "0xdeadbeef", "0x70f2b2914A2a4b783FaEFb75f459A580616Fcb5e"],
  [`0x${zeros(16)}deadbeef`, cafe, "0xdeadbeef", "0x60f3f640a8508fC6a86d45DF051962668E1e8AC7"],
  [
    `0x${zeros(16)}deadbeef`,
    cafe,
    `0x${"deadbeef".repeat(11)}`,
    "0x1d8bfDC5D46DC4f61D6b6115972536eBE6A8854C"
  ],
  [nobody, salt0, "0x", "0xE33C0C7F7df4809055C3ebA6c09CFe4BaF1BD9e0"]
] as const

describe("WalletAddress", () => {
  it.each(eip1014)(
    "a wallet address is the address of EIP-1014's example (%s, %s, %s)",
    (factory, salt, initCode, expected) => {
      expect(
        WalletAddress.predict({
          factory: Address.unsafe(factory),
          create2Salt: Hex.unsafe32(salt),
          initCodeHash: Hex.unsafe32(keccak256(initCode))
        })
      ).toBe(expected)
    }
  )

  it("a wallet address is CREATE2 of factory, salt, custody, creation code and beacon", () => {
    forAll([address, address, creationCode, bytes32, custody], (factory, beacon, code, saltHash, kind) => {
      const initCode = concat([code, coder.encode(["address", "bytes"], [beacon, "0x"])])
      const salt = keccak256(coder.encode(["bytes32", "uint256"], [saltHash, kind]))
      expect(WalletAddress.initCode(code, beacon)).toBe(initCode)
      expect(WalletAddress.create2Salt(saltHash, kind, false)).toBe(salt)
      expect(WalletAddress.create2Salt(saltHash, kind, true)).toBe(saltHash)
      const initCodeHash = WalletAddress.initCodeHash(code, beacon)
      for (const create2Salt of [Hex.unsafe32(salt), saltHash])
        expect(WalletAddress.predict({ factory, initCodeHash, create2Salt })).toBe(
          getCreate2Address(factory, create2Salt, keccak256(initCode))
        )
    })
  })

  it("addresses of many salts are the CREATE2 addresses that ethers derives", () => {
    const salts = fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 256 })
      .filter((text) => Result.isSuccess(Salt.from(text))) as fc.Arbitrary<Salt.Salt>
    const wanted = fc.array(fc.tuple(salts, custody, fc.boolean()), { minLength: 1, maxLength: 5 })
    forAll([address, bytes32, wanted], (factory, initCodeHash, all) => {
      const predict = WalletAddress.predictor({ factory, initCodeHash })
      for (const [salt, kind, legacy] of all) {
        const hash = keccak256(toUtf8Bytes(salt))
        const create2 = legacy ? hash : keccak256(coder.encode(["bytes32", "uint256"], [hash, kind]))
        expect(predict(salt, kind, legacy)).toBe(getCreate2Address(factory, create2, initCodeHash))
      }
    })
  })

  it("a wallet address differs between custodies, and between legacy and not", () => {
    forAll([bytes32], (saltHash) => {
      const all = ([1, 2, 3, 4, 5] as const).map((kind) => WalletAddress.create2Salt(saltHash, kind, false))
      expect(new Set([...all, WalletAddress.create2Salt(saltHash, 1, true)]).size).toBe(6)
    })
  })

  it("a wallet address takes creation code of 1 byte to 48 KiB", () => {
    const ok = (text: string) => Result.isSuccess(WalletAddress.creationCode(text))
    expect(["0x00", `0x${"Fe".repeat(49_152)}`, walletProxyCreationCode].every(ok)).toBe(true)
    expect(Result.getOrNull(WalletAddress.creationCode("0xFE"))).toBe("0xfe")
    const refusal = (text: string) =>
      Result.match(WalletAddress.creationCode(text), {
        onFailure: ({ message }) => message,
        onSuccess: () => ""
      })
    expect(refusal("0x")).toContain("empty")
    expect(refusal(`0x${"fe".repeat(49_153)}`)).toContain("48 KiB")
    for (const text of ["", "0", "fe", "0xf", "0xzz", "0x6080 40", "hello", `0x${"__$".repeat(14)}`])
      expect(refusal(text)).toContain("not hex")
  })
})
