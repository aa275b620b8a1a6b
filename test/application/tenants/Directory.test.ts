import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Fiber, Redacted, Scope } from "effect"
import { limitsOf } from "../../../src/application/ports/RateLimit.js"
import { type Key, TenantStore, TenantStoreError } from "../../../src/application/ports/TenantStore.js"
import * as Directory from "../../../src/application/tenants/Directory.js"
import type { FileAccount } from "../../../src/application/tenants/FileAccounts.js"
import * as InMemory from "../../support/journal/InMemory.js"
import { accountId, alice } from "../../support/journal/Make.js"
import { test as bare, testOver } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const carol = accountId("carol")
const start = Date.UTC(2026, 0, 2, 12)

/** The hash of a key in these tests is its text, filled up. */
const hash = (key: Redacted.Redacted<string>) => Redacted.value(key).padStart(64, "0")
const key = (name: string, change: Partial<Key> = {}): Key => ({
  hash: name.padStart(64, "0"),
  accountId: carol,
  scopes: ["read"],
  origin: "command",
  issuedAt: start,
  endsAt: null,
  ...change
})

const listed: ReadonlyArray<FileAccount> = [
  { accountId: alice, name: "Alice", tier: "pro", keys: [{ hash: key("f").hash }] }
]

/** A directory over a counted store, which fails or hangs while the test sets it to. */
const world = Effect.gen(function* () {
  yield* Time.setTime(start)
  const store = yield* InMemory.makeTenantStore
  yield* store.createAccount({ accountId: carol, name: "Carol", tier: "free", createdAt: start })
  yield* store.addKey(key("c"))
  const state = { versions: 0, contents: 0, notes: 0, answers: "well" as "well" | "badly" | "never" }
  const asked = <A>(effect: Effect.Effect<A, TenantStoreError>) =>
    Effect.suspend(() => {
      if (state.answers === "never") return Effect.never
      return state.answers === "badly"
        ? Effect.fail(new TenantStoreError({ reason: "unavailable", message: "away" }))
        : effect
    })
  const counted: TenantStore["Service"] = {
    ...store,
    version: asked(Effect.tap(store.version, () => Effect.sync(() => ++state.versions))),
    content: asked(Effect.tap(store.content, () => Effect.sync(() => ++state.contents))),
    noteUses: (uses) => asked(Effect.tap(store.noteUses(uses), () => Effect.sync(() => ++state.notes)))
  }
  const scope = yield* Scope.make()
  const directory = yield* Directory.make({ hash, accounts: listed }).pipe(
    Scope.provide(scope),
    Effect.provideService(TenantStore, counted)
  )
  const who = (name: string) =>
    Effect.map(directory.authenticate(Redacted.make(name)), (principal) => principal?.accountId ?? null)
  return { store, state, directory, who, close: Scope.close(scope, Exit.void) }
})

const test = testOver(InMemory.tenantStore)

describe("a key", () => {
  bare("that is revoked is dead within half a second", function* () {
    const { store, who } = yield* world
    expect([yield* who("c"), yield* who("f")]).toEqual([carol, alice])
    yield* store.endKey(key("c"), start)
    yield* store.endKey(key("f", { accountId: alice, origin: "file" }), start)
    yield* Time.adjust(500)
    expect([yield* who("c"), yield* who("f")]).toEqual([null, null])
  })

  bare("that is revoked is dead at the next poll, also when the clock was set back", function* () {
    const { store, who } = yield* world
    expect(yield* who("c")).toBe(carol)
    yield* store.endKey(key("c"), start - 3_600_000)
    yield* Time.setTime(start - 3_600_000)
    expect(yield* who("c")).toBeNull()
  })

  bare("that is rotated works next to the new key until its time is over, to the millisecond", function* () {
    const { store, who } = yield* world
    yield* store.addKey(key("d"), { key: key("c"), endsAt: start + 60_000 })
    yield* Time.adjust(59_999)
    expect([yield* who("c"), yield* who("d")]).toEqual([carol, carol])
    yield* Time.adjust(1)
    expect([yield* who("c"), yield* who("d")]).toEqual([null, carol])
  })

  bare("that is new works within half a second; a key of an unknown account is rejected", function* () {
    const { store, who } = yield* world
    yield* store.addKey(key("e", { accountId: alice }))
    yield* store.addKey(key("b", { accountId: accountId("nobody") }))
    yield* Time.adjust(500)
    expect([yield* who("e"), yield* who("b"), yield* who("x")]).toEqual([alice, null, null])
  })

  bare(
    "that is new works immediately where the store was read 50 ms ago, however many keys are unknown",
    function* () {
      const { state, store, who } = yield* world
      const { versions } = state
      yield* Time.adjust(50)
      yield* store.addKey(key("e", { accountId: alice }))
      const strangers = Array.from({ length: 100 }, (_, n) => who(`stranger ${n}`))
      expect(yield* Effect.all(strangers, { concurrency: "unbounded" })).toEqual(strangers.map(() => null))
      expect(yield* who("e")).toBe(alice)
      yield* Time.adjust(49)
      yield* Effect.all(strangers)
      expect(state.versions - versions).toBe(2)
    }
  )

  bare("that is unknown is refused while the store is away, while the known state is fresh", function* () {
    const { state, who } = yield* world
    yield* Time.adjust(50)
    state.answers = "badly"
    expect([yield* who("x"), yield* who("c")]).toEqual([null, carol])
  })

  bare(
    "of the file with an end in the store is not a key of the store after the file drops it",
    function* () {
      const { store, who } = yield* world
      yield* store.endKey(key("a", { accountId: alice, origin: "file" }), start + 1e9)
      yield* Time.adjust(500)
      expect(yield* who("a")).toBeNull()
    }
  )
})

describe("an account", () => {
  bare(
    "of the file or the store is paused and resumed, and its tier set, within half a second",
    function* () {
      const { directory, store } = yield* world
      const seen = Effect.gen(function* () {
        yield* Time.adjust(500)
        const both = ["c", "f"].map((name) => directory.authenticate(Redacted.make(name)))
        return (yield* Effect.all(both)).map((principal) => [principal?.paused, principal?.tier])
      })
      for (const subject of [carol, alice]) yield* store.pause({ kind: "account", subject, since: start })
      expect(yield* seen).toEqual([
        [true, "free"],
        [true, "pro"]
      ])
      for (const subject of [carol, alice]) yield* store.resume("account", subject)
      yield* store.changeAccount(carol, { tier: "enterprise" })
      expect(yield* seen).toEqual([
        [false, "enterprise"],
        [false, "pro"]
      ])
    }
  )

  test("has its own limits, of the file or the store, which apply within half a second", function* () {
    const store = yield* TenantStore
    yield* store.createAccount({
      accountId: carol,
      name: "Carol",
      tier: "free",
      requestsPerMinute: 5_000,
      createdAt: start
    })
    yield* store.addKey(key("c", { accountId: carol }))
    const accounts = listed.map((account) => ({ ...account, requestsPerHour: 90_000 }))
    const { authenticate } = yield* Directory.make({ hash, accounts })
    const limits = (name: string) =>
      Effect.map(authenticate(Redacted.make(name)), (principal) => principal && limitsOf(principal))
    expect(yield* limits("f")).toEqual({ minute: 300, hour: 90_000 })
    expect(yield* limits("c")).toEqual({ minute: 5_000, hour: 1_000 })
    yield* store.changeAccount(carol, { requestsPerMinute: null, requestsPerHour: 7 })
    yield* Time.adjust(500)
    expect(yield* limits("c")).toEqual({ minute: 60, hour: 7 })
  })

  test("paused by the file is paused whatever the store says", function* () {
    const accounts = listed.map((account) => ({ ...account, paused: true }))
    const { authenticate } = yield* Directory.make({ hash, accounts })
    expect(yield* authenticate(Redacted.make("f"))).toMatchObject({ paused: true })
  })
})

bare("switches of signers and chains are thrown and turned back within half a second", function* () {
  const { directory, store } = yield* world
  const state = Effect.gen(function* () {
    yield* Time.adjust(500)
    return [yield* directory.isPaused("chain", "137"), yield* directory.isPaused("signer", "137")]
  })
  expect(yield* state).toEqual([false, false])
  yield* store.pause({ kind: "chain", subject: "137", since: start })
  expect(yield* state).toEqual([true, false])
  yield* store.resume("chain", "137")
  expect(yield* state).toEqual([false, false])
})

describe("the store", () => {
  bare("is queried for its version once in half a second, and for its content after a change", function* () {
    const { directory, state, store, who } = yield* world
    expect(state).toMatchObject({ versions: 1, contents: 1 })
    const crowd = Effect.all(
      Array.from({ length: 100 }, () => who("c")),
      { concurrency: "unbounded" }
    )
    yield* crowd
    expect(state).toMatchObject({ versions: 1, contents: 1 })
    const before = yield* directory.content
    yield* Time.adjust(500)
    yield* crowd
    expect(state).toMatchObject({ versions: 2, contents: 1 })
    expect(yield* directory.content).toBe(before)
    yield* store.pause({ kind: "chain", subject: "1", since: start })
    yield* Time.adjust(500)
    yield* crowd
    expect(state).toMatchObject({ versions: 4, contents: 2 })
    expect(yield* directory.content).not.toBe(before)
  })

  bare("that does not reply admits no caller for longer than half a second", function* () {
    const { directory, state, who } = yield* world
    state.answers = "badly"
    expect(yield* who("c")).toBe(carol)
    yield* Time.adjust(500)
    expect((yield* Effect.flip(who("c"))).reason).toBe("unavailable")
    expect((yield* Effect.flip(directory.isPaused("chain", "1"))).reason).toBe("unavailable")
    expect((yield* directory.latest).accounts).toHaveLength(1)
    state.answers = "never"
    const waiting = yield* Effect.forkChild(Effect.flip(who("c")))
    yield* Time.adjust(5_000)
    expect((yield* Fiber.join(waiting)).message).toBe("the store of accounts does not answer")
    state.answers = "well"
    expect(yield* who("c")).toBe(carol)
  })
})

describe("the last use of a key", () => {
  bare("is written once a minute at most, and when the service stops", function* () {
    const { close, state, store, who } = yield* world
    for (let n = 0; n < 10; n++) {
      yield* Time.adjust(1_000)
      yield* who("c")
    }
    yield* who("nobody's")
    expect(state.notes).toBe(0)
    yield* Time.adjust(50_000)
    expect(state.notes).toBe(1)
    expect(yield* store.uses).toEqual(new Map([[key("c").hash, start + 10_000]]))
    yield* Time.adjust(120_000)
    expect(state.notes).toBe(1)
    yield* who("f")
    yield* close
    expect(state.notes).toBe(2)
    expect((yield* store.uses).get(key("f").hash)).toBe(start + 180_000)
  })

  bare("is kept for the next attempt when the write fails", function* () {
    const { state, store, who } = yield* world
    yield* who("c")
    state.answers = "badly"
    yield* Time.adjust(60_000)
    expect(yield* store.uses).toEqual(new Map())
    state.answers = "well"
    yield* Time.adjust(60_000)
    expect(yield* store.uses).toEqual(new Map([[key("c").hash, start]]))
  })
})
