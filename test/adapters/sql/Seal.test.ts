import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import * as fc from "fast-check"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as Seal from "../../../src/adapters/sql/Seal.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import { accept, openIn, record } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import { options } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"

const seal = Seal.make(Redacted.make("one secret"))
const other = Seal.make(Redacted.make("another secret"))

describe("the seal", () => {
  it("opens every text under its row's name; no two sealings are equal", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (row, text) => {
        const sealed = seal.close(row, text)
        expect(seal.close(row, text)).not.toBe(sealed)
        expect(Effect.runSync(seal.open(row, sealed))).toBe(text)
      })
    )
  })

  it("opens strings that the previous version sealed", () => {
    // A fixed sealing: the format stored in databases must not change.
    const sealed = "v1:BwcHBwcHBwcHBwcHXK21GXKEhgjkmzdFkADSKOyIfrtW"
    expect(Effect.runSync(seal.open("row", sealed))).toBe("short")
  })

  it("opens under no other key, for no other row, and not with a changed character", () => {
    const sealed = String(seal.close("row 1", "a secret text"))
    const flip = (at: number) =>
      `${sealed.slice(0, at)}${sealed[at] === "A" ? "B" : "A"}${sealed.slice(at + 1)}`
    const wrong = [
      other.open("row 1", sealed),
      seal.open("row 2", sealed),
      ...[3, 20, 30, sealed.length - 5].map((at) => seal.open("row 1", flip(at))),
      ...["", "v1:", "v1:AAAA", sealed.slice(0, -8), sealed.slice(3), `v2${sealed.slice(2)}`].map((text) =>
        seal.open("row 1", text)
      )
    ]
    for (const attempt of wrong) {
      const error = Effect.runSync(Effect.flip(attempt))
      expect(error._tag).toBe("JournalError")
      expect(error.message).toBe(
        "sealed text of the journal cannot be read: it was sealed under another key, or changed"
      )
    }
  })
})

describe("a database", () => {
  const rpc = "https://node.example/v3/the-key-of-the-node"
  const body = JSON.stringify({ call: "the caller's call" })
  const work = Effect.gen(function* () {
    const journal = yield* Journals.all
    const op = Make.op({ userOpHash: Make.word(1) })
    yield* accept(journal, Make.acceptance("r1", [op], { body }))
    const access = Make.access({ rpc: Redacted.make(rpc) })
    yield* record(journal, "r1", [0], { access })
  })
  const client = Sqlite.layer({ filename: ":memory:" })

  it.effect("holds no body and no node's address in the clear", () =>
    Effect.gen(function* () {
      yield* work
      const sql = yield* SqlClient.SqlClient
      const rows = [...(yield* sql`select * from requests`), ...(yield* sql`select * from transactions`)].map(
        (row) => JSON.stringify(row)
      )
      expect(rows.length).toBe(2)
      for (const row of rows) expect(row).not.toMatch(/node\.example|key-of-the-node|caller wants/)
    }).pipe(Effect.provide(Layer.provideMerge(SqlJournal.layer(options), client)))
  )

  it.effect("a database sealed by another key serves everything except bodies and nodes", () =>
    Effect.gen(function* () {
      yield* Effect.provide(work, SqlJournal.layer(options))
      yield* Effect.gen(function* () {
        const journal = yield* Journals.all
        expect(yield* journal.request("r1")).toMatchObject({ body: null, ops: [{ state: "sent" }] })
        for (const record of [
          ...(yield* journal.open),
          ...(yield* journal.openOf(Make.lane)),
          yield* journal.findTransaction(Make.alice, Make.chainId, Make.signed(0n).txHash)
        ])
          expect(record).toMatchObject({ nonce: 0n, access: { rpc: null, trust: "caller" } })
        yield* journal.claim(Make.lane, { process: "the next life", independent: [] })
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toMatchObject({ state: "sent" })
        expect(yield* openIn(journal)).toEqual(["r1"])
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        yield* accept(journal, Make.acceptance("r2", [], { body: "new" }))
        expect(yield* journal.request("r2")).toMatchObject({ body: "new" })
      }).pipe(Effect.provide(SqlJournal.layer({ sealingKey: Redacted.make("another secret") })))
    }).pipe(Effect.provide(client))
  )
})
