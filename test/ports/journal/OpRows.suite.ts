import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import type * as Records from "../../../src/application/ports/journal/Records.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const accepted = { _tag: "accepted" }
const { acceptance, lane, recording } = Make

const op = (over: Parameters<typeof Make.op>[0] = {}) => Make.op({ userOpHash: Make.word(1), ...over })

/** Ops of one request, each under a separate key. */
const parallel = (count: number, from = 0): ReadonlyArray<Records.PreparedOp> =>
  Array.from({ length: count }, (_, n) =>
    op({ index: n, nonceKey: BigInt(from + n), userOpHash: Make.word(1 + from + n) })
  )

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = (
    text: string,
    body: (journal: Journals.Methods) => Effect.Effect<void, unknown, Journals.Ports>
  ) => it.effect(text, () => Effect.provide(Effect.flatMap(Journals.all, body), layer))

  const readyIds = (journal: Journals.Methods) =>
    Effect.map(journal.ready(lane, 100), (ops) => ops.map((each) => each.opId))
  const stateOf = (journal: Journals.Methods, hash: number) =>
    Effect.map(journal.findOp(Make.alice, Make.chainId, Make.word(hash)), (found) => found?.state ?? null)

  describe(`ops as rows in ${name}`, () => {
    fact("accepted ops are ready whole, oldest first, with their request's shared fields", (journal) =>
      Effect.gen(function* () {
        const one = op({
          nonceKey: 2n ** 192n - 1n,
          sequence: 2n ** 64n - 1n,
          window: { validAfter: 1, validUntil: 2 },
          dependsOn: [3],
          reserve: 10n ** 40n,
          l1Fee: 7n,
          returned: Hex.unsafe("0xab01"),
          goodUntil: 5,
          unsigned: Make.unsigned(2n ** 255n, `0x${"00ff".repeat(300)}`)
        })
        expect(
          yield* journal.accept([
            acceptance("r1", [one]),
            acceptance("r2", [op({ index: 4, nonceKey: 1n, userOpHash: null })], { accountId: Make.bob })
          ])
        ).toEqual([accepted, accepted])
        const ready = yield* journal.ready(lane, 9)
        expect(ready.map(({ accountId, index, requestId }) => [requestId, index, accountId])).toEqual([
          ["r1", 0, Make.alice],
          ["r2", 4, Make.bob]
        ])
        expect(ready[0]).toMatchObject({
          contextDigest: "context 1",
          endpoint: "/execute",
          exposed: false,
          key: { clientId: "key 1" },
          prepared: one,
          state: "accepted",
          userOpHash: Make.word(1)
        })
        expect((yield* journal.ready(lane, 1)).map(({ requestId }) => requestId)).toEqual(["r1"])
        const behind = yield* journal.ready(lane, 9, { after: ready[0]?.opId ?? 0 })
        expect(behind.map(({ requestId }) => requestId)).toEqual(["r2"])
        expect(yield* journal.ready({ ...lane, chainId: 1n }, 9)).toEqual([])
        expect(yield* journal.bodies(["r2", "r1", "r9"])).toMatchObject([
          { requestId: "r1", body: '{"of":"r1"}', opened: [0], elements: 1 },
          { requestId: "r2", opened: [4] }
        ])
        expect((yield* journal.events("r1", 0, 9)).map(({ kind }) => kind)).toEqual(["accepted"])
      })
    )

    fact("no account waits behind another account's backlog", (journal) =>
      Effect.gen(function* () {
        yield* journal.accept([
          acceptance("r1", parallel(5)),
          acceptance("r2", parallel(2, 5), { accountId: Make.bob })
        ])
        const first = yield* journal.ready(lane, 4, { perAccount: 2 })
        expect(first.map(({ index, requestId }) => [requestId, index])).toEqual([
          ["r1", 0],
          ["r1", 1],
          ["r2", 0],
          ["r2", 1]
        ])
      })
    )

    fact("each request of a list is judged separately, after the ones before it", (journal) =>
      Effect.gen(function* () {
        const key = (text: string, hash = 1) => ({ idempotency: { key: text, bodyHash: Make.word(hash) } })
        const poor = (own: Records.PreparedOp) => ({ funds: [{ space: own.space, available: 10n }] })
        const two = op({ nonceKey: 2n, userOpHash: Make.word(2), reserve: 6n, space: Make.space(2) })
        const three = { ...two, nonceKey: 3n, userOpHash: Make.word(3) }
        const list = [
          acceptance("r1", [op()], key("a", 7)),
          acceptance("r2", [op({ userOpHash: Make.word(9), nonceKey: 9n })], key("a", 8)),
          acceptance("r3", [op({ index: 5, userOpHash: Make.word(8) })]),
          acceptance("r4", [two], poor(two)),
          acceptance("r5", [three], poor(three)),
          acceptance("r6", [], { deployments: [Make.deployment()] }),
          acceptance("r7", [], { deployments: [Make.deployment({ configHash: Make.word(0xc2) })] })
        ]
        const results = [
          accepted,
          { _tag: "known", requestId: "r1", bodyHash: Make.word(7) },
          { _tag: "nonceTaken", index: 5, isSettled: false },
          accepted,
          { _tag: "reserved", index: 0, reserved: 6n },
          accepted,
          { _tag: "otherConfiguration", deployment: 0 }
        ]
        expect(yield* journal.accept(list)).toEqual(results)
        expect(
          (yield* journal.requests(list.map(({ requestId }) => requestId))).map((it) => it.requestId)
        ).toEqual(["r1", "r4", "r6"])
        expect((yield* journal.ready(lane, 9)).length).toBe(2)
        // A repeat after a lost reply gives each the same result.
        expect(yield* journal.accept(list)).toEqual(results)
        yield* journal.decline("r8")
        expect(yield* journal.accept([acceptance("r8", []), acceptance("r9", [])])).toEqual([
          { _tag: "over" },
          accepted
        ])
        expect(
          yield* journal.read({
            idempotency: [
              { accountId: Make.alice, endpoint: "/execute", key: "a" },
              { accountId: Make.bob, endpoint: "/execute", key: "a" }
            ],
            spaces: [Make.space(1), Make.space(2), Make.space(2, { entryPoint: Make.otherEntryPoint })]
          })
        ).toEqual({
          known: [{ requestId: "r1", bodyHash: Make.word(7) }, null],
          spaces: [
            { keys: new Set([0n]), held: 0n },
            { keys: new Set([2n]), held: 6n },
            { keys: new Set(), held: 6n }
          ]
        })
      })
    )

    fact("a contradictory list writes nothing", (journal) =>
      Effect.gen(function* () {
        const other = { ...lane, signer: Make.address(0x99) }
        const wrong: ReadonlyArray<ReadonlyArray<Records.Acceptance>> = [
          [acceptance("r1", [op(), op({ nonceKey: 1n })])],
          [acceptance("r1", [op()], { failed: [Make.failed(0)] })],
          [acceptance("r1", [op()], { funds: [] })],
          [acceptance("r1", [op({ reserve: 2n ** 256n })])],
          [acceptance("r1", [op()], { lane: other })],
          [acceptance("r1", [op()]), acceptance("r2", [], { lane: other })],
          [acceptance("r1", [op()]), acceptance("r1", [])]
        ]
        for (const list of wrong) expect((yield* Effect.flip(journal.accept(list)))._tag).toBe("JournalError")
        expect(yield* journal.requests(["r1", "r2"])).toEqual([])
      })
    )

    fact("elements are opened later, in slices, when they are due", (journal) =>
      Effect.gen(function* () {
        const schedule = { notBefore: 100, dueAt: 5_000 }
        yield* journal.accept([acceptance("r1", [op()], { elements: 4, unopened: 3, schedule })])
        expect(yield* journal.unopened(lane, 9)).toEqual([])
        expect(yield* journal.nextDue(lane)).toBe(5_000)
        expect(yield* journal.overdue(lane, 4_000, 9)).toEqual([])
        yield* TestClock.adjust("5 seconds")
        expect(yield* journal.unopened(lane, 9)).toMatchObject([{ requestId: "r1", unopened: 3 }])
        expect(yield* journal.unopened(lane, 9, "/unstuck")).toEqual([])
        const slice = Make.opening("r1", [op({ index: 1, nonceKey: 1n, userOpHash: Make.word(2) })], {
          failed: [Make.failed(2)]
        })
        expect(yield* journal.openElements(lane, slice)).toEqual(accepted)
        expect(yield* journal.unopened(lane, 9)).toMatchObject([{ unopened: 1 }])
        expect(yield* journal.ended(["r1"])).toEqual([])
        const taken = Make.opening("r1", [op({ index: 3, userOpHash: Make.word(3) })])
        expect(yield* journal.openElements(lane, taken)).toEqual({
          _tag: "nonceTaken",
          index: 3,
          isSettled: false
        })
        expect((yield* Effect.flip(journal.openElements(lane, slice)))._tag).toBe("JournalError")
        yield* journal.fail(lane, [{ requestId: "r1", failed: [Make.failed(3)] }])
        expect(yield* journal.unopened(lane, 9)).toEqual([])
        expect(yield* journal.bodies(["r1"])).toMatchObject([
          { opened: [0, 1], failed: [{ index: 2 }, { index: 3 }] }
        ])
        expect(yield* journal.busy).toMatchObject([
          { lane, accountId: Make.alice, key: { clientId: "key 1" } }
        ])
        expect(yield* journal.overdue(lane, 200_000, 9)).toEqual([
          { requestId: "r1", endpoint: "/execute", acceptedAt: 0, isExposed: false, isNoted: false }
        ])
        yield* journal.note("r1", "{}")
        expect(yield* journal.overdue(lane, 200_000, 9)).toMatchObject([{ isNoted: true }])
        expect(yield* journal.overdue(lane, 200_000, 9, "r1")).toEqual([])
      })
    )

    fact("a creation prepared again keeps the authorisation as long as its signed bytes", (journal) =>
      Effect.gen(function* () {
        const creation = (validUntil: number) =>
          op({ kind: "creation", userOpHash: null, proof: "deployer", window: { validAfter: 0, validUntil } })
        const { deadline } = Make.deployment()
        yield* journal.accept([acceptance("r1", [creation(deadline)], { deployments: [Make.deployment()] })])
        yield* journal.renew(lane, [creation(deadline + 600)])
        const other = (requestId: string, chainTime: number) =>
          acceptance(requestId, [], {
            deployments: [
              Make.deployment({ configHash: Make.word(0xc2), chainTime, deadline: deadline + 900 })
            ]
          })
        expect(yield* journal.accept([other("r2", deadline + 600)])).toEqual([
          { _tag: "otherConfiguration", deployment: 0 }
        ])
        expect(yield* journal.accept([other("r3", deadline + 601)])).toEqual([{ _tag: "accepted" }])
      })
    )

    fact("an element found done needs no op and has not failed", (journal) =>
      Effect.gen(function* () {
        yield* journal.accept([acceptance("r1", parallel(3))])
        const [one] = yield* journal.ready(lane, 9)
        yield* journal.record(recording(0n, one === undefined ? [] : [one]))
        yield* journal.fail(lane, [{ requestId: "r1", failed: [Make.failed(1)], done: [0, 2] }])
        // Sent ops stay sent.
        expect([yield* stateOf(journal, 1), yield* stateOf(journal, 3)]).toEqual(["sent", "abandoned"])
        expect(yield* journal.request("r1")).toMatchObject({ failed: [{ index: 1 }] })
        expect(yield* journal.ready(lane, 9)).toEqual([])
      })
    )

    fact("a transaction is recorded with its nonce, or not at all", (journal) =>
      Effect.gen(function* () {
        yield* journal.accept([acceptance("r1", parallel(3))])
        const [one, two, three] = yield* journal.ready(lane, 9)
        if (one === undefined || two === undefined || three === undefined)
          return expect.fail("three are ready")
        const record = (...args: Parameters<typeof recording>) => journal.record(recording(...args))
        expect(yield* record(1n, [one])).toEqual({ _tag: "nonceUsed" })
        expect(yield* record(0n, [{ ...one, userOpHash: Make.word(77) }, two])).toEqual({
          _tag: "givenUp",
          opIds: [one.opId]
        })
        expect(yield* record(0n, [one], { maxCost: 5n, balance: 4n })).toEqual({
          _tag: "insufficientFunds",
          reserved: 0n
        })
        expect(yield* journal.openOf(lane)).toEqual([])
        expect(yield* record(0n, [two, one], { maxCost: 5n })).toEqual({ _tag: "recorded" })
        expect(yield* record(0n, [two, one], { maxCost: 5n })).toEqual({ _tag: "recorded" })
        expect(yield* record(0n, [three], { txHash: Make.word(5) })).toEqual({ _tag: "nonceUsed" })
        expect(yield* journal.nextNonce(lane, 0n)).toMatchObject({ nonce: 1n })
        expect(yield* record(1n, [one, three])).toEqual({ _tag: "givenUp", opIds: [one.opId] })
        expect(yield* record(1n, [three], { maxCost: 5n, balance: 9n })).toEqual({
          _tag: "insufficientFunds",
          reserved: 5n
        })
        expect(yield* journal.openOf(lane)).toMatchObject([
          {
            nonce: 0n,
            state: "signed",
            ops: [
              { index: 1, userOpHash: Make.word(2) },
              { index: 0, userOpHash: Make.word(1) }
            ],
            versions: [{ txHash: Make.word(0x1000) }]
          }
        ])
        expect(yield* readyIds(journal)).toEqual([three.opId])
        const [told] = yield* journal.requests(["r1"])
        expect(told?.signed.map(({ index }) => index)).toEqual([0, 1])
        expect((yield* journal.events("r1", 0, 9)).map(({ kind }) => kind)).toEqual(["accepted", "signed"])
        const again = { ...recording(0n, []), txHash: Make.word(6), addedCost: 2n }
        expect(yield* journal.replace(again)).toBe(true)
        expect(yield* journal.replace(again)).toBe(true)
        expect(yield* journal.openOf(lane)).toMatchObject([
          { versions: [{ txHash: Make.word(0x1000) }, { txHash: Make.word(6) }] }
        ])
        expect(yield* record(1n, [three], { maxCost: 5n, balance: 9n })).toEqual({
          _tag: "insufficientFunds",
          reserved: 7n
        })
        expect(yield* journal.replace({ ...again, nonce: 3n })).toBe(false)
      })
    )

    fact("ops of another route wait, except ops that fill a nonce", (journal) =>
      Effect.gen(function* () {
        const other = op({
          index: 1,
          space: Make.space(1, { entryPoint: Make.otherEntryPoint }),
          userOpHash: Make.word(2)
        })
        yield* journal.accept([acceptance("r1", [op(), other])])
        const [one, two] = yield* journal.ready(lane, 9)
        if (one === undefined || two === undefined) return expect.fail("two are ready")
        expect((yield* Effect.flip(journal.record(recording(0n, [one, two]))))._tag).toBe("JournalError")
        expect(yield* journal.record(recording(0n, [one]))).toEqual({ _tag: "recorded" })
        expect(yield* journal.record(recording(1n, [two]))).toEqual({ _tag: "otherRoute" })
        expect(yield* journal.record(recording(1n, []))).toEqual({ _tag: "recorded" })
      })
    )

    fact("a settled op needs no preparation, and comes back exposed when its nonce is lost", (journal) =>
      Effect.gen(function* () {
        yield* journal.accept([acceptance("r1", parallel(2))])
        const ready = yield* journal.ready(lane, 9)
        yield* journal.record(recording(0n, ready))
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        expect(yield* stateOf(journal, 1)).toBe("settled")
        expect(yield* journal.ready(lane, 9)).toMatchObject([
          { index: 1, exposed: true, prepared: { userOpHash: Make.word(2) } }
        ])
        const [back] = yield* readyIds(journal)
        yield* journal.record(recording(1n, [{ opId: back ?? 0, userOpHash: Make.word(2) }]))
        yield* journal.recordExternalUse(lane, 1n, [])
        expect(yield* journal.ready(lane, 9)).toMatchObject([{ index: 1, exposed: true }])
      })
    )

    fact("the rest of a request is overdue so long after its last signature or inclusion", (journal) =>
      Effect.gen(function* () {
        const rest = { code: "request_expired", outcome: "expired", onlyUnsigned: false } as const
        const overdue = (before: number) =>
          Effect.map(journal.overdue(lane, before, 9), (rows) =>
            rows.map(({ isExposed, requestId }) => [requestId, isExposed])
          )
        yield* journal.accept([
          acceptance("r1", parallel(2)),
          acceptance("r2", [op({ nonceKey: 7n, userOpHash: Make.word(7) })], { elements: 3, unopened: 2 }),
          acceptance("r3", [op({ nonceKey: 8n, userOpHash: Make.word(8) })])
        ])
        const [first, , ...others] = yield* journal.ready(lane, 9)
        yield* TestClock.adjust("5 seconds")
        yield* journal.record(recording(0n, first === undefined ? [] : [first, ...others]))
        expect(yield* overdue(5_000)).toEqual([])
        expect(yield* overdue(5_001)).toEqual([
          ["r1", true],
          ["r2", true]
        ])
        yield* TestClock.adjust("5 seconds")
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)
        expect(yield* overdue(10_000)).toEqual([])
        expect(yield* overdue(10_001)).toHaveLength(2)
        for (const requestId of ["r1", "r2"]) expect(yield* journal.cancel(requestId, rest)).toBe("kept")
        expect(yield* overdue(10_001)).toEqual([])
        expect(yield* journal.unopened(lane, 9)).toEqual([])
        expect(yield* journal.ended(["r1"])).toEqual(["r1"])
      })
    )

    fact("a direct transaction is an op, which lands with its transaction", (journal) =>
      Effect.gen(function* () {
        yield* journal.accept([acceptance("d1", [Make.direct("d1")]), acceptance("d2", [Make.direct("d2")])])
        const [one, two] = yield* journal.ready(lane, 9)
        if (one === undefined || two === undefined) return expect.fail("two are ready")
        expect(one.prepared).toMatchObject({
          kind: "direct",
          unsigned: { value: 5n },
          nonceKey: one.nonceKey
        })
        expect(one.nonceKey).toBeLessThan(two.nonceKey)
        expect((yield* Effect.flip(journal.record(recording(0n, [one, two]))))._tag).toBe("JournalError")
        yield* journal.record(recording(0n, [one]))
        expect(yield* journal.openOf(lane)).toMatchObject([{ ops: [], direct: "d1" }])
        yield* journal.settle(Make.mined(0n, { success: false }), [], false)
        const landed = { state: "settled", success: false, txHash: Make.word(0x1000) }
        expect(yield* journal.requests(["d1"])).toMatchObject([{ ops: [landed] }])
        expect(yield* journal.ended(["d1", "d2"])).toEqual(["d1"])
        expect(yield* journal.unanswered(lane, 9)).toEqual(["d1"])
        expect(yield* journal.unanswered({ ...lane, signer: Make.address(0x99) }, 9)).toEqual([])
        yield* journal.unsettle(lane, 0n)
        expect(yield* journal.requests(["d1"])).toMatchObject([{ ops: [{ state: "sent" }] }])
        yield* journal.recordExternalUse(lane, 0n, [])
        expect(yield* journal.ready(lane, 9)).toMatchObject([{ exposed: true }, { exposed: false }])
        const found = { txHash: Make.word(0xf0), maxFeePerGas: 7n, maxPriorityFeePerGas: 3n }
        yield* journal.adopt({
          ...lane,
          nonce: 3n,
          requestId: "d2",
          access: Make.access(),
          transaction: found
        })
        expect(yield* journal.ready(lane, 9)).toMatchObject([{ requestId: "d1" }])
        expect(yield* journal.openOf(lane)).toMatchObject([{ nonce: 3n, direct: "d2" }])
        yield* journal.settle(Make.mined(3n, { txHash: found.txHash }), [], true)
        expect(yield* journal.requests(["d2"])).toMatchObject([
          { ops: [{ state: "settled", success: true, txHash: found.txHash }] }
        ])
      })
    )

    fact("an op prepared again keeps its nonce, and an exposed one its versions", (journal) =>
      Effect.gen(function* () {
        yield* journal.accept([acceptance("r1", parallel(2))])
        const [one, two] = yield* journal.ready(lane, 9)
        if (one?.prepared == null || two?.prepared == null) return expect.fail("two are ready")
        const anew = { ...one.prepared, userOpHash: Make.word(11), reserve: 4n, goodUntil: 9 }
        expect(yield* journal.renew(lane, [anew, { ...two.prepared, sequence: 4n }])).toEqual([
          one.opId,
          null
        ])
        expect(yield* journal.ready(lane, 9)).toMatchObject([
          { opId: one.opId, userOpHash: Make.word(11), prepared: anew },
          { opId: two.opId, sequence: 0n }
        ])
        expect(yield* journal.provenAt(lane)).toBeNull()
        yield* journal.publish(lane, [two.opId])
        expect(yield* journal.provenAt(lane)).toBe(yield* Clock.currentTimeMillis)
        const next = { ...two.prepared, userOpHash: Make.word(12) }
        const [id] = yield* journal.renew(lane, [next])
        expect(id).toBeGreaterThan(two.opId)
        expect(yield* journal.ready(lane, 9)).toMatchObject([
          { opId: one.opId },
          { opId: id, exposed: true, userOpHash: Make.word(12) }
        ])
        expect(yield* journal.versions([one.opId, id ?? 0])).toEqual([{ opId: id, userOpHash: Make.word(2) }])
        expect(yield* journal.renew(lane, [next])).toEqual([id])
        yield* journal.record(recording(0n, [{ opId: one.opId, userOpHash: Make.word(11) }]))
        expect(yield* journal.renew(lane, [anew])).toEqual([null])
      })
    )

    fact("unexposed ops move up and reuse each other's nonces", (journal) =>
      Effect.gen(function* () {
        const row = (index: number, sequence: bigint, hash: number) =>
          op({ index, sequence, userOpHash: Make.word(hash) })
        yield* journal.accept([acceptance("r1", [row(0, 0n, 1), row(1, 1n, 2), row(2, 2n, 3)])])
        yield* journal.fail(lane, [{ requestId: "r1", failed: [Make.failed(0)] }])
        const ids = yield* readyIds(journal)
        const moved = [row(1, 0n, 4), row(2, 1n, 5)]
        expect(yield* journal.renumber(lane, moved)).toEqual({ _tag: "renumbered", opIds: ids })
        const swapped = [row(1, 1n, 6), row(2, 0n, 7)]
        expect(yield* journal.renumber(lane, swapped)).toEqual({ _tag: "renumbered", opIds: ids })
        expect(
          (yield* journal.ready(lane, 9)).map(({ sequence, userOpHash }) => [sequence, userOpHash])
        ).toEqual([
          [1n, Make.word(6)],
          [0n, Make.word(7)]
        ])
        yield* journal.accept([acceptance("r2", [op({ sequence: 9n, userOpHash: Make.word(9) })])])
        expect(yield* journal.renumber(lane, [row(1, 2n, 8), row(2, 9n, 10)])).toEqual({
          _tag: "nonceTaken",
          requestId: "r1",
          index: 2
        })
        expect((yield* journal.ready(lane, 9)).map(({ sequence }) => sequence)).toEqual([1n, 0n, 9n])
        expect(yield* journal.renumber(lane, [row(0, 3n, 8)])).toMatchObject({ _tag: "notReady", index: 0 })
        // A dead version's row stays, with its hash.
        yield* journal.publish(lane, ids.slice(0, 1))
        const dead = yield* journal.renumber(lane, [row(1, 5n, 20)])
        expect(dead._tag).toBe("renumbered")
        expect(yield* stateOf(journal, 6)).toBe("abandoned")
        expect(yield* journal.ready(lane, 9)).toContainEqual(
          expect.objectContaining({ index: 1, exposed: false, sequence: 5n })
        )
      })
    )

    fact("a failure ends ready ops, is recorded on sent ones, and leaves landed ones", (journal) =>
      Effect.gen(function* () {
        yield* journal.accept([acceptance("r1", parallel(3), { elements: 3 })])
        const [one, two] = yield* journal.ready(lane, 9)
        if (one === undefined || two === undefined) return expect.fail("three are ready")
        yield* journal.record(recording(0n, [one]))
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)
        yield* journal.record(recording(1n, [two]))
        yield* journal.fail(lane, [
          { requestId: "r1", failed: [0, 1, 2].map((index) => Make.failed(index)) },
          { requestId: "unknown", failed: [Make.failed(0)] }
        ])
        const [record] = yield* journal.requests(["r1"])
        expect(record?.failed.map(({ index }) => index)).toEqual([1, 2])
        expect(record?.ops.map(({ state }) => state)).toEqual(["settled", "sent", "abandoned"])
        expect(yield* journal.ended(["r1"])).toEqual([])
        yield* journal.settle(Make.mined(1n), [Make.landed(Make.word(2), 1n)], false)
        expect(yield* journal.ended(["r1"])).toEqual(["r1"])
        // Its nonce is free.
        expect(
          yield* journal.accept([acceptance("r2", [op({ nonceKey: 2n, userOpHash: Make.word(30) })])])
        ).toEqual([accepted])
      })
    )

    fact("answers are stored together, each for the state it was read at", (journal) =>
      Effect.gen(function* () {
        yield* journal.accept([
          acceptance("r1", [op()]),
          acceptance("r2", [], { failed: [Make.failed(0)] }),
          acceptance("r3", [], { unopened: 1 })
        ])
        const answerOf = (requestId: string, outcome: string, sequence: number) => ({
          requestId,
          outcome,
          sequence,
          summary: { httpStatus: 200 }
        })
        const ready = yield* journal.ready(lane, 9)
        yield* journal.record(recording(0n, ready))
        expect(
          yield* journal.answer([
            answerOf("r1", '"1"', 2),
            answerOf("r2", '"2"', 1),
            answerOf("r3", '"3"', 1),
            answerOf("unknown", '"4"', 0)
          ])
        ).toEqual([null, '"2"', null, null])
        expect(yield* journal.answer([answerOf("r2", '"other"', 2)])).toEqual(['"2"'])
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], false)
        const before = (yield* journal.newestEvents(["r1"])).get("r1") ?? 0
        yield* journal.unsettle(lane, 0n)
        yield* journal.settle(
          Make.mined(0n, { blockHash: Make.word(2) }),
          [Make.landed(Make.word(1), 0n)],
          false
        )
        expect(yield* journal.answer([answerOf("r1", '"old"', before)])).toEqual([null])
        const now = (yield* journal.newestEvents(["r1"])).get("r1") ?? 0
        expect(yield* journal.answer([answerOf("r1", '"new"', now)])).toEqual(['"new"'])
        yield* journal.unsettle(lane, 0n)
        expect((yield* journal.request("r1"))?.outcome).toBeNull()
      })
    )
  })
}
