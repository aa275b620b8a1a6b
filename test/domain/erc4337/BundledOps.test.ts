import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as BundledOps from "../../../src/domain/erc4337/BundledOps.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import { address, forAll, hex, op } from "../generators.js"

describe.each(EntryPoint.versions)("the ops in a transaction's data, of EntryPoint %s", (version) => {
  const hashes = (data: Hex.Hex) =>
    BundledOps.read(version, data).map((each) =>
      UserOperation.hash(version, EntryPoint.canonical[version], 1n, each)
    )
  const hashOf = (each: UserOperation.UserOperation) =>
    UserOperation.hash(version, EntryPoint.canonical[version], 1n, each)
  const ops = fc.array(op(version), { maxLength: 4 })

  it("bundled ops are the ops of a bundle, in order", () => {
    forAll([ops, address], (all, beneficiary) => {
      expect(hashes(UserOperation.handleOps(version, all, beneficiary))).toEqual(all.map(hashOf))
      const groups = [
        { ops: all, aggregator: beneficiary, signature: Hex.empty },
        { ops: all, aggregator: beneficiary, signature: Hex.unsafe("0x01") }
      ]
      expect(hashes(UserOperation.handleAggregatedOps(version, groups, beneficiary))).toEqual(
        [...all, ...all].map(hashOf)
      )
    })
  })

  it("bundled ops are found in calldata of another contract, between any bytes", () => {
    forAll([ops, address, hex(40), hex(40)], (all, beneficiary, before, behind) => {
      const bundle = UserOperation.handleOps(version, all, beneficiary)
      const wrapped = Words.call(Hex.unsafe("0x12345678"), [Words.bytes(bundle), Words.address(beneficiary)])
      expect(hashes(wrapped)).toEqual(expect.arrayContaining(all.map(hashOf)))
      expect(hashes(Hex.concat(before, bundle, behind))).toEqual(expect.arrayContaining(all.map(hashOf)))
    })
  })

  it("reading ops of any data ends with at most 4,096 ops", () => {
    forAll([hex(400), ops, address, fc.nat()], (data, all, beneficiary, cut) => {
      const bundle = UserOperation.handleOps(version, all, beneficiary)
      const hostile = Hex.unsafe(`${bundle.slice(0, 10 + (cut % 64) * 2)}${data.slice(2)}`)
      expect(BundledOps.read(version, hostile).length).toBeLessThanOrEqual(4_096)
    })
  })
})
