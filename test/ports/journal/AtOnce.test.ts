import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { accept, answer } from "../../support/journal/Facts.js"
import type * as Journals from "../../support/journal/Journals.js"
import * as Layers from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

type Service = Journals.Methods

const databases = Postgres.perFile()

const atOnce = <A, E>(calls: ReadonlyArray<Effect.Effect<A, E>>) =>
  Effect.forEach(calls, (call) => Effect.exit(call), { concurrency: "unbounded" })

const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, n) => n)

for (const [name, pair] of Object.entries(Layers.pairs(databases))) {
  const fact = (text: string, body: (one: Service, other: Service) => Effect.Effect<void, unknown>) =>
    it.effect(text, () => Effect.flatMap(pair, ([one, other]) => body(one, other)))

  describe(`concurrent calls in ${name}`, () => {
    fact("each answer is stored for its own request, and an error concerns only its request", (one) =>
      Effect.gen(function* () {
        const plain = numbers(20).map((n) => `r${n}`)
        for (const requestId of plain) yield* accept(one, Make.acceptance(requestId, []))
        yield* accept(one, Make.acceptance("busy", [Make.op()]))
        const ids = [...plain.slice(0, 10), "busy", "nobody", ...plain.slice(10), "r3"]
        const exits = yield* atOnce(
          ids.map((id) => answer(one, id, `"answer of ${id}"`, { httpStatus: 200 }))
        )
        for (const [place, id] of ids.entries())
          expect(exits[place]).toEqual(
            Exit.succeed(id === "busy" || id === "nobody" ? null : `"answer of ${id}"`)
          )
        for (const id of plain) {
          expect((yield* one.request(id))?.outcome).toBe(`"answer of ${id}"`)
          // Its acceptance, and its end.
          expect((yield* one.newestEvents([id])).get(id)).toBe(2)
        }
        expect((yield* one.request("busy"))?.outcome).toBeNull()
      })
    )

    fact("one of two answers to a request is stored, and both callers receive it", (one, other) =>
      Effect.gen(function* () {
        yield* accept(one, Make.acceptance("r1", []))
        yield* accept(one, Make.acceptance("r2", []))
        const answers = numbers(12).map((n) => ({
          requestId: n % 2 === 0 ? "r1" : "r2",
          outcome: `"answer ${n}"`,
          summary: {},
          sequence: 1
        }))
        const exits = yield* atOnce(answers.map((each, n) => (n % 3 === 0 ? other : one).answer([each])))
        for (const [rest, id] of ["r1", "r2"].entries()) {
          const kept = (yield* one.request(id))?.outcome
          expect(numbers(6).map((n) => `"answer ${2 * n + rest}"`)).toContain(kept)
          expect(exits.filter((_, n) => n % 2 === rest)).toEqual(numbers(6).map(() => Exit.succeed([kept])))
        }
      })
    )

    fact("no nonce key is leased twice, and a refused call takes none from the others", (one, other) =>
      Effect.gen(function* () {
        const calls = numbers(8).flatMap((n) =>
          [one, other].map((journal, process) =>
            journal.lease([Make.leaseRequest(`${process} ${n}`, { count: 3, ...Make.space(n % 2) })])
          )
        )
        const exits = yield* atOnce(calls)
        const keys = exits.map((exit) => (Exit.isSuccess(exit) ? exit.value.flat() : null))
        for (const wallet of [0, 1]) {
          const own = keys.filter((_, place) => Math.floor(place / 2) % 2 === wallet)
          expect(own.filter((each) => each?.length === 3).length).toBe(5)
          expect(own.filter((each) => each?.length === 0).length).toBe(3)
          expect(own.flatMap((each) => each ?? []).sort((a, b) => Number(a - b))).toEqual(
            numbers(15).map(BigInt)
          )
        }
      })
    )

    fact("only a call whose keys do not fit fails", (one) =>
      Effect.gen(function* () {
        const wide = { from: 0n, to: 2n ** 192n }
        const exits = yield* atOnce(
          numbers(6).map((n) =>
            one.lease([Make.leaseRequest(`r${n}`, n === 4 ? { keys: wide } : { count: 2 })])
          )
        )
        expect(exits.map(({ _tag }) => _tag)).toEqual(
          numbers(6).map((n) => (n === 4 ? "Failure" : "Success"))
        )
      })
    )
  })
}
