import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { AbiCoder, Interface } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Ledger from "../../../src/domain/wallet/Ledger.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { address, bytes32, forAll, hex, uint } from "../generators.js"

const ledgerAbi = new Interface(artifact("OperationLedger").abi)
const walletAbi = new Interface(artifact("Wallet").abi)

const call = fc.record({ target: address, value: uint(256), data: hex(100) })
const requirement = fc.record({ wallet: address, key: bytes32 })
const links: fc.Arbitrary<Ledger.Links> = fc.record({
  records: fc.option(bytes32),
  requires: fc.option(requirement)
})

describe("the ledger", () => {
  it("the ledger names ops as the published vectors do", () => {
    const { vectors } = JSON.parse(
      readFileSync(new URL("../../vectors/ledgerKey.json", import.meta.url), "utf8")
    )
    expect(vectors.length).toBeGreaterThan(0)
    for (const { entryPoint, key, nonce, wallet } of vectors)
      expect(Ledger.key(Address.unsafe(entryPoint), Address.unsafe(wallet), BigInt(nonce))).toBe(key)
  })

  it("the ledger's calls match its artifact, requirement first and record last", () => {
    forAll([address, call, links], (ledger, own, { records, requires }) => {
      const data = Ledger.callData(ledger, own, { records, requires })
      const expected = [
        ...(requires === null
          ? []
          : [[ledger, 0n, ledgerAbi.encodeFunctionData("requireRecorded", [requires.wallet, requires.key])]]),
        [own.target, own.value, own.data],
        ...(records === null ? [] : [[ledger, 0n, ledgerAbi.encodeFunctionData("record", [records])]])
      ]
      expect(data).toBe(
        expected.length === 1
          ? walletAbi.encodeFunctionData("execute", expected[0])
          : walletAbi.encodeFunctionData("executeBatch", [expected])
      )
    })
  })

  it("the ledger is recognised only in its own calldata", () => {
    forAll([address, call, links], (ledger, own, { records, requires }) => {
      fc.pre(own.target !== ledger)
      const data = Ledger.callData(ledger, own, { records, requires })
      expect(Ledger.linksOf(ledger, data)).toEqual({
        records: records === null ? [] : [records],
        requires: requires === null ? [] : [requires]
      })
      expect(Ledger.linksOf(Address.unsafe(`0x${"5e".repeat(20)}`), data)).toEqual({
        records: [],
        requires: []
      })
    })
    forAll([address, hex(400)], (ledger, data) => {
      const found = Ledger.linksOf(ledger, data)
      expect(found.records.length + found.requires.length).toBeLessThan(20)
    })
  })

  it("the ledger keeps the call's return data readable", () => {
    forAll([hex(300), links], (returned, { records, requires }) => {
      const results = [...(requires === null ? [] : ["0x"]), returned, ...(records === null ? [] : ["0x"])]
      const data =
        results.length === 1
          ? AbiCoder.defaultAbiCoder().encode(["bytes"], results)
          : AbiCoder.defaultAbiCoder().encode(["bytes[]"], [results])
      expect(Ledger.callResult({ records, requires }, Hex.unsafe(data))).toBe(returned)
    })
    forAll([hex(300), links], (garbage, own) => {
      const read = Ledger.callResult(own, garbage)
      expect(read === null || Hex.size(read) <= Hex.size(garbage)).toBe(true)
    })
  })

  it("the ledger's dummy name of an op is unique, without a zero byte", () => {
    const names = Array.from({ length: 256 }, (_, index) => Ledger.placeholder(index))
    expect(new Set(names).size).toBe(256)
    expect(Ledger.placeholder(2 ** 16 - 1)).not.toBe(Ledger.placeholder(2 ** 16 - 2))
    for (const name of names) expect(name).toMatch(/^0x(?:(?!00)[0-9a-f]{2}){32}$/)
  })

  it("the ledger names the unrecorded op only in its own error", () => {
    forAll([bytes32, hex(80)], (key, other) => {
      const data = Hex.unsafe(ledgerAbi.encodeErrorResult("DependencyFailed", [key]))
      expect(Ledger.failedKey(data)).toBe(key)
      expect(Ledger.failedKey(Hex.concat(data, Hex.unsafe("0x00")))).toBeNull()
      expect(Ledger.failedKey(other)).toBeNull()
    })
  })
})
