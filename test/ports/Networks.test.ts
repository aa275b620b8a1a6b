import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Networks from "../../src/adapters/memory/Networks.js"
import type { NetworkProfile } from "../../src/application/ports/Networks.js"
import { address, alice, entryPoint } from "../support/journal/Make.js"
import { suite } from "./Networks.suite.js"

const profile = (chainId: bigint): NetworkProfile => ({
  chainId,
  rpc: Redacted.make("http://127.0.0.1:8545"),
  entryPoints: [entryPoint],
  factory: null,
  validator: address(0x7a),
  beacon: address(0xbe),
  creationCode: null,
  implementationCodeHash: null,
  defaultCustody: 1,
  caps: { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 11n, transactionGas: 16_777_216n },
  minPriorityFeePerGas: 0n,
  l1Fee: null,
  confirmations: 1,
  settledDepth: 64,
  bumpAfterMillis: 30_000,
  maxInFlight: 16,
  ledger: null,
  sponsor: null,
  paymasterServices: [],
  serviceSubmission: { dailyLoss: 10n ** 16n, maxInFlight: 16 },
  remoteBundler: null,
  receiptTimeoutMillis: 60_000,
  pollIntervalMillis: 500
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

  it("with an override of a chain that has no profile", () => {
    expect(refused({ profiles: [base], overrides }).message).toContain("no profile")
  })

  it("with figures that nothing can work with, in a profile or after an override", () => {
    const wrong: ReadonlyArray<Partial<NetworkProfile>> = [
      { confirmations: 0 },
      { confirmations: 1.5 },
      { receiptTimeoutMillis: 0 },
      { pollIntervalMillis: Number.NaN },
      { caps: { ...base.caps, maxFeePerGas: 0n } },
      { caps: { ...base.caps, transactionGas: 0n } }
    ]
    for (const part of wrong) {
      expect(refused({ profiles: [{ ...base, ...part }] })._tag).toBe("NetworksError")
      const own = [{ accountId: alice, chainId: 1n, profile: part }]
      expect(refused({ profiles: [base], overrides: own })._tag).toBe("NetworksError")
    }
  })
})
