import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlAbiStore from "../../../src/adapters/sql/AbiStore.js"
import * as Store from "../../../src/adapters/sql/Store.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import { AbiStore, maxCharacters } from "../../../src/application/ports/AbiStore.js"
import * as Event from "../../../src/domain/abi/Event.js"
import { accountId, alice } from "../../support/journal/Make.js"

const inMemory = Layer.provideMerge(SqlAbiStore.layer, Sqlite.layer({ filename: ":memory:" }))
const transfer = Result.getOrThrow(Event.parse("event Transfer(address from, address to, uint256 value)"))

describe("the SQL store of definitions", () => {
  it.effect("a failure of the store names no SQL and no data", () =>
    Effect.gen(function* () {
      const store = yield* AbiStore
      const sql = yield* SqlClient.SqlClient
      yield* store.addEvent(alice, transfer)
      yield* sql`drop table abi_definitions`
      for (const failing of [Effect.asVoid(store.events(alice)), Effect.asVoid(store.errors(alice))]) {
        const error = yield* Effect.flip(failing)
        expect(error.reason).toBe("unavailable")
        expect(error.message).toMatch(/^the store of definitions failed( \([A-Z_]+\))?$/)
      }
    }).pipe(Effect.provide(inMemory))
  )

  it.effect("skips definitions that only a newer program version can read", () =>
    Effect.gen(function* () {
      const store = yield* AbiStore
      const sql = yield* SqlClient.SqlClient
      const row = { account_id: alice, ordinal: 1, kind: "event", digest: "0x", canonical: "event New{}" }
      yield* sql`insert into abi_definitions ${sql.insert(row)}`
      yield* store.addEvent(alice, transfer)
      expect(yield* store.events(alice)).toEqual([transfer])
    }).pipe(Effect.provide(inMemory))
  )

  it.effect("finds an account's new definitions by an index", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const plan = yield* sql<{ readonly detail: string }>`
        explain query plan select ordinal, kind, canonical from abi_definitions
        where account_id = ${alice} and ordinal > ${5} order by ordinal`
      expect(plan.map(({ detail }) => detail)).toEqual([expect.stringMatching(/^SEARCH .*USING INDEX/)])
    }).pipe(Effect.provide(inMemory))
  )

  it.effect("caches the most recently used accounts and reads the others again", () =>
    Effect.gen(function* () {
      const store = yield* AbiStore
      const sql = yield* SqlClient.SqlClient
      const list = Array.from({ length: 30 }, (_, n) => `bool ${"p".repeat(250)}${n}`).join(", ")
      const canonical = (n: number) => `event E${n}(${list})`
      const count = Math.floor((maxCharacters * 0.9) / canonical(0).length)
      const accounts = ["a", "b", "c", "d", "e"].map(accountId)
      for (const account of accounts) {
        const rows = Array.from({ length: count }, (_, n) => ({
          account_id: account,
          ordinal: n + 1,
          kind: "event",
          digest: String(n),
          canonical: canonical(n)
        }))
        for (const chunk of Store.chunks(rows)) yield* sql`insert into abi_definitions ${sql.insert(chunk)}`
      }
      const first = yield* Effect.forEach(accounts, (account) => store.events(account))
      const last = accounts.length - 1
      expect(yield* store.events(accountId("e"))).toBe(first[last])
      const again = yield* store.events(accountId("a"))
      expect(again).not.toBe(first[0])
      expect(again.map(({ name }) => name)).toEqual(first[0]?.map(({ name }) => name))
      expect(again.length).toBe(count)
    }).pipe(Effect.provide(inMemory))
  )
})
