import { describe, expect, it } from "@effect/vitest"
import { Interface } from "ethers"
import * as Nonce from "../../../src/domain/erc4337/Nonce.js"
import type { Hex } from "../../../src/domain/primitives/Hex.js"
import { address, forAll, uint } from "../generators.js"

describe("Nonce", () => {
  it("a nonce consists of key and sequence", () => {
    forAll([uint(192), uint(64)], (key, sequence) => {
      const nonce = Nonce.make(key, sequence)
      expect(nonce).toBe(key * 2n ** 64n + sequence)
      expect(Nonce.keyOf(nonce)).toBe(key)
      expect(Nonce.sequenceOf(nonce)).toBe(sequence)
      expect(Nonce.make(key, sequence + (1n << 64n))).toBe(nonce)
    })
  })

  it("a nonce is read by the EntryPoint's getNonce", () => {
    const abi = new Interface(["function getNonce(address sender, uint192 key) view returns (uint256)"])
    forAll([address, uint(192)], (wallet, key) => {
      expect(Nonce.getNonceCall(wallet, key)).toBe(abi.encodeFunctionData("getNonce", [wallet, key]))
    })
  })

  it("a reply of getNonce yields the sequence, only when whole", () => {
    const abi = new Interface(["function getNonce(address sender, uint192 key) view returns (uint256)"])
    forAll([uint(192), uint(64)], (key, sequence) => {
      const data = abi.encodeFunctionResult("getNonce", [Nonce.make(key, sequence)]) as Hex
      expect(Nonce.ofAnswer({ data, success: true })).toBe(sequence)
      expect(Nonce.ofAnswer({ data, success: false })).toBeNull()
      expect(Nonce.ofAnswer({ data: data.slice(0, -2) as Hex, success: true })).toBeNull()
    })
    expect(Nonce.ofAnswer({ data: "0x" as Hex, success: true })).toBeNull()
  })

  it("a nonce names the configuration of its wallet in its highest 64 bits, and so do ranges of keys", () => {
    forAll([uint(64), uint(128), uint(64)], (epoch, key, sequence) => {
      const { from, to } = Nonce.inEpoch({ from: key, to: key }, epoch)
      expect([from, to]).toEqual(Array(2).fill(epoch * 2n ** 128n + key))
      expect(Nonce.epochOf(Nonce.make(from, sequence))).toBe(epoch)
    })
  })

  it("key ranges follow each other without a gap, from 0 to 65,535", () => {
    const ranges = [Nonce.serviceKeys, Nonce.handedOutKeys, Nonce.anonymousKeys]
    expect(ranges.map(({ to }) => to + 1n)).toEqual([16n, 32_768n, 65_536n])
    expect(ranges.map(({ from }) => from)).toEqual([0n, 16n, 32_768n])
  })
})
