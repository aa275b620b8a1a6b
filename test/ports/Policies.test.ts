import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlPolicies from "../../src/adapters/sql/Policies.js"
import * as SqlTenantStore from "../../src/adapters/sql/TenantStore.js"
import { Policies } from "../../src/application/ports/Policies.js"
import { TenantStore } from "../../src/application/ports/TenantStore.js"
import * as Address from "../../src/domain/primitives/Address.js"
import * as Layers from "../support/journal/Layers.js"
import { alice, bob } from "../support/journal/Make.js"

const clients = Layers.clients()

const list = (digit: string) => ({ addresses: [Address.unsafe(`0x${digit.repeat(40)}`)] })

const policy = {
  mode: "enforce",
  expiresAt: 0,
  rules: [{ name: "all", effect: "allow", match: { kinds: ["native"], maxAmount: 2n ** 255n } }],
  limits: [{ name: "gas", chain: "1", asset: "fees", per: "day", max: 7n }]
} as const

const entry = { layer: "account", at: 12, by: "key:0123456789ab", requestId: "one" } as const
const suppliers = { ...entry, accountId: alice, subject: "list:suppliers" }

describe.each(Object.entries(clients))("policies in %s", (_, client) => {
  const over = <A, E>(body: Effect.Effect<A, E, Policies | SqlClient.SqlClient | TenantStore>) =>
    Effect.flatMap(client, (sql) =>
      Effect.provide(
        body,
        Layer.provideMerge(Layer.merge(SqlPolicies.layer, SqlTenantStore.layer), Layer.fresh(sql))
      )
    )

  it.effect("counts versions by account, layer and subject, and lists the newest that are not removed", () =>
    over(
      Effect.gen(function* () {
        const { current, history, put } = yield* Policies
        const first = yield* put({ ...suppliers, content: list("1") }, null)
        expect(first).toEqual({
          ...suppliers,
          content: list("1"),
          version: 1,
          countedAs: "list:suppliers"
        })
        const second = yield* put({ ...suppliers, content: list("2") }, 1)
        const byCommand = { ...entry, by: "ann", requestId: null, accountId: alice, subject: "account" }
        yield* put({ ...byCommand, layer: "operator", content: policy }, null)
        yield* put({ ...suppliers, accountId: bob, content: list("3") }, 0)
        expect(yield* current(alice)).toEqual([
          second,
          { ...byCommand, layer: "operator", content: policy, version: 1, countedAs: "account" }
        ])
        const removed = yield* put({ ...suppliers, content: null }, 2)
        expect((yield* current(alice)).map(({ subject }) => subject)).toEqual(["account"])
        expect(yield* history(alice, "account", "list:suppliers")).toEqual([removed, second, first])
        expect(yield* history(bob, "operator", "list:suppliers")).toEqual([])
      })
    )
  )

  it.effect("adds no version where the expected one is not current; 0 expects none", () =>
    over(
      Effect.gen(function* () {
        const { history, put } = yield* Policies
        const at = (expected: number | null) => put({ ...suppliers, content: list("1") }, expected)
        expect(yield* at(1)).toEqual({ mismatch: 0 })
        yield* at(0)
        expect([yield* at(0), yield* at(2)]).toEqual([{ mismatch: 1 }, { mismatch: 1 }])
        yield* put({ ...suppliers, content: null }, null)
        expect(yield* at(2)).toEqual({ mismatch: 0 })
        yield* at(0)
        const versions = yield* history(alice, "account", "list:suppliers")
        expect(versions.map(({ version }) => version)).toEqual([3, 2, 1])
      })
    )
  )

  it.effect("gives each of parallel writers its own version, and readers of changes miss none", () =>
    over(
      Effect.gen(function* () {
        const { changes, put } = yield* Policies
        const made = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, at) => at),
          (at) =>
            put(
              {
                ...suppliers,
                accountId: at % 2 === 0 ? alice : bob,
                content: { addresses: [Address.unsafe(`0x${at.toString(16).padStart(40, "0")}`)] }
              },
              null
            ),
          { concurrency: "unbounded" }
        )
        const versions = made.map((each) => ("version" in each ? each.version : 0))
        expect(versions.sort((one, other) => one - other)).toEqual(
          Array.from({ length: 20 }, (_, at) => Math.floor(at / 2) + 1)
        )
        const all = yield* changes(0)
        expect([all.latest, new Set(all.accounts)]).toEqual([20, new Set([alice, bob])])
        yield* put({ ...suppliers, content: null }, null)
        expect(yield* changes(20)).toEqual({ latest: 21, accounts: [alice] })
        expect(yield* changes(21)).toEqual({ latest: 21, accounts: [] })
      })
    )
  )

  it.effect("an unreadable version fails its account only", () =>
    over(
      Effect.gen(function* () {
        const { current, put } = yield* Policies
        const sql = yield* SqlClient.SqlClient
        yield* put({ ...suppliers, accountId: bob, content: list("1") }, null)
        yield* sql`
          insert into policies (change_no, account_id, layer, subject, version, content, counted_as, at, made_by)
          values (2, ${alice}, 'account', 'account', 1, '{"mode":"later"}', 'account', 1, 'ann')`
        expect((yield* Effect.flip(current(alice))).reason).toBe("unreadable")
        expect(yield* current(bob)).toHaveLength(1)
      })
    )
  )

  it.effect("a replaced key's policies in force bind its successor, which continues its counts", () =>
    over(
      Effect.gen(function* () {
        const { current, put } = yield* Policies
        const store = yield* TenantStore
        const key = (digit: string, accountId = alice) =>
          ({
            hash: digit.repeat(64),
            accountId,
            scopes: ["write"],
            origin: "command",
            issuedAt: 5_000,
            endsAt: null
          }) as const
        const subjectOf = (digit: string) => `key:${digit.repeat(12)}`
        yield* store.addKey(key("a"))
        const of = (layer: "operator" | "account") =>
          put({ ...entry, accountId: alice, layer, subject: subjectOf("a"), content: policy }, null)
        yield* of("operator")
        yield* of("account")
        yield* put({ ...entry, accountId: bob, subject: subjectOf("a"), content: policy }, null)
        yield* store.addKey(key("b"), { key: key("a"), endsAt: 9_000 })
        yield* put({ ...entry, accountId: alice, subject: subjectOf("b"), content: null }, null)
        yield* put({ ...entry, accountId: alice, subject: subjectOf("b"), content: policy }, null)
        yield* store.addKey(key("c"), { key: key("b"), endsAt: 9_000 })
        const all = (yield* current(alice)).filter(({ subject }) => subject === subjectOf("c"))
        expect(
          all.map(({ at, by, content, countedAs, layer }) => [layer, at, by, content, countedAs])
        ).toEqual([
          ["account", 5, subjectOf("b"), policy, subjectOf("a")],
          ["operator", 5, subjectOf("b"), policy, subjectOf("a")]
        ])
        expect(yield* current(bob)).toHaveLength(1)
      })
    )
  )

  it.effect("the database refuses every change and every removal", () =>
    over(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* (yield* Policies).put({ ...suppliers, content: list("1") }, null)
        for (const attempt of [
          sql`update policies set content = null`,
          sql`delete from policies`,
          ...(sql.onDialectOrElse({ pg: () => true, orElse: () => false }) ? [sql`truncate policies`] : [])
        ])
          expect((yield* Effect.exit(attempt))._tag).toBe("Failure")
        expect(yield* sql`select content from policies`).toHaveLength(1)
      })
    )
  )
})
