import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestContext from "effect/TestContext"
import * as fc from "fast-check"
import * as MemoryJournal from "../../../src/adapters/memory/Journal.js"
import * as SqlJournal from "../../../src/adapters/sql/Journal.js"
import * as Sqlite from "../../../src/adapters/sql/Sqlite.js"
import { Journal, type JournalError } from "../../../src/application/ports/Journal.js"
import { type Command, commands, requestIds } from "../../support/journal/Commands.js"
import { options } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import { Model } from "../../support/journal/Model.js"

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
const compareOps = (memory: Service, sqlite: Service, model: Model, text: string) =>
  Effect.forEach(
    Array.from({ length: 21 }, (_, n) => Make.word(n)),
    (hash) =>
      Effect.gen(function* () {
        const found = yield* memory.findOp(Make.alice, Make.chainId, hash)
        expect(yield* sqlite.findOp(Make.alice, Make.chainId, hash), text).toEqual(found)
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
const compare = (memory: Service, sqlite: Service, model: Model, text: string) =>
  Effect.gen(function* () {
    const expected = model.view(requestIds)
    expect(yield* view(memory), `memory: ${text}`).toEqual(expected)
    expect(yield* view(sqlite), `SQLite: ${text}`).toEqual(expected)
    expect(yield* sqlite.open, text).toEqual(yield* memory.open)
    for (const requestId of requestIds)
      expect(yield* sqlite.request(requestId), text).toEqual(yield* memory.request(requestId))
    for (const key of ["k1", "k2", "k3"])
      expect(yield* sqlite.requestOf(Make.alice, "execute", key), text).toEqual(
        yield* memory.requestOf(Make.alice, "execute", key)
      )
    yield* compareOps(memory, sqlite, model, text)
  })

const run = (list: ReadonlyArray<Command>, seen: Map<string, number>) =>
  Effect.gen(function* () {
    const memory = yield* MemoryJournal.make
    const context = yield* Layer.build(
      SqlJournal.layer(options).pipe(Layer.provide(Sqlite.layer({ filename: ":memory:" })))
    )
    const sqlite = yield* Effect.provide(Journal, context)
    const model = new Model()
    for (const [at, command] of list.entries()) {
      const { expected, journal, name, request } = command(model)
      const text = show(name, request)
      const known = expected(yield* Clock.currentTimeMillis)
      seen.set(`${name} ${kindOf(known)}`, (seen.get(`${name} ${kindOf(known)}`) ?? 0) + 1)
      expect(yield* observe(journal(memory)), `memory: ${text}`).toEqual(known)
      if (name !== "wait") expect(yield* observe(journal(sqlite)), `SQLite: ${text}`).toEqual(known)
      if (at % 10 === 9 || at === list.length - 1) yield* compare(memory, sqlite, model, text)
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
    "strand",
    "handOver",
    "refuse",
    "finish"
  ].flatMap((name) => [`${name} done`, `${name} fails`])
]

describe("sequences of commands", () => {
  it("in memory and on SQLite the journal does what the model does", async () => {
    const seen = new Map<string, number>()
    await fc.assert(
      fc.asyncProperty(commands, (list) => Effect.runPromise(run(list, seen))),
      { numRuns: 150 }
    )
    expect(endings.filter((ending) => !seen.has(ending))).toEqual([])
  })
})
