import { describe, expect } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import { computeAddress } from "ethers"
import * as KeyRing from "../../../src/application/keys/KeyRing.js"
import { systemRoles } from "../../../src/application/keys/KeyRingRegistry.js"
import { KeyProviderError } from "../../../src/application/ports/KeyProvider.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Log from "../../support/Log.js"
import * as PrivateKeys from "../../support/signing/PrivateKeys.js"
import * as Scripted from "../../support/signing/Scripted.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const acme = "acme" as AccountId
const globex = "globex" as AccountId
const keyText = (n: number): string => `0x${n.toString(16).padStart(64, "ab")}`
const key = (n: number) => Redacted.make(keyText(n))
const addressOf = (n: number) => Address.unsafe(computeAddress(keyText(n)))

const refusal = (signers: PrivateKeys.Keys["signers"], system: PrivateKeys.Keys["system"] = {}) =>
  Effect.flip(PrivateKeys.make({ signers, system }))
const reasons = (...args: Parameters<typeof refusal>) =>
  Effect.map(refusal(...args), ({ problems }) => problems.map(({ reason }) => reason))

const record = (clientId: string, n: number, ...accountIds: ReadonlyArray<AccountId>) => ({
  accountIds,
  clientId,
  versionId: "1",
  privateKey: key(n)
})

describe("the names of keys", () => {
  test("are exactly one of versionId and assetId, not empty, for some account", function* () {
    for (const wrong of [
      { accountIds: [acme], clientId: "a" },
      { accountIds: [acme], clientId: "a", versionId: "1", assetId: "1" },
      { accountIds: [acme], clientId: "", versionId: "1" },
      { accountIds: [acme], clientId: "a", versionId: "" },
      { accountIds: [], clientId: "a", versionId: "1" }
    ])
      expect(yield* reasons([{ ...wrong, privateKey: key(1) }])).toEqual(["badReference"])
  })

  test("lead to one key in each account", function* () {
    const error = yield* refusal([record("a", 1, acme), record("a", 2, acme)])
    expect(error.problems).toEqual([
      { reason: "duplicateReference", message: 'account "acme" has two keys for signer "a" versionId "1"' }
    ])
  })

  test("may repeat in two accounts and lead each to its own key", function* () {
    const asset = { accountIds: [acme], clientId: "a", assetId: "1", privateKey: key(3) }
    const { signers } = yield* PrivateKeys.make({
      signers: [record("a", 1, acme), record("a", 2, globex), asset],
      system: {}
    })
    const version = { clientId: "a", versionId: "1" }
    const found = [
      signers.resolve(acme, version),
      signers.resolve(globex, version),
      signers.resolve(acme, { clientId: "a", assetId: "1" })
    ]
    expect((yield* Effect.all(found)).map(({ address }) => address)).toEqual([1, 2, 3].map(addressOf))
    expect(yield* Effect.flip(signers.resolve(globex, { clientId: "a", assetId: "1" }))).toMatchObject({
      reason: "assetNotSupported"
    })
  })

  test("with an unknown provider stop the start, including names that objects inherit", function* () {
    const source = (provider: string) => ({ provider, key: "k" })
    const error = yield* Effect.flip(
      KeyRing.make({
        providers: {},
        signers: [{ accountIds: [acme], clientId: "a", versionId: "1", source: source("constructor") }],
        system: { sponsor: source("__proto__") }
      })
    )
    expect(error.message).toBe(
      'the keys cannot be used:\n  signer "a" versionId "1": there is no provider "constructor"\n  the system key sponsor: there is no provider "__proto__"'
    )
  })
})

describe("the holder of an EOA", () => {
  test("is one account, in one record or in two", function* () {
    expect(yield* reasons([record("a", 1, acme, globex)])).toEqual(["sharedEoa"])
    const both = [{ ...record("a", 1, acme), shared: true }, record("b", 1, globex)]
    for (const apart of [both, both.toReversed()]) {
      const accounts = apart.map(({ accountIds }) => `"${accountIds[0]}"`).join(", ")
      expect((yield* refusal(apart)).problems).toEqual([
        { reason: "sharedEoa", message: `accounts ${accounts} reach one EOA (${addressOf(1)})` }
      ])
    }
  })

  test("is several accounts when every record of it says so, and one account under two names", function* () {
    const { signers } = yield* PrivateKeys.make({
      signers: [
        { ...record("dev", 1, acme, globex), shared: true },
        record("own", 2, acme),
        { accountIds: [acme], clientId: "own", assetId: "MATIC", privateKey: key(2) }
      ],
      system: {}
    })
    const a = yield* signers.resolve(acme, { clientId: "dev", versionId: "1" })
    const b = yield* signers.resolve(globex, { clientId: "dev", versionId: "1" })
    expect(a.address).toBe(b.address)
  })

  test("cannot be an account when it is a system key, shared or not", function* () {
    for (const role of systemRoles)
      for (const shared of [true, false]) {
        const error = yield* refusal([{ ...record("a", 1, acme), shared }], { [role]: key(1) })
        expect(error.problems).toEqual([
          {
            reason: "systemKeyReachable",
            message: `signer "a" versionId "1" is the system key ${role} (${addressOf(1)})`
          }
        ])
      }
  })

  test("is one system role", function* () {
    expect(yield* reasons([], { deployer: key(5), serviceEoa: key(5) })).toEqual(["systemKeysEqual"])
    expect(yield* reasons([], { serviceEoa: key(5), sponsor: key(5) })).toEqual(["systemKeysEqual"])
    expect((yield* refusal([], { deployer: key(5), sponsor: key(5) })).message).toContain(
      `the system key deployer and the system key sponsor are the same key (${addressOf(5)})`
    )
  })

  test("a system key that is not configured is named as such", function* () {
    const { systemSigners } = yield* PrivateKeys.make({ signers: [], system: {} })
    for (const role of systemRoles)
      expect(yield* Effect.flip(systemSigners[role])).toMatchObject({
        reason: "notConfigured",
        message: `no system key ${role} is configured`
      })
  })
})

/** The result of the effect while time passes. */
const within = <A, E, R>(time: string, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Effect.forkChild(effect), (fiber) =>
    Effect.andThen(Time.adjust(time as "1 second"), Fiber.join(fiber))
  )
const source = { provider: "it", key: "key" }
const name = 'signer "client" versionId "1": key "key" of provider "it"'

/** A provider of the first key that is away while the test sets it to. */
const flapping = () => {
  const state = { isDown: true }
  const provider = Scripted.make({
    privateKey: keyText(1),
    publicKey: (honest) =>
      state.isDown ? Scripted.failing("unavailable", "ECONNREFUSED") : Effect.succeed(honest)
  })
  return { provider, state }
}

describe("the start", () => {
  test("reports every invalid key in one failure, each by its name", function* () {
    const error = yield* refusal(
      [
        { ...record("bad", 1, acme), privateKey: Redacted.make("0x1234") },
        record("worse", 2, acme, globex),
        record("system", 3, acme)
      ],
      { deployer: key(3), sponsor: key(3), serviceEoa: Redacted.make("no key") }
    )
    expect(error.message.split("\n")).toEqual([
      "the keys cannot be used:",
      '  signer "bad" versionId "1": key "0" of provider "private keys": no valid secp256k1 private key',
      '  the system key serviceEoa: key "serviceEoa" of provider "private keys": no valid secp256k1 private key',
      `  the system key deployer and the system key sponsor are the same key (${addressOf(3)})`,
      `  signer "system" versionId "1" is the system key deployer (${addressOf(3)})`,
      `  accounts "acme", "globex" reach one EOA (${addressOf(2)})`
    ])
  })

  test("is refused by a key whose public key is no point of the curve in its one spelling", function* () {
    for (const point of [
      `02${"ab".repeat(32)}`,
      `04${"11".repeat(64)}`,
      "ab".repeat(64),
      `04${"AB".repeat(64)}`,
      ""
    ]) {
      const provider = Scripted.make({ privateKey: keyText(1), publicKey: () => Effect.succeed(point) })
      expect((yield* Effect.flip(Scripted.ring(provider))).problems).toEqual([
        { reason: "unsuitable", message: `${name}: its public key is no point of secp256k1` }
      ])
    }
  })

  test("fails on an absent, unsuitable or forbidden key, pinned or not", function* () {
    for (const reason of ["notFound", "unsuitable", "refused"] as const)
      for (const pinned of [{}, { address: addressOf(1) }]) {
        const provider = Scripted.make({
          privateKey: keyText(1),
          publicKey: () => Scripted.failing(reason, "AccessDenied")
        })
        const error = yield* Effect.flip(Scripted.ring(provider, pinned))
        expect(error.problems).toMatchObject([{ reason }])
        expect(error.message).toContain(`${name}: AccessDenied`)
        expect(provider.asked()).toBe(1)
      }
  })

  test("waits for a slow provider and fails when one stays away", function* () {
    const slow = Scripted.make({
      privateKey: keyText(1),
      publicKey: (honest, call) => (call < 3 ? Scripted.failing("unavailable") : Effect.succeed(honest))
    })
    expect((yield* within("2 seconds", Scripted.signer(slow))).address).toBe(addressOf(1))
    for (const publicKey of [() => Scripted.failing("unavailable", "ECONNREFUSED"), () => Effect.never]) {
      const ring = Scripted.ring(Scripted.make({ privateKey: keyText(1), publicKey }))
      const error = yield* within("10 seconds", Effect.flip(ring))
      expect(error.problems).toMatchObject([{ reason: "unavailable" }])
      expect(error.message).toContain(
        "(the service starts without the provider when the signer's address is configured)"
      )
    }
  })

  test("is over within a minute however many keys do not answer", function* () {
    const provider = Scripted.make({ privateKey: keyText(1), publicKey: () => Effect.never })
    const ring = KeyRing.make({
      providers: { it: { open: Effect.succeed(provider) } },
      signers: Array.from({ length: 300 }, (_, index) => ({
        accountIds: [acme],
        clientId: "a",
        versionId: `${index + 1}`,
        source: { provider: "it", key: `${index}` }
      })),
      system: {}
    })
    expect((yield* within("60 seconds", Effect.flip(ring))).problems).toHaveLength(300)
  })
})

describe("a pinned address", () => {
  test("stops the start when it is another key's", function* () {
    const ring = Scripted.ring(Scripted.make({ privateKey: keyText(1) }), { address: addressOf(2) })
    expect((yield* Effect.flip(ring)).problems).toEqual([
      {
        reason: "addressMismatch",
        message: `${name}: its address is ${addressOf(1)}, configured is ${addressOf(2)}`
      }
    ])
  })

  test("lets the service start while the provider is down; the key works once it is back", function* () {
    const lines = yield* Log.listen
    const { provider, state } = flapping()
    const { signers } = yield* within("10 seconds", Scripted.ring(provider, { address: addressOf(1) }))
    expect(lines).toMatchObject([
      { level: "WARN", message: "key provider down", annotations: { detail: "ECONNREFUSED" } }
    ])
    const resolve = signers.resolve(Scripted.account, Scripted.ref)
    const both = Effect.all([Effect.flip(resolve), Effect.flip(resolve)], { concurrency: 2 })
    for (const error of yield* within("10 seconds", both))
      expect(error).toMatchObject({ reason: "unavailable", message: "the key provider did not answer" })
    state.isDown = false
    const signer = yield* resolve
    expect(signer.address).toBe(addressOf(1))
    yield* signer.sign(Hex.unsafe32(`0x${"11".repeat(32)}`))
  })

  test("refuses its key and logs an error when it proves wrong after the provider returns", function* () {
    const lines = yield* Log.listen
    const { provider, state } = flapping()
    const { signers } = yield* within("10 seconds", Scripted.ring(provider, { address: addressOf(2) }))
    state.isDown = false
    expect((yield* Effect.flip(signers.resolve(Scripted.account, Scripted.ref))).reason).toBe("refused")
    expect(lines.at(-1)).toMatchObject({ level: "ERROR", annotations: { reason: "addressMismatch" } })
  })

  test("lets the service start while its provider is away, and closes the half-open provider", function* () {
    let isDown = true
    let closed = 0
    const open = Effect.gen(function* () {
      yield* Effect.addFinalizer(() => Effect.sync(() => void closed++))
      if (isDown) return yield* new KeyProviderError({ reason: "unavailable", message: "no session" })
      return Scripted.make({ privateKey: keyText(1) })
    })
    const system = { deployer: { ...source, address: addressOf(1) } }
    const ring = KeyRing.make({ providers: { it: { open } }, signers: [], system })
    const { systemSigners } = yield* within("10 seconds", ring)
    const failures = closed
    expect(failures).toBeGreaterThan(1)
    isDown = false
    expect((yield* systemSigners.deployer).address).toBe(addressOf(1))
    expect(closed).toBe(failures)
  })

  test("counts where the rules on EOAs are checked while the provider is down", function* () {
    const open = Effect.succeed(flapping().provider)
    const pinned = { ...source, address: addressOf(1) }
    const ring = KeyRing.make({
      providers: { it: { open }, other: { open } },
      signers: [{ accountIds: [acme], clientId: "a", versionId: "1", source: pinned }],
      system: { deployer: { ...pinned, provider: "other" } }
    })
    const { problems } = yield* within("10 seconds", Effect.flip(ring))
    expect(problems.map(({ reason }) => reason)).toContain("systemKeyReachable")
  })
})
