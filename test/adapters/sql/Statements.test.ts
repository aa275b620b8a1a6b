import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as Statement from "effect/sql/Statement"
import * as Tracer from "effect/Tracer"
import * as SqlBudgets from "../../../src/adapters/sql/budgets/Budgets.js"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as SqlRequestHistory from "../../../src/adapters/sql/operator/RequestHistory.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import type { RequestHistory } from "../../../src/application/ports/operator/RequestHistory.js"
import { accept, answer, giveUp, handOver, openIn, record } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import { options } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

const databases = Postgres.perFile()
const journalOn = Layer.provideMerge(SqlJournal.layer(options), Sqlite.layer({ filename: ":memory:" }))

/** The lane worker's calls for ops. */
const lifeOfOps = (journal: Journals.Methods) =>
  Effect.gen(function* () {
    const { lane } = Make
    const op = (index: number, sequence = 0n) =>
      Make.op({ requestId: "n1", index, sequence, nonceKey: BigInt(20 + index), userOpHash: null })
    const idempotency = { key: "n", bodyHash: Make.word(1) }
    const list = [
      Make.acceptance("n1", [op(0), op(1)], { idempotency, elements: 3, unopened: 1 }),
      Make.acceptance("n2", [Make.direct("n2")])
    ]
    yield* journal.accept(list)
    yield* journal.accept(list)
    const look = { idempotency: [{ accountId: Make.alice, endpoint: "/execute", key: "n" }] }
    yield* journal.read({ ...look, spaces: [Make.space(1)] })
    yield* journal.openElements(lane, Make.opening("n1", [op(2)]))
    const ready = (yield* journal.ready(lane, 9)).filter(({ requestId }) => requestId === "n1")
    const [first] = yield* journal.ready(lane, 9, { perAccount: 1 })
    const opIds = ready.map(({ opId }) => opId)
    yield* journal.renew(lane, [op(0)])
    yield* journal.publish(lane, opIds.slice(0, 1))
    yield* journal.renew(lane, [{ ...op(0), userOpHash: Make.word(50) }])
    yield* journal.versions(opIds)
    yield* journal.renumber(lane, [op(1, 4n)])
    yield* journal.unopened(lane, 9)
    yield* journal.unopened(lane, 9, Make.alice)
    yield* journal.nextDue(lane)
    yield* journal.overdue(lane, 1, 9, "n1")
    yield* journal.busy
    yield* journal.bodies(["n1"])
    yield* journal.requests(["n1"])
    yield* journal.nextNonce(lane, 4n)
    const given = { opId: opIds[1] ?? first?.opId ?? 0, userOpHash: Make.word(51) }
    yield* journal.record(Make.recording(4n, [given], { chainNonce: 4n }))
    yield* journal.replace({ ...Make.recording(4n, []), txHash: Make.word(52), addedCost: 1n })
    yield* journal.openOf(lane)
    yield* journal.settle(Make.mined(4n, { txHash: Make.word(52) }), [Make.landed(Make.word(51), 4n)], true)
    yield* journal.fail(lane, [{ requestId: "n1", failed: [0, 2].map((index) => Make.failed(index)) }])
    yield* journal.ended(["n1"])
    yield* journal.answer([{ requestId: "n1", outcome: "{}", summary: {}, sequence: 0 }])
  })

/** Every method of the journal, and most ways through them. */
const life = Effect.gen(function* () {
  const journal = yield* Journals.all
  const { lane } = Make
  yield* Make.lease(journal, Make.leaseRequest("r1", { count: 2 }))
  const ops = [0, 1, 2, 3].map((index) =>
    Make.op({ index, nonceKey: BigInt(index), userOpHash: index === 0 ? null : Make.word(1 + index) })
  )
  const acceptance = Make.acceptance("r1", ops, {
    deployments: [Make.deployment()],
    idempotency: { key: "key", bodyHash: Make.word(1) },
    failed: [Make.failed(9)],
    metadata: { order: "4711" }
  })
  yield* journal.accept([acceptance])
  yield* journal.authorise(Make.deployment({ create2Salt: Make.word(7) }))
  yield* journal.accept([{ ...acceptance, requestId: "r2", ops: [] }])
  const given = Make.op({ index: 8, nonceKey: 9n, kind: "given", userOpHash: Make.word(9) })
  yield* journal.openElements(lane, Make.opening("r1", [given]))
  yield* journal.note("r1", "{}")
  yield* journal.release("r1")
  yield* giveUp(journal, "r1", [2, 8])
  yield* handOver(journal, "r1", [3])
  yield* journal.recordTaken(lane.signer, Make.chainId, [Make.word(4)])
  yield* journal.remoteSubmissions
  yield* journal.recordInclusions(lane.signer, Make.chainId, [Make.landed(Make.word(4), 0n)], Make.node())
  yield* journal.revertInclusions(lane.signer, Make.chainId, [Make.word(4)])
  yield* journal.finaliseInclusions(lane.signer, Make.chainId, [Make.deep(Make.word(4))])
  yield* journal.takeBack(lane, [Make.word(4)], true)
  yield* journal.identifyAnew(lane, "r1", [{ index: 0, userOpHash: Make.word(1) }])
  yield* record(journal, "r1", [0, 1])
  yield* journal.recordSubmitted(lane, [{ nonce: 0n, txHash: Make.signed(0n).txHash }])
  yield* accept(journal, Make.acceptance("d1", [Make.direct("d1")]))
  yield* record(journal, "d1", [0])
  yield* journal.settle(Make.mined(0n), [], false)
  yield* record(journal, "d1", [0])
  yield* journal.recordExternalUse(lane, 1n, [])
  yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)
  const cancellation = { code: "request_cancelled", outcome: "{}", onlyUnsigned: false } as const
  yield* journal.cancel("r1", cancellation)
  yield* answer(journal, "r1")
  yield* journal.request("r1")
  yield* journal.ofRequest("r1")
  const after = { acceptedAt: 1, number: 1n }
  yield* journal.list(Make.alice, { limit: 2 })
  yield* journal.list(Make.alice, { state: "pending", since: 1, until: 2, after, limit: 2 })
  yield* journal.list(Make.alice, { state: "final", after, limit: 2 })
  const wallet = Make.address(0xa001)
  const member = { key: "order", value: "4711" }
  for (const by of [{ wallet }, { member }, { wallet, member }]) {
    yield* journal.list(Make.alice, { ...by, limit: 2 })
    yield* journal.list(Make.alice, { ...by, state: "pending", since: 1, until: 2, after, limit: 2 })
    yield* journal.list(Make.alice, { ...by, state: "final", since: 1, until: 2, after, limit: 2 })
  }
  yield* journal.open
  yield* journal.openOf(lane)
  yield* journal.findTransaction(Make.alice, Make.chainId, Make.signed(0n).txHash)
  yield* journal.transactionOf(lane, Make.signed(0n).txHash)
  yield* journal.unsettle(lane, 0n)
  yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)
  yield* journal.finalise(lane, 0n, Make.settledDepth)
  yield* journal.recordInclusions(lane.signer, Make.chainId, [Make.landed(Make.word(2), 0n)], Make.node())
  yield* journal.requestOf(Make.alice, "/execute", "key")
  yield* openIn(journal)
  yield* answer(journal, "r1")
  yield* accept(journal, Make.acceptance("old", [Make.op({ nonceKey: 7n, userOpHash: Make.word(7) })]))
  yield* record(journal, "old", [0])
  yield* journal.settle(Make.mined(2n), [Make.landed(Make.word(7), 2n)], true)
  yield* accept(journal, Make.acceptance("replaced", [Make.direct("replaced")]))
  yield* record(journal, "replaced", [0])
  yield* journal.replace(Make.signed(3n, { txHash: Make.word(0x2003) }))
  yield* journal.settle(Make.mined(3n), [], true)
  yield* Effect.forEach(["old", "replaced"], (requestId) => answer(journal, requestId))
  yield* journal.decline("never")
  yield* journal.events("r1", 1, 10)
  yield* journal.newestEvents(["r1", "old"])
  yield* journal.forget(1)
  yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))
  yield* journal.findOp(Make.alice, Make.chainId, Make.word(9))
  yield* lifeOfOps(journal)
})

/** Questions that the console repeats. */
const looks = (history: RequestHistory["Service"]) =>
  Effect.gen(function* () {
    const page = { limit: 10, before: 2n }
    yield* history.waiting
    yield* history.find({ ...page, state: "held" })
    yield* history.find({ ...page, state: "pending", isOldestFirst: true })
    yield* history.find({ ...page, accountId: Make.alice })
    for (const text of ["salt", Make.word(1), Make.op().space.wallet]) yield* history.search(text, 10)
  })

const reservation = {
  accountId: Make.alice,
  chainId: Make.chainId,
  name: "sponsor",
  id: "one",
  wei: 1n,
  limit: 2n,
  maxOpen: 1,
  window: "day" as const,
  expiresAt: 1
}

/** SQL and parameters of every statement in the journal's life. */
const statementsOf = Effect.gen(function* () {
  const statements = new Map<string, ReadonlyArray<unknown>>()
  const history = yield* SqlRequestHistory.make
  const budgets = yield* SqlBudgets.make
  yield* Effect.provideService(
    Effect.all([life, looks(history), budgets.reserve([[reservation]])]),
    Statement.CurrentTransformer,
    (statement) =>
      Effect.sync(() => {
        const [text, parameters] = statement.compile()
        statements.set(text, parameters)
        return statement
      })
  )
  expect(statements.size).toBeGreaterThan(75)
  return statements
})

const countOf = (effect: Effect.Effect<unknown, unknown, Journals.Ports>) =>
  Effect.gen(function* () {
    let count = 0
    yield* Effect.provideService(effect, Statement.CurrentTransformer, (statement) =>
      Effect.sync(() => {
        count++
        return statement
      })
    )
    return count
  })

/** All ops that a signer ever had on a chain, or all reservations there, found by an index that selects no further. */
const everyRow =
  /^SEARCH (?:ops USING (?:COVERING )?INDEX ops_nonce \(authority=\? AND chain_id=\?\)|holds USING INDEX holds_id \(chain_id=\?\))$/

/** An index of open rows holds no others, so reading all of it does not search the history. */
const wholeIndex =
  /USING (?:COVERING )?INDEX (?:ops_under_way|transactions_open|requests_going|requests_lane|requests_open|sqlite_autoindex_handovers_1)$/

describe("the statements of the journal", () => {
  it.effect("find their rows by an index, however long the history is", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const statements = yield* statementsOf
      for (const [text, parameters] of statements) {
        const plan = yield* sql.unsafe<{ readonly detail: string }>(`explain query plan ${text}`, parameters)
        // Rows that the statement itself brings along have no index.
        const scans = plan
          .map((row) => row.detail)
          .filter(
            (detail) =>
              everyRow.test(detail) ||
              (/^SCAN (?!\d+-ROW VALUES|CONSTANT ROW$|\d+ CONSTANT ROWS$|own$|json_each VIRTUAL TABLE|given$|chosen$|placed$|first$|\(subquery)/.test(
                detail
              ) &&
                !wholeIndex.test(detail))
          )
        expect(scans, text).toEqual([])
        // A page costs what it has, however many there are behind it.
        if (/order by \S*accepted_at desc/.test(text))
          expect(JSON.stringify(plan), text).not.toContain("TEMP B-TREE")
      }
    }).pipe(Effect.provide(journalOn))
  )

  it.effect("find their rows by an index on PostgreSQL too", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const statements = yield* statementsOf
      yield* sql.withTransaction(
        Effect.gen(function* () {
          // Tables of a test are small, and read as a whole where there is a choice.
          yield* sql`set local enable_seqscan = off`
          for (const [text, parameters] of statements) {
            if (!/^\s*(select|insert|update|delete)/.test(text)) continue
            const plan = yield* sql.unsafe<Record<string, string>>(`explain ${text}`, parameters)
            const scans = plan
              .flatMap((row) => Object.values(row))
              .filter((line) => line.includes("Seq Scan on"))
            expect(scans, text).toEqual([])
          }
        })
      )
    }).pipe(Effect.provide(Layer.provideMerge(SqlJournal.layer(options), databases.layer)))
  )

  it.effect("are few, however many ops a bundle has", () =>
    Effect.gen(function* () {
      const journal = yield* Journals.all
      const ops = Array.from({ length: 100 }, (_, index) =>
        Make.op({ index, nonceKey: BigInt(index), userOpHash: Make.word(index) })
      )
      yield* journal.claim(Make.lane, { process: "this one", independent: [] })
      // SQLite has a statement for each row, which it has prepared.
      expect(yield* countOf(accept(journal, Make.acceptance("r1", ops)))).toBe(ops.length + 5)
      const keys = ops.map(({ index }) => ({ accountId: Make.alice, endpoint: "/execute", key: `${index}` }))
      expect(yield* countOf(journal.read({ idempotency: keys, spaces: [] }))).toBe(1)
      const ready = yield* journal.ready(Make.lane, 100)
      expect(yield* countOf(journal.record(Make.recording(0n, ready)))).toBe(10)
      expect(
        yield* countOf(journal.recordSubmitted(Make.lane, [{ nonce: 0n, txHash: Make.signed(0n).txHash }]))
      ).toBe(4)
      expect(yield* countOf(journal.settle(Make.mined(0n), [], false))).toBe(5)
      expect(yield* countOf(journal.request("r1"))).toBe(2)
      expect(yield* countOf(journal.ofRequest("r1"))).toBe(1)
      expect(yield* countOf(journal.open)).toBe(3)
      expect(yield* countOf(journal.busy)).toBe(3)
      expect(yield* countOf(journal.finalise(Make.lane, 0n, Make.settledDepth))).toBe(7)
      yield* accept(journal, Make.acceptance("r2", [Make.op({ nonceKey: 200n, userOpHash: Make.word(200) })]))
      yield* record(journal, "r2", [0])
      // No submitted event was written yet; settling writes it too.
      expect(yield* countOf(journal.settle(Make.mined(1n), [], false))).toBe(6)
    }).pipe(Effect.provide(journalOn))
  )

  it.effect("are in no trace", () =>
    Effect.gen(function* () {
      const spans: Array<{ readonly name: string; readonly attributes: Array<unknown> }> = []
      const tracer = Tracer.make({
        span: (options) => {
          const attributes: Array<unknown> = []
          spans.push({ name: options.name, attributes })
          const span = new Tracer.NativeSpan(options)
          const attribute = (key: string, value: unknown): void => void attributes.push(key, value)
          return Object.assign(span, { attribute })
        }
      })
      yield* life.pipe(Effect.withSpan("outer"), Effect.withTracer(tracer))
      expect(spans.map((span) => span.name)).toEqual(["outer"])
      expect(JSON.stringify(spans)).not.toMatch(/select|insert/i)
    }).pipe(Effect.provide(journalOn))
  )
})
