import { afterEach, describe, expect, it } from "@effect/vitest"
import { getAddress } from "ethers/address"
import { keccak256 } from "ethers/crypto"
import { concat, getBytes, toUtf8Bytes } from "ethers/utils"
import * as fc from "fast-check"
import * as Accelerated from "../../../src/domain/primitives/Accelerated.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import * as Steps from "../../../src/domain/primitives/Steps.js"
import { forAll } from "../generators.js"

const stride = 512 * 136
const stops = (length: number) => {
  const steps = Keccak.hashSteps(Hex.fromBytes(new Uint8Array(length)))
  let count = 0
  while (steps.next().done !== true) count += 1
  return count
}

describe("keccak256", () => {
  it("of every length around the block's is what ethers computes", () => {
    for (let length = 0; length <= 420; length++) {
      const bytes = Hex.fromBytes(Uint8Array.from({ length }, (_, at) => (at * 31 + length) % 256))
      expect(Keccak.hash(bytes)).toBe(keccak256(bytes))
    }
    for (const length of [0, 1, 340, 341, 342, 343, 1_023, 1_024, 1_025])
      for (const text of ["a", "é", "€"].map((unit) => unit.repeat(length)))
        expect(Keccak.hashText(text)).toBe(keccak256(toUtf8Bytes(text)))
  })

  it("of any bytes and text is what ethers computes", () => {
    forAll([fc.uint8Array({ maxLength: 2_000 }), fc.string({ unit: "grapheme" })], (bytes, text) => {
      expect(Keccak.hash(Hex.fromBytes(bytes))).toBe(keccak256(bytes))
      expect(Keccak.hashText(text)).toBe(keccak256(toUtf8Bytes(text)))
    })
  })

  it("begins with the selector of a signature", () => {
    expect(Keccak.selector("transfer(address,uint256)")).toBe("0xa9059cbb")
  })

  it("stops after every 512 blocks, and of fewer bytes not at all", () => {
    expect([0, stride, stride + 1, stride + 136, 2 * stride, 5 * stride].map(stops)).toEqual([
      0, 0, 1, 2, 2, 5
    ])
  })

  it("in steps is the same, also when another hash is computed at every stop", () => {
    for (const length of [0, stride - 1, stride, stride + 1, stride + 136, 2 * stride, 300_001]) {
      const bytes = Hex.fromBytes(Uint8Array.from({ length }, (_, at) => at % 251))
      const steps = Keccak.hashSteps(bytes)
      let next = steps.next()
      for (; next.done !== true; next = steps.next()) Keccak.hashText("another")
      expect(next.value).toBe(keccak256(bytes))
    }
    expect(Steps.finish(Keccak.hashTextSteps("é".repeat(50_000)))).toBe(
      keccak256(toUtf8Bytes("é".repeat(50_000)))
    )
  })

  it("makes the checksum of an address as ethers does", () => {
    forAll([fc.uint8Array({ minLength: 20, maxLength: 20 })], (bytes) => {
      const lower = Hex.fromBytes(bytes)
      expect(Address.unsafe(lower)).toBe(getAddress(lower))
      // What is computed in between leaves nothing behind.
      expect(Keccak.checksum("a".repeat(40))).toBe(getAddress(`0x${"a".repeat(40)}`))
      expect(Address.fromWordBytes(Uint8Array.from([...new Uint8Array(12).fill(7), ...bytes]))).toBe(
        getAddress(lower)
      )
      expect(Hex.toBytes(lower)).toEqual(bytes)
    })
  })
})

describe("another implementation", () => {
  afterEach(() => Accelerated.use(Accelerated.none))

  /** Its state is what it has been given so far. */
  const given: Accelerated.Keccak = {
    digest: (bytes) => getBytes(keccak256(bytes)),
    initial: () => new Uint8Array(),
    absorbed: (state, bytes) => getBytes(concat([state, bytes])),
    finished: (state, bytes) => getBytes(keccak256(concat([state, bytes])))
  }

  it("hashes in its place, and stops only where bytes are left", () => {
    let digests = 0
    const digest = (bytes: Uint8Array) => {
      digests += 1
      return given.digest(bytes)
    }
    Accelerated.use({ ...Accelerated.none, keccak: { ...given, digest } })
    for (const length of [0, 1, stride, stride + 1, 2 * stride, 2 * stride + 1]) {
      const bytes = Hex.fromBytes(Uint8Array.from({ length }, (_, at) => at % 251))
      expect(Steps.finish(Keccak.hashSteps(bytes))).toBe(keccak256(bytes))
    }
    expect(digests).toBe(3)
    expect([0, stride, stride + 1, 2 * stride, 2 * stride + 1].map(stops)).toEqual([0, 0, 1, 1, 2])
    expect(Keccak.hashText("transfer")).toBe(keccak256(toUtf8Bytes("transfer")))
    expect(digests).toBe(6)
  })
})
