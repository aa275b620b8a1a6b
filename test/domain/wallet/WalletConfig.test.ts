import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { AbiCoder, keccak256 } from "ethers"
import * as fc from "fast-check"
import * as Hex from "../../../src/domain/evm/Hex.js"
import * as Words from "../../../src/domain/evm/Words.js"
import * as WalletConfig from "../../../src/domain/wallet/WalletConfig.js"
import { address, config, hex, mutated, uint } from "../generators.js"

const coder = AbiCoder.defaultAbiCoder()
const struct = "(uint8 custody,uint8 threshold,address[] owners,(bytes32 x,bytes32 y)[] passkeys)"

const returned = fc
  .tuple(config, uint(64))
  .map(([it, nonce]) => Hex.unsafe(coder.encode([struct, "uint64"], [it, nonce])))

describe("WalletConfig", () => {
  it("is encoded and hashed as Solidity's abi.encode(config)", () => {
    fc.assert(
      fc.property(config, (it) => {
        const encoded = coder.encode([struct], [it])
        expect(WalletConfig.encode(it)).toBe(encoded)
        expect(WalletConfig.configHash(it)).toBe(keccak256(encoded))
      })
    )
  })

  it("is read back from what configuration() returns", () => {
    fc.assert(
      fc.property(config, uint(64), (it, configNonce) => {
        const data = Hex.unsafe(coder.encode([struct, "uint64"], [it, configNonce]))
        expect(WalletConfig.decode(data)).toEqual(Either.right({ config: it, configNonce }))
      })
    )
  })

  it("is read from nothing that configuration() could not have returned", () => {
    fc.assert(
      fc.property(mutated(returned), ([right, wrong]) => {
        const result = WalletConfig.decode(wrong)
        if (wrong !== right && Either.isRight(result)) expect(result).not.toEqual(WalletConfig.decode(right))
      }),
      { numRuns: 500 }
    )
    fc.assert(
      fc.property(hex(700), (garbage) => {
        expect(Either.isLeft(WalletConfig.decode(garbage))).toBe(true)
      })
    )
  })

  it("of an unknown custody, and counts beyond the data, are refused at once", () => {
    const huge = Words.uint((1n << 256n) - 1n)
    const head = (custody: bigint) => [0x40n, 1n, custody, 1n].map((word) => Words.uint(word)).join("")
    const texts = [
      `0x${head(0n)}${Words.uint(0x80n)}${Words.uint(0xa0n)}${Words.uint(0n)}${Words.uint(0n)}`,
      `0x${head(6n)}${Words.uint(0x80n)}${Words.uint(0xa0n)}${Words.uint(0n)}${Words.uint(0n)}`,
      `0x${head(1n)}${Words.uint(0x80n)}${Words.uint(0xa0n)}${huge}${huge}`,
      `0x${head(1n)}${huge}${huge}${huge}${huge}`,
      `0x${huge.repeat(1000)}`,
      `0x${head(1n)}${Words.uint(0x80n)}${Words.uint(0x80n)}${Words.uint(4000n)}${huge.repeat(4000)}`
    ]
    for (const text of texts) expect(Either.isLeft(WalletConfig.decode(Hex.unsafe(text)))).toBe(true)
  })

  it("of custody 1 has the one owner and no choice", () => {
    fc.assert(
      fc.property(address, (owner) => {
        expect(WalletConfig.ecdsa(owner)).toEqual({
          custody: 1,
          threshold: 1,
          owners: [owner],
          passkeys: []
        })
      })
    )
  })

  it("with a threshold that is no uint8 is encoded with 0, which no wallet accepts", () => {
    fc.assert(
      fc.property(
        config,
        fc.constantFrom(-1, 0, 0.5, 256, Number.NaN, Number.POSITIVE_INFINITY),
        (it, threshold) => {
          expect(WalletConfig.encode({ ...it, threshold })).toBe(WalletConfig.encode({ ...it, threshold: 0 }))
        }
      )
    )
  })
})
