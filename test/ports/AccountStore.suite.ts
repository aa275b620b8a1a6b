import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import {
  type Account,
  type Key,
  type OwnNetwork,
  type OwnSigner,
  TenantStore,
  TenantStoreError
} from "../../src/application/ports/TenantStore.js"
import { accountId, address, alice, bob } from "../support/journal/Make.js"

const account = (id = alice, change: Partial<Account> = {}): Account => ({
  accountId: id,
  name: `the name of ${id}`,
  tier: "free",
  createdAt: 1_700_000_000_000,
  ...change
})

const key = (n: number, change: Partial<Key> = {}): Key => ({
  hash: n.toString(16).padStart(64, "0"),
  accountId: alice,
  scopes: ["read", "write", "sign"],
  origin: "command",
  issuedAt: 1_700_000_000_001,
  endsAt: null,
  ...change
})

const network = (change: Partial<OwnNetwork> = {}): OwnNetwork => ({
  accountId: alice,
  chainId: 137n,
  factory: address(0xfa),
  settings: '{"chainId":137}',
  ...change
})

const signer = (change: Partial<OwnSigner> = {}): OwnSigner => ({
  accountId: alice,
  ref: { clientId: "c", versionId: "1" },
  provider: "hsm",
  key: "label",
  address: null,
  ...change
})

/** Each time the layer is provided the store is empty. */
export const suite = (name: string, layer: Layer.Layer<TenantStore>): void => {
  const fact = (text: string, body: Effect.Effect<void, unknown, TenantStore>) =>
    it.effect(text, () => Effect.provide(body, layer))

  /** Fails for this reason and changes nothing. */
  const refused = (
    reason: TenantStoreError["reason"],
    change: Effect.Effect<void, TenantStoreError>
  ): Effect.Effect<void, unknown, TenantStore> =>
    Effect.gen(function* () {
      const store = yield* TenantStore
      const before = [yield* store.version, yield* store.content]
      const error = yield* Effect.flip(change)
      expect(error).toBeInstanceOf(TenantStoreError)
      expect(error.reason).toBe(reason)
      expect([yield* store.version, yield* store.content]).toEqual(before)
    })

  describe(`the store of accounts in ${name}`, () => {
    fact(
      "is empty at first",
      Effect.gen(function* () {
        const store = yield* TenantStore
        expect(yield* store.content).toEqual({
          accounts: [],
          keys: [],
          networks: [],
          signers: [],
          pauses: []
        })
        expect(yield* store.uses).toEqual(new Map())
      })
    )

    fact(
      "keeps accounts in the order of creation, and their changes",
      Effect.gen(function* () {
        const store = yield* TenantStore
        const odd = accountId("'; drop table accounts; --")
        for (const id of [bob, alice, odd]) yield* store.createAccount(account(id))
        yield* store.changeAccount(alice, { tier: "enterprise" })
        yield* store.changeAccount(bob, { name: "Bób \u{1f511}" })
        yield* store.changeAccount(odd, {})
        expect((yield* store.content).accounts).toEqual([
          account(bob, { name: "Bób \u{1f511}" }),
          account(alice, { tier: "enterprise" }),
          account(odd)
        ])
      })
    )

    fact(
      "keeps an account's limits instead of its tier's until they are removed",
      Effect.gen(function* () {
        const store = yield* TenantStore
        yield* store.createAccount(account(alice, { requestsPerMinute: 6_000, requestsPerHour: 60_000_000 }))
        yield* store.createAccount(account(bob))
        const [first] = (yield* store.content).accounts
        expect(first).toEqual(account(alice, { requestsPerMinute: 6_000, requestsPerHour: 60_000_000 }))
        yield* store.changeAccount(alice, { requestsPerMinute: null })
        yield* store.changeAccount(bob, { requestsPerMinute: 5 })
        expect((yield* store.content).accounts).toEqual([
          account(alice, { requestsPerHour: 60_000_000 }),
          account(bob, { requestsPerMinute: 5 })
        ])
      })
    )

    fact(
      "rejects a second account of one name, and changes to unknown accounts",
      Effect.gen(function* () {
        const store = yield* TenantStore
        yield* store.createAccount(account())
        yield* refused("accountExists", store.createAccount(account(alice, { tier: "pro" })))
        yield* refused("unknownAccount", store.changeAccount(bob, { tier: "pro" }))
        yield* refused("unknownAccount", store.setNetwork(network({ accountId: bob })))
        yield* refused("unknownAccount", store.addSigner(signer({ accountId: bob })))
      })
    )

    fact(
      "signals every change",
      Effect.gen(function* () {
        const store = yield* TenantStore
        const changes = [
          store.createAccount(account()),
          store.changeAccount(alice, { tier: "pro" }),
          store.addKey(key(1)),
          store.setScopes(key(1).hash, ["read"]),
          store.endKey(key(1), 5),
          store.setNetwork(network()),
          store.removeNetwork(alice, 137n),
          store.addSigner(signer()),
          store.removeSigner(alice, signer().ref),
          store.pause({ kind: "chain", subject: "137", since: 1 }),
          store.resume("chain", "137")
        ]
        let before = yield* store.version
        for (const change of changes) {
          yield* change
          const after = yield* store.version
          expect(after).toBeGreaterThan(before)
          before = after
        }
        yield* store.noteUses(new Map([[key(1).hash, 3]]))
        expect(yield* store.version).toBe(before)
      })
    )

    fact(
      "keeps keys of its own accounts and of the file's",
      Effect.gen(function* () {
        const store = yield* TenantStore
        const keys = [key(2), key(1, { accountId: bob, scopes: ["read"], endsAt: 9 }), key(3)]
        for (const each of keys) yield* store.addKey(each)
        expect((yield* store.content).keys).toEqual(keys)
        yield* refused("keyExists", store.addKey(key(1)))
      })
    )

    fact(
      "ends a key at the earliest of the given times",
      Effect.gen(function* () {
        const store = yield* TenantStore
        yield* store.addKey(key(1))
        for (const [said, holds] of [
          [500, 500],
          [700, 500],
          [300, 300],
          [400, 300]
        ] as const) {
          yield* store.endKey(key(1), said)
          expect((yield* store.content).keys).toEqual([key(1, { endsAt: holds })])
        }
        yield* refused("unknownKey", store.endKey(key(2), 1))
      })
    )

    fact(
      "ends a key of the configuration file that it has not seen before",
      Effect.gen(function* () {
        const store = yield* TenantStore
        const ofFile = key(1, { origin: "file" })
        yield* store.endKey(ofFile, 500)
        yield* store.endKey(ofFile, 100)
        expect((yield* store.content).keys).toEqual([{ ...ofFile, endsAt: 100 }])
        yield* refused("unknownKey", store.setScopes(ofFile.hash, ["read"]))
      })
    )

    fact(
      "replaces a key by another and records its end in the same step",
      Effect.gen(function* () {
        const store = yield* TenantStore
        yield* store.addKey(key(1))
        yield* store.addKey(key(2), { key: key(1), endsAt: 50 })
        yield* store.addKey(key(4), { key: key(3, { origin: "file" }), endsAt: 60 })
        const { keys } = yield* store.content
        expect(new Map(keys.map(({ endsAt, hash }) => [hash, endsAt]))).toEqual(
          new Map([
            [key(1).hash, 50],
            [key(2).hash, null],
            [key(3).hash, 60],
            [key(4).hash, null]
          ])
        )
        yield* refused("unknownKey", store.addKey(key(5), { key: key(6), endsAt: 1 }))
        yield* refused("keyExists", store.addKey(key(2), { key: key(4), endsAt: 1 }))
      })
    )

    fact(
      "changes the scopes of a key",
      Effect.gen(function* () {
        const store = yield* TenantStore
        yield* store.addKey(key(1))
        yield* store.setScopes(key(1).hash, ["sign"])
        expect((yield* store.content).keys).toEqual([key(1, { scopes: ["sign"] })])
        yield* refused("unknownKey", store.setScopes(key(2).hash, ["read"]))
      })
    )

    fact(
      "keeps one set of values per account and chain, and no factory twice on a chain",
      Effect.gen(function* () {
        const store = yield* TenantStore
        for (const id of [alice, bob]) yield* store.createAccount(account(id))
        yield* store.setNetwork(network())
        yield* refused("factoryTaken", store.setNetwork(network({ accountId: bob })))
        const large = 2n ** 53n + 1n
        const elsewhere = network({ accountId: bob, chainId: large })
        yield* store.setNetwork(elsewhere)
        const renewed = network({ settings: "{}", factory: null })
        yield* store.setNetwork(renewed)
        expect((yield* store.content).networks).toEqual([renewed, elsewhere])
        yield* store.setNetwork(network({ accountId: bob }))
        yield* store.setNetwork(network({ accountId: bob }))
        yield* store.removeNetwork(alice, 137n)
        yield* store.removeNetwork(alice, 1n)
        expect((yield* store.content).networks).toEqual([elsewhere, network({ accountId: bob })])
      })
    )

    fact(
      "keeps signers, one for each reference of an account",
      Effect.gen(function* () {
        const store = yield* TenantStore
        for (const id of [alice, bob]) yield* store.createAccount(account(id))
        const signers = [
          signer(),
          signer({ ref: { clientId: "c", assetId: "1" }, address: address(5) }),
          signer({ accountId: bob })
        ]
        for (const each of signers) yield* store.addSigner(each)
        for (const each of signers) yield* refused("signerExists", store.addSigner({ ...each, key: "other" }))
        expect((yield* store.content).signers).toEqual(signers)
        yield* store.removeSigner(alice, { clientId: "c", versionId: "1" })
        yield* store.removeSigner(alice, { clientId: "c", versionId: "2" })
        expect((yield* store.content).signers).toEqual(signers.slice(1))
        yield* store.removeSigner(alice, { clientId: "c", assetId: "1" })
        expect((yield* store.content).signers).toEqual(signers.slice(2))
      })
    )

    fact(
      "keeps pauses with their beginning until they are resumed",
      Effect.gen(function* () {
        const store = yield* TenantStore
        yield* store.pause({ kind: "account", subject: "137", since: 1 })
        yield* store.pause({ kind: "chain", subject: "137", since: 2 })
        yield* store.pause({ kind: "chain", subject: "137", since: 3 })
        yield* store.resume("signer", "137")
        expect((yield* store.content).pauses).toEqual([
          { kind: "account", subject: "137", since: 1 },
          { kind: "chain", subject: "137", since: 2 }
        ])
        yield* store.resume("chain", "137")
        expect((yield* store.content).pauses).toEqual([{ kind: "account", subject: "137", since: 1 }])
      })
    )

    fact(
      "notes when keys were used, and never an older time than it has",
      Effect.gen(function* () {
        const store = yield* TenantStore
        yield* store.noteUses(new Map())
        yield* store.noteUses(
          new Map([
            ["a", 10],
            ["b", 20]
          ])
        )
        yield* store.noteUses(
          new Map([
            ["b", 15],
            ["c", 5],
            ["a", 1_700_000_000_000]
          ])
        )
        expect(yield* store.uses).toEqual(
          new Map([
            ["a", 1_700_000_000_000],
            ["b", 20],
            ["c", 5]
          ])
        )
        const many = new Map(Array.from({ length: 2_000 }, (_, n) => [`key ${n}`, n + 1]))
        yield* store.noteUses(many)
        expect((yield* store.uses).size).toBe(2_003)
      })
    )

    fact(
      "gives a unique value to one of many writers",
      Effect.gen(function* () {
        const store = yield* TenantStore
        const created = yield* Effect.all(
          Array.from({ length: 8 }, (_, n) =>
            Effect.result(store.createAccount(account(alice, { createdAt: n })))
          ),
          { concurrency: "unbounded" }
        )
        expect(created.filter(({ _tag }) => _tag === "Success").length).toBe(1)
        const owners = Array.from({ length: 8 }, (_, n) => accountId(`owner ${n}`))
        yield* Effect.forEach(owners, (id) => store.createAccount(account(id)), { concurrency: "unbounded" })
        const set = yield* Effect.all(
          owners.map((id) => Effect.result(store.setNetwork(network({ accountId: id })))),
          { concurrency: "unbounded" }
        )
        expect(set.filter(({ _tag }) => _tag === "Success").length).toBe(1)
        expect((yield* store.content).networks).toHaveLength(1)
      })
    )
  })
}
