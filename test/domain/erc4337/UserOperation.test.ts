import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { AbiCoder, Interface, toBeHex } from "ethers"
import * as fc from "fast-check"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { address, bytes32, forAll, hex, mutated, op, uint, words } from "../generators.js"

const v06 =
  "(address sender,uint256 nonce,bytes initCode,bytes callData,uint256 callGasLimit,uint256 verificationGasLimit,uint256 preVerificationGas,uint256 maxFeePerGas,uint256 maxPriorityFeePerGas,bytes paymasterAndData,bytes signature)"
const packed =
  "(address sender,uint256 nonce,bytes initCode,bytes callData,bytes32 accountGasLimits,uint256 preVerificationGas,bytes32 gasFees,bytes paymasterAndData,bytes signature)"
const typeOf = (version: EntryPoint.Version) => (version === "v0.6" ? v06 : packed)

/** The op as ethers takes it for that version's struct. */
const structOf = (version: EntryPoint.Version, it: UserOperation.UserOperation) =>
  version === "v0.6"
    ? it
    : {
        ...it,
        accountGasLimits: toBeHex((it.verificationGasLimit << 128n) | it.callGasLimit, 32),
        gasFees: toBeHex((it.maxPriorityFeePerGas << 128n) | it.maxFeePerGas, 32)
      }

const fields = words(
  "sender nonce initCode callData callGasLimit verificationGasLimit preVerificationGas maxFeePerGas maxPriorityFeePerGas paymasterAndData signature"
) as ReadonlyArray<keyof UserOperation.UserOperation>
const someFields = fc.subarray([...fields], { minLength: 1, maxLength: 2 })

const plain: UserOperation.UserOperation = {
  sender: EntryPoint.canonical["v0.6"],
  nonce: 0n,
  initCode: Hex.empty,
  callData: Hex.empty,
  callGasLimit: 1n,
  verificationGasLimit: 2n,
  preVerificationGas: 3n,
  maxFeePerGas: 4n,
  maxPriorityFeePerGas: 5n,
  paymasterAndData: Hex.empty,
  signature: Hex.empty
}

describe.each(EntryPoint.versions)("UserOperation of %s", (version) => {
  it("a UserOperation is encoded like the struct in ethers, and parsed back", () => {
    forAll([op(version)], (each) => {
      const encoded = UserOperation.encode(version, each)
      expect(encoded.slice(0, 66)).toBe(toBeHex(32, 32))
      expect(encoded).toBe(AbiCoder.defaultAbiCoder().encode([typeOf(version)], [structOf(version, each)]))
      expect(UserOperation.decode(version, encoded)).toEqual(Result.succeed(each))
    })
  })

  it("a UserOperation has one encoding only", () => {
    forAll(
      [mutated(op(version).map((each) => UserOperation.encode(version, each)))],
      ([right, wrong]) => {
        const result = UserOperation.decode(version, wrong)
        if (wrong !== right && Result.isSuccess(result))
          expect(result).not.toEqual(UserOperation.decode(version, right))
      },
      { numRuns: 500 }
    )
  })

  it("a UserOperation is not read from garbage", () => {
    for (const text of ["0x", "0x00", toBeHex(32, 32), `0x${"ff".repeat(480)}`, `0x${"00".repeat(480)}`])
      expect(UserOperation.decode(version, Hex.unsafe(text))).toEqual(
        Result.fail(`expected abi.encode of the UserOperation struct of EntryPoint ${version}`)
      )
  })

  it("a UserOperation with dirty padding, trailing bytes or overlapping offsets is refused", () => {
    const encoded = UserOperation.encode(version, { ...plain, callData: Hex.unsafe("0xee") })
    const dirtyAddress = `${encoded.slice(0, 66)}01${encoded.slice(68)}`
    const dirtyTail = encoded.replace(/ee(0{61})0/, "ee$11")
    const overlapping =
      encoded.slice(0, 66 + 3 * 64) + encoded.slice(66 + 2 * 64, 66 + 3 * 64) + encoded.slice(66 + 4 * 64)
    for (const text of [dirtyAddress, dirtyTail, overlapping, `${encoded}${"00".repeat(32)}`]) {
      expect(text).not.toBe(encoded)
      expect(Result.isFailure(UserOperation.decode(version, Hex.unsafe(text)))).toBe(true)
    }
  })

  it("a UserOperation goes into handleOps and validateUserOp as ethers encodes those calls", () => {
    const abi = new Interface([
      `function handleOps(${typeOf(version)}[] ops, address beneficiary)`,
      `function validateUserOp(${typeOf(version)} op, bytes32 userOpHash, uint256 missingAccountFunds)`
    ])
    forAll([fc.array(op(version), { maxLength: 4 }), address, bytes32], (ops, beneficiary, hash) => {
      const structs = ops.map((each) => structOf(version, each))
      expect(UserOperation.handleOps(version, ops, beneficiary)).toBe(
        abi.encodeFunctionData("handleOps", [structs, beneficiary])
      )
      for (const each of ops)
        expect(UserOperation.validateCall(version, each, hash)).toBe(
          abi.encodeFunctionData("validateUserOp", [structOf(version, each), hash, 0n])
        )
    })
  })

  it("a UserOperation goes into handleAggregatedOps as ethers encodes that call", () => {
    const struct = `(${typeOf(version)}[] userOps, address aggregator, bytes signature)`
    const abi = new Interface([`function handleAggregatedOps(${struct}[] groups, address beneficiary)`])
    const group = fc.record({
      ops: fc.array(op(version), { maxLength: 3 }),
      aggregator: address,
      signature: hex()
    })
    forAll([fc.array(group, { maxLength: 3 }), address], (groups, beneficiary) => {
      const structs = groups.map(({ ops, ...rest }) => ({
        ...rest,
        userOps: ops.map((each) => structOf(version, each))
      }))
      expect(UserOperation.handleAggregatedOps(version, groups, beneficiary)).toBe(
        abi.encodeFunctionData("handleAggregatedOps", [structs, beneficiary])
      )
    })
  })

  it("a userOpHash binds EntryPoint, chain and every field except the signature", () => {
    const entryPoint = EntryPoint.canonical[version]
    const key = (each: UserOperation.UserOperation) =>
      UserOperation.encode(version, { ...each, signature: Hex.empty })
    forAll([op(version), op(version), someFields, uint(64)], (a, b, fields, chainId) => {
      const mixed = { ...a, ...Object.fromEntries(fields.map((field) => [field, b[field]])) }
      const hash = UserOperation.hash(version, entryPoint, chainId, a)
      expect(UserOperation.hash(version, entryPoint, chainId, mixed) === hash).toBe(key(a) === key(mixed))
      expect(UserOperation.hash(version, entryPoint, chainId, { ...a, signature: b.signature })).toBe(hash)
      expect(UserOperation.hash(version, entryPoint, chainId + 1n, a)).not.toBe(hash)
      expect(UserOperation.hash(version, Address.zero, chainId, a)).not.toBe(hash)
    })
  })

  const why = (change: Partial<UserOperation.UserOperation>) =>
    Result.getOrNull(Result.flip(UserOperation.fits(version, { ...plain, ...change })))

  it("fits when every gas field is at most a uint120, and the nonce a uint256", () => {
    for (const field of fields.filter((each) => /Gas/.test(each))) {
      expect(why({ [field]: (1n << 120n) - 1n })).toBeNull()
      for (const value of [1n << 120n, 1n << 128n, -1n])
        expect(why({ [field]: value })).toBe(`${field} does not fit in 120 bits`)
    }
    expect(why({ nonce: (1n << 256n) - 1n })).toBeNull()
    for (const nonce of [1n << 256n, -1n]) expect(why({ nonce })).toBe("nonce does not fit in 256 bits")
  })

  it("fits with initCode and paymasterAndData that are empty or complete", () => {
    const bytes = (length: number, byte = "11") => Hex.unsafe(`0x${byte.repeat(length)}`)
    const least = version === "v0.6" ? 20 : 52
    const incomplete = (field: string, least: number) =>
      `${field} must be empty or of at least ${least} bytes`
    for (const length of [0, 1, 19, 20, 21, 500])
      expect(why({ initCode: bytes(length) })).toBe(
        length === 0 || length >= 20 ? null : incomplete("initCode", 20)
      )
    const paymaster = (limits: string) => `0x${"11".repeat(20)}${limits}`
    for (const length of [0, 1, 19, 20, 51, 52]) {
      const paymasterAndData = Hex.unsafe(paymaster("00".repeat(32)).slice(0, 2 + 2 * length))
      expect(why({ paymasterAndData })).toBe(
        length === 0 || length >= least ? null : incomplete("paymasterAndData", least)
      )
    }
    const huge = ["01".padEnd(32, "0") + "0".repeat(32), "0".repeat(32) + "01".padEnd(32, "0")]
    expect(why({ paymasterAndData: Hex.unsafe(paymaster("00ff".padEnd(32, "f").repeat(2))) })).toBeNull()
    for (const limits of huge)
      expect(why({ paymasterAndData: Hex.unsafe(paymaster(limits)) })).toBe(
        version === "v0.6" ? null : "the paymaster's gas limits do not fit in 120 bits"
      )
    expect(why({ paymasterAndData: bytes(least, "00") })).toBe(
      version === "v0.8" ? "the paymaster must not be the zero address" : null
    )
  })
})

describe("UserOperation", () => {
  it("a v0.6 op is never read as a v0.7 op, nor the reverse", () => {
    forAll([op("v0.6"), op("v0.7")], (old, packedOp) => {
      expect(Result.isFailure(UserOperation.decode("v0.7", UserOperation.encode("v0.6", old)))).toBe(true)
      expect(Result.isFailure(UserOperation.decode("v0.6", UserOperation.encode("v0.7", packedOp)))).toBe(
        true
      )
    })
  })

  it("an op of an EIP-7702 account does not fit v0.8: its hash would depend on chain state", () => {
    for (const initCode of ["0x7702".padEnd(42, "0"), `${"0x7702".padEnd(42, "0")}abcd`])
      expect(UserOperation.fits("v0.8", { ...plain, initCode: Hex.unsafe(initCode) })).toEqual(
        Result.fail("EIP-7702 accounts are not supported")
      )
    const factory = Hex.unsafe(`0x7702${"11".repeat(18)}`)
    expect(Result.isSuccess(UserOperation.fits("v0.8", { ...plain, initCode: factory }))).toBe(true)
    expect(
      Result.isSuccess(
        UserOperation.fits("v0.7", { ...plain, initCode: Hex.unsafe("0x7702".padEnd(42, "0")) })
      )
    ).toBe(true)
  })
})
