import { createHmac } from "node:crypto"
import { inspect } from "node:util"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as ApiKey from "../../src/adapters/memory/ApiKey.js"
import { TenantStore } from "../../src/application/ports/TenantStore.js"
import type { Principal, Scope } from "../../src/application/ports/Tenants.js"
import * as Directory from "../../src/application/tenants/Directory.js"
import type { FileAccount } from "../../src/application/tenants/FileAccounts.js"
import * as InMemory from "../support/journal/InMemory.js"
import { accountId, alice, bob } from "../support/journal/Make.js"
import { type Held, suite } from "./Accounts.suite.js"

const pepper = Redacted.make("a pepper of more than 16 bytes")
const hash = Result.getOrThrow(ApiKey.hasher(pepper))
const issue = () => Effect.runSync(ApiKey.issue)
const hashOf = (key: Redacted.Redacted<string>) => hash(key) ?? ""
const principalOf = (
  key: Redacted.Redacted<string>,
  known: Pick<Principal, "accountId" | "name" | "tier" | "scopes">,
  paused = false
): Held => ({ key, principal: { ...known, paused, keyId: hashOf(key).slice(0, 12) } })
const all: ReadonlySet<Scope> = new Set(["read", "write", "sign", "webhooks"])
const carol = accountId("carol")

const [first, second, third, fourth, fifth] = Array.from({ length: 5 }, issue)
if (!first || !second || !third || !fourth || !fifth) throw new Error("there are five keys")

const held: ReadonlyArray<Held> = [
  principalOf(first, { accountId: alice, name: "Alice", tier: "free", scopes: all }),
  principalOf(second, { accountId: alice, name: "Alice", tier: "free", scopes: new Set(["read"]) }),
  principalOf(third, { accountId: bob, name: "Bob", tier: "pro", scopes: all }, true),
  // In the store: a key of an account in the file, and a key of an account that only the store has.
  principalOf(fourth, { accountId: alice, name: "Alice", tier: "free", scopes: new Set(["sign"]) }),
  principalOf(fifth, { accountId: carol, name: "Carol", tier: "enterprise", scopes: all })
]

const listed: ReadonlyArray<FileAccount> = [
  {
    accountId: alice,
    name: "Alice",
    tier: "free",
    keys: [{ hash: hashOf(first) }, { hash: hashOf(second), scopes: ["read"] }]
  },
  { accountId: bob, name: "Bob", tier: "pro", paused: true, keys: [{ hash: hashOf(third) }] }
]

const fill = Effect.gen(function* () {
  const store = yield* TenantStore
  const key = { origin: "command", issuedAt: 1, endsAt: null } as const
  yield* store.createAccount({ accountId: carol, name: "Carol", tier: "enterprise", createdAt: 1 })
  yield* store.addKey({ ...key, hash: hashOf(fourth), accountId: alice, scopes: ["sign"] })
  yield* store.addKey({ ...key, hash: hashOf(fifth), accountId: carol, scopes: [...all] })
})

const over = <E>(store: Layer.Layer<TenantStore, E>) =>
  Layer.fresh(
    Directory.layer({ hash, accounts: listed }).pipe(
      Layer.provide(Layer.tap(store, (made) => Effect.provide(fill, made))),
      Layer.orDie
    )
  )

suite("SQLite", over(InMemory.tenantStore), held, issue())

describe("API keys", () => {
  it("are 32 random bytes behind a prefix, and no two are the same", () => {
    const keys = Array.from({ length: 1_000 }, () => Redacted.value(issue()))
    expect(new Set(keys).size).toBe(1_000)
    for (const key of keys) {
      expect(ApiKey.is(key)).toBe(true)
      expect(key.startsWith("cst_")).toBe(true)
      expect(Buffer.from(key.slice(4), "base64url").length).toBe(32)
    }
  })

  it("are hashed by HMAC-SHA-256 under the pepper", () => {
    const key = issue()
    const expected = createHmac("sha256", "a pepper of more than 16 bytes").update(Redacted.value(key))
    expect(ApiKey.hash(pepper, key)).toBe(expected.digest("hex"))
    expect(ApiKey.hash(Redacted.make("another pepper, long enough"), key)).not.toBe(ApiKey.hash(pepper, key))
  })

  it("are redacted when printed", () => {
    const key = issue()
    for (const text of [String(key), JSON.stringify({ key }), inspect({ key }, { depth: 10 })])
      expect(text).not.toContain(Redacted.value(key))
  })

  it("are not hashed under a pepper that could be guessed", () => {
    expect(ApiKey.hasher(Redacted.make("15 bytes long.."))).toEqual(
      Result.fail("the pepper of the API keys has less than 16 bytes")
    )
  })
})

describe("a list of accounts that cannot be right is refused at the start", () => {
  const refused = (accounts: ReadonlyArray<FileAccount>) =>
    Directory.make({ hash, accounts }).pipe(
      Effect.scoped,
      Effect.provide(InMemory.tenantStore),
      Effect.flip,
      Effect.runSync
    ).message
  const [one, other] = listed
  if (one === undefined || other === undefined) throw new Error("there are two accounts")

  it("with a duplicate account or key", () => {
    expect(refused([one, other, one])).toContain("twice")
    expect(refused([one, { ...other, keys: one.keys }])).toContain("twice")
  })

  it("with an invalid hash", () => {
    for (const wrong of ["", "ab", "A".repeat(64), `${"a".repeat(64)}\n`])
      expect(refused([{ ...one, keys: [{ hash: wrong }] }])).toContain("hash")
  })
})
