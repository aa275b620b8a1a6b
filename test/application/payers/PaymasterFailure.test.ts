import { describe, expect, it } from "vitest"
import * as PaymasterFailure from "../../../src/application/payers/PaymasterFailure.js"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import type * as GasLens from "../../../src/domain/erc4337/gas/GasLens.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Site from "./Site.js"

const { dataOf, op, paymaster, version } = Site

describe("the cause of a failed simulation", () => {
  const data = Hex.unsafe("0x1234")
  const message = (stage: GasLens.Stage, revert: string, of: typeof paymaster | null = paymaster) =>
    PaymasterFailure.message(of, { data, stage }, (given) => (given === data ? revert : "other data"))

  it("names the paymaster and its stage when the paymaster failed", () => {
    expect(message("paymaster", "no")).toBe(`paymaster ${paymaster}: AA33 reverted: no`)
    expect(message("postOp", "no")).toBe(`paymaster ${paymaster}: AA50 postOp reverted: no`)
  })

  it("has the EntryPoint's code where it returns one", () => {
    expect(message("paymaster", "AA31 paymaster deposit too low")).toBe(
      `paymaster ${paymaster}: AA31 paymaster deposit too low`
    )
    expect(message("paymaster", "AAB1 no")).toBe(`paymaster ${paymaster}: AA33 reverted: AAB1 no`)
    expect(message("paymaster", "see AA31 no")).toBe(`paymaster ${paymaster}: AA33 reverted: see AA31 no`)
  })

  it("is the wallet's revert at every other stage, and without a paymaster", () => {
    for (const stage of ["creation", "validation", "prefund", "call"] as const)
      expect(message(stage, "no")).toBe("no")
    for (const stage of ["paymaster", "postOp"] as const) expect(message(stage, "no", null)).toBe("no")
  })
})

describe("a paymaster that is given no data", () => {
  const now = BigInt(Site.now)
  const packed = (authorizer: bigint, validUntil = 0n, validAfter = 0n) =>
    (validAfter << 208n) | (validUntil << 160n) | authorizer
  const objection = (paymasterData: bigint, paymasterAndData = dataOf(Hex.empty), at: Version = version) =>
    PaymasterFailure.objection(at, { ...op, paymasterAndData }, { paymasterData }, now)
  const of = (at: Version) =>
    PaymasterData.make(at, { paymaster, limits: PaymasterData.noLimits, data: Hex.empty })

  it("refuses by its validation result: an invalid signature, or a time that is not now", () => {
    for (const authorizer of [1n, 0xabcn])
      expect(objection(packed(authorizer))).toMatch(
        new RegExp(`^paymaster ${paymaster}: AA34 signature error: .+; .+`)
      )
    for (const times of [
      [now - 1n, 0n],
      [0n, now + 1n],
      [now + 5n, now + 1n]
    ] as const)
      expect(objection(packed(0n, ...times))).toMatch(
        new RegExp(`^paymaster ${paymaster}: AA32 paymaster expired or not due: .+; .+`)
      )
  })

  it("pays within its time, the last second included, and without one for ever", () => {
    for (const times of [
      [0n, 0n],
      [now, 0n],
      [now, now - 1n]
    ] as const)
      for (const each of versions) expect(objection(packed(0n, ...times), of(each), each)).toBeNull()
  })

  it("pays in its first second except on EntryPoint v0.8, where that second is still too early", () => {
    for (const each of versions)
      expect(objection(packed(0n, 0n, now), of(each), each) === null).toBe(each !== "v0.8")
  })

  it("is the only party whose validation counts: signatures come later, and a wallet has none", () => {
    expect(objection(packed(1n), dataOf(Hex.unsafe("0x01")))).toBeNull()
    expect(objection(packed(1n), Hex.empty)).toBeNull()
  })
})
