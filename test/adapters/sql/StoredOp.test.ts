import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as StoredOp from "../../../src/adapters/sql/journal/tables/StoredOp.js"
import type { PreparedOp } from "../../../src/application/ports/journal/Records.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"

const uint = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
const bytes = fc
  .uint8Array({ maxLength: 200 })
  .map((some) => Hex.unsafe(`0x${Buffer.from(some).toString("hex")}`))
const address = fc.nat(10_000).map(Make.address)
const second = fc.integer({ min: 0, max: 2 ** 48 - 1 })
const proof = fc.oneof(
  fc.record({ by: fc.array(fc.record({ signer: address, place: fc.nat(15) }), { maxLength: 3 }) }),
  fc.record({ made: bytes }),
  fc.constant("deployer" as const),
  fc.constant(null)
)
const common = {
  requestId: fc.string(),
  index: fc.nat(),
  nonceKey: uint,
  sequence: uint,
  userOpHash: fc.option(fc.nat(10_000).map(Make.word)),
  proof,
  window: fc.option(fc.record({ validAfter: second, validUntil: second })),
  dependsOn: fc.array(fc.nat(), { maxLength: 2 }),
  reserve: uint,
  l1Fee: uint,
  returned: fc.option(bytes),
  goodUntil: fc.option(fc.nat())
}
const op = fc.record({
  ...common,
  kind: fc.constantFrom("op" as const, "given" as const, "creation" as const),
  unsigned: fc.record({
    sender: address,
    nonce: uint,
    initCode: bytes,
    callData: bytes,
    callGasLimit: uint,
    verificationGasLimit: uint,
    preVerificationGas: uint,
    maxFeePerGas: uint,
    maxPriorityFeePerGas: uint,
    paymasterAndData: bytes,
    signature: bytes
  }),
  space: fc.record({ authority: address, chainId: uint, entryPoint: address, wallet: address })
})
const direct = fc.record({
  ...common,
  kind: fc.constant("direct" as const),
  unsigned: fc.record({ to: fc.option(address), data: bytes, value: uint, gasLimit: uint }),
  space: fc.record({
    authority: address,
    chainId: uint,
    entryPoint: fc.constant("direct" as const),
    wallet: address
  })
})
const prepared: fc.Arbitrary<PreparedOp> = fc.oneof(op, direct)

describe("a prepared op", () => {
  it("reads back unchanged", () => {
    fc.assert(
      fc.property(prepared, (one) => {
        expect(StoredOp.decode(StoredOp.encode(one))).toEqual(one)
      })
    )
  })

  it("a prepared op in a format unknown to this version is prepared again", () => {
    fc.assert(
      fc.property(prepared, fc.integer({ min: 0, max: 255 }), (one, format) => {
        const stored = StoredOp.encode(one)
        fc.pre(format !== stored[0])
        stored[0] = format
        expect(StoredOp.decode(stored)).toBe(null)
      })
    )
    expect(StoredOp.decode(new Uint8Array())).toBe(null)
  })
})
