import { describe, expect, it } from "@effect/vitest"
import * as InitialSimulation from "../../../../src/application/prepare/estimate/InitialSimulation.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"

const trial: InitialSimulation.InitialTrial = {
  index: 0,
  value: 1n,
  prefund: 2n,
  ...InitialSimulation.generous(10_000_000n),
  op: {
    sender: Make.address(1),
    nonce: 3n,
    initCode: Hex.empty,
    callData: Hex.unsafe("0x04"),
    callGasLimit: 0n,
    verificationGasLimit: 0n,
    preVerificationGas: 0n,
    maxFeePerGas: 5n,
    maxPriorityFeePerGas: 6n,
    paymasterAndData: Hex.empty,
    signature: Hex.unsafe("0x0708")
  }
}
const another = (change: Partial<InitialSimulation.InitialTrial["op"]>): InitialSimulation.InitialTrial => ({
  ...trial,
  op: { ...trial.op, ...change }
})
const report = {
  chainId: 1n,
  block: { number: 1n, timestamp: 1n, baseFee: 1n, gasLimit: 1n },
  implementation: null,
  wallets: [],
  measures: []
}
const look: InitialSimulation.InitialSimulation = { trials: [trial, another({ nonce: 9n })], report }
const fits = (
  first: InitialSimulation.InitialTrial,
  ...rest: ReadonlyArray<InitialSimulation.InitialTrial>
) => InitialSimulation.fits(look, [first, ...rest])
const second = another({ nonce: 9n })

describe("an early simulation of ops", () => {
  it("fits the same ops with other prices, another estimate of the prefund, and another window in the signature", () => {
    expect(fits(trial, second)).toBe(true)
    expect(fits({ ...trial, prefund: 7n, index: 8 }, second)).toBe(true)
    expect(fits(another({ maxFeePerGas: 50n, maxPriorityFeePerGas: 60n }), second)).toBe(true)
    expect(fits(another({ signature: Hex.unsafe("0x0a0b") }), second)).toBe(true)
  })

  it.each<readonly [string, InitialSimulation.InitialTrial]>([
    ["wallet", another({ sender: Make.address(2) })],
    ["nonce", another({ nonce: 4n })],
    ["deployment", another({ initCode: Hex.unsafe("0x01") })],
    ["call", another({ callData: Hex.unsafe("0x05") })],
    ["paymaster", another({ paymasterAndData: Hex.unsafe("0x01") })],
    ["kind of proof", another({ signature: Hex.unsafe("0x070809") })],
    ["value", { ...trial, value: 2n }]
  ])("does not fit ops with another %s", (_, other) => {
    expect(fits(other, second)).toBe(false)
    expect(InitialSimulation.fits({ trials: [second, trial], report }, [second, other])).toBe(false)
  })

  it("does not fit fewer ops, or more, or the same in another order", () => {
    expect(fits(trial)).toBe(false)
    expect(fits(trial, second, second)).toBe(false)
    expect(fits(second, trial)).toBe(false)
  })
})
