import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type { RequestRecord } from "../../../src/application/ports/journal/Requests.js"
import { openIn } from "../../support/journal/Facts.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Journals from "../../support/journal/Journals.js"
import { postgresOn } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"
import { type Command, commands, requestIds } from "./Commands.js"
import { Model } from "./Model.js"

const postgres = postgresOn(Postgres.perFile())
const sqlite = Layer.fresh(InMemory.journal)

const observe = (effect: Effect.Effect<unknown, JournalError>) =>
  Effect.catchTag(effect, "JournalError", () => Effect.succeed("fails"))

const kindOf = (result: unknown): string => {
  if (typeof result === "object" && result !== null && "_tag" in result) return String(result._tag)
  if (typeof result === "boolean") return String(result)
  return result === "fails" ? "fails" : result === null ? "null" : "done"
}

const show = (name: string, request: unknown): string =>
  `${name} ${JSON.stringify(request, (_, it) => (typeof it === "bigint" ? `${it}n` : it))}`

type Service = Journals.Methods

/** The journal and the model agree on every op. */
const compareOps = (journal: Service, model: Model, text: string) =>
  Effect.forEach(
    Array.from({ length: 21 }, (_, n) => Make.word(n)),
    (hash) =>
      Effect.gen(function* () {
        const found = yield* journal.findOp(Make.alice, Make.chainId, hash)
        const known = found === null ? null : { requestId: found.requestId, state: found.state }
        expect(known, text).toEqual(model.find(hash))
      })
  )

/** The journal's records of every request and every open transaction, in the model's terms. */
const view = (journal: Service) =>
  Effect.gen(function* () {
    const found = yield* Effect.forEach(requestIds, journal.request)
    const requests = found.map((request) =>
      request === null
        ? null
        : {
            key: request.idempotency?.key ?? null,
            outcome: request.outcome,
            cancelled: request.cancelled,
            failed: request.failed.toSorted((one, other) => one.index - other.index),
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
    const ready = (yield* journal.ready(Make.lane, 1_000)).map(
      ({ exposed, index, requestId, userOpHash }) => ({
        request: requestId,
        index,
        hash: userOpHash,
        exposed
      })
    )
    const ended = yield* journal.ended(requestIds)
    return { requests, open, unfinished: yield* openIn(journal), ready, ended }
  })

/** The journal and the model agree on every request, transaction and op. */
const compare = (journal: Service, model: Model, text: string) =>
  Effect.gen(function* () {
    expect(yield* view(journal), text).toEqual(model.view(requestIds))
    expect(
      (yield* journal.remoteSubmissions).map((it) => [it.userOpHash, it.includedIn]),
      text
    ).toEqual(model.remoteSubmissions())
    yield* compareOps(journal, model, text)
    for (const requestId of requestIds) {
      const told = yield* journal.events(requestId, 0, 1_000)
      expect(
        told.map(({ data, kind, sequence }) => ({ sequence, kind, data })),
        `${text}: ${requestId}`
      ).toEqual(model.events(requestId))
      expect((yield* journal.newestEvents([requestId])).get(requestId) ?? 0).toBe(told.length)
    }
  })

/** The keys of direct transactions are numbers of requests, which only one of the databases assigns without a gap. */
const numbered = (ops: RequestRecord["ops"]) =>
  ops.map((op) => (op.space.wallet === Make.lane.signer ? { ...op, nonceKey: 0n } : op))

/** All records whole, with fields that the model lacks: for a comparison of two databases. */
const records = (journal: Service) =>
  Effect.all({
    open: journal.open,
    remote: journal.remoteSubmissions,
    requests: Effect.map(Effect.forEach(requestIds, journal.request), (found) =>
      found.map(
        (request) => request && { ...request, ops: numbered(request.ops), signed: numbered(request.signed) }
      )
    ),
    events: Effect.forEach(requestIds, (requestId) => journal.events(requestId, 0, 1_000)),
    keys: Effect.forEach(["k1", "k2", "k3"], (key) => journal.requestOf(Make.alice, "/execute", key)),
    ops: Effect.forEach(
      Array.from({ length: 21 }, (_, n) => Make.word(n)),
      (hash) => journal.findOp(Make.alice, Make.chainId, hash)
    )
  })

const run = (
  list: ReadonlyArray<Command>,
  layers: ReadonlyArray<readonly [name: string, layer: Layer.Layer<Journals.Ports>]>,
  seen: Map<string, number>
) =>
  Effect.gen(function* () {
    const journals = yield* Effect.forEach(layers, ([database, layer]) =>
      Effect.map(Layer.build(layer), (context) => ({ database, port: Journals.methodsOf(context) }))
    )
    const model = new Model()
    for (const [at, command] of list.entries()) {
      const { expected, journal, name, request } = command(model)
      const text = show(name, request)
      const known = expected(yield* Clock.currentTimeMillis)
      seen.set(`${name} ${kindOf(known)}`, (seen.get(`${name} ${kindOf(known)}`) ?? 0) + 1)
      // Time passes once, for all of them.
      for (const [n, { database, port }] of journals.entries())
        if (name !== "wait" || n === 0)
          expect(yield* observe(journal(port)), `${database}: ${text}`).toEqual(known)
      if (at % 20 !== 19 && at !== list.length - 1) continue
      for (const { database, port } of journals) yield* compare(port, model, `${database}: ${text}`)
      const [first, ...others] = yield* Effect.forEach(journals, ({ port }) => records(port))
      for (const other of others) expect(other, text).toEqual(first)
    }
  }).pipe(Effect.scoped, Effect.provide(TestClock.layer()))

/** The outcomes of calls that are frequent enough for every run to have them. */
const endings = [
  "lease done",
  "lease null",
  "decline done",
  "decline null",
  ...["accepted", "known", "nonceTaken", "reserved", "over", "fails"].map((kind) => `accept ${kind}`),
  ...["accepted", "nonceTaken", "fails"].map((kind) => `openElements ${kind}`),
  ...["recorded", "nonceUsed", "otherRoute", "insufficientFunds"].map((kind) => `record ${kind}`),
  ...["renumbered", "notReady", "nonceTaken"].map((kind) => `renumber ${kind}`),
  ...["renew", "replace", "handOver"].flatMap((name) => [`${name} true`, `${name} false`]),
  ...["settle", "finalise", "unsettle", "recordExternalUse"].flatMap((name) => [
    `${name} done`,
    `${name} fails`
  ]),
  "answer done",
  "answer null"
]

describe("sequences of commands", { timeout: 240_000 }, () => {
  it("on SQLite the journal matches the model", async () => {
    const seen = new Map<string, number>()
    await fc.assert(
      fc.asyncProperty(commands, (list) => Effect.runPromise(run(list, [["SQLite", sqlite]], seen))),
      { numRuns: 80 }
    )
    expect(endings.filter((ending) => !seen.has(ending))).toEqual([])
  })

  it("on PostgreSQL too, and both databases hold the same records", async () => {
    await fc.assert(
      fc.asyncProperty(commands, (list) =>
        Effect.runPromise(
          run(
            list,
            [
              ["SQLite", sqlite],
              ["PostgreSQL", postgres]
            ],
            new Map()
          )
        )
      ),
      { numRuns: 8 }
    )
  })
})
