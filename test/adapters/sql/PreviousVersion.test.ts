import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as Migrations from "../../../src/adapters/sql/Migrations.js"
import * as Seal from "../../../src/adapters/sql/Seal.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as Journals from "../../support/journal/Journals.js"
import { options } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

/** An open database of the previous version, with work in every state. */

const databases = Postgres.perFile()
const { lane } = Make
const { close } = Seal.make(options.sealingKey)
const chain = Make.chainId.toString()
const padded = (n: number, width: number) => String(n).padStart(width, "0")

/** The last migration that the version before has. */
const before = 32

const request = (id: string, over: Record<string, unknown> = {}) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql`insert into requests ${sql.insert({
        request_id: id,
        account_id: Make.alice,
        endpoint: "/execute",
        chain_id: chain,
        signer: lane.signer,
        lane_key: JSON.stringify({ clientId: "key 1" }),
        body: close(`request ${id}`, `{"of":"${id}"}`),
        failed: "[]",
        state: "open",
        elements: 1,
        accepted_at: 1_000,
        ...over
      })}`
  )

let rows = 0

const op = (id: string, state: string, over: Record<string, unknown> = {}) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => {
    rows += 1
    return sql`insert into ops ${sql.insert({
      request_id: id,
      op_index: 0,
      authority: lane.signer,
      chain_id: chain,
      entry_point: Make.entryPoint,
      wallet: Make.space(1).wallet,
      nonce_key: padded(rows, 58),
      sequence: padded(0, 20),
      user_op_hash: Make.word(rows),
      reserve: "5",
      state,
      accepted_at: 1_000,
      ...over
    })}`
  })

const transaction = (nonce: number, state: string, direct: string | null, carries: string | null) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const at = { chain_id: chain, signer: lane.signer, nonce: padded(nonce, 20) }
    const { maxFeePerGas, maxPriorityFeePerGas, raw, txHash } = Make.signed(BigInt(nonce))
    const isMined = state === "mined" || state === "settled"
    yield* sql`insert into transactions ${sql.insert({
      ...at,
      state,
      account_id: Make.alice,
      key_client: "key 1",
      rpc: close(`transaction ${chain} ${lane.signer} ${nonce}`, "https://node.example/secret-path"),
      trust: "caller",
      direct,
      max_cost: "3",
      tx_hash: isMined ? txHash : null,
      success: isMined ? 1 : null,
      block_number: isMined ? "7" : null,
      block_hash: isMined ? Make.word(0xb10c) : null,
      allocated_at: 1_000
    })}`
    if (state === "free" || state === "allocated") return
    yield* sql`insert into transaction_versions ${sql.insert({
      ...at,
      tx_hash: txHash,
      raw,
      max_fee_per_gas: maxFeePerGas.toString(),
      max_priority_fee_per_gas: maxPriorityFeePerGas.toString(),
      signed_at: 1_001
    })}`
    if (carries !== null)
      yield* sql`
        insert into transaction_ops (chain_id, signer, nonce, op_id, position)
        select ${chain}, ${lane.signer}, ${at.nonce}, op_id, 0 from ops where request_id = ${carries}`
  })

const written = Effect.gen(function* () {
  const some = Object.entries(Migrations.migrations).filter(([name]) => Number.parseInt(name, 10) <= before)
  yield* Migrator.make({})({
    loader: Migrator.fromRecord(Object.fromEntries(some)),
    table: "castellan_migrations"
  })
  rows = 0
  yield* request("ready")
  yield* op("ready", "accepted")
  yield* request("sent")
  yield* op("sent", "sent", { tx_hash: Make.signed(0n).txHash })
  yield* transaction(0, "signed", null, "sent")
  yield* request("mined")
  yield* op("mined", "settled", { tx_hash: Make.signed(1n).txHash, success: 1 })
  yield* transaction(1, "mined", null, "mined")
  // A foreign transaction used its nonce; its bytes are public.
  yield* request("lost")
  yield* op("lost", "accepted")
  yield* transaction(2, "foreign", null, "lost")
  yield* request("handed out")
  yield* op("handed out", "accepted")
  yield* transaction(4, "allocated", null, "handed out")
  yield* request("in part", { elements: 4, failed: JSON.stringify([Make.failed(3)]) })
  yield* op("in part", "accepted")
  yield* op("in part", "abandoned", { op_index: 1 })
  yield* request("waits", { elements: 2, not_before: 100, due_at: 9_000 })
  yield* request("cancelled", { elements: 2, cancelled: "request_cancelled" })
  yield* op("cancelled", "sent", { tx_hash: Make.signed(0n).txHash })
  for (const id of ["direct ready", "direct sent", "direct failed"])
    yield* request(id, {
      endpoint: "/transactSigner",
      failed: id === "direct failed" ? JSON.stringify([Make.failed(0)]) : "[]"
    })
  yield* transaction(3, "signed", "direct sent", null)
  yield* request("direct mined", { endpoint: "/transactSigner", note: "0xabcd" })
  yield* transaction(5, "mined", "direct mined", null)
  yield* request("direct answered", { endpoint: "/transactSigner", state: "final", outcome: '"done"' })
  yield* transaction(6, "mined", "direct answered", null)
  yield* request("final", { state: "final", outcome: "{}" })
  yield* op("final", "settled", { success: 1 })
})

describe("a database of the version before", { timeout: 60_000 }, () => {
  for (const { database, client } of [
    { database: "SQLite", client: Layer.fresh(Sqlite.layer({ filename: ":memory:" })) },
    { database: "PostgreSQL", client: databases.layer }
  ])
    it.effect(`on ${database} is adopted with all its open work`, () =>
      Effect.gen(function* () {
        yield* written
        const journal = Journals.methodsOf(yield* SqlJournal.make(options))
        yield* journal.claim(lane, { process: "this", independent: [] })
        const ready = yield* journal.ready(lane, 99)
        expect(ready.map(({ exposed, requestId }) => [requestId, exposed])).toEqual([
          ["ready", false],
          ["lost", true],
          ["handed out", false],
          ["in part", false],
          ["direct ready", false]
        ])
        expect(
          ready.every(({ contextDigest, prepared }) => prepared === null && contextDigest === null)
        ).toBe(true)
        expect(yield* journal.unopened(lane, 99)).toMatchObject([{ requestId: "in part", unopened: 2 }])
        expect(yield* journal.nextDue(lane)).toBe(9_000)
        expect(
          (yield* journal.openOf(lane)).map(({ direct, nonce, ops }) => [nonce, direct ?? ops[0]?.requestId])
        ).toEqual([
          [0n, "sent"],
          [1n, "mined"],
          [3n, "direct sent"],
          [5n, "direct mined"],
          [6n, "direct answered"]
        ])
        expect((yield* journal.request("direct mined"))?.ops).toMatchObject([
          { state: "settled", returned: "0xabcd" }
        ])
        expect((yield* journal.ended(ready.map(({ requestId }) => requestId))).length).toBe(0)
        expect(yield* journal.ended(["direct failed", "direct mined", "mined", "cancelled"])).toEqual([
          "direct failed",
          "direct mined",
          "mined"
        ])
        expect(yield* journal.nextNonce(lane, 1n)).toMatchObject({ nonce: 4n })
        // It continues as a request that this version accepts.
        const [first, lost] = ready
        if (first === undefined || lost === undefined) return expect.fail("they are ready")
        const anew = (each: typeof first, hash: number) =>
          Make.op({
            requestId: each.requestId,
            index: each.index,
            nonceKey: each.nonceKey,
            sequence: each.sequence,
            userOpHash: Make.word(hash)
          })
        const [same, version] = yield* journal.renew(lane, [anew(first, 901), anew(lost, 902)])
        expect([same === first.opId, version === lost.opId]).toEqual([true, false])
        expect(yield* journal.versions([version ?? 0])).toEqual([
          { opId: version, userOpHash: lost.userOpHash }
        ])
        const carried = [
          { opId: same ?? 0, userOpHash: Make.word(901) },
          { opId: version ?? 0, userOpHash: Make.word(902) }
        ]
        // The transactions of the signer's own calls are another route.
        expect(yield* journal.record(Make.recording(4n, carried, { chainNonce: 4n }))).toEqual({
          _tag: "otherRoute"
        })
        yield* journal.settle(Make.mined(3n), [], true)
        expect(yield* journal.ended(["direct sent"])).toEqual(["direct sent"])
        expect(yield* journal.record(Make.recording(4n, carried, { chainNonce: 4n }))).toEqual({
          _tag: "recorded"
        })
        // Its answered request is open again, with an op.
        yield* journal.unsettle(lane, 6n)
        expect(yield* journal.request("direct answered")).toMatchObject({
          outcome: null,
          ops: [{ state: "sent" }]
        })
        yield* journal.settle(Make.mined(6n), [], false)
        expect(yield* journal.ended(["direct answered"])).toEqual(["direct answered"])
      }).pipe(Effect.provide(client))
    )
})
