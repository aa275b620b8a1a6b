import { describe, expect, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as NetworkProfile from "../../src/application/ports/NetworkProfile.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import { walletProxyCreationCode } from "../../src/domain/wallet/WalletProxy.generated.js"
import { address } from "../support/journal/Make.js"

const gwei = 1_000_000_000n

describe("a network profile of few fields", () => {
  it("has the defaults of all chains where its chain has no own default", () => {
    const rpc = Redacted.make("http://127.0.0.1:8545")
    expect(NetworkProfile.make({ chainId: 31_337n, rpc })).toEqual({
      ...NetworkProfile.defaults,
      chainId: 31_337n,
      rpc
    })
  })

  it("has its chain's known values", () => {
    const base = NetworkProfile.make({ chainId: 8_453n })
    expect(base.l1Fee).toBe("op-stack")
    expect(base.caps).toEqual({ ...NetworkProfile.defaults.caps, ...NetworkProfile.chains.get(8_453n)?.caps })
    expect(base.caps.maxFeePerGas).toBeLessThan(NetworkProfile.defaults.caps.maxFeePerGas)
    expect(NetworkProfile.make({ chainId: 137n })).toMatchObject({
      minPriorityFeePerGas: 30n * gwei,
      serviceSubmission: { dailyLoss: 10n ** 19n, maxInFlight: 16 }
    })
    expect(NetworkProfile.make({ chainId: 137n, minPriorityFeePerGas: 0n }).minPriorityFeePerGas).toBe(0n)
  })

  it("takes single caps and bounds", () => {
    const { caps, serviceSubmission } = NetworkProfile.make({
      chainId: 1n,
      caps: { maxFeePerGas: 7n },
      serviceSubmission: { maxInFlight: 2 }
    })
    expect(caps).toEqual({ ...NetworkProfile.defaults.caps, maxFeePerGas: 7n })
    expect(serviceSubmission).toEqual({ ...NetworkProfile.defaults.serviceSubmission, maxInFlight: 2 })
  })

  it("has the reference proxy's creation code once there is a beacon", () => {
    const beacon = address(0xbe)
    expect(NetworkProfile.make({ chainId: 1n }).creationCode).toBeNull()
    expect(NetworkProfile.make({ chainId: 1n, beacon }).creationCode).toBe(walletProxyCreationCode)
    const own = NetworkProfile.make({ chainId: 1n, beacon, creationCode: Hex.unsafe("0x60") })
    expect(own.creationCode).toBe("0x60")
  })

  it("settles no earlier than it confirms", () => {
    expect(NetworkProfile.make({ chainId: 1n, confirmations: 100 }).settledDepth).toBe(100)
    expect(NetworkProfile.make({ chainId: 1n, confirmations: 9, settledDepth: 3 }).settledDepth).toBe(9)
  })
})

describe("fields over a network profile", () => {
  const profile = NetworkProfile.make({ chainId: 137n, factory: address(1), beacon: address(2) })

  it("keep every field that they omit or leave without a value", () => {
    expect(NetworkProfile.override(profile, {})).toEqual(profile)
    const nothing = { factory: undefined, caps: { maxFeePerGas: undefined }, serviceSubmission: undefined }
    expect(NetworkProfile.override(profile, nothing)).toEqual(profile)
  })

  it("remove a field by null", () => {
    expect(NetworkProfile.override(profile, { factory: null }).factory).toBeNull()
  })

  it("change neither the chain nor a field that the profile lacks", () => {
    const foreign = { chainId: 1n, lowBalance: 5n, factory: address(3) }
    expect(NetworkProfile.override(profile, foreign)).toEqual({ ...profile, factory: address(3) })
  })
})
