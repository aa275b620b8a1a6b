import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import * as Castellan from "castellan"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as MemoryNetworks from "../src/adapters/memory/Networks.js"
import type * as NetworkFile from "../src/hosts/config/NetworkFile.js"
import * as MemoryChain from "./support/memory/ChainRpc.js"
import * as PrivateKeys from "./support/signing/PrivateKeys.js"

const chainId = 31_337n
const url = "http://node.test"
const factory = `0x${"fa".repeat(20)}`
const beacon = `0x${"be".repeat(20)}`
const privateKey = `0x${"11".repeat(32)}`
const treasury = { clientId: "treasury", versionId: "1" }

const none: Castellan.Options = { networks: [], signers: [] }
const usual: Castellan.Options = {
  networks: [{ chainId, rpc: url, factory, beaconAdminAddress: beacon }],
  signers: [{ ...treasury, privateKey }]
}

const refusal = (options: Castellan.Options) =>
  Effect.map(Effect.flip(Effect.scoped(Layer.build(Castellan.layer(options)))), (error) => {
    expect(error).toBeInstanceOf(Castellan.LayerError)
    expect(error.message).not.toContain("11".repeat(32))
    return error
  })

const networks = Effect.flatMap(Castellan.caller(), (caller) => Castellan.ListNetworks.run(caller))

describe("Castellan.layer", () => {
  it.effect("needs only networks and signers", () =>
    Effect.gen(function* () {
      const signer = yield* Castellan.GetSigner.run(yield* Castellan.caller(), { signer: treasury })
      expect(signer.type).toBe("PRIVATE_KEY")
      expect((yield* networks).map(({ chainId }) => chainId)).toEqual([137, 8_453, 31_337, 80_002, 84_532])
    }).pipe(Effect.provide(Castellan.layer(usual)))
  )

  it.effect("runs use cases over a chain of the program's own", () =>
    Effect.gen(function* () {
      const node = yield* MemoryChain.make({ chainId })
      yield* Effect.gen(function* () {
        const accounts = [{ salt: "alice", walletCustody: 1 as const }]
        const [predicted] = yield* Castellan.PredictWallets.run(yield* Castellan.caller(), {
          accounts,
          settings: {
            factory: yield* Effect.fromResult(Castellan.Address.from(factory)),
            beaconAdminAddress: yield* Effect.fromResult(Castellan.Address.from(beacon)),
            beaconAdminCreationCode: Castellan.walletProxyCreationCode
          }
        })
        const checked = yield* Castellan.CheckWallets.run(yield* Castellan.caller(), {
          accounts,
          settings: { rpc: url }
        })
        expect(checked).toEqual([{ exists: false, wallet: predicted?.wallet, salt: "alice", error: null }])
      }).pipe(Effect.provide(Castellan.layer({ ...usual, chainRpc: MemoryChain.layer({ [url]: node }) })))
    })
  )

  it.effect("takes layers instead of networks and signers", () =>
    Effect.gen(function* () {
      const signer = yield* Castellan.GetSigner.run(yield* Castellan.caller({ account: "acme" }), {
        signer: treasury
      })
      expect(signer.type).toBe("PRIVATE_KEY")
      expect(yield* networks).toEqual([])
    }).pipe(
      Effect.provide(
        Castellan.layer({
          networks: MemoryNetworks.layer({ profiles: [] }),
          signers: PrivateKeys.layer({
            signers: [
              {
                ...treasury,
                accountIds: ["acme" as Castellan.Tenants.AccountId],
                privateKey: Redacted.make(privateKey)
              }
            ],
            system: {}
          })
        })
      )
    )
  )

  it.effect("limits an account's requests to the account's keys", () =>
    Effect.gen(function* () {
      const ask = (account?: string) =>
        Effect.flatMap(Castellan.caller(account === undefined ? {} : { account }), (caller) =>
          Castellan.GetSigner.run(caller, { signer: treasury })
        )
      expect((yield* ask("acme")).type).toBe("PRIVATE_KEY")
      expect((yield* Effect.flip(ask())).code).toBe("client_id_incorrect")
    }).pipe(
      Effect.provide(Castellan.layer({ ...none, signers: [{ ...treasury, privateKey, accounts: ["acme"] }] }))
    )
  )

  it.effect("reads amounts as numbers, bigints and strings, and secrets plain or redacted", () =>
    Effect.gen(function* () {
      const answer = yield* networks
      const named = answer.find(({ chainId }) => chainId === 31_337)
      expect(named).toMatchObject({
        factory: Result.getOrThrow(Castellan.Address.from(factory)),
        beaconAdminCreationCode: Castellan.walletProxyCreationCode,
        maxFeePerGas: "200000000000",
        maxPriorityFeePerGas: "2000000000"
      })
      expect(answer.find(({ chainId }) => chainId === 8_453)?.maxFeePerGas).toBe("3000000000")
    }).pipe(
      Effect.provide(
        Castellan.layer({
          networks: [
            {
              chainId,
              rpc: Redacted.make(url),
              factory,
              beaconAdminAddress: beacon,
              maxFeePerGas: 2n * 10n ** 11n,
              maxPriorityFeePerGas: 2_000_000_000
            },
            { chainId: 8_453, maxFeePerGas: "3000000000" }
          ],
          signers: [{ ...treasury, privateKey: Redacted.make(privateKey) }]
        })
      )
    )
  )

  it.effect("reports every invalid option in one failure, each at its path", () =>
    Effect.gen(function* () {
      const { message, problems } = yield* refusal({
        networks: [{ chainId: 0, factory: "0x12" }],
        signers: [],
        database: { path: "/nowhere/castellan.sqlite", sealingKey: "short" },
        egress: { allow: ["everywhere"] }
      })
      expect(problems.map(({ path }) => path)).toEqual([
        "database.sealingKey",
        "networks[0].chainId",
        "networks[0].factory",
        "egress.allow"
      ])
      for (const { path } of problems) expect(message).toContain(path)
      const twice = yield* refusal({ ...none, networks: [{ chainId }, { chainId: 31_337 }] })
      expect(twice.problems).toEqual([
        { path: "networks[1].chainId", message: "chain 31337 is listed twice" }
      ])
    })
  )

  it.effect("fails with the names of keys that cannot be used, never with the keys", () =>
    Effect.gen(function* () {
      const bad = yield* refusal({ ...none, signers: [{ ...treasury, privateKey: `${privateKey}11` }] })
      expect(bad.message).toContain('signer "treasury" versionId "1"')
      const equal = yield* refusal({ ...usual, systemKeys: { deployer: { privateKey } } })
      expect(equal.message).toContain("is the system key deployer")
      const absent = yield* refusal({ ...none, signers: [{ ...treasury, provider: "hsm", key: "k" }] })
      expect(absent.message).toContain('there is no provider "hsm"')
    })
  )

  it.effect("fails when its database cannot be opened", () =>
    Effect.gen(function* () {
      const { message } = yield* refusal({
        ...none,
        database: { path: "/nowhere/castellan.sqlite", sealingKey: "0123456789abcdef" }
      })
      expect(message).toContain("/nowhere/castellan.sqlite")
    })
  )

  it.effect("finds an earlier layer's data in a database, and none in memory", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "castellan-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const errorABI = { type: "error", name: "Broke", inputs: [] } as const
      const add = Effect.flatMap(Castellan.caller(), (caller) => Castellan.AddError.run(caller, { errorABI }))
      const registered = Effect.gen(function* () {
        const { principal } = yield* Castellan.caller()
        const store = yield* Castellan.AbiStore.AbiStore
        return (yield* store.errors(principal.accountId)).length
      })
      const database = { path: join(folder, "castellan.sqlite"), sealingKey: "0123456789abcdef" }
      yield* Effect.provide(add, Castellan.layer({ ...none, database }))
      expect(yield* Effect.provide(registered, Castellan.layer({ ...none, database }))).toBe(1)
      yield* Effect.provide(add, Castellan.layer(none))
      expect(yield* Effect.provide(registered, Castellan.layer(none))).toBe(0)
    }).pipe(Effect.scoped)
  )

  it("takes every network field of the configuration file", () => {
    expectTypeOf<keyof Castellan.Network>().toEqualTypeOf<keyof typeof NetworkFile.Network.Encoded>()
    expectTypeOf<Castellan.Network["rpc"]>().toEqualTypeOf<string | Redacted.Redacted | undefined>()
    expectTypeOf<Castellan.Network["maxFeePerGas"]>().toEqualTypeOf<number | bigint | string | undefined>()
    expectTypeOf<Castellan.Network["confirmations"]>().toEqualTypeOf<number | undefined>()
  })
})

describe("Castellan.caller", () => {
  it.effect("is another request each time", () =>
    Effect.gen(function* () {
      const ids = yield* Effect.all([Castellan.caller(), Castellan.caller()])
      expect(new Set(ids.map(({ requestId }) => requestId)).size).toBe(2)
    })
  )

  it.effect("distinguishes bodies under one idempotency key", () =>
    Effect.gen(function* () {
      const hashOf = (body: string) =>
        Effect.map(
          Castellan.caller({ idempotency: { key: "k", body } }),
          ({ idempotency }) => idempotency?.bodyHash
        )
      expect(yield* hashOf("a")).toBe(yield* hashOf("a"))
      expect(yield* hashOf("a")).not.toBe(yield* hashOf("b"))
    })
  )
})
