import { describe, expect, it } from "@effect/vitest"
import { Transaction as Reference, Signature, SigningKey } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/evm/Address.js"
import * as Hex from "../../../src/domain/evm/Hex.js"
import * as Transaction from "../../../src/domain/evm/Transaction.js"
import { address, hex, uint } from "../generators.js"

const transaction: fc.Arbitrary<Transaction.Transaction> = fc.record({
  chainId: fc.oneof(fc.constantFrom(1n, 137n, 8453n, 31337n), fc.bigInt(1n, 2n ** 53n)),
  nonce: fc.oneof(fc.constantFrom(0n, 127n, 128n, 255n, 256n), fc.bigInt(0n, 2n ** 53n - 2n)),
  maxPriorityFeePerGas: uint(128),
  maxFeePerGas: uint(128),
  gasLimit: uint(64),
  to: address,
  value: uint(256),
  data: hex(700)
})

const key = fc
  .bigInt(1n, 2n ** 255n)
  .map((value) => new SigningKey(`0x${value.toString(16).padStart(64, "0")}`))

const reference = (tx: Transaction.Transaction): Reference =>
  Reference.from({ type: 2, ...tx, nonce: Number(tx.nonce) })

describe("Transaction", () => {
  it("its signing digest is that of ethers", () => {
    fc.assert(
      fc.property(transaction, (tx) => {
        fc.pre(tx.maxPriorityFeePerGas <= tx.maxFeePerGas)
        expect(Transaction.signingDigest(tx)).toBe(reference(tx).unsignedHash)
      })
    )
  })

  it("signed bytes and hash are those of ethers, and ethers recovers the sender from them", () => {
    fc.assert(
      fc.property(transaction, key, (tx, signer) => {
        fc.pre(tx.maxPriorityFeePerGas <= tx.maxFeePerGas)
        const signature = signer.sign(Transaction.signingDigest(tx)).serialized
        const raw = Transaction.serialize(tx, Hex.unsafe(signature))
        const expected = reference(tx)
        expected.signature = signature
        expect(raw).toBe(expected.serialized)
        expect(Transaction.hash(raw)).toBe(expected.hash)
        const sender = Reference.from(raw).from
        expect(sender).toBe(Reference.from(expected.serialized).from)
        expect(sender).not.toBeNull()
      }),
      { numRuns: 50 }
    )
  })

  it("r and s with leading zeros are written as scalars", () => {
    const tx: Transaction.Transaction = {
      chainId: 1n,
      nonce: 0n,
      maxPriorityFeePerGas: 0n,
      maxFeePerGas: 0n,
      gasLimit: 21_000n,
      to: Address.zero,
      value: 0n,
      data: Hex.empty
    }
    for (const v of [27, 28]) {
      const signature = Signature.from({
        r: `0x${"00".repeat(3)}${"7f".repeat(29)}`,
        s: `0x${"00".repeat(31)}01`,
        v
      })
      const expected = reference(tx)
      // Assigning the signature makes ethers encode it without recovering anybody.
      expected.signature = signature
      expect(Transaction.serialize(tx, Hex.unsafe(signature.serialized))).toBe(expected.serialized)
    }
  })
})
