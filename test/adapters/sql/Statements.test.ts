import * as SqlClient from "@effect/sql/SqlClient"
import * as Statement from "@effect/sql/Statement"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import * as SqlJournal from "../../../src/adapters/sql/Journal.js"
import * as Sqlite from "../../../src/adapters/sql/Sqlite.js"
import { Journal } from "../../../src/application/ports/Journal.js"
import { options } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"

const journalOn = Layer.provideMerge(SqlJournal.layer(options), Sqlite.layer({ filename: ":memory:" }))

/** Every method of the journal, and most ways through them. */
const life = Effect.gen(function* () {
  const journal = yield* Journal
  yield* journal.lease(Make.leaseRequest("r1", { count: 2 }))
  const ops = [0, 1, 2].map((index) => Make.op({ index, nonceKey: BigInt(index) }))
  yield* journal.accept(Make.acceptance("r1", ops, { deployments: [Make.deployment()] }))
  yield* journal.release("r1")
  yield* journal.identify("r1", [{ index: 0, userOpHash: Make.word(1) }])
  yield* journal.abandon("r1", [2])
  yield* journal.allocate(Make.allocation("r1", { ops: [0, 1] }))
  yield* journal.unallocate(Make.lane, 0n)
  yield* journal.allocate(Make.allocation("r1", { ops: [0, 1] }))
  yield* journal.recordSigned(Make.signed(0n))
  yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
  yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))
  yield* journal.findOp(Make.alice, Make.chainId, Make.word(9))
})

describe("the statements of the journal", () => {
  it.effect("find their rows by an index, however long the history is", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const statements = new Map<string, ReadonlyArray<unknown>>()
      yield* Statement.withTransformer(life, (statement) =>
        Effect.sync(() => {
          const [text, parameters] = statement.compile()
          statements.set(text, parameters)
          return statement
        })
      )
      expect(statements.size).toBeGreaterThan(25)
      for (const [text, parameters] of statements) {
        const plan = yield* sql.unsafe<{ readonly detail: string }>(`explain query plan ${text}`, parameters)
        // Rows that the statement itself brings along have no index.
        const scans = plan
          .map((row) => row.detail)
          .filter((detail) => /^SCAN (?!\d+-ROW VALUES)/.test(detail))
        expect(scans, text).toEqual([])
      }
    }).pipe(Effect.provide(journalOn))
  )

  it.effect("are in no trace", () =>
    Effect.gen(function* () {
      const spans: Array<{ readonly name: string; readonly attributes: Array<unknown> }> = []
      const tracer = Tracer.make({
        span: (name, parent, context, links, startTime, kind) => {
          const attributes: Array<unknown> = []
          spans.push({ name, attributes })
          return {
            _tag: "Span",
            name,
            spanId: "1",
            traceId: "1",
            parent,
            context,
            status: { _tag: "Started", startTime },
            attributes: new Map(),
            links,
            sampled: true,
            kind,
            end: () => {},
            attribute: (key, value) => attributes.push(key, value),
            event: () => {},
            addLinks: () => {}
          }
        },
        context: (f) => f()
      })
      yield* life.pipe(Effect.withSpan("outer"), Effect.withTracer(tracer))
      expect(spans.map((span) => span.name)).toEqual(["outer"])
      expect(JSON.stringify(spans)).not.toMatch(/select|insert/i)
    }).pipe(Effect.provide(journalOn))
  )
})
