import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { accept, handOver, record } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import { postgresOn } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"

const databases = Postgres.perFile()
const pairs = 60

interface Pair {
  readonly requestId: string
  /** Ends the request; `takeBack` undoes that while it is being finished. */
  readonly land: Effect.Effect<unknown, unknown, Journals.Ports>
  readonly takeBack: Effect.Effect<unknown, unknown, Journals.Ports>
}

const call = <A, E>(use: (journal: Journals.Methods) => Effect.Effect<A, E>) =>
  Effect.flatMap(Journals.all, use)

const laneOf = (n: number) => ({ ...Make.lane, signer: Make.address(0x5100 + n) })

const opOf = (n: number) =>
  Make.op({
    space: Make.space(n, { authority: laneOf(n).signer }),
    userOpHash: Make.word(n)
  })

/** An op in a mined transaction of ours that vanishes. */
const bundled = (n: number): Pair => {
  const requestId = `bundled ${n}`
  const lane = laneOf(n)
  return {
    requestId,
    land: call((journal) =>
      Effect.gen(function* () {
        yield* accept(journal, Make.acceptance(requestId, [opOf(n)]))
        yield* record(journal, requestId, [0], lane)
        yield* journal.settle(Make.mined(0n, lane), [Make.landed(Make.word(n), 0n)], false)
      })
    ),
    takeBack: call((journal) => journal.unsettle(lane, 0n))
  }
}

/** A direct transaction that is mined, and then mined in another block without its op. */
const moved = (n: number): Pair => {
  const { land, requestId } = bundled(n)
  const elsewhere = Make.mined(0n, { ...laneOf(n), blockHash: Make.word(0xb10d) })
  return { requestId, land, takeBack: call((journal) => journal.settle(elsewhere, [], false)) }
}

const direct = (n: number): Pair => {
  const requestId = `direct ${n}`
  const lane = laneOf(n)
  return {
    requestId,
    land: call((journal) =>
      Effect.gen(function* () {
        yield* accept(journal, Make.acceptance(requestId, [Make.direct(requestId, lane)]))
        yield* record(journal, requestId, [0], lane)
        yield* journal.settle(Make.mined(0n, lane), [], false)
      })
    ),
    takeBack: call((journal) => journal.unsettle(lane, 0n))
  }
}

/** An op that landed by a remote bundler, and vanishes. */
const remote = (n: number): Pair => {
  const requestId = `remote ${n}`
  const lane = laneOf(n)
  return {
    requestId,
    land: call((journal) =>
      Effect.gen(function* () {
        yield* accept(journal, Make.acceptance(requestId, [opOf(n)]))
        yield* handOver(journal, requestId, [0], { lane })
        yield* journal.recordInclusions(
          lane.signer,
          Make.chainId,
          [Make.landed(Make.word(n), 0n)],
          Make.node()
        )
      })
    ),
    takeBack: call((journal) => journal.revertInclusions(lane.signer, Make.chainId, [Make.word(n)]))
  }
}

/** Requests whose answer is final although their op, or their transaction, is not. */
const contradictions = (made: ReadonlyArray<Pair>) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const signed = new Set(
      (yield* journal.open).flatMap(({ direct, state }) => (state === "signed" ? [direct] : []))
    )
    const found = yield* Effect.forEach(made, ({ requestId }) => journal.request(requestId))
    return found.flatMap((request) =>
      request !== null &&
      request.outcome !== null &&
      (signed.has(request.requestId) || request.ops.some((op) => op.state === "sent"))
        ? [request.requestId]
        : []
    )
  })

describe("requests that are finished while what ended them is taken back", { timeout: 240_000 }, () => {
  for (const [name, kind] of [
    ["a bundle that vanishes", bundled],
    ["a bundle that is mined elsewhere", moved],
    ["a direct transaction that vanishes", direct],
    ["an inclusion by a remote bundler that vanishes", remote]
  ] as const)
    it.live(`on PostgreSQL end open with ${name}`, () =>
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const made = Array.from({ length: pairs }, (_, n) => kind(n))
        yield* Effect.forEach(made, ({ land }) => land, { concurrency: 8, discard: true })
        const newest = yield* journal.newestEvents(made.map(({ requestId }) => requestId))
        const answer = (requestId: string) =>
          journal.answer([{ requestId, outcome: "{}", summary: {}, sequence: newest.get(requestId) ?? 0 }])
        yield* Effect.forEach(
          made,
          ({ requestId, takeBack }) =>
            Effect.all([answer(requestId), takeBack], { concurrency: "unbounded" }),
          { concurrency: 5, discard: true }
        )
        expect(yield* contradictions(made)).toEqual([])
        const open = yield* journal.list(Make.alice, { state: "pending", limit: pairs })
        expect(open.requests).toHaveLength(pairs)
      }).pipe(Effect.provide(postgresOn(databases)))
    )
})
