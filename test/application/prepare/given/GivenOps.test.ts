import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as EncodedOps from "../../../../src/application/prepare/given/GivenOps.js"
import * as EntryPoint from "../../../../src/domain/erc4337/EntryPoint.js"
import * as PaymasterData from "../../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as UserOperation from "../../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as WalletCalls from "../../../../src/domain/wallet/WalletCalls.js"
import * as Make from "../../../support/journal/Make.js"
import * as Ops from "../../../support/lanes/Ops.js"
import { test } from "../../../support/Test.js"

const bare: UserOperation.UserOperation = {
  ...Ops.plain,
  nonce: 1n,
  callData: WalletCalls.execute(Make.address(1), 0n, Hex.empty)
}

describe.each(EntryPoint.versions)("an encoded op of EntryPoint %s", (version) => {
  const where = { chainId: Make.chainId, entryPoint: EntryPoint.canonical[version], version }
  const element = (change: Partial<UserOperation.UserOperation>): EncodedOps.EncodedOperation => {
    const op = { ...bare, ...change }
    return {
      encodedUserOp: UserOperation.encode(version, op),
      userOpHash: UserOperation.hash(version, where.entryPoint, where.chainId, op),
      walletCustody: 1,
      validAfter: 0,
      validUnitl: 0
    }
  }
  const refusal = (...elements: ReadonlyArray<EncodedOps.EncodedOperation>) =>
    Effect.map(Effect.flip(EncodedOps.decodeEncoded(elements, where)), ({ code, details }) => ({
      code,
      details
    }))

  test("is accepted unchanged after the service issued it", function* () {
    const given = yield* EncodedOps.decodeEncoded([element({}), element({ nonce: 2n })], where)
    expect(given.map(({ index, op }) => [index, op])).toEqual([
      [0, bare],
      [1, { ...bare, nonce: 2n }]
    ])
  })

  test("deploys no wallet: one with initCode is refused, though its hash is right", function* () {
    const initCode = Hex.unsafe(`0x${"fa".repeat(20)}01020304`)
    expect(yield* refusal(element({ initCode }))).toEqual({
      code: "invalid_request",
      details: [
        {
          path: "operations[0].encodedUserOp",
          message: "initCode must be empty: wallets are deployed by /create"
        }
      ]
    })
  })

  test("carries no signature: `proof` is a separate field", function* () {
    const { details } = yield* refusal(element({ signature: Hex.unsafe("0x01") }))
    expect(details[0]?.message).toContain("the op's signature must be empty")
  })

  test("with a byte after its call is rejected: its purpose would be unknown", function* () {
    const batch = WalletCalls.executeBatch([{ target: Make.address(1), value: 0n, data: Hex.empty }])
    for (const callData of [bare.callData, batch]) {
      expect(yield* EncodedOps.decodeEncoded([element({ callData })], where)).toHaveLength(1)
      const longer = Hex.concat(callData, Hex.unsafe("0x00"))
      const { details } = yield* refusal(element({ callData: longer }))
      expect(details[0]?.message).toContain("expected the canonical ABI encoding of execute")
    }
  })

  test("is rejected with the right hash when it names the hash of another op, chain or EntryPoint", function* () {
    const right = element({})
    const others = [
      Make.word(1),
      element({ nonce: 2n }).userOpHash,
      UserOperation.hash(version, where.entryPoint, where.chainId + 1n, bare),
      UserOperation.hash(version, Make.entryPoint, where.chainId, bare)
    ]
    for (const userOpHash of others) {
      const { code, details } = yield* refusal({ ...right, userOpHash })
      expect(code).toBe("hash_mismatch")
      expect(details).toMatchObject([{ path: "operations[0].userOpHash" }])
      expect(details[0]?.message).toContain(right.userOpHash)
    }
  })

  test("is executed once: the same op twice is rejected, and so is an empty list", function* () {
    expect(yield* refusal(element({ nonce: 2n }), element({}), element({ nonce: 2n }))).toMatchObject({
      details: [{ path: "operations[2].userOpHash", message: "operations[0] is the same op" }]
    })
    expect(yield* refusal()).toMatchObject({
      details: [{ path: "operations", message: "expected at least one operation" }]
    })
  })

  test("with an impossible window is rejected, whether or not it is signed", function* () {
    const window = { validAfter: 2, validUnitl: 1 }
    expect(yield* refusal({ ...element({}), ...window })).toMatchObject({
      details: [{ path: "operations[0].validUnitl", message: "is before validAfter: 1 < 2" }]
    })
    const { encodedUserOp, userOpHash } = element({})
    const assertion = { signature: "", authenticatorData: "", clientDataJSON: "", ...window }
    const failure = yield* Effect.flip(
      EncodedOps.decodePasskey([{ encodedUserOp, userOpHash, validationData: assertion }], where)
    )
    expect(failure.details).toMatchObject([{ path: "operations[0].validationData.validUnitl" }])
  })

  test("is rejected despite a right hash when its EntryPoint cannot take it", function* () {
    const { details } = yield* refusal(element({ paymasterAndData: Hex.unsafe("0x5a") }))
    expect(details).toMatchObject([{ path: "operations[0].encodedUserOp" }])
  })

  test("with paymaster data longer than any paymaster needs is rejected", function* () {
    const dataOf = (bytes: number) =>
      PaymasterData.make(version, {
        paymaster: Make.address(0x5a),
        limits: PaymasterData.noLimits,
        data: Hex.unsafe(`0x${"00".repeat(bytes)}`)
      })
    expect(PaymasterData.objection(Hex.unsafe(`0x${"00".repeat(PaymasterData.maxData)}`))).toBeNull()
    const paymasterAndData = dataOf(PaymasterData.maxData + 1)
    const { details } = yield* refusal(element({ paymasterAndData }))
    expect(details[0]?.message).toContain("paymasterAndData")
  })
})
