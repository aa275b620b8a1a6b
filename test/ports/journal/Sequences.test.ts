import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestContext from "effect/TestContext"
import * as fc from "fast-check"
import * as MemoryJournal from "../../../src/adapters/memory/journal/Journal.js"
import { Journal, type JournalError } from "../../../src/application/ports/journal/Journal.js"
import { type Command, commands, requestIds } from "../../support/journal/Commands.js"
import { postgresOn, sqliteAt } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import { Model } from "../../support/journal/Model.js"
import * as Postgres from "../../support/postgres/Postgres.js"

const postgres = postgresOn(Postgres.perFile())

const observe = (effect: Effect.Effect<unknown, JournalError>) =>
  Effect.catchTag(effect, "JournalError", () => Effect.succeed("fails"))

const kindOf = (result: unknown): string => {
  if (typeof result === "object" && result !== null && "_tag" in result) return String(result._tag)
  return result === "fails" ? "fails" : result === null ? "null" : "done"
}

const show = (name: string, request: unknown): string =>
  `${name} ${JSON.stringify(request, (_, it) => (typeof it === "bigint" ? `${it}n` : it))}`

type Service = Context.Tag.Service<typeof Journal>

/** All three know the same of every op. */
const compareOps = (memory: Service, sql: Service, model: Model, text: string) =>
  Effect.forEach(
    Array.from({ length: 21 }, (_, n) => Make.word(n)),
    (hash) =>
      Effect.gen(function* () {
        const found = yield* memory.findOp(Make.alice, Make.chainId, hash)
        expect(yield* sql.findOp(Make.alice, Make.chainId, hash), text).toEqual(found)
        const known = found === null ? null : { requestId: found.requestId, state: found.state }
        expect(known, text).toEqual(model.find(hash))
      })
  )

/** What the journal tells of every request and of every open transaction, in the model's words. */
const view = (journal: Service) =>
  Effect.gen(function* () {
    const found = yield* Effect.forEach(requestIds, journal.request)
    const requests = found.map((request) =>
      request === null
        ? null
        : {
            key: request.idempotency?.key ?? null,
            outcome: request.outcome,
            failed: request.failed,
            ops: request.ops.map(({ index, state, success, txHash, userOpHash }) => ({
              index,
              hash: userOpHash,
              state,
              success,
              tx: txHash
            })),
            signed: request.signed.map(({ userOpHash }) => userOpHash),
            txHashes: request.txHashes
          }
    )
    const open = (yield* journal.open).map(({ direct, mined, nonce, ops, signer, state, versions }) => ({
      signer,
      nonce,
      state,
      versions: versions.map((version) => version.txHash),
      direct,
      hashes: ops.map((op) => op.userOpHash),
      mined: mined?.txHash ?? null
    }))
    return { requests, open, unfinished: yield* journal.unfinished }
  })

/** All three tell the same of every request, transaction and op. */
const compare = (memory: Service, sql: Service, model: Model, text: string) =>
  Effect.gen(function* () {
    const expected = model.view(requestIds)
    expect(yield* view(memory), `memory: ${text}`).toEqual(expected)
    expect(yield* view(sql), `SQL: ${text}`).toEqual(expected)
    expect(yield* sql.open, text).toEqual(yield* memory.open)
    expect(yield* sql.remoteSubmissions, text).toEqual(yield* memory.remoteSubmissions)
    expect(
      (yield* memory.remoteSubmissions).map((it) => [it.userOpHash, it.includedIn]),
      text
    ).toEqual(model.remoteSubmissions())
    for (const requestId of requestIds)
      expect(yield* sql.request(requestId), text).toEqual(yield* memory.request(requestId))
    for (const key of ["k1", "k2", "k3"])
      expect(yield* sql.requestOf(Make.alice, "execute", key), text).toEqual(
        yield* memory.requestOf(Make.alice, "execute", key)
      )
    yield* compareOps(memory, sql, model, text)
  })

const run = (list: ReadonlyArray<Command>, layer: Layer.Layer<Journal>, seen: Map<string, number>) =>
  Effect.gen(function* () {
    const memory = yield* MemoryJournal.make
    const sql = yield* Effect.provide(Journal, yield* Layer.build(layer))
    const model = new Model()
    for (const [at, command] of list.entries()) {
      const { expected, journal, name, request } = command(model)
      const text = show(name, request)
      const known = expected(yield* Clock.currentTimeMillis)
      seen.set(`${name} ${kindOf(known)}`, (seen.get(`${name} ${kindOf(known)}`) ?? 0) + 1)
      expect(yield* observe(journal(memory)), `memory: ${text}`).toEqual(known)
      if (name !== "wait") expect(yield* observe(journal(sql)), `SQL: ${text}`).toEqual(known)
      if (at % 20 === 19 || at === list.length - 1) yield* compare(memory, sql, model, text)
    }
  }).pipe(Effect.scoped, Effect.provide(TestContext.TestContext))

/** Every way in which a call may end. */
const endings = [
  "lease done",
  "lease null",
  ...["accepted", "known", "nonceTaken", "reserved", "otherConfiguration", "fails"].map(
    (kind) => `accept ${kind}`
  ),
  ...["allocated", "insufficientFunds", "fails"].map((kind) => `allocate ${kind}`),
  ...[
    "abandon",
    "identify",
    "unallocate",
    "recordSigned",
    "settle",
    "finalise",
    "unsettle",
    "recordExternalUse",
    "submitRemotely",
    "refuse",
    "finish"
  ].flatMap((name) => [`${name} done`, `${name} fails`])
]

describe("sequences of commands", { timeout: 240_000 }, () => {
  it("in memory and on SQLite the journal does what the model does", async () => {
    const seen = new Map<string, number>()
    await fc.assert(
      fc.asyncProperty(commands, (list) => Effect.runPromise(run(list, sqliteAt(":memory:"), seen))),
      { numRuns: 80 }
    )
    expect(endings.filter((ending) => !seen.has(ending))).toEqual([])
  })

  it("in PostgreSQL too", async () => {
    await fc.assert(
      fc.asyncProperty(commands, (list) => Effect.runPromise(run(list, postgres, new Map()))),
      { numRuns: 8 }
    )
  })
})
