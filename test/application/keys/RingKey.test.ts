import { describe, expect } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { keccak256, recoverAddress, SigningKey, toBeHex } from "ethers"
import type { RawSignature } from "../../../src/application/ports/KeyProvider.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Log from "../../support/Log.js"
import * as Scripted from "../../support/signing/Scripted.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const privateKey = `0x${"ab".repeat(32)}`
const otherKey = new SigningKey(`0x${"cd".repeat(32)}`)
const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

const digestOf = (index: number) => Hex.unsafe32(keccak256(toBeHex(index + 1, 32)))
const digests = (count: number) => Array.from({ length: count }, (_, index) => digestOf(index))

const signAll = (signer: Effect.Success<ReturnType<typeof Scripted.signer>>, count: number) =>
  Effect.forEach(digests(count), signer.sign, { concurrency: "unbounded" })

describe("a signature of the ring", () => {
  test("has s in the lower half and a recovery id that yields the address, whichever half the provider returns", function* () {
    const provider = Scripted.make({
      privateKey,
      sign: (_, honest, call) =>
        Effect.succeed(honest.map(({ r, s }) => (call % 2 === 0 ? { r, s: order - s } : { r, s })))
    })
    const signer = yield* Scripted.signer(provider)
    const seen = new Set<string>()
    for (const digest of digests(20)) {
      const once = yield* signer.sign(digest)
      const again = yield* signer.sign(digest)
      expect(again).toBe(once)
      expect(BigInt(`0x${once.slice(66, 130)}`)).toBeLessThanOrEqual(order / 2n)
      expect(recoverAddress(digest, once)).toBe(signer.address)
      seen.add(once.slice(130))
    }
    expect([...seen].sort()).toEqual(["1b", "1c"])
  })

  const lies: Readonly<
    Record<string, (digest: string, honest: RawSignature) => ReadonlyArray<RawSignature>>
  > = {
    "another key's signature": (digest) => [Scripted.signatureBy(otherKey, digest)],
    "a signature of another digest": () => [Scripted.signatureBy(new SigningKey(privateKey), digestOf(99))],
    "r of zero": (_, { s }) => [{ r: 0n, s }],
    "s of zero": (_, { r }) => [{ r, s: 0n }],
    "r of the order": (_, { s }) => [{ r: order, s }],
    "s of the order": (_, { r }) => [{ r, s: order }],
    "s above 2^256": (_, { r, s }) => [{ r, s: s + (1n << 256n) }],
    "a negative r": (_, { r, s }) => [{ r: -r, s }],
    "r and s exchanged": (_, { r, s }) => [{ r: s, s: r }],
    "r that is on no point": (_, { s }) => [{ r: 5n, s }],
    "no signature": () => [],
    "two signatures": (_, honest) => [honest, honest]
  }
  for (const [name, lie] of Object.entries(lies))
    test(`${name} is refused, and the log has an error without it`, function* () {
      const lines = yield* Log.listen
      const digest = digestOf(1)
      const provider = Scripted.make({
        privateKey,
        sign: (given, honest) =>
          Effect.succeed(honest.flatMap((each, index) => lie(given[index] ?? "", each)))
      })
      const signer = yield* Scripted.signer(provider)
      const error = yield* Effect.flip(signer.sign(digest))
      expect(error).toMatchObject({ reason: "refused", message: "the key provider refused to sign" })
      expect(lines).toMatchObject([{ level: "ERROR", annotations: { reason: "wrongSignature" } }])
      const shown = JSON.stringify(lines)
      for (const { r, s } of lie(digest, Scripted.signatureBy(new SigningKey(privateKey), digest)))
        for (const part of [r, s])
          if (part > 9n) {
            expect(shown).not.toContain(part.toString())
            expect(shown).not.toContain(part.toString(16))
          }
      expect(provider.calls).toHaveLength(1)
    })

  test("logs an absent provider once, however often its key is used, and once when it returns", function* () {
    const lines = yield* Log.listen
    let isAway = true
    const provider = Scripted.make({
      privateKey,
      sign: (_, honest) =>
        isAway ? Scripted.failing("refused", "the token is locked") : Effect.succeed(honest)
    })
    const signer = yield* Scripted.signer(provider)
    for (const n of Array(50).keys()) yield* Effect.flip(signer.sign(digestOf(n + 1)))
    isAway = false
    yield* signer.sign(digestOf(1))
    expect(Log.told(lines, "key unavailable")).toEqual(["WARN", "INFO"])
  })

  test("refuses by naming only the crash when an adapter crashes or returns nonsense", function* () {
    const lines = yield* Log.listen
    const provider = Scripted.make({
      privateKey,
      sign: (_, __, call) => {
        if (call === 1) throw new TypeError("secret-4711")
        return call === 2 ? Effect.die(new RangeError("secret-4711")) : Effect.succeed(Object(null))
      }
    })
    const signer = yield* Scripted.signer(provider)
    for (const _ of [1, 2, 3]) expect((yield* Effect.flip(signer.sign(digestOf(1)))).reason).toBe("refused")
    expect(lines.map(({ annotations }) => annotations.detail)).toEqual([
      "the provider's adapter crashed (TypeError)",
      "the provider's adapter crashed (RangeError)",
      "the provider returned undefined signatures for 1 digests"
    ])
    expect(JSON.stringify(lines)).not.toContain("4711")
  })

  test("one wrong signature of a call leaves the others good", function* () {
    const provider = Scripted.make({
      privateKey,
      maxBatch: 3,
      sign: (_, honest) =>
        Effect.succeed(honest.map(({ r, s }, index) => (index === 1 ? { r: s, s: r } : { r, s })))
    })
    const signer = yield* Scripted.signer(provider)
    const [first, second, third] = yield* Effect.forEach(
      digests(3),
      (digest) => Effect.result(signer.sign(digest)),
      {
        concurrency: "unbounded"
      }
    )
    expect([first?._tag, second?._tag, third?._tag]).toEqual(["Success", "Failure", "Success"])
  })

  test("a digest that is not 32 bytes never reaches the provider", function* () {
    const provider = Scripted.make({ privateKey })
    const signer = yield* Scripted.signer(provider)
    for (const text of ["0x", "0x1234", `${digestOf(1)}00`, digestOf(1).slice(2), digestOf(1).toUpperCase()])
      expect(yield* Effect.flip(signer.sign(text as Hex.Bytes32))).toMatchObject({
        reason: "refused",
        message: "the digest is not 32 bytes"
      })
    expect(provider.calls).toEqual([])
  })
})

describe("a key in this process", () => {
  test("signs synchronously, without a call of the provider", function* () {
    const provider = Scripted.make({ privateKey, signNow: (honest) => honest })
    const signer = yield* Scripted.signer(provider)
    expect(recoverAddress(digestOf(1), Effect.runSync(signer.sign(digestOf(1))))).toBe(signer.address)
    expect(provider.calls).toEqual([])
  })

  test("proves its signatures, whatever parity it claims, and its crash is a refusal", function* () {
    for (const v of [27, 28] as const) {
      const signer = yield* Scripted.signer(
        Scripted.make({ privateKey, signNow: ({ r, s }) => ({ r, s, v }) })
      )
      expect(recoverAddress(digestOf(1), yield* signer.sign(digestOf(1)))).toBe(signer.address)
    }
    const lines = yield* Log.listen
    const wrong = yield* Scripted.signer(
      Scripted.make({ privateKey, signNow: ({ r, s }) => ({ r: s, s: r }) })
    )
    expect((yield* Effect.flip(wrong.sign(digestOf(1)))).reason).toBe("refused")
    const crashing = yield* Scripted.signer(
      Scripted.make({
        privateKey,
        signNow: () => {
          throw new TypeError("secret-4711")
        }
      })
    )
    expect((yield* Effect.flip(crashing.sign(digestOf(1)))).reason).toBe("refused")
    expect(JSON.stringify(lines)).not.toContain("4711")
  })
})

describe("calls of a provider", () => {
  test("carry the concurrent digests, as many as fit, in order", function* () {
    const provider = Scripted.make({ privateKey, maxBatch: 8 })
    const signer = yield* Scripted.signer(provider)
    const signatures = yield* signAll(signer, 20)
    expect(provider.calls.map(({ length }) => length)).toEqual([8, 8, 4])
    expect(provider.calls.flat()).toEqual(digests(20))
    expect(signatures.map((signature, index) => recoverAddress(digestOf(index), signature))).toEqual(
      digests(20).map(() => signer.address)
    )
  })

  test("are bounded in number; digests that come meanwhile travel together after them", function* () {
    const gate = yield* Deferred.make<void>()
    let most = 0
    let now = 0
    const provider = Scripted.make({
      privateKey,
      maxBatch: 4,
      sign: (_, honest) =>
        Effect.gen(function* () {
          now += 1
          most = Math.max(most, now)
          yield* Deferred.await(gate)
          now -= 1
          return honest
        })
    })
    const signer = yield* Scripted.signer(provider, { limits: { inFlight: 2 } })
    const all = yield* Effect.forkChild(signAll(signer, 18))
    yield* Effect.repeat(Effect.yieldNow, { until: () => provider.calls.length === 2 })
    yield* Effect.repeat(Effect.yieldNow, { times: 50 })
    expect(provider.calls).toHaveLength(2)
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Fiber.join(all)).toHaveLength(18)
    expect(most).toBe(2)
    expect(provider.calls.map(({ length }) => length)).toEqual([4, 4, 4, 4, 2])
  })

  test("are made again after a pause while the provider is unavailable", function* () {
    const provider = Scripted.make({
      privateKey,
      sign: (_, honest, call) => (call < 4 ? Scripted.failing("unavailable") : Effect.succeed(honest))
    })
    const signer = yield* Scripted.signer(provider)
    const signing = yield* Effect.forkChild(signer.sign(digestOf(1)))
    yield* Time.adjust("100 millis")
    expect(provider.calls).toHaveLength(1)
    yield* Time.adjust("4 seconds")
    expect(recoverAddress(digestOf(1), yield* Fiber.join(signing))).toBe(signer.address)
    expect(provider.calls).toHaveLength(4)
  })

  test("are made once when the provider refuses", function* () {
    for (const reason of ["refused", "notFound", "unsuitable"] as const) {
      const provider = Scripted.make({ privateKey, sign: () => Scripted.failing(reason) })
      const signer = yield* Scripted.signer(provider)
      expect((yield* Effect.flip(signer.sign(digestOf(1)))).reason).toBe("refused")
      expect(provider.calls).toHaveLength(1)
    }
  })

  test("end within 25 seconds when the provider stays unavailable, and hide the cause from callers", function* () {
    const lines = yield* Log.listen
    const provider = Scripted.make({ privateKey, sign: () => Scripted.failing("unavailable", "Throttled") })
    const signer = yield* Scripted.signer(provider)
    const signing = yield* Effect.forkChild(Effect.flip(signer.sign(digestOf(1))))
    yield* Time.adjust("25 seconds")
    expect(yield* Fiber.join(signing)).toMatchObject({
      reason: "unavailable",
      message: "the key provider did not answer"
    })
    const calls = provider.calls.length
    expect(calls).toBeGreaterThan(8)
    expect(calls).toBeLessThan(16)
    yield* Time.adjust("1 minute")
    expect(provider.calls).toHaveLength(calls)
    expect(lines.map(({ level }) => level)).toEqual(["WARN"])
  })

  test("without a reply are abandoned one by one, even in uninterruptible regions", function* () {
    const provider = Scripted.make({
      privateKey,
      sign: (_, honest, call) => (call < 3 ? Effect.uninterruptible(Effect.never) : Effect.succeed(honest))
    })
    const signer = yield* Scripted.signer(provider)
    const signing = yield* Effect.forkChild(Effect.uninterruptible(signer.sign(digestOf(1))))
    yield* Time.adjust("8 seconds")
    yield* Time.adjust("1 second")
    expect(provider.calls).toHaveLength(2)
    yield* Time.adjust("9 seconds")
    expect(recoverAddress(digestOf(1), yield* Fiber.join(signing))).toBe(signer.address)
  })

  test("are skipped when no caller waits any longer", function* () {
    const gate = yield* Deferred.make<void>()
    const provider = Scripted.make({
      privateKey,
      sign: (_, honest) => Effect.as(Deferred.await(gate), honest)
    })
    const signer = yield* Scripted.signer(provider, { limits: { inFlight: 1 } })
    const first = yield* Effect.forkChild(signer.sign(digestOf(0)))
    yield* Effect.repeat(Effect.yieldNow, { until: () => provider.calls.length === 1 })
    const impatient = yield* Effect.forkChild(signer.sign(digestOf(1)))
    const patient = yield* Effect.forkChild(signer.sign(digestOf(2)))
    yield* Effect.repeat(Effect.yieldNow, { times: 20 })
    yield* Fiber.interrupt(impatient)
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(first)
    yield* Fiber.join(patient)
    expect(provider.calls).toEqual([[digestOf(0)], [digestOf(2)]])
  })

  test("end with the ring: waiting callers learn that the key is unavailable", function* () {
    const scope = yield* Scope.make()
    const provider = Scripted.make({ privateKey, sign: () => Effect.never })
    const signer = yield* Scope.provide(Scripted.signer(provider, { limits: { inFlight: 1 } }), scope)
    const under = yield* Effect.forkChild(Effect.flip(signer.sign(digestOf(0))))
    const queued = yield* Effect.forkChild(Effect.flip(signer.sign(digestOf(1))))
    yield* Effect.repeat(Effect.yieldNow, { until: () => provider.calls.length === 1 })
    yield* Scope.close(scope, Exit.void)
    for (const fiber of [under, queued]) expect((yield* Fiber.join(fiber)).reason).toBe("unavailable")
    expect((yield* Effect.flip(signer.sign(digestOf(2)))).reason).toBe("unavailable")
    expect(provider.calls).toHaveLength(1)
  })
})
