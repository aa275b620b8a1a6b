import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { computeAddress, Transaction as Reference, Signature, SigningKey } from "ethers"
import * as fc from "fast-check"
import * as Transaction from "../../../src/domain/evm/Transaction.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { address, forAll, hex, mutated, uint } from "../generators.js"

const transaction: fc.Arbitrary<Transaction.Transaction> = fc
  .record({
    chainId: fc.oneof(fc.constantFrom(1n, 137n, 8453n, 31337n), fc.bigInt(1n, 2n ** 53n)),
    nonce: fc.oneof(fc.constantFrom(0n, 127n, 128n, 255n, 256n), fc.bigInt(0n, 2n ** 53n - 2n)),
    legacy: fc.boolean(),
    maxPriorityFeePerGas: uint(128),
    maxFeePerGas: uint(128),
    gasLimit: uint(64),
    to: address,
    value: uint(256),
    data: hex(700)
  })
  // Ethers refuses to look at another order of the two.
  .map((tx) =>
    tx.legacy || tx.maxPriorityFeePerGas > tx.maxFeePerGas
      ? { ...tx, maxPriorityFeePerGas: tx.maxFeePerGas }
      : tx
  )

const key = fc
  .bigInt(1n, 2n ** 255n)
  .map((value) => new SigningKey(`0x${value.toString(16).padStart(64, "0")}`))
const signed = (tx: Transaction.Transaction, by: SigningKey) =>
  Transaction.serialize(tx, Hex.unsafe(by.sign(Transaction.signingDigest(tx)).serialized))
const plain = {
  chainId: 1n,
  nonce: 0n,
  maxPriorityFeePerGas: 5n,
  maxFeePerGas: 5n,
  gasLimit: 21_000n,
  to: Address.zero,
  value: 0n,
  data: Hex.empty
}
const seventeen = new SigningKey(`0x${"17".repeat(32)}`)

const reference = ({ legacy, maxFeePerGas, maxPriorityFeePerGas, nonce, ...tx }: Transaction.Transaction) =>
  Reference.from({
    ...tx,
    nonce: Number(nonce),
    ...(legacy ? { type: 0, gasPrice: maxFeePerGas } : { type: 2, maxFeePerGas, maxPriorityFeePerGas })
  })

describe("Transaction", () => {
  it("a transaction's digest, bytes and hash equal ethers, and parsing returns it with its sender", () => {
    forAll([transaction, key], (tx, signer) => {
      const expected = reference(tx)
      expect(Transaction.signingDigest(tx)).toBe(expected.unsignedHash)
      const raw = signed(tx, signer)
      expected.signature = signer.sign(expected.unsignedHash)
      expect(raw).toBe(expected.serialized)
      expect(Transaction.hash(raw)).toBe(expected.hash)
      const from = computeAddress(signer.publicKey)
      expect(Reference.from(raw).from).toBe(from)
      expect(Transaction.parse(raw)).toEqual(Result.succeed({ transaction: tx, from, hash: expected.hash }))
    })
  })

  it("r and s with leading zeros are written as scalars", () => {
    for (const [v, legacy] of [27, 28].flatMap((v) => [[v, false] as const, [v, true] as const])) {
      const tx: Transaction.Transaction = { ...plain, legacy }
      const signature = Signature.from({
        r: `0x${"00".repeat(3)}${"7f".repeat(29)}`,
        s: `0x${"00".repeat(31)}01`,
        v
      })
      const expected = reference(tx)
      // Assigning the signature makes ethers encode it without recovering the signer.
      expected.signature = signature
      expect(Transaction.serialize(tx, Hex.unsafe(signature.serialized))).toBe(expected.serialized)
    }
  })

  it("parsing takes only serialized transactions", () => {
    const any = fc.tuple(transaction, key).map(([tx, signer]) => signed(tx, signer))
    forAll(
      [mutated(any)],
      ([, wrong]) => {
        const parsed = Transaction.parse(wrong)
        if (Result.isFailure(parsed)) return
        const { maxFeePerGas, maxPriorityFeePerGas, nonce } = parsed.success.transaction
        // Ethers reads no other order of the prices, and no nonce that is not a JavaScript number.
        fc.pre(maxPriorityFeePerGas <= maxFeePerGas && nonce < 2n ** 53n)
        // Another transaction, or another signer, then: but the same bytes for ethers.
        const same = Reference.from(wrong)
        expect(parsed.success.from).toBe(same.from)
        expect(parsed.success.hash).toBe(same.hash)
        expect(same.accessList ?? []).toEqual([])
      },
      { numRuns: 300 }
    )
    forAll([hex(300)], (bytes) => {
      expect(Result.isFailure(Transaction.parse(bytes))).toBe(true)
      expect(Result.isFailure(Transaction.parse(Hex.unsafe(`0x02${bytes.slice(2)}`)))).toBe(true)
    })
  })

  it("a legacy one is the same bytes whatever the chain id, up to those that no JavaScript number holds", () => {
    for (const chainId of [1n, 110n, 111n, 137n, 80_002n, 2n ** 64n, 2n ** 250n]) {
      const tx: Transaction.Transaction = { ...plain, chainId, legacy: true }
      const expected = reference(tx)
      expect(Transaction.signingDigest(tx)).toBe(expected.unsignedHash)
      expected.signature = seventeen.sign(expected.unsignedHash)
      expect(signed(tx, seventeen)).toBe(expected.serialized)
    }
  })

  it("parsing refuses an access list, a transaction of any chain, and an s in the upper half", () => {
    const fields = { chainId: 1n, nonce: 0, to: Address.zero, gasLimit: 21_000n }
    const accessList = [{ address: Address.zero, storageKeys: [] }]
    for (const tx of [
      Reference.from({ ...fields, type: 2, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n, accessList }),
      Reference.from({ ...fields, chainId: 0n, type: 0, gasPrice: 1n }),
      Reference.from({ ...fields, type: 1, gasPrice: 1n })
    ]) {
      tx.signature = seventeen.sign(tx.unsignedHash)
      expect(Result.isFailure(Transaction.parse(Hex.unsafe(tx.serialized)))).toBe(true)
    }
    for (const legacy of [false, true]) {
      const tx = { ...plain, legacy }
      const { r, s, v } = seventeen.sign(Transaction.signingDigest(tx))
      const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
      const high = `${r}${(order - BigInt(s)).toString(16).padStart(64, "0")}${(55 - v).toString(16)}`
      expect(Result.isFailure(Transaction.parse(Transaction.serialize(tx, Hex.unsafe(high))))).toBe(true)
    }
  })
})
