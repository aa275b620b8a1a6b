import { describe, expect, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import * as AccountNetworks from "../../../src/hosts/config/AccountNetworks.js"
import * as Make from "../../support/journal/Make.js"

const [ofChain, ofAlice, own] = [Make.address(0xf1), Make.address(0xf2), Make.address(0xf3)]
const profile = NetworkProfile.make({ chainId: Make.chainId, factory: ofChain, beacon: Make.address(0xbe) })

const config = (change: Partial<AccountNetworks.NetworksConfig> = {}): AccountNetworks.NetworksConfig => ({
  accounts: [],
  accountNetworks: [
    { accountId: Make.alice, chainId: Make.chainId, profile: { ...profile, factory: ofAlice } }
  ],
  networks: [profile],
  readSecret: (path) => Result.fail({ path, message: "there are no secrets here" }),
  sharedFactories: new Set(),
  ...change
})

const read = (settings: object, change?: Partial<AccountNetworks.NetworksConfig>) =>
  AccountNetworks.read(config(change), JSON.stringify({ chainId: Number(Make.chainId), ...settings }))

describe("the factory of an account's own network", () => {
  it("an account's network has the named factory, or none", () => {
    expect(Result.getOrThrow(read({ factory: own })).profile.factory).toBe(own)
    expect(Result.getOrThrow(read({})).profile.factory).toBeNull()
  })

  it("an account's factory differs from the configuration's and from other accounts' factories", () => {
    for (const [factory, owner] of [
      [ofChain, "the configuration's network"],
      [ofAlice, "account alice"]
    ])
      expect(read({ factory })).toEqual(
        Result.fail([{ path: "factory", message: `${owner} has it; each account needs its own` }])
      )
  })

  it("an account's factory defaults to a shared one of the configuration", () => {
    const sharedFactories = new Set([Make.chainId])
    expect(Result.getOrThrow(read({ factory: ofChain }, { sharedFactories })).profile.factory).toBe(ofChain)
    expect(Result.getOrThrow(read({}, { sharedFactories })).profile.factory).toBe(ofChain)
  })

  it("an account's factory is checked only against factories of its own chain", () => {
    const elsewhere = { ...profile, chainId: 137n }
    const networks = [elsewhere, { ...profile, factory: null }]
    const accountNetworks = [
      { accountId: Make.alice, chainId: 137n, profile: { ...elsewhere, factory: ofAlice } }
    ]
    for (const factory of [ofChain, ofAlice])
      expect(Result.isSuccess(read({ factory }, { networks, accountNetworks }))).toBe(true)
  })
})

describe("the URLs of an account's own network", () => {
  it("URLs of an account's network must be http(s), and errors do not repeat them", () => {
    const message = "expected an http or https URL without user information"
    const readSecret = () => Result.succeed(Redacted.make("node.example/secret"))
    expect(read({ rpc: { env: "RPC" }, bundler: { url: { env: "BUNDLER" } } }, { readSecret })).toEqual(
      Result.fail([
        { path: "rpc", message },
        { path: "bundler.url", message }
      ])
    )
  })
})
