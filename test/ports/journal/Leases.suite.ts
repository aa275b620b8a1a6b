import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { LeaseRequest } from "../../../src/application/ports/journal/Requests.js"
import { accept, giveUp } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"
import * as Time from "../../support/Time.js"

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = (text: string, body: Effect.Effect<void, unknown, Journals.Ports>) =>
    it.effect(text, () => Effect.provide(body, layer))

  describe(`leases in ${name}`, () => {
    fact(
      "the range is inclusive and may begin anywhere in 192 bits",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const to = 2n ** 192n - 1n
        const keys = { from: to - 1n, to }
        expect(yield* Make.lease(journal, Make.leaseRequest("r1", { keys, count: 2 }))).toEqual([to - 1n, to])
        expect(yield* Make.lease(journal, Make.leaseRequest("r2", { keys }))).toBeNull()
        const wide = { from: 9n, to }
        expect(yield* Make.lease(journal, Make.leaseRequest("r3", { keys: wide, count: 3 }))).toEqual([
          9n,
          10n,
          11n
        ])
      })
    )

    fact(
      "keys of more than 192 bits, or below zero, fail",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const to = 2n ** 192n
        const above = yield* Effect.flip(
          Make.lease(journal, Make.leaseRequest("r1", { keys: { from: to, to } }))
        )
        const below = yield* Effect.flip(
          Make.lease(journal, Make.leaseRequest("r1", { keys: { from: -1n, to: 3n } }))
        )
        expect([above._tag, below._tag]).toEqual(["JournalError", "JournalError"])
      })
    )

    fact(
      "an unused lease is free again after its time to live, and not before",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* Make.lease(journal, Make.leaseRequest("r1", { ttlMillis: 1_000 }))
        yield* Time.adjust("999 millis")
        expect(yield* Make.lease(journal, Make.leaseRequest("r2"))).toEqual([1n])
        yield* Time.adjust("1 millis")
        expect(yield* Make.lease(journal, Make.leaseRequest("r3"))).toEqual([0n])
      })
    )

    fact(
      "an issued key is that of the op that its caller gives, and is free with it",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* Make.lease(journal, Make.leaseRequest("handed out"))
        const given = Make.op({ kind: "given", userOpHash: Make.word(1) })
        yield* accept(journal, Make.acceptance("r1", [given]))
        expect(yield* Make.lease(journal, Make.leaseRequest("r2"))).toEqual([1n])
        yield* giveUp(journal, "r1", [0])
        expect(yield* Make.lease(journal, Make.leaseRequest("r3"))).toEqual([0n])
      })
    )

    fact(
      "keys of another chain, EntryPoint or wallet are separate",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const spaces = [
          Make.space(1),
          Make.space(2),
          Make.space(1, { chainId: 1n }),
          Make.space(1, { entryPoint: Make.otherEntryPoint })
        ]
        for (const space of spaces)
          expect(yield* Make.lease(journal, { ...Make.leaseRequest("r1"), ...space })).toEqual([0n])
      })
    )

    fact(
      "of several wallets are made in order, up to the first wallet with too few",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        expect(yield* journal.lease([])).toEqual([])
        const of = (holder: string, wallet: number, over: Partial<LeaseRequest> = {}) => ({
          ...Make.leaseRequest(holder, over),
          ...Make.space(wallet)
        })
        expect(yield* journal.lease([of("r1", 2), of("r1", 1, { count: 2 }), of("r1", 2)])).toEqual([
          [0n],
          [0n, 1n],
          [1n]
        ])
        const few = { from: 0n, to: 2n }
        expect(
          yield* journal.lease([of("r2", 1), of("r2", 2, { count: 2, keys: few }), of("r2", 3)])
        ).toEqual([[2n]])
        expect(yield* journal.lease([of("r3", 2), of("r3", 3), of("r3", 1)])).toEqual([[2n], [0n], [3n]])
        const elsewhere = { ...of("r4", 1), entryPoint: Make.otherEntryPoint }
        expect(yield* journal.lease([elsewhere, of("r4", 1), elsewhere])).toEqual([[0n], [4n], [1n]])
      })
    )

    fact(
      "of the same wallets in opposite orders wait for each other, and both are made",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const wallets = [1, 2, 3, 4, 5]
        const requests = (holder: string, order: ReadonlyArray<number>) =>
          order.map((wallet) => ({ ...Make.leaseRequest(holder), ...Make.space(wallet) }))
        const leased = yield* Effect.all(
          Array.from({ length: 16 }, (_, n) =>
            journal.lease(requests(`r${n}`, n % 2 === 0 ? wallets : [...wallets].reverse()))
          ),
          { concurrency: "unbounded" }
        )
        for (const each of leased) expect(each).toHaveLength(5)
        for (const [place] of wallets.entries()) {
          const keys = leased.map((each, n) => each[n % 2 === 0 ? place : 4 - place]?.[0])
          expect(new Set(keys).size).toBe(16)
        }
      })
    )

    fact(
      "concurrent leases never share a key",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const keys = { from: 0n, to: 99n }
        const leased = yield* Effect.all(
          Array.from({ length: 60 }, (_, n) =>
            Make.lease(journal, Make.leaseRequest(`r${n}`, { keys, count: 2 }))
          ),
          { concurrency: "unbounded" }
        )
        const got = leased.flatMap((part) => part ?? [])
        expect(leased.filter((part) => part === null).length).toBe(10)
        expect(new Set(got).size).toBe(100)
      })
    )
  })
}
