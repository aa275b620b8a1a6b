import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as Listing from "../../../src/adapters/sql/listing/Listing.js"
import * as Store from "../../../src/adapters/sql/Store.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import type { ListPlace, ListQuestion } from "../../../src/application/ports/journal/Requests.js"
import { accept } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import { options } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"
import * as Time from "../../support/Time.js"

const databases = Postgres.perFile()
const sqlite = Layer.provideMerge(SqlJournal.layer(options), Sqlite.layer({ filename: ":memory:" }))
const postgres = Layer.provideMerge(SqlJournal.layer(options), databases.layer)

const { wallet } = Make.space(1)
const member = { key: "order", value: "1" }

/** Twelve requests: every second one is of the wallet, every third one has the member. */
const given = Effect.gen(function* () {
  const journal = yield* Journals.all
  for (let n = 0; n < 12; n++) {
    yield* Time.setTime(1_000 + n)
    const space = Make.space(n % 2 === 0 ? 1 : 2)
    yield* accept(
      journal,
      Make.acceptance(`r${n}`, [Make.op({ space, nonceKey: BigInt(n), userOpHash: null })], {
        metadata: n % 3 === 0 ? { order: "1" } : {}
      })
    )
  }
})

/** Pages with a limit of two, searched in so small parts; and how many of them had no request. */
const pages = (question: Omit<ListQuestion, "limit">, most: number) =>
  Effect.gen(function* () {
    const store = Store.make(yield* SqlClient.SqlClient, options)
    const found: Array<string> = []
    let after: ListPlace | undefined
    let empty = 0
    for (;;) {
      const page = yield* Listing.list(store, most)(Make.alice, { ...question, after, limit: 2 })
      found.push(...page.requests.map(({ requestId }) => requestId))
      if (page.requests.length === 0) empty += 1
      const next = page.searched ?? (page.requests.length < 2 ? null : page.requests.at(-1))
      if (next === null || next === undefined) return { found, empty }
      after = next
    }
  })

describe.each([
  ["SQLite", sqlite],
  ["PostgreSQL", postgres]
] as const)("requests of a wallet with a member, on %s", (_, layer) => {
  it.effect("are each found once, in any partition of the search", () =>
    Effect.gen(function* () {
      yield* given
      for (const most of [1, 2, 3, 4, 5, 100]) {
        const { found } = yield* pages({ wallet, member }, most)
        expect(found).toEqual(["r6", "r0"])
        expect((yield* pages({ wallet, member, since: 1_001, until: 1_007 }, most)).found).toEqual(["r6"])
      }
      expect((yield* pages({ wallet, member }, 1)).empty).toBeGreaterThan(1)
    }).pipe(Effect.provide(layer))
  )
})
