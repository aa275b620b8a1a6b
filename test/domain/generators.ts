import * as fc from "fast-check"
import type { Version } from "../../src/domain/erc4337/EntryPoint.js"
import type { UserOperation } from "../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../src/domain/primitives/Address.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import * as Uint from "../../src/domain/primitives/Uint.js"
import type * as Custody from "../../src/domain/wallet/Custody.js"
import type { WalletConfig } from "../../src/domain/wallet/WalletConfig.js"

/** The law holds for all of these values: it does not throw, nor answer false. */
export const forAll = <Values extends Array<unknown>>(
  values: { readonly [At in keyof Values]: fc.Arbitrary<Values[At]> },
  law: (...each: Values) => unknown,
  parameters: fc.Parameters<[Values]> = {}
): void =>
  fc.assert(
    fc.property(fc.tuple<Values>(...values), (each) => law(...each) !== false),
    parameters
  )

/** The words of a text. */
export const words = (text: string): ReadonlyArray<string> => text.trim().split(/\s+/)

/** Bytes; lengths around word boundaries are as likely as any. */
export const hex = (maxBytes = 200): fc.Arbitrary<Hex.Hex> =>
  fc
    .oneof(fc.integer({ min: 0, max: maxBytes }), fc.constantFrom(0, 1, 19, 20, 31, 32, 33, 64, 65))
    .chain((length) => fc.uint8Array({ minLength: length, maxLength: length }))
    .map((bytes) => Hex.unsafe(`0x${Buffer.from(bytes).toString("hex")}`))

const fixed = (length: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc
      .uint8Array({ minLength: length, maxLength: length })
      .map((bytes) => `0x${Buffer.from(bytes).toString("hex")}`),
    fc.constantFrom(`0x${"00".repeat(length)}`, `0x${"ff".repeat(length)}`)
  )

export const bytes32: fc.Arbitrary<Hex.Bytes32> = fixed(32).map(Hex.unsafe32)
export const address: fc.Arbitrary<Address.Address> = fixed(20).map(Address.unsafe)

/** An unsigned integer of at most `bits` bits; both ends of the range are likely. */
export const uint = (bits: number): fc.Arbitrary<bigint> =>
  fc.oneof(
    fc.bigUintN(bits),
    fc.constantFrom(0n, 1n, Uint.max(bits), Uint.max(bits) - 1n, 1n << BigInt(bits - 1))
  )

export const uint48: fc.Arbitrary<number> = uint(48).map(Number)

/** Any op that the version's struct can hold, whether or not an EntryPoint would take it. */
export const op = (version: Version): fc.Arbitrary<UserOperation> => {
  const shared = uint(version === "v0.6" ? 256 : 128)
  // On v0.8 such initCode is hashed with the state of the chain: not supported, refused by `fits`.
  const initCode = hex().filter((code) => !code.startsWith("0x7702"))
  return fc.record({
    sender: address,
    nonce: uint(256),
    initCode,
    callData: hex(600),
    callGasLimit: shared,
    verificationGasLimit: shared,
    preVerificationGas: uint(256),
    maxFeePerGas: shared,
    maxPriorityFeePerGas: shared,
    paymasterAndData: hex(),
    signature: hex()
  })
}

export const custody: fc.Arbitrary<Custody.Stored> = fc.constantFrom(1, 2, 3, 4, 5)

/** Any configuration that the struct can hold. */
export const config: fc.Arbitrary<WalletConfig> = fc.record({
  custody,
  threshold: fc.integer({ min: 1, max: 255 }),
  owners: fc.array(address, { maxLength: 16 }),
  passkeys: fc.array(fc.record({ x: bytes32, y: bytes32 }), { maxLength: 16 })
})

/** Changes one hex digit, drops or adds a byte or a word: bytes that are nearly right. */
export const mutated = (data: fc.Arbitrary<Hex.Hex>): fc.Arbitrary<readonly [Hex.Hex, Hex.Hex]> =>
  fc
    .tuple(data, fc.nat(), fc.integer({ min: 1, max: 15 }), fc.constantFrom("digit", "cut", "byte", "word"))
    .map(([right, place, by, kind]): readonly [Hex.Hex, Hex.Hex] => {
      if (kind === "byte") return [right, Hex.unsafe(`${right}00`)]
      if (kind === "word") return [right, Hex.unsafe(`${right}${"00".repeat(32)}`)]
      if (right.length === 2) return [right, Hex.unsafe("0x00")]
      const at = 2 + (place % (right.length - 2))
      if (kind === "cut") return [right, Hex.unsafe(right.slice(0, 2 + Math.floor((at - 2) / 2) * 2))]
      const digit = (Number.parseInt(right.charAt(at), 16) ^ by).toString(16)
      return [right, Hex.unsafe(right.slice(0, at) + digit + right.slice(at + 1))]
    })
