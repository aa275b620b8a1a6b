import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type Act, AuditLog, type Entry } from "../../src/application/ports/AuditLog.js"
import type { AccountId } from "../../src/application/ports/Tenants.js"
import * as Address from "../../src/domain/primitives/Address.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import * as InterruptedAt from "../support/InterruptedAt.js"
import * as Time from "../support/Time.js"

const account = (name: string) => name as AccountId
const address = (n: number) => Address.unsafe(`0x${n.toString(16).padStart(40, "0")}`)
const hash = (n: number): Hex.Bytes32 => Hex.unsafe32(`0x${n.toString(16).padStart(64, "0")}`)

const act = (n: number, over: Partial<Act> = {}): Act => ({
  kind: "signature",
  accountId: account("acme"),
  requestId: `r${n}`,
  by: "/execute",
  signer: address(1),
  hash: hash(n),
  chainId: null,
  nonce: null,
  ...over
})

const hashes = (entries: ReadonlyArray<Entry>) => entries.map((entry) => Number(entry.hash))

/** The laws of the port, for an adapter; every fact has a separate log. */
export const suite = (
  name: string,
  layer: Effect.Effect<Layer.Layer<AuditLog>, never, Scope.Scope>
): void => {
  const fact = (title: string, body: Effect.Effect<void, unknown, AuditLog>) =>
    it.effect(title, () => Effect.flatMap(layer, (own) => Effect.provide(body, own)))

  describe(`the audit log in ${name}`, () => {
    fact(
      "records later acts after an interrupted caller, at any step of the interruption",
      Effect.gen(function* () {
        const log = yield* AuditLog
        for (let step = 1; step <= 30; step += 1) {
          yield* InterruptedAt.step(step, log.record(act(step)))
          yield* log.record(act(1_000 + step))
        }
        const found = hashes(yield* log.find({ limit: 1_000 })).filter((hash) => hash > 1_000)
        expect(found).toEqual(Array.from({ length: 30 }, (_, n) => 1_030 - n))
      })
    )

    fact(
      "returns recorded entries with their time, the newest first",
      Effect.gen(function* () {
        const log = yield* AuditLog
        yield* Time.setTime(1_000)
        yield* log.record(act(1))
        yield* Time.setTime(2_500)
        const transaction = act(2, {
          kind: "transaction",
          accountId: null,
          requestId: null,
          by: null,
          chainId: 2n ** 200n,
          nonce: 2n ** 64n - 1n
        })
        yield* log.record(transaction)
        const entries = yield* log.find({ limit: 10 })
        expect(entries).toEqual([
          { ...transaction, at: 2_500, number: entries[0]?.number },
          { ...act(1), at: 1_000, number: entries[1]?.number }
        ])
        expect((entries[0]?.number ?? 0n) > (entries[1]?.number ?? 0n)).toBe(true)
      })
    )

    fact(
      "finds by account, signer, hash, request and time",
      Effect.gen(function* () {
        const log = yield* AuditLog
        yield* Time.setTime(1_000)
        yield* log.record(act(1, { accountId: account("other") }))
        yield* Time.setTime(2_000)
        yield* log.record(act(2, { signer: address(2) }))
        yield* Time.setTime(3_000)
        yield* log.record(act(3, { requestId: "r2" }))
        expect(hashes(yield* log.find({ accountId: account("other"), limit: 10 }))).toEqual([1])
        expect(hashes(yield* log.find({ signer: address(2), limit: 10 }))).toEqual([2])
        expect(hashes(yield* log.find({ hash: hash(3), limit: 10 }))).toEqual([3])
        expect(hashes(yield* log.find({ requestId: "r2", limit: 10 }))).toEqual([3, 2])
        expect(hashes(yield* log.find({ from: 2_000, limit: 10 }))).toEqual([3, 2])
        expect(hashes(yield* log.find({ to: 2_000, limit: 10 }))).toEqual([2, 1])
        expect(hashes(yield* log.find({ from: 1_001, to: 2_999, limit: 10 }))).toEqual([2])
        expect(hashes(yield* log.find({ signer: address(3), limit: 10 }))).toEqual([])
      })
    )

    fact(
      "is read in pages",
      Effect.gen(function* () {
        const log = yield* AuditLog
        for (let n = 1; n <= 5; n += 1) yield* log.record(act(n))
        const first = yield* log.find({ limit: 2 })
        expect(hashes(first)).toEqual([5, 4])
        const before = first[1]?.number ?? 0n
        expect(hashes(yield* log.find({ before, limit: 10 }))).toEqual([3, 2, 1])
      })
    )

    fact(
      "loses none of many concurrent acts, and the same act twice is two entries",
      Effect.gen(function* () {
        const log = yield* AuditLog
        const numbers = Array.from({ length: 300 }, (_, n) => n)
        yield* Effect.forEach(numbers, (n) => log.record(act(n)), { concurrency: "unbounded" })
        yield* log.record(act(7))
        const entries = yield* log.find({ limit: 1_000 })
        expect(hashes(entries).sort((a, b) => a - b)).toEqual([...numbers, 7].sort((a, b) => a - b))
        expect(new Set(entries.map(({ number }) => number)).size).toBe(301)
      })
    )
  })
}
