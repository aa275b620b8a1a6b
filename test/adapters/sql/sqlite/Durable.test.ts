import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlAuditLog from "../../../../src/adapters/sql/AuditLog.js"
import * as SqlJournal from "../../../../src/adapters/sql/journal/Journal.js"
import * as GroupCommit from "../../../../src/adapters/sql/sqlite/GroupCommit.js"
import * as SqliteConnection from "../../../../src/adapters/sql/sqlite/SqliteConnection.js"
import * as WriteAheadLog from "../../../../src/adapters/sql/sqlite/WriteAheadLog.js"
import { type AuditLog, withheld } from "../../../../src/application/ports/AuditLog.js"

import { accept, answer, record } from "../../../support/journal/Facts.js"
import * as Journals from "../../../support/journal/Journals.js"
import { options, temporaryFolder } from "../../../support/journal/Layers.js"
import * as Make from "../../../support/journal/Make.js"

/** Every fiber that can continue without the disk has done so. */
const settled = Effect.promise(() => new Promise((resolve) => setImmediate(resolve))).pipe(
  Effect.repeat({ times: 20 })
)

/** The journal and the audit log of one database, over a disk that is written when the test says so. */
const setup = Effect.gen(function* () {
  const connection = yield* SqliteConnection.open(join(yield* temporaryFolder, "durable.db"))
  const writes: Array<() => void> = []
  const disk = { isHeld: false }
  const durability = WriteAheadLog.durability((end) => {
    if (disk.isHeld) writes.push(() => end(null))
    else setImmediate(end, null)
  })
  const group = GroupCommit.make(connection, { durability, gatherMillis: null, busyMillis: 1_000 })
  const sql = yield* Effect.provide(GroupCommit.client(group), Reactivity.layer)
  const inDatabase = Effect.provideService(SqlClient.SqlClient, sql)
  const ports = yield* inDatabase(SqlJournal.make(options))
  const journal = yield* Effect.provide(Journals.all, ports)
  const audit: AuditLog["Service"] = yield* inDatabase(SqlAuditLog.make)
  /** Whether it is answered only after a disk write. */
  const waits = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.gen(function* () {
      yield* settled
      disk.isHeld = true
      const fiber = yield* Effect.forkChild(effect)
      yield* settled
      const isWaiting = fiber.pollUnsafe() === undefined
      disk.isHeld = false
      for (const end of writes.splice(0)) end()
      yield* Fiber.join(fiber)
      return isWaiting
    })
  return { audit, journal, waits }
})

const act = {
  kind: "signature",
  accountId: Make.alice,
  requestId: "r1",
  by: "/execute",
  signer: Make.lane.signer,
  hash: Make.word(7),
  chainId: null,
  nonce: null
} as const

describe("the journal on a disk that is slow", () => {
  it.live("answers calls of the engine immediately, and outward calls once the disk has every write", () =>
    Effect.gen(function* () {
      const { audit, journal, waits } = yield* setup
      const { lane } = Make
      yield* journal.claim(lane, { process: "this one", independent: [] })
      expect(yield* waits(Make.lease(journal, Make.leaseRequest("r1")))).toBe(false)
      const ops = [Make.op({ userOpHash: Make.word(1) })]
      expect(yield* waits(accept(journal, Make.acceptance("r1", ops)))).toBe(false)
      expect(yield* waits(journal.ofRequest("r1"))).toBe(false)
      // One after the other: the first call's wait covers the next call.
      const outward: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        journal.durable,
        journal.request("r1"),
        journal.requestOf(Make.alice, "/execute", "key"),
        journal.list(Make.alice, { limit: 2 }),
        journal.events("r1", 0, 10),
        journal.findOp(Make.alice, Make.chainId, Make.word(1)),
        journal.findTransaction(Make.alice, Make.chainId, Make.signed(0n).txHash),
        audit.record(act)
      ]
      for (const each of outward) {
        expect(yield* waits(journal.note("r1", "{}"))).toBe(false)
        expect(yield* waits(each)).toBe(true)
        expect(yield* waits(each)).toBe(each === outward.at(-1))
      }
      expect(yield* waits(Effect.provideService(audit.record(act), withheld, true))).toBe(false)
      expect(yield* waits(audit.record({ ...act, kind: "transaction" }))).toBe(false)
      const ready = yield* journal.ready(lane, 1)
      expect(yield* waits(journal.record(Make.recording(0n, ready)))).toBe(true)
      expect(yield* waits(journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false))).toBe(false)
      expect(yield* waits(journal.finalise(lane, 0n, Make.settledDepth))).toBe(false)
    })
  )

  /** A request of two elements, the first `count` with an op. */
  const accepted = ({ journal }: Effect.Success<typeof setup>, count: number) =>
    Effect.gen(function* () {
      yield* journal.claim(Make.lane, { process: "this one", independent: [] })
      const ops = Array.from({ length: count }, (_, index) =>
        Make.op({ index, nonceKey: BigInt(index), userOpHash: Make.word(index + 1) })
      )
      yield* accept(journal, Make.acceptance("r1", ops, { elements: 2 }))
      yield* record(
        journal,
        "r1",
        ops.map(({ index }) => index)
      )
      const outcomes = ops.map(({ index }) => Make.landed(Make.word(index + 1), 0n))
      yield* journal.settle(Make.mined(0n), outcomes, false)
    })

  it.live("answers a request immediately when all its ops are in a mined transaction", () =>
    Effect.gen(function* () {
      const world = yield* setup
      yield* accepted(world, 2)
      expect(yield* world.waits(answer(world.journal, "r1"))).toBe(false)
      expect(yield* world.waits(world.journal.request("r1"))).toBe(true)
    })
  )

  it.live("answers a request with an unsent element once the disk has it", () =>
    Effect.gen(function* () {
      const world = yield* setup
      yield* accepted(world, 1)
      expect(yield* world.waits(answer(world.journal, "r1"))).toBe(true)
    })
  )
})
