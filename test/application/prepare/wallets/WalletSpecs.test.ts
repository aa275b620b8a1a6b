import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import * as WalletSpecs from "../../../../src/application/prepare/wallets/WalletSpecs.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"

describe("a deployment is authorised", () => {
  const profile = NetworkProfile.make({
    chainId: Make.chainId,
    factory: Make.address(0xfa),
    beacon: Make.address(0xbe),
    creationCode: Hex.unsafe("0xabcd")
  })
  const own = {
    factory: Make.address(0xfa),
    beaconAdminAddress: Make.address(0xbe),
    beaconAdminCreationCode: "0xABCD"
  }
  /** The refused settings, and their codes. */
  const refused = (settings: Parameters<typeof WalletSpecs.checkFactory>[1]) =>
    Result.match(WalletSpecs.checkFactory(profile, settings), {
      onFailure: ({ code, details }) => [code, ...details.map(({ path }) => path)],
      onSuccess: () => []
    })

  it("for the account's own factory, which deploys proxies of its own beacon", () => {
    expect(refused({})).toEqual([])
    expect(refused(own)).toEqual([])
  })

  it("for no other factory, beacon or proxy, whatever else the request names rightly", () => {
    const other = Make.address(0x0f)
    expect(refused({ ...own, factory: other })).toEqual(["factory_not_allowed", "settings.factory"])
    expect(refused({ ...own, beaconAdminAddress: other })).toEqual([
      "invalid_request",
      "settings.beaconAdminAddress"
    ])
    expect(refused({ ...own, beaconAdminCreationCode: "0xabce" })).toEqual([
      "invalid_request",
      "settings.beaconAdminCreationCode"
    ])
    // A profile without a factory accepts no named factory.
    expect(WalletSpecs.checkFactory({ ...profile, factory: null }, { factory: other })._tag).toBe("Failure")
  })
})
