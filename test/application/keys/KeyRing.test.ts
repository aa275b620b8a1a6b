import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/TestClock"
import { computeAddress } from "ethers"
import * as KeyRing from "../../../src/application/keys/KeyRing.js"
import { KeyProviderError } from "../../../src/application/ports/KeyProvider.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { law } from "../../support/Law.js"
import * as Log from "../../support/Log.js"
import * as PrivateKeys from "../../support/signing/PrivateKeys.js"
import * as Scripted from "../../support/signing/Scripted.js"

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
  law("are exactly one of versionId and assetId, not empty, for some account", function* () {
    for (const wrong of [
      { accountIds: [acme], clientId: "a" },
      { accountIds: [acme], clientId: "a", versionId: "1", assetId: "1" },
      { accountIds: [acme], clientId: "", versionId: "1" },
      { accountIds: [acme], clientId: "a", versionId: "" },
      { accountIds: [], clientId: "a", versionId: "1" }
    ])
      expect(yield* reasons([{ ...wrong, privateKey: key(1) }])).toEqual(["badReference"])
  })

  law("lead to one key in each account", function* () {
    const error = yield* refusal([record("a", 1, acme), record("a", 2, acme)])
    expect(error.problems).toEqual([
      { reason: "duplicateReference", message: 'account "acme" has two keys for signer "a" versionId "1"' }
    ])
  })

  law("of providers that do not exist stop the start, also names that objects inherit", function* () {
    const source = (provider: string) => ({ provider, key: "k" })
    const error = yield* Effect.flip(
      KeyRing.make({
        providers: {},
        signers: [{ accountIds: [acme], clientId: "a", versionId: "1", source: source("constructor") }],
        system: { sponsor: source("__proto__") }
      })
    )
    expect(error.message).toBe(
      'the keys can not be used:\n  signer "a" versionId "1": there is no provider "constructor"\n  the system key sponsor: there is no provider "__proto__"'
    )
  })
})

describe("who reaches an EOA", () => {
  law("is one account, be it in one record or in two", function* () {
    expect(yield* reasons([record("a", 1, acme, globex)])).toEqual(["sharedEoa"])
    const apart = yield* refusal([{ ...record("a", 1, acme), shared: true }, record("b", 1, globex)])
    expect(apart.problems).toEqual([
      { reason: "sharedEoa", message: `accounts "acme", "globex" reach one EOA (${addressOf(1)})` }
    ])
  })

  law("is several accounts when every record of it says so, and one account under two names", function* () {
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

  law("is no account when it is a system key, shared or not", function* () {
    for (const role of ["deployer", "serviceEoa", "sponsor"] as const)
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

  law("is one system role", function* () {
    expect(yield* reasons([], { deployer: key(5), serviceEoa: key(5) })).toEqual(["systemKeysEqual"])
    expect(yield* reasons([], { serviceEoa: key(5), sponsor: key(5) })).toEqual(["systemKeysEqual"])
    expect((yield* refusal([], { deployer: key(5), sponsor: key(5) })).message).toContain(
      `the system key deployer and the system key sponsor are the same key (${addressOf(5)})`
    )
  })

  law("a system key that is not configured is named as such", function* () {
    const { systemSigners } = yield* PrivateKeys.make({ signers: [], system: {} })
    for (const role of ["deployer", "serviceEoa", "sponsor"] as const)
      expect(yield* Effect.flip(systemSigners[role])).toMatchObject({
        reason: "notConfigured",
        message: `no system key ${role} is configured`
      })
  })
})

describe("the start", () => {
  law("lists everything that is wrong with the keys at once, each by its name", function* () {
    const error = yield* refusal(
      [
        { ...record("bad", 1, acme), privateKey: Redacted.make("0x1234") },
        record("worse", 2, acme, globex),
        record("system", 3, acme)
      ],
      { deployer: key(3), sponsor: key(3), serviceEoa: Redacted.make("no key") }
    )
    expect(error.message.split("\n")).toEqual([
      "the keys can not be used:",
      '  signer "bad" versionId "1": key "0" of provider "private keys": no valid secp256k1 private key',
      '  the system key serviceEoa: key "serviceEoa" of provider "private keys": no valid secp256k1 private key',
      `  the system key deployer and the system key sponsor are the same key (${addressOf(3)})`,
      `  signer "system" versionId "1" is the system key deployer (${addressOf(3)})`,
      `  accounts "acme", "globex" reach one EOA (${addressOf(2)})`
    ])
  })

  const points: Readonly<Record<string, string>> = {
    "a compressed point": `02${"ab".repeat(32)}`,
    "a point beside the curve": `04${"11".repeat(64)}`,
    "the coordinates alone": "ab".repeat(64),
    "capital letters": `04${"AB".repeat(64)}`,
    nothing: ""
  }
  for (const [name, point] of Object.entries(points))
    law(`is refused by a key whose public key is ${name}`, function* () {
      const provider = Scripted.make({ privateKey: keyText(1), publicKey: () => Effect.succeed(point) })
      const error = yield* Effect.flip(Scripted.ring(provider))
      expect(error.problems).toEqual([
        {
          reason: "unsuitable",
          message:
            'signer "client" versionId "1": key "key" of provider "it": its public key is no point of secp256k1'
        }
      ])
    })

  law("is refused by a key that is absent, unsuitable or not permitted, pinned or not", function* () {
    for (const reason of ["notFound", "unsuitable", "refused"] as const)
      for (const address of [undefined, addressOf(1)]) {
        const provider = Scripted.make({
          privateKey: keyText(1),
          publicKey: () => Scripted.failing(reason, "AccessDenied")
        })
        const error = yield* Effect.flip(Scripted.ring(provider, address === undefined ? {} : { address }))
        expect(error.problems).toMatchObject([{ reason }])
        expect(error.message).toContain(
          'signer "client" versionId "1": key "key" of provider "it": AccessDenied'
        )
        expect(provider.asked()).toBe(1)
      }
  })

  law("waits for a provider that is slow to come up", function* () {
    const provider = Scripted.make({
      privateKey: keyText(1),
      publicKey: (honest, call) => (call < 3 ? Scripted.failing("unavailable") : Effect.succeed(honest))
    })
    const starting = yield* Effect.fork(Scripted.signer(provider))
    yield* TestClock.adjust("2 seconds")
    expect((yield* Fiber.join(starting)).address).toBe(addressOf(1))
  })

  law("is refused by a provider that stays away, with the remedy", function* () {
    for (const publicKey of [() => Scripted.failing("unavailable", "ECONNREFUSED"), () => Effect.never]) {
      const starting = yield* Effect.fork(
        Effect.flip(Scripted.ring(Scripted.make({ privateKey: keyText(1), publicKey })))
      )
      yield* TestClock.adjust("10 seconds")
      const error = yield* Fiber.join(starting)
      expect(error.problems).toMatchObject([{ reason: "unavailable" }])
      expect(error.message).toContain("(with its address configured the service starts all the same)")
    }
  })

  law("is over within a minute however many keys do not answer", function* () {
    const starting = yield* Effect.fork(
      Effect.flip(
        KeyRing.make({
          providers: {
            it: {
              open: Effect.succeed(Scripted.make({ privateKey: keyText(1), publicKey: () => Effect.never }))
            }
          },
          signers: Array.from({ length: 300 }, (_, index) => ({
            accountIds: [acme],
            clientId: "a",
            versionId: `${index + 1}`,
            source: { provider: "it", key: `${index}` }
          })),
          system: {}
        })
      )
    )
    yield* TestClock.adjust("60 seconds")
    expect((yield* Fiber.join(starting)).problems).toHaveLength(300)
  })
})

describe("a pinned address", () => {
  law("that is another key's stops the start", function* () {
    const error = yield* Effect.flip(
      Scripted.ring(Scripted.make({ privateKey: keyText(1) }), { address: addressOf(2) })
    )
    expect(error.problems).toEqual([
      {
        reason: "addressMismatch",
        message: `signer "client" versionId "1": key "key" of provider "it": its address is ${addressOf(1)}, configured is ${addressOf(2)}`
      }
    ])
  })

  it.scoped("lets the service start while the provider is down; the key works once it is back", () => {
    const log = Log.make()
    let down = true
    return Effect.gen(function* () {
      const provider = Scripted.make({
        privateKey: keyText(1),
        publicKey: (honest) =>
          down ? Scripted.failing("unavailable", "ECONNREFUSED") : Effect.succeed(honest)
      })
      const starting = yield* Effect.fork(Scripted.ring(provider, { address: addressOf(1) }))
      yield* TestClock.adjust("10 seconds")
      const { signers } = yield* Fiber.join(starting)
      expect(log.lines).toMatchObject([
        { level: "WARN", message: "a key provider is down", annotations: { detail: "ECONNREFUSED" } }
      ])
      const resolve = signers.resolve(Scripted.account, Scripted.ref)
      const first = yield* Effect.fork(Effect.flip(resolve))
      const second = yield* Effect.fork(Effect.flip(resolve))
      yield* TestClock.adjust("10 seconds")
      for (const fiber of [first, second])
        expect(yield* Fiber.join(fiber)).toMatchObject({
          reason: "unavailable",
          message: "the key provider did not answer"
        })
      down = false
      const signer = yield* resolve
      expect(signer.address).toBe(addressOf(1))
      yield* signer.sign(Hex.unsafe32(`0x${"11".repeat(32)}`))
    }).pipe(Effect.provide(log.layer))
  })

  it.scoped("that turns out wrong when the provider is back is refused and logged as an error", () => {
    const log = Log.make()
    let down = true
    return Effect.gen(function* () {
      const provider = Scripted.make({
        privateKey: keyText(1),
        publicKey: (honest) => (down ? Scripted.failing("unavailable") : Effect.succeed(honest))
      })
      const starting = yield* Effect.fork(Scripted.ring(provider, { address: addressOf(2) }))
      yield* TestClock.adjust("10 seconds")
      const { signers } = yield* Fiber.join(starting)
      down = false
      expect((yield* Effect.flip(signers.resolve(Scripted.account, Scripted.ref))).reason).toBe("refused")
      expect(log.lines.at(-1)).toMatchObject({ level: "ERROR", annotations: { reason: "addressMismatch" } })
    }).pipe(Effect.provide(log.layer))
  })

  law(
    "of a provider that can not be opened yet lets the service start, and what was half open is closed",
    function* () {
      let down = true
      let closed = 0
      const provider = Scripted.make({ privateKey: keyText(1) })
      const open = Effect.gen(function* () {
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            closed += 1
          })
        )
        if (down) return yield* new KeyProviderError({ reason: "unavailable", message: "no session" })
        return provider
      })
      const starting = yield* Effect.fork(
        KeyRing.make({
          providers: { it: { open } },
          signers: [],
          system: { deployer: { provider: "it", key: "key", address: addressOf(1) } }
        })
      )
      yield* TestClock.adjust("10 seconds")
      const { systemSigners } = yield* Fiber.join(starting)
      const failures = closed
      expect(failures).toBeGreaterThan(1)
      down = false
      expect((yield* systemSigners.deployer).address).toBe(addressOf(1))
      expect(closed).toBe(failures)
    }
  )

  law("counts where the rules on EOAs are checked while the provider is down", function* () {
    const provider = Scripted.make({
      privateKey: keyText(1),
      publicKey: () => Scripted.failing("unavailable")
    })
    const source = { provider: "it", key: "key", address: addressOf(1) }
    const starting = yield* Effect.fork(
      Effect.flip(
        KeyRing.make({
          providers: { it: { open: Effect.succeed(provider) }, other: { open: Effect.succeed(provider) } },
          signers: [{ accountIds: [acme], clientId: "a", versionId: "1", source }],
          system: { deployer: { ...source, provider: "other" } }
        })
      )
    )
    yield* TestClock.adjust("10 seconds")
    expect((yield* Fiber.join(starting)).problems.map(({ reason }) => reason)).toContain("systemKeyReachable")
  })
})
