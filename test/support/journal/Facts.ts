import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { EventData } from "../../../src/application/ports/journal/Events.js"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type * as Records from "../../../src/application/ports/journal/Records.js"
import type { Lane } from "../../../src/application/ports/journal/Transactions.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Journals from "./Journals.js"
import * as Make from "./Make.js"

/** Fails with a `JournalError` that leaks nothing about the database or the data. */
export const refused = <R>(effect: Effect.Effect<unknown, JournalError, R>) =>
  Effect.map(Effect.flip(effect), (error) => {
    expect(error._tag).toBe("JournalError")
    expect(error.message).not.toMatch(/0x|select|insert|update|constraint|[0-9]{3}/i)
  })

type Method<K extends keyof Journals.Methods> = Pick<Journals.Methods, K>

export const accept = (journal: Method<"accept">, acceptance: Records.Acceptance) =>
  Effect.map(journal.accept([acceptance]), ([result]) => result)

/** The lane's ready ops of these elements, in their order; unready elements are omitted. */
export const readyOf = (
  journal: Method<"ready">,
  lane: Lane,
  elements: ReadonlyArray<{ readonly requestId: string; readonly index: number }>
) =>
  Effect.map(journal.ready(lane, 1_000), (ready) =>
    elements.flatMap(
      ({ index, requestId }) =>
        ready.find((each) => each.requestId === requestId && each.index === index) ?? []
    )
  )

/** Records a transaction that carries ready ops of one request, by their indexes: under the lane's next nonce from `chainNonce` on. */
export const record = (
  journal: Method<"nextNonce" | "ready" | "record">,
  requestId: string,
  indexes: ReadonlyArray<number>,
  over: Partial<Records.Recording> = {}
) =>
  Effect.gen(function* () {
    const lane = { ...Make.lane, ...over }
    const ops = yield* readyOf(
      journal,
      lane,
      indexes.map((index) => ({ requestId, index }))
    )
    expect(ops).toHaveLength(indexes.length)
    const { nonce } = yield* journal.nextNonce(lane, over.chainNonce ?? 0n)
    return yield* journal.record(Make.recording(nonce, ops, over))
  })

/** Hands ready ops of one request to an external bundler; returns their number. */
export const handOver = (
  journal: Method<"handOver" | "ready">,
  requestId: string,
  indexes: ReadonlyArray<number>,
  { lane = Make.lane, since = 7n }: { readonly lane?: Lane; readonly since?: bigint } = {}
) =>
  Effect.gen(function* () {
    const ops = yield* readyOf(
      journal,
      lane,
      indexes.map((index) => ({ requestId, index }))
    )
    const handed = ops.map(({ index, opId, userOpHash }) => ({
      opId,
      userOpHash: userOpHash ?? Make.word(index),
      signed: Hex.unsafe(`0x51${index.toString(16).padStart(2, "0")}`)
    }))
    return (yield* journal.handOver(lane, { node: Make.node(), since, ops: handed })).length
  })

/** Abandons ready ops of one request: they are not needed. */
export const giveUp = (
  journal: Method<"fail">,
  requestId: string,
  indexes: ReadonlyArray<number>,
  lane = Make.lane
) => journal.fail(lane, [{ requestId, failed: [], done: indexes }])

/** Answers a request from its present state. */
export const answer = (
  journal: Method<"answer" | "newestEvents">,
  requestId: string,
  outcome = "{}",
  summary: EventData = {}
) =>
  Effect.gen(function* () {
    const sequence = (yield* journal.newestEvents([requestId])).get(requestId) ?? 0
    const [kept = null] = yield* journal.answer([{ requestId, outcome, summary, sequence }])
    return kept
  })

/** Accepts one op with a nonce key, a hash and an index of the same number, together with its request if new. */
export const acceptOp = (requestId: string, n: number) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const op = Make.op({ index: n, nonceKey: BigInt(n), userOpHash: Make.word(n), reserve: 1n })
    return (yield* journal.request(requestId)) === null
      ? yield* accept(journal, Make.acceptance(requestId, [op]))
      : yield* journal.openElements(Make.lane, Make.opening(requestId, [op]))
  })

/** Accepts such ops and records a transaction that carries them, by default at nonce 0. */
export const signOps = (requestId: string, ns: ReadonlyArray<number>, nonce = 0n) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    for (const n of ns) yield* acceptOp(requestId, n)
    expect(yield* record(journal, requestId, ns, { chainNonce: nonce })).toEqual({ _tag: "recorded" })
  })

export const stateOf = (n: number) =>
  Effect.map(
    Effect.flatMap(Journals.all, (journal) => journal.findOp(Make.alice, Make.chainId, Make.word(n))),
    (op) => op?.state
  )

/** The ids of the lane's open requests, in the order of acceptance. */
export const openIn = (journal: Method<"openIn">, lane = Make.lane) =>
  Effect.map(journal.openIn(lane), (open) => open.map(({ requestId }) => requestId))

/** A fact about the journals of a layer, in which the request `r1` is accepted. */
export const factOf =
  (layer: Layer.Layer<Journals.Ports>) =>
  (text: string, body: Effect.Effect<void, unknown, Journals.Ports>): void =>
    it.effect(text, () =>
      Effect.provide(
        Effect.andThen(
          Effect.flatMap(Journals.all, (journal) => accept(journal, Make.acceptance("r1", []))),
          body
        ),
        layer
      )
    )
