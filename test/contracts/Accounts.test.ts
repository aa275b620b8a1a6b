import { createHmac } from "node:crypto"
import { inspect } from "node:util"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Accounts from "../../src/adapters/memory/Accounts.js"
import * as ApiKey from "../../src/adapters/memory/ApiKey.js"
import type { Scope } from "../../src/application/ports/Accounts.js"
import { alice, bob } from "../support/journal/Make.js"
import { type Held, suite } from "./Accounts.suite.js"

const pepper = Redacted.make("a pepper of more than 16 bytes")
const issue = () => Effect.runSync(ApiKey.issue)
const all: ReadonlySet<Scope> = new Set(["read", "write", "sign"])

const held: ReadonlyArray<Held> = [
  { key: issue(), principal: { accountId: alice, name: "Alice", tier: "free", scopes: all, paused: false } },
  {
    key: issue(),
    principal: {
      accountId: alice,
      name: "Alice",
      tier: "free",
      scopes: new Set<Scope>(["read"]),
      paused: false
    }
  },
  { key: issue(), principal: { accountId: bob, name: "Bob", tier: "pro", scopes: all, paused: true } }
]

const [first, second, third] = held.map(({ key }) => ApiKey.hash(pepper, key))
const records: ReadonlyArray<Accounts.AccountRecord> = [
  {
    accountId: alice,
    name: "Alice",
    tier: "free",
    keys: [{ hash: first ?? "" }, { hash: second ?? "", scopes: ["read"] }]
  },
  { accountId: bob, name: "Bob", tier: "pro", paused: true, keys: [{ hash: third ?? "" }] }
]

suite("memory", Layer.orDie(Accounts.layer({ pepper, accounts: records })), held, issue())

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

  it("do not show when they are printed", () => {
    const key = issue()
    for (const text of [String(key), JSON.stringify({ key }), inspect({ key }, { depth: 10 })])
      expect(text).not.toContain(Redacted.value(key))
  })
})

describe("a list of accounts that cannot be right is refused at the start", () => {
  const refused = (options: Accounts.Options) => Effect.runSync(Effect.flip(Accounts.make(options)))
  const [one, other] = records

  it("with a pepper that could be guessed", () => {
    expect(refused({ pepper: Redacted.make("15 bytes long.."), accounts: [] }).message).toContain("pepper")
  })

  it("with an account, or a key, that is listed twice", () => {
    if (one === undefined || other === undefined) return expect.fail()
    expect(refused({ pepper, accounts: [one, other, one] }).message).toContain("twice")
    const stolen = { ...other, keys: one.keys }
    expect(refused({ pepper, accounts: [one, stolen] }).message).toContain("twice")
  })

  it("with a hash that is none", () => {
    if (one === undefined) return expect.fail()
    for (const hash of ["", "ab", "A".repeat(64), `${"a".repeat(64)}\n`])
      expect(refused({ pepper, accounts: [{ ...one, keys: [{ hash }] }] }).message).toContain("hash")
  })
})
