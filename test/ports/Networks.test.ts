import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Networks from "../../src/adapters/memory/Networks.js"
import * as NetworkProfile from "../../src/application/ports/NetworkProfile.js"
import { address, alice, entryPoint } from "../support/journal/Make.js"
import { suite } from "./Networks.suite.js"

const profile = (chainId: bigint) =>
  NetworkProfile.make({
    chainId,
    rpc: Redacted.make("http://127.0.0.1:8545"),
    entryPoints: [entryPoint],
    validator: address(0x7a)
  })

const profiles = [profile(31_337n), profile(137n)] as const
const override = { factory: address(0xfac), confirmations: 3 }
const overrides = [{ accountId: alice, chainId: 31_337n, profile: override }]

suite("memory", Layer.orDie(Networks.layer({ profiles, overrides })), [profiles[0], profiles[1]], override)

describe("network profiles that cannot be right are refused at the start", () => {
  const refused = (options: Networks.Options) => Effect.runSync(Effect.flip(Networks.make(options)))
  const base = profile(1n)

  it("with two profiles of one chain, or two overrides of one account", () => {
    expect(refused({ profiles: [base, base] }).message).toContain("two profiles")
    const twice = [...overrides, ...overrides]
    expect(refused({ profiles, overrides: twice }).message).toContain("twice")
  })

  it("with an override of a chain without a profile", () => {
    expect(refused({ profiles: [base], overrides }).message).toContain("no profile")
  })

  it("with unusable figures, in a profile or after an override", () => {
    const wrong: ReadonlyArray<NetworkProfile.Fields> = [
      { confirmations: 0 },
      { confirmations: 1.5 },
      { receiptTimeoutMillis: 0 },
      { pollIntervalMillis: Number.NaN },
      { caps: { maxFeePerGas: 0n } },
      { caps: { transactionGas: 0n } }
    ]
    for (const part of wrong) {
      expect(refused({ profiles: [NetworkProfile.override(base, part)] })._tag).toBe("NetworksError")
      const own = [{ accountId: alice, chainId: 1n, profile: part }]
      expect(refused({ profiles: [base], overrides: own })._tag).toBe("NetworksError")
    }
  })
})
