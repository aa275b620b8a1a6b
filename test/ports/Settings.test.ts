import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlSettings from "../../src/adapters/sql/Settings.js"
import { type Setting, Settings } from "../../src/application/ports/operator/Settings.js"
import * as Layers from "../support/journal/Layers.js"
import { alice, bob } from "../support/journal/Make.js"

const clients = Layers.clients()

const first: Setting = {
  accountId: alice,
  name: "decisionHook",
  content: '{"secret":"whsec"}',
  at: 12,
  by: "key:0123456789ab",
  requestId: "one"
}

describe.each(Object.entries(clients))("settings in %s", (_, client) => {
  const over = <A, E>(body: Effect.Effect<A, E, Settings | SqlClient.SqlClient>) =>
    Effect.flatMap(client, (sql) =>
      Effect.provide(
        body,
        Layer.provideMerge(SqlSettings.layer({ sealingKey: Redacted.make("a key") }), Layer.fresh(sql))
      )
    )

  it.effect("the newest version of an account's setting is in force", () =>
    over(
      Effect.gen(function* () {
        const { find, having, put } = yield* Settings
        expect(yield* find(alice, "decisionHook")).toBeNull()
        yield* put(first)
        const second: Setting = { ...first, content: "{}", by: "ann", requestId: null }
        yield* put(second)
        const topUp: Setting = { ...first, accountId: bob, name: "topUp:1", content: "[]" }
        yield* put(topUp)
        expect(yield* find(alice, "decisionHook")).toEqual(second)
        expect(yield* find(alice, "topUp:1")).toBeNull()
        expect([yield* having("topUp:1"), yield* having("topUp:10")]).toEqual([[bob], []])
        yield* put({ ...topUp, content: null })
        expect([yield* find(bob, "topUp:1"), yield* having("topUp:1")]).toEqual([null, []])
      })
    )
  )

  it.effect("their content is sealed for one account and one name, and never changes", () =>
    over(
      Effect.gen(function* () {
        const { find, put } = yield* Settings
        const sql = yield* SqlClient.SqlClient
        yield* put(first)
        const [row] = yield* sql<{ readonly content: string }>`select content from settings`
        expect(row?.content).not.toContain("whsec")
        yield* sql`
          insert into settings (account_id, name, content, at, made_by)
          values (${bob}, 'decisionHook', ${row?.content ?? ""}, 1, 'ann')`
        expect((yield* Effect.flip(find(bob, "decisionHook"))).message).toContain("cannot be read")
        for (const attempt of [sql`update settings set content = null`, sql`delete from settings`])
          expect((yield* Effect.exit(attempt))._tag).toBe("Failure")
      })
    )
  )
})
