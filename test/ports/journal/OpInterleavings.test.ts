import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Records from "../../../src/application/ports/journal/Records.js"
import type * as Journals from "../../support/journal/Journals.js"
import * as Layers from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

/** Two processes act at the same moment: one of them comes first, and no result depends on both. */

type Service = Journals.Methods

const databases = Postgres.perFile()
const { acceptance, lane, op, recording } = Make
const rounds = 12

const both = <A, B>(one: Effect.Effect<A, unknown>, other: Effect.Effect<B, unknown>) =>
  Effect.all([Effect.exit(one), Effect.exit(other)], { concurrency: "unbounded" })

const own = (requestId: string, n: number, index = 0) =>
  op({ requestId, index, nonceKey: BigInt(n), userOpHash: Make.word(100 * n + index + 1) })

for (const [name, pair] of Object.entries(Layers.pairs(databases))) {
  const fact = (text: string, body: (one: Service, other: Service) => Effect.Effect<void, unknown>) =>
    it.effect(text, () => Effect.flatMap(pair, ([one, other]) => body(one, other)))

  /** Does it again with a request of its own each time, whose op is ready. */
  const often = (
    one: Service,
    body: (requestId: string, ready: Records.Op, n: number) => Effect.Effect<void, unknown>
  ) =>
    Effect.gen(function* () {
      yield* one.claim(lane, { process: "one", independent: [] })
      for (let n = 0; n < rounds; n++) {
        const requestId = `r${n}`
        yield* one.accept([acceptance(requestId, [own(requestId, n)])])
        const ready = (yield* one.ready(lane, 99)).find((each) => each.requestId === requestId)
        if (ready === undefined) return expect.fail("it is ready")
        yield* body(requestId, ready, n)
      }
    })

  const cancellation = { code: "request_cancelled", outcome: "{}", onlyUnsigned: false } as const

  describe(`two concurrent processes in ${name}`, { timeout: 120_000 }, () => {
    fact("the first of a cancellation and a record counts", (one, other) =>
      often(one, (requestId, ready) =>
        Effect.gen(function* () {
          const { nonce } = yield* one.nextNonce(lane, 0n)
          const [recorded, cancelled] = yield* both(
            one.record(recording(nonce, [ready])),
            other.cancel(requestId, cancellation)
          )
          const [record] = yield* other.requests([requestId])
          const isSigned = record?.ops[0]?.state === "sent"
          expect(recorded).toMatchObject({ value: { _tag: isSigned ? "recorded" : "givenUp" } })
          expect(cancelled).toMatchObject({ value: isSigned ? "kept" : "final" })
          expect(record?.outcome).toBe(isSigned ? null : "{}")
        })
      )
    )

    fact("a cancelled op is neither prepared again nor renumbered", (one, other) =>
      often(one, (requestId, ready, n) =>
        Effect.gen(function* () {
          const anew = { ...own(requestId, n), userOpHash: Make.word(90_000 + n) }
          const [renewed] = yield* both(
            n % 2 === 0
              ? Effect.map(one.renew(lane, [anew]), ([id]) => id !== null)
              : Effect.map(
                  one.renumber(lane, [{ ...anew, sequence: 5n }]),
                  ({ _tag }) => _tag === "renumbered"
                ),
            other.cancel(requestId, cancellation)
          )
          expect(renewed._tag).toBe("Success")
          const [record] = yield* other.requests([requestId])
          expect(record).toMatchObject({ outcome: "{}", ops: [{ state: "abandoned" }] })
          expect((yield* one.ready(lane, 99)).map(({ opId }) => opId)).not.toContain(ready.opId)
        })
      )
    )

    fact("a failure and a cancellation leave one end", (one, other) =>
      often(one, (requestId) =>
        Effect.gen(function* () {
          const [failed, cancelled] = yield* both(
            one.fail(lane, [{ requestId, failed: [Make.failed(0)] }]),
            other.cancel(requestId, cancellation)
          )
          expect([failed._tag, cancelled]).toMatchObject(["Success", { value: "final" }])
          const [record] = yield* one.requests([requestId])
          expect(record).toMatchObject({ outcome: "{}", ops: [{ state: "abandoned" }] })
        })
      )
    )

    fact("lists with the same keys and nonces in opposite orders are both judged", (one, other) =>
      Effect.gen(function* () {
        for (let n = 0; n < rounds; n++) {
          const of = (process: string) =>
            [0, 1, 2].map((index) =>
              acceptance(
                `${process} ${n} ${index}`,
                [own("", 100 + n, index)].map((each) => ({
                  ...each,
                  sequence: BigInt(index)
                })),
                { idempotency: { key: `${n} ${index}`, bodyHash: Make.word(1) } }
              )
            )
          const [mine, theirs] = yield* both(one.accept(of("one")), other.accept(of("other").toReversed()))
          if (mine._tag === "Failure" || theirs._tag === "Failure") return expect.fail(String(mine))
          const tags = [...mine.value, ...theirs.value.toReversed()].map(({ _tag }) => _tag)
          for (const index of [0, 1, 2])
            expect([tags[index], tags[index + 3]].toSorted()).toEqual(["accepted", "known"])
          expect((yield* one.ready(lane, 99)).length).toBe(3 * (n + 1))
        }
      })
    )

    fact("a process that has lost the lane changes none of its rows", (one, other) =>
      often(one, (requestId, ready, n) =>
        Effect.gen(function* () {
          yield* other.claim(lane, { process: "other", independent: [] })
          const anew = { ...own(requestId, n), userOpHash: Make.word(90_000 + n) }
          const late: ReadonlyArray<Effect.Effect<unknown, { readonly isFenced?: true }>> = [
            one.record(recording(0n, [ready])),
            one.renew(lane, [anew]),
            one.renumber(lane, [{ ...anew, sequence: 5n }]),
            one.fail(lane, [{ requestId, failed: [Make.failed(0)] }]),
            one.publish(lane, [ready.opId]),
            one.openElements(lane, Make.opening(requestId, []))
          ]
          for (const call of late) expect((yield* Effect.flip(call)).isFenced).toBe(true)
          const now = (yield* other.ready(lane, 99)).find(({ opId }) => opId === ready.opId)
          expect(now).toEqual(ready)
          yield* one.claim(lane, { process: "one", independent: [] })
        })
      )
    )
  })
}
