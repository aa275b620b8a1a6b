import { spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Address } from "../../../src/domain/primitives/Address.js"
import { available, rounds } from "../../support/journal/Contest.js"
import { accept, record } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import { at, sqliteAt, temporaryFolder } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"
import * as Bundle from "../../support/process/Bundle.js"

const databases = Postgres.perFile()
const writer = Effect.promise(() => Bundle.of("test/support/journal/Writer.ts"))
const contender = Effect.promise(() => Bundle.of("test/support/journal/Contender.ts"))

/** Runs a writer, kills it after `lines` printed lines, and returns those lines. */
const workUntilKilled = (file: string, name: string, lines: number) =>
  Effect.flatMap(writer, (program) =>
    Effect.callback<ReadonlyArray<string>, Error>((resume) => {
      const child = spawn(process.execPath, [program, file, name], {
        stdio: ["ignore", "pipe", "pipe"]
      })
      const told: Array<string> = []
      let complaint = ""
      child.stderr.on("data", (data) => {
        complaint += String(data)
      })
      createInterface({ input: child.stdout }).on("line", (line) => {
        told.push(line)
        if (told.length === lines) child.kill("SIGKILL")
      })
      child.on("close", (_, signal) =>
        resume(
          signal === "SIGKILL"
            ? Effect.succeed(told)
            : Effect.fail(new Error(`the writer ended: ${complaint}`))
        )
      )
      return Effect.sync(() => child.kill("SIGKILL"))
    })
  )

/** Runs a contender to its end and returns its lines. */
const workUntilDone = (database: string, name: string) =>
  Effect.flatMap(contender, (program) =>
    Effect.callback<ReadonlyArray<string>, Error>((resume) => {
      const child = spawn(process.execPath, [program, database, name], {
        stdio: ["ignore", "pipe", "pipe"]
      })
      let told = ""
      let complaint = ""
      child.stdout.on("data", (data) => {
        told += String(data)
      })
      child.stderr.on("data", (data) => {
        complaint += String(data)
      })
      child.on("close", (code) =>
        resume(
          code === 0
            ? Effect.succeed(told.trim().split("\n"))
            : Effect.fail(new Error(`the contender ended: ${complaint}`))
        )
      )
      return Effect.sync(() => child.kill("SIGKILL"))
    })
  )

const numbers = (told: ReadonlyArray<string>, step: string): ReadonlyArray<number> =>
  told.filter((line) => line.startsWith(`${step} `)).map((line) => Number(line.split(" ")[1]))

/** All writes acknowledged to the writer are there, and the next nonce follows the last signed one. */
const verify = (told: ReadonlyArray<string>, signer: Address) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const stateOf = (hash: number) =>
      Effect.map(journal.findOp(Make.alice, Make.chainId, Make.word(hash)), (op) => op?.state ?? "missing")
    for (const hash of numbers(told, "accepted"))
      expect(["accepted", "sent", "settled"]).toContain(yield* stateOf(hash))
    for (const hash of numbers(told, "signed")) expect(["sent", "settled"]).toContain(yield* stateOf(hash))
    for (const hash of numbers(told, "settled")) {
      expect(yield* stateOf(hash)).toBe("settled")
      // Its companion was in the same transaction, and was not settled.
      expect(yield* stateOf(hash + 1)).toBe("sent")
    }
    const signed = told.flatMap((line) => (line.startsWith("signed") ? Number(line.split(" ")[2]) : []))
    expect(signed).toEqual(signed.map((_, n) => n))
    const lane = { ...Make.lane, signer }
    yield* journal.claim(lane, { process: "the next life", independent: [] })
    const { nonce } = yield* journal.nextNonce(lane, 0n)
    // One more may have been signed after the last line read.
    expect(Number(nonce) - signed.length).toBeOneOf([0, 1])
    return nonce
  })

/** The writers' places: a file, or a database of a server. */
const places = [
  {
    name: "SQLite",
    place: Effect.map(temporaryFolder, (folder) => join(folder, "journal.db"))
  },
  {
    name: "PostgreSQL",
    place: Effect.map(databases.fresh, (address) => ("url" in address ? Redacted.value(address.url) : ""))
  }
]

describe("durability of the journal", { timeout: 240_000 }, () => {
  it.effect("accepted, assigned and signed work is there when the file is opened again", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "journal.db")
      const reopened = <A, E>(effect: Effect.Effect<A, E, Journals.Ports>) =>
        Effect.provide(effect, sqliteAt(file))
      yield* reopened(
        Effect.gen(function* () {
          const journal = yield* Journals.all
          yield* Make.lease(journal, Make.leaseRequest("r1", { count: 3, ttlMillis: 3_600_000 }))
          const ops = [0, 1].map((index) =>
            Make.op({ index, nonceKey: BigInt(3 + index), userOpHash: Make.word(index), reserve: 10n ** 40n })
          )
          yield* accept(journal, Make.acceptance("r1", ops, { deployments: [Make.deployment()] }))
          yield* record(journal, "r1", [0], { chainNonce: 9n, maxCost: 10n ** 30n })
          yield* journal.fail(Make.lane, [{ requestId: "r1", failed: [Make.failed(7)] }])
        })
      )
      yield* reopened(
        Effect.gen(function* () {
          const journal = yield* Journals.all
          yield* journal.claim(Make.lane, { process: "the next life", independent: [] })
          expect(yield* Make.lease(journal, Make.leaseRequest("r2"))).toEqual([5n])
          expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(0))).toMatchObject({
            state: "sent",
            txHash: Make.signed(9n).txHash
          })
          const poor = [Make.op({ index: 5, nonceKey: 5n })]
          expect(
            yield* accept(journal, Make.acceptance("r2", poor, { funds: Make.fundsOf(poor, 1n) }))
          ).toEqual({ _tag: "reserved", index: 5, reserved: 2n * 10n ** 40n })
          const other = [Make.deployment({ configHash: Make.word(0xc2) })]
          expect(yield* accept(journal, Make.acceptance("r2", [], { deployments: other }))).toMatchObject({
            _tag: "otherConfiguration"
          })
          const [ready] = yield* journal.ready(Make.lane, 9)
          expect(ready).toMatchObject({ index: 1, prepared: { userOpHash: Make.word(1) } })
          expect((yield* journal.request("r1"))?.failed).toEqual([Make.failed(7)])
          const few = { balance: 10n ** 30n, chainNonce: 9n }
          expect(yield* record(journal, "r1", [1], few)).toEqual({
            _tag: "insufficientFunds",
            reserved: 10n ** 30n
          })
          expect(yield* journal.nextNonce(Make.lane, 9n)).toMatchObject({ nonce: 10n })
          yield* journal.settle(Make.mined(9n), [Make.landed(Make.word(0), 9n)], true)
        })
      )
      yield* reopened(
        Effect.gen(function* () {
          const journal = yield* Journals.all
          expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(0))).toMatchObject({
            state: "settled",
            success: true
          })
          expect(yield* Make.lease(journal, Make.leaseRequest("r3"))).toEqual([3n])
        })
      )
    })
  )

  for (const { name, place } of places) {
    it.live(`a process killed at any step in ${name} leaves all its acknowledged writes`, () =>
      Effect.gen(function* () {
        const database = yield* place
        // Every process continues the work of the one before it; each has a separate lane.
        for (const [n, lines] of [2, 23, 48, 101].entries()) {
          const name = String.fromCharCode(97 + n)
          const told = yield* workUntilKilled(database, name, lines)
          expect(told.length).toBeGreaterThanOrEqual(lines)
          const signer = Make.address(name.charCodeAt(0))
          const nonce = yield* Effect.provide(verify(told, signer), at(database))
          const again = yield* Effect.provide(verify(told, signer), at(database))
          expect(again).toBe(nonce)
        }
      }).pipe(Effect.scoped)
    )

    it.live(`two processes in ${name} share no nonce and lose nothing`, () =>
      Effect.gen(function* () {
        const database = yield* place
        const work = (name: string) => workUntilKilled(database, name, 200)
        const [a, b] = yield* Effect.all([work("a"), work("b")], { concurrency: "unbounded" })
        expect(numbers(a, "signed").length).toBeGreaterThan(30)
        expect(numbers(b, "signed").length).toBeGreaterThan(30)
        yield* Effect.provide(
          Effect.andThen(
            verify(a, Make.address("a".charCodeAt(0))),
            verify(b, Make.address("b".charCodeAt(0)))
          ),
          at(database)
        )
      }).pipe(Effect.scoped)
    )

    it.live(`concurrent processes in ${name} share no key, no wei and no idempotency key`, () =>
      Effect.gen(function* () {
        const database = yield* place
        const names = ["a", "b", "c"]
        const told = yield* Effect.all(
          names.map((name) => workUntilDone(database, name)),
          { concurrency: "unbounded" }
        )
        const all = told.flat().map((line) => line.split(" "))
        expect(all.length).toBe(names.length * rounds)
        const keys = all.map(([, key]) => key)
        expect(new Set(keys).size).toBe(keys.length)
        const owners = new Map(
          all.flatMap(([round, , tag, owner]) => (tag === "accepted" ? [[round, owner] as const] : []))
        )
        expect(all.filter(([, , tag]) => tag === "accepted").length).toBe(available)
        expect(owners.size).toBe(available)
        const known = all.filter(([, , tag]) => tag === "known")
        expect(known.map(([, , , owner]) => owner)).toEqual(known.map(([round]) => owners.get(round)))
        const reserved = all.filter(([, , tag]) => tag === "reserved")
        expect(reserved.filter(([round]) => owners.has(round))).toEqual([])
        expect([known.length, reserved.length]).toEqual([
          available * (names.length - 1),
          (rounds - available) * names.length
        ])
      }).pipe(Effect.scoped)
    )
  }
})
