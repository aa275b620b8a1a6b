import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Acceptance } from "../../../src/application/ports/journal/Records.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { accept, giveUp, record } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"
import * as Time from "../../support/Time.js"

const accepted = { _tag: "accepted" }
const cancellation = { code: "request_cancelled", outcome: "{}", onlyUnsigned: false } as const
const E = Make.ether

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = (text: string, body: Effect.Effect<void, unknown, Journals.Ports>) =>
    it.effect(text, () => Effect.provide(body, layer))

  describe(`acceptance in ${name}`, () => {
    fact(
      "a refusal ends the copies under its key that have arrived before, and no later one",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const place = { accountId: Make.alice, endpoint: "/execute", key: "key" }
        const read = Effect.map(journal.read({ idempotency: [place], spaces: [] }), ({ known }) => known)
        const arrived = (requestId: string, arrivedAt: number) =>
          accept(
            journal,
            Make.acceptance(requestId, [Make.op({ userOpHash: Make.word(1) })], {
              idempotency: { key: "key", bodyHash: Make.word(9) },
              arrivedAt
            })
          )
        yield* Time.setTime(100)
        expect(yield* journal.refuse("x1", place)).toBeNull()
        expect(yield* arrived("r1", 99)).toEqual({ _tag: "over" })
        expect(yield* read).toEqual([null])
        expect(yield* journal.requestOf(Make.alice, "/execute", "key")).toBeNull()
        expect(yield* journal.request("x1")).toBeNull()
        expect(yield* journal.list(Make.alice, { limit: 5 })).toEqual({ requests: [], searched: null })
        yield* Time.setTime(200)
        expect(yield* journal.refuse("x2", place)).toBeNull()
        expect(yield* arrived("r2", 150)).toEqual({ _tag: "over" })
        expect(yield* arrived("r3", 200)).toEqual(accepted)
        yield* Time.setTime(300)
        expect(yield* journal.refuse("x3", place)).toBe("r3")
        expect(yield* arrived("r4", 300)).toEqual({
          _tag: "known",
          requestId: "r3",
          bodyHash: Make.word(9)
        })
        expect(yield* read).toEqual([{ requestId: "r3", bodyHash: Make.word(9) }])
        expect(yield* journal.refuse("x1", { ...place, endpoint: "/create" })).toBeNull()
      })
    )

    fact(
      "a contradictory acceptance fails and writes nothing",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const op = Make.op({ index: 1, userOpHash: Make.word(1) })
        const base = Make.acceptance("r1", [op])
        const wrong: ReadonlyArray<Acceptance> = [
          { ...base, failed: [Make.failed(1)] },
          { ...base, ops: [op, Make.op({ index: 1, nonceKey: 1n })] },
          { ...base, ops: [op, Make.op({ index: 0, nonceKey: 1n, requestId: "r2" })] },
          { ...base, ops: [op, Make.op({ index: 2, space: Make.space(1, { chainId: 1n }) })] },
          {
            ...base,
            ops: [op, Make.op({ index: 2, space: Make.space(1, { authority: Make.address(0x52) }) })]
          },
          { ...base, funds: [] },
          { ...base, funds: [{ space: Make.space(1, { entryPoint: Make.otherEntryPoint }), available: 9n }] },
          { ...base, deployments: [Make.deployment({ chainId: 1n })] },
          { ...base, ops: [op, Make.op({ index: 2, nonceKey: 1n, userOpHash: Make.word(1) })] },
          { ...base, ops: [{ ...op, reserve: -1n }] },
          { ...base, ops: [{ ...op, reserve: 2n ** 256n }] },
          { ...base, ops: [{ ...op, nonceKey: 2n ** 192n }] },
          { ...base, ops: [{ ...op, sequence: 2n ** 64n }] }
        ]
        for (const acceptance of wrong) {
          expect((yield* Effect.flip(accept(journal, acceptance)))._tag).toBe("JournalError")
          expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toBeNull()
        }
        expect(yield* accept(journal, base)).toEqual(accepted)
      })
    )

    fact(
      "an accepted request is read back whole",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const nonceKey = 2n ** 192n - 1n
        const sequence = 2n ** 64n - 1n
        const returned = Hex.unsafe("0xab01")
        const op = Make.op({ index: 7, nonceKey, sequence, userOpHash: Make.word(1), returned })
        expect(yield* accept(journal, Make.acceptance("r1", [op]))).toEqual(accepted)
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(1))).toEqual({
          accountId: Make.alice,
          requestId: "r1",
          index: 7,
          userOpHash: Make.word(1),
          space: Make.space(1),
          nonceKey,
          sequence,
          returned,
          state: "accepted",
          txHash: null,
          success: null,
          revertData: null
        })
      })
    )

    fact(
      "the same key and sequence on another chain, EntryPoint or wallet is another nonce",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* accept(journal, Make.acceptance("r1", [Make.op()]))
        const others = [
          Make.space(2),
          Make.space(1, { chainId: 1n }),
          Make.space(1, { entryPoint: Make.otherEntryPoint })
        ]
        for (const [n, space] of others.entries())
          expect(yield* accept(journal, Make.acceptance(`o${n}`, [Make.op({ space })]))).toEqual(accepted)
      })
    )

    fact(
      "a signed op keeps its nonce, key and money; the next version of its element replaces it",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const first = Make.op({ nonceKey: 1n, reserve: 6n, userOpHash: Make.word(1) })
        const never = Make.op({ index: 1, nonceKey: 2n })
        yield* accept(journal, Make.acceptance("r1", [first, never]))
        yield* record(journal, "r1", [0])
        yield* journal.settle(Make.mined(0n), [], true)
        expect(yield* journal.cancel("r1", cancellation)).toBe("kept")
        const states = () =>
          Effect.map(journal.request("r1"), (record) => record?.ops.map(({ state }) => state))
        expect(yield* states()).toEqual(["accepted", "abandoned"])
        const keys = { from: 1n, to: 2n }
        expect(yield* Make.lease(journal, Make.leaseRequest("r2", { keys }))).toEqual([2n])
        expect(yield* Make.lease(journal, Make.leaseRequest("r1", { keys }))).toBeNull()
        expect((yield* accept(journal, Make.acceptance("r2", [first])))?._tag).toBe("nonceTaken")
        expect(yield* journal.renew(Make.lane, [{ ...first, sequence: 1n }])).toEqual([null])
        const [id] = yield* journal.renew(Make.lane, [{ ...first, userOpHash: Make.word(2) }])
        expect(id).not.toBeNull()
        // The previous version may land under its nonce.
        expect(yield* journal.cancel("r1", cancellation)).toBe("kept")
        expect(yield* states()).toEqual(["accepted", "abandoned"])
        const told = yield* journal.request("r1")
        expect(told?.signed.map(({ state, userOpHash }) => [state, userOpHash])).toEqual([
          ["abandoned", Make.word(1)],
          ["accepted", Make.word(2)]
        ])
        yield* giveUp(journal, "r1", [0])
        expect((yield* accept(journal, Make.acceptance("r2", [first])))?._tag).toBe("accepted")
      })
    )

    fact(
      "money held by other requests is unavailable, to the wei, at figures beyond 64 bits",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const funds = [{ space: Make.space(1), available: 100n * E }]
        const spend = (requestId: string, key: bigint, reserve: bigint) =>
          accept(journal, Make.acceptance(requestId, [Make.op({ nonceKey: key, reserve })], { funds }))
        expect(yield* spend("r1", 0n, 60n * E)).toEqual(accepted)
        expect(yield* spend("r2", 1n, 40n * E + 1n)).toEqual({
          _tag: "reserved",
          index: 0,
          reserved: 60n * E
        })
        expect(yield* spend("r3", 1n, 40n * E)).toEqual(accepted)
        expect(yield* spend("r4", 2n, 1n)).toEqual({ _tag: "reserved", index: 0, reserved: 100n * E })
        expect(yield* spend("r5", 2n, 0n)).toEqual(accepted)
      })
    )

    fact(
      "all EntryPoints of a wallet share its money, and no other wallet or chain does",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* accept(
          journal,
          Make.acceptance("r1", [
            Make.op({ reserve: 10n, space: Make.space(1, { entryPoint: Make.otherEntryPoint }) })
          ])
        )
        const at = (requestId: string, space = Make.space(1)) => {
          const ops = [Make.op({ reserve: 1n, space })]
          return accept(journal, Make.acceptance(requestId, ops, { funds: Make.fundsOf(ops, 10n) }))
        }
        expect(yield* at("r2")).toEqual({ _tag: "reserved", index: 0, reserved: 10n })
        expect(yield* at("r3", Make.space(2))).toEqual(accepted)
        expect(yield* at("r4", Make.space(1, { chainId: 1n }))).toEqual(accepted)
      })
    )

    fact(
      "256 ops of 256 wallets are accepted together, all or none",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const ops = Array.from({ length: 256 }, (_, index) =>
          Make.op({ index, space: Make.space(index), userOpHash: Make.word(index), reserve: 10n ** 30n })
        )
        yield* accept(journal, Make.acceptance("r0", [Make.op({ space: Make.space(255) })]))
        expect(yield* accept(journal, Make.acceptance("r1", ops))).toEqual({
          _tag: "nonceTaken",
          index: 255,
          isSettled: false
        })
        expect(yield* journal.findOp(Make.alice, Make.chainId, Make.word(0))).toBeNull()
        yield* giveUp(journal, "r0", [0])
        expect(yield* accept(journal, Make.acceptance("r1", ops))).toEqual(accepted)
        for (const { userOpHash } of ops)
          if (userOpHash !== null)
            expect(yield* journal.findOp(Make.alice, Make.chainId, userOpHash)).not.toBeNull()
      })
    )

    fact(
      "of concurrent acceptances of one nonce exactly one succeeds",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const results = yield* Effect.all(
          Array.from({ length: 50 }, (_, n) => accept(journal, Make.acceptance(`r${n}`, [Make.op()]))),
          { concurrency: "unbounded" }
        )
        expect(results.filter((result) => result?._tag === "accepted").length).toBe(1)
        expect(results.filter((result) => result?._tag === "nonceTaken").length).toBe(49)
      })
    )

    fact(
      "concurrent acceptances never hold more than the wallet has",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const funds = [{ space: Make.space(1), available: 10n * E }]
        const results = yield* Effect.all(
          Array.from({ length: 50 }, (_, n) =>
            accept(
              journal,
              Make.acceptance(`r${n}`, [Make.op({ nonceKey: BigInt(n), reserve: E })], { funds })
            )
          ),
          { concurrency: "unbounded" }
        )
        expect(results.filter((result) => result?._tag === "accepted").length).toBe(10)
        expect(results.filter((result) => result?._tag === "reserved").length).toBe(40)
      })
    )

    fact(
      "text of any kind in identifiers is only text",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const hostile = [
          "'; drop table ops; --",
          '"quoted"',
          "back\\slash",
          "%_?$1:name@x",
          "",
          " ",
          "null",
          "0 r1",
          "новый запрос 🏰",
          "line\nbreak"
        ]
        for (const [n, text] of hostile.entries()) {
          const accountId = Make.accountId(text)
          const op = Make.op({ nonceKey: BigInt(n), userOpHash: Make.word(n) })
          expect(yield* Make.lease(journal, Make.leaseRequest(text, { ttlMillis: 1_000 }))).toEqual([
            BigInt(n)
          ])
          expect(yield* accept(journal, Make.acceptance(text, [op], { accountId, endpoint: text }))).toEqual(
            accepted
          )
          yield* journal.release(text)
        }
        for (const [n, text] of hostile.entries()) {
          const found = yield* journal.findOp(Make.accountId(text), Make.chainId, Make.word(n))
          expect(found).toMatchObject({ requestId: text, accountId: text, state: "accepted" })
          expect(yield* journal.findOp(Make.accountId(`${text} `), Make.chainId, Make.word(n))).toBeNull()
          yield* giveUp(journal, text, [0])
        }
      })
    )

    fact(
      "a settled op keeps its nonce forever, an abandoned one releases it",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* accept(journal, Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })]))
        yield* record(journal, "r1", [0])
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        expect(yield* accept(journal, Make.acceptance("r2", [Make.op()]))).toEqual({
          _tag: "nonceTaken",
          index: 0,
          isSettled: true
        })
        const next = Make.op({ sequence: 1n })
        yield* accept(journal, Make.acceptance("r3", [next]))
        yield* giveUp(journal, "r3", [0])
        expect(yield* accept(journal, Make.acceptance("r4", [next]))).toEqual(accepted)
      })
    )

    fact(
      "money is released with the settlement and with the abandonment of its op",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* accept(journal, Make.acceptance("r1", [Make.op({ reserve: 6n, userOpHash: Make.word(1) })]))
        yield* accept(journal, Make.acceptance("r2", [Make.op({ nonceKey: 1n, reserve: 5n })]))
        const spend = (reserve: bigint) => {
          const ops = [Make.op({ nonceKey: 2n, reserve })]
          return accept(journal, Make.acceptance("r3", ops, { funds: Make.fundsOf(ops, 12n) }))
        }
        expect(yield* spend(2n)).toEqual({ _tag: "reserved", index: 0, reserved: 11n })
        yield* giveUp(journal, "r2", [0])
        expect(yield* spend(7n)).toEqual({ _tag: "reserved", index: 0, reserved: 6n })
        yield* record(journal, "r1", [0])
        expect(yield* spend(7n)).toEqual({ _tag: "reserved", index: 0, reserved: 6n })
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n, { success: false })], true)
        expect(yield* spend(12n)).toEqual(accepted)
      })
    )
  })
}
