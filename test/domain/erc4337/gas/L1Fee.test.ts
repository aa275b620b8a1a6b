import { constants, deflateSync } from "node:zlib"
import { describe, expect, it } from "@effect/vitest"
import { Interface, Transaction as Reference, SigningKey } from "ethers"
import * as fc from "fast-check"
import { versions } from "../../../../src/domain/erc4337/EntryPoint.js"
import * as L1Fee from "../../../../src/domain/erc4337/gas/L1Fee.js"
import * as UserOperation from "../../../../src/domain/erc4337/UserOperation.js"
import * as Transaction from "../../../../src/domain/evm/Transaction.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../../src/domain/primitives/Keccak.js"
import * as Conditions from "../../../../src/domain/signature/Conditions.js"
import * as Proof from "../../../../src/domain/signature/Proof.js"
import { address, forAll, hex, uint } from "../../generators.js"

const oracle = new Interface(["function getL1Fee(bytes) view returns (uint256)"])
const signer = new SigningKey(`0x${"17".repeat(32)}`)

const payload: fc.Arbitrary<L1Fee.Payload> = fc.record({
  chainId: fc.constantFrom(8_453n, 84_532n),
  to: address,
  value: uint(80),
  data: hex(700)
})
const rest = fc.record({
  nonce: uint(32),
  maxPriorityFeePerGas: uint(34),
  maxFeePerGas: uint(34),
  gasLimit: uint(24)
})

const bytesOf = (raw: Hex.Hex): Buffer => Buffer.from(raw.slice(2), "hex")
/**
 * Compressed as the oracle's FastLZ does, by repetitions only. Codes fitted to the bytes (deflate's default) would
 * distinguish two noises at random, by the bytes that happen to be frequent in the calldata.
 */
const sizes = (raw: Hex.Hex) => ({
  whole: Hex.size(raw),
  small: deflateSync(bytesOf(raw), { level: 9, strategy: constants.Z_FIXED }).length
})

const signed = (transaction: Transaction.Transaction): Hex.Hex =>
  Transaction.serialize(
    transaction,
    Hex.unsafe(signer.sign(Transaction.signingDigest(transaction)).serialized)
  )

describe("the layer 1 fee", () => {
  it("the layer 1 fee is read with getL1Fee(bytes), from one word", () => {
    forAll([hex(300), uint(256)], (data, fee) => {
      expect(L1Fee.question(data)).toBe(oracle.encodeFunctionData("getL1Fee", [data]))
      const answer = Hex.unsafe(oracle.encodeFunctionResult("getL1Fee", [fee]))
      expect(L1Fee.answer(answer)).toBe(fee)
      expect(L1Fee.answer(Hex.unsafe(answer.slice(0, -2)))).toBeNull()
      expect(L1Fee.answer(Hex.unsafe(`${answer}00`))).toBeNull()
    })
    expect(L1Fee.answer(Hex.empty)).toBeNull()
  })

  it("has a margin of a fifth, rounded up, and is found again from what it may become", () => {
    expect([0n, 1n, 5n, 6n, 10n].map(L1Fee.bound)).toEqual([0n, 2n, 6n, 8n, 12n])
    expect([0n, 1n, 2n, 6n, 8n, 12n].map(L1Fee.unbound)).toEqual([0n, 1n, 2n, 5n, 7n, 10n])
    forAll([uint(200)], (fee) => {
      const bound = L1Fee.bound(fee)
      expect(bound * 5n).toBeGreaterThanOrEqual(fee * 6n)
      expect((bound - 1n) * 5n).toBeLessThan(fee * 6n)
      expect(L1Fee.unbound(bound) - fee).toBeOneOf([0n, 1n])
    })
  })

  it("the layer 1 fee is read from the predeploy of the OP stack", () => {
    expect(L1Fee.oracle).toBe("0x420000000000000000000000000000000000000F")
  })

  it("the layer 1 fee is read for bytes about as long as the transaction's, and as incompressible", () => {
    forAll([payload, rest, fc.boolean()], (carried, figures, legacy) => {
      const price = legacy ? { maxPriorityFeePerGas: figures.maxFeePerGas } : {}
      const real = sizes(signed({ ...carried, ...figures, ...price, legacy }))
      const asked = L1Fee.likeness(carried)
      const drawn = sizes(asked)
      // A scalar loses a byte when the noise begins with a zero.
      expect(drawn.whole).toBeGreaterThanOrEqual(real.whole - 3)
      expect(drawn.whole).toBeLessThanOrEqual(real.whole + 40)
      expect(drawn.small).toBeGreaterThanOrEqual(real.small - 3)
      const { data, to, value } = Reference.from(asked)
      expect([data, to?.toLowerCase(), value]).toEqual([
        carried.data,
        carried.to.toLowerCase(),
        carried.value
      ])
    })
  })

  it("the layer 1 fee's bytes are as incompressible for calldata of few bytes, 00-07 and f8-ff", () => {
    let block = Keccak.hash(Hex.unsafe("0x00000dd8"))
    const bytes: Array<number> = []
    while (bytes.length < 700) {
      for (const byte of bytesOf(block)) bytes.push(byte % 2 === 1 ? byte & 0x07 : byte | 0xf8)
      block = Keccak.hash(block)
    }
    const data = Hex.fromBytes(Uint8Array.from(bytes.slice(0, 700)))
    const carried = { chainId: 84_532n, to: Address.zero, value: 0n, data }
    const figures = { nonce: 3_273_369_548n, maxPriorityFeePerGas: 2_560_894_839n, gasLimit: 16_777_215n }
    const real = signed({ ...carried, ...figures, maxFeePerGas: 1_116_706_817n, legacy: false })
    const asked = L1Fee.likeness(carried)
    expect(sizes(asked).small).toBeGreaterThanOrEqual(sizes(real).small)
    // Codes fitted to these bytes save 13 bytes, unrelated to repetitions.
    const coded = (raw: Hex.Hex) => deflateSync(bytesOf(raw), { level: 9 }).length
    expect(coded(asked)).toBeLessThan(coded(real) - 8)
  })

  it.each(versions)(
    "the layer 1 fee is read for an op of %s as if it were signed, for any dummy",
    (version) => {
      const limit = fc.bigInt(20_000n, 900_000n)
      forAll(
        [
          fc.record({ sender: address, nonce: uint(80), callData: hex(500), initCode: hex(300) }),
          fc.record({ callGasLimit: limit, verificationGasLimit: limit, preVerificationGas: limit }),
          address,
          uint(256)
        ],
        (data, limits, beneficiary, seed) => {
          const conditions = { validUntil: 1_800_000_000, validAfter: 0, bundler: beneficiary }
          const prices = { maxFeePerGas: 12_345_678n, maxPriorityFeePerGas: 1_234_567n }
          const none = { callGasLimit: 0n, verificationGasLimit: 0n, preVerificationGas: 0n }
          const op = { ...data, ...prices, paymasterAndData: Hex.empty }
          const proof = signer.sign(`0x${seed.toString(16).padStart(64, "0")}`).serialized
          const carry = (signature: Hex.Hex) =>
            UserOperation.handleOps(version, [{ ...op, ...limits, signature }], beneficiary)
          const real = sizes(
            signed({
              chainId: 8_453n,
              nonce: 77n,
              legacy: false,
              maxFeePerGas: 12_345_678n,
              maxPriorityFeePerGas: 1_234_567n,
              gasLimit: 500_000n,
              to: data.sender,
              value: 0n,
              data: carry(Conditions.encodeSignature(conditions, Hex.unsafe(proof)))
            })
          )
          const draft = {
            ...op,
            ...none,
            signature: Conditions.encodeSignature(conditions, Proof.dummyEcdsa(1))
          }
          const drawn = sizes(L1Fee.ofOp(version, data.sender, 8_453n, beneficiary, draft))
          expect(drawn.whole).toBeGreaterThanOrEqual(real.whole - 3)
          expect(drawn.whole).toBeLessThanOrEqual(real.whole + 20)
          // A dummy that repeats itself would show by 60.
          expect(drawn.small).toBeGreaterThanOrEqual(real.small - 3)
        }
      )
    }
  )
})

describe("the fee of a chain's operator", () => {
  const divisor = fc.constantFrom(1n, 10n ** 6n)
  it("is linear in the gas, by what the oracle takes for none and for many units, and never less", () => {
    forAll([uint(32), uint(64), uint(40), divisor], (scalar, constant, gas, divisor) => {
      const oracleOf = (units: bigint) => (units * scalar) / divisor + constant
      const fee = L1Fee.operatorFee(oracleOf(0n), oracleOf(L1Fee.operatorUnits))
      const wei = L1Fee.operatorWei(fee, gas)
      expect(wei).toBeGreaterThanOrEqual(oracleOf(gas))
      expect(wei - oracleOf(gas)).toBeLessThanOrEqual(1n)
    })
  })

  it("the operator fee is read with the oracle's own function", () => {
    const own = new Interface(["function getOperatorFee(uint256) view returns (uint256)"])
    expect(L1Fee.operatorQuestion(77n)).toBe(own.encodeFunctionData("getOperatorFee", [77n]))
  })

  it("the operator fee is zero where the oracle has none", () => {
    expect(L1Fee.operatorWei(L1Fee.operatorFee(0n, 0n), 10n ** 7n)).toBe(0n)
  })
})
