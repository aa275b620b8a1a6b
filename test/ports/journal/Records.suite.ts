import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { accept, acceptOp, factOf, readyOf, record, signOps } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"
import * as Time from "../../support/Time.js"

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = factOf(layer)

  describe(`records of transactions in ${name}`, () => {
    fact(
      "an open transaction has all fields that its processing needs",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* acceptOp("r1", 1)
        yield* acceptOp("r2", 2)
        const access = Make.access({
          key: { clientId: "key", versionId: "3" },
          rpc: Redacted.make("https://node.example/v3/secret?key=🏰")
        })
        const ops = [
          { requestId: "r2", index: 2 },
          { requestId: "r1", index: 1 }
        ]
        const nonce = 2n ** 63n
        const versions = [1, 2].map((n) => ({
          txHash: Make.word(0x2000 + n),
          raw: Hex.unsafe(`0x02${"ab".repeat(40_000)}0${n}`),
          maxFeePerGas: 2n ** 200n + BigInt(n),
          maxPriorityFeePerGas: BigInt(n)
        }))
        const [first, second] = versions
        if (first === undefined || second === undefined) return expect.fail("there are two")
        yield* Time.adjust("1 seconds")
        const carried = yield* readyOf(journal, Make.lane, ops)
        yield* journal.record(Make.recording(nonce, carried, { ...first, access, chainNonce: nonce }))
        yield* Time.adjust("1 seconds")
        yield* journal.replace({ ...Make.lane, nonce, addedCost: 0n, ...second })
        yield* Time.adjust("1 seconds")
        // Repeated bytes add no version.
        yield* journal.replace({ ...Make.lane, nonce, addedCost: 0n, ...first })
        const told = {
          ...Make.lane,
          nonce,
          access,
          state: "signed",
          versions,
          signedAt: 2_000,
          ops: ops.map((op) => ({
            ...op,
            userOpHash: Make.word(op.index),
            entryPoint: Make.entryPoint,
            wallet: Make.space(1).wallet,
            key: BigInt(op.index)
          })),
          direct: null,
          mined: null
        }
        expect(yield* journal.open).toEqual([told])
        expect(yield* journal.openOf(Make.lane)).toEqual([told])
        expect(yield* journal.findTransaction(Make.alice, Make.chainId, Make.word(0x2001))).toEqual(told)
        const { success, ...block } = { success: false, blockNumber: 2n ** 60n, blockHash: Make.word(0xb) }
        const txHash = Make.word(0x2001)
        yield* journal.settle({ ...Make.lane, nonce, txHash, success, ...block, confirmations: 1 }, [], false)
        const mined = { txHash, success, ...block }
        expect(yield* journal.open).toEqual([{ ...told, state: "mined", mined }])
      })
    )

    fact(
      "each way to name a key is kept, with the owner of its transaction",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const keys = [
          "serviceEoa",
          { clientId: "" },
          "treasury",
          { clientId: "serviceEoa" },
          { clientId: "key", assetId: "A", versionId: "" }
        ] as const
        for (const [n, key] of keys.entries()) {
          yield* accept(journal, Make.acceptance(`d${n}`, [Make.direct(`d${n}`)]))
          const access = Make.access({ key, trust: n === 0 ? "operator" : "caller" })
          yield* record(journal, `d${n}`, n === 1 ? [] : [0], { access })
        }
        const records = yield* journal.openOf(Make.lane)
        expect(records.map((record) => record.access.key)).toEqual(keys)
        expect(records.map((record) => record.access.trust)).toEqual([
          "operator",
          "caller",
          "caller",
          "caller",
          "caller"
        ])
        expect(records.map((record) => record.direct)).toEqual(["d0", null, "d2", "d3", "d4"])
      })
    )

    fact(
      "transactions of a lane between two nonces are listed in nonce order, whatever their state",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const lane = { chainId: 137n, signer: Make.address(0x52) }
        for (const chainNonce of [10n, 9n, 100n, 11n, 12n]) {
          yield* record(journal, "", [], { ...lane, chainNonce })
        }
        yield* journal.settle(Make.mined(9n, lane), [], true)
        yield* journal.settle(Make.mined(10n, lane), [], false)
        yield* journal.recordExternalUse(lane, 11n, [])
        const between = (from: bigint, below: bigint, over = {}) =>
          Effect.map(journal.transactionsBetween({ ...lane, ...over }, from, below), (records) =>
            records.map(({ nonce, state }) => [nonce, state])
          )
        const all = [
          [9n, "settled"],
          [10n, "mined"],
          [11n, "external"],
          [12n, "signed"],
          [100n, "signed"]
        ]
        expect(yield* between(0n, 101n)).toEqual(all)
        expect(yield* between(10n, 100n)).toEqual(all.slice(1, 4))
        expect(yield* between(10n, 10n)).toEqual([])
        expect(yield* between(0n, 101n, { chainId: 138n })).toEqual([])
      })
    )

    fact(
      "a transaction is found by any of its hashes, by its account only, in every state",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* signOps("r1", [1])
        const second = Make.word(0x2000)
        yield* journal.replace(Make.signed(0n, { txHash: second }))
        const find = (txHash = second, accountId = Make.alice, chainId = Make.chainId) =>
          journal.findTransaction(accountId, chainId, txHash)
        expect(yield* find()).toMatchObject({ nonce: 0n, state: "signed" })
        expect(yield* find(Make.signed(0n).txHash)).toEqual(yield* find())
        expect(yield* find(Make.word(0x9999))).toBeNull()
        expect(yield* find(second, Make.bob)).toBeNull()
        expect(yield* find(second, Make.alice, 1n)).toBeNull()
        yield* journal.settle(Make.mined(0n), [Make.landed(Make.word(1), 0n)], true)
        expect(yield* find()).toMatchObject({ state: "settled", mined: { txHash: Make.mined(0n).txHash } })
        yield* signOps("r1", [2], 1n)
        yield* journal.recordExternalUse(Make.lane, 1n, [])
        expect(yield* find(Make.signed(1n).txHash)).toMatchObject({ nonce: 1n, state: "external" })
      })
    )
  })

  describe(`the transactions of a lane in ${name}`, () => {
    fact(
      "are found by any of their hashes, for any account",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        yield* record(journal, "r1", [], { access: Make.access({ accountId: Make.bob }), chainNonce: 3n })
        const second = Make.word(0x2000)
        yield* journal.replace(Make.signed(3n, { txHash: second }))
        const found = yield* journal.transactionOf(Make.lane, second)
        expect(found).toMatchObject({ nonce: 3n, state: "signed", access: { accountId: Make.bob } })
        expect(yield* journal.transactionOf(Make.lane, Make.signed(3n).txHash)).toEqual(found)
        yield* journal.settle(Make.mined(3n), [], true)
        expect(yield* journal.transactionOf(Make.lane, second)).toMatchObject({ state: "settled" })
        expect(yield* journal.transactionOf(Make.lane, Make.word(0x9999))).toBeNull()
        expect(yield* journal.transactionOf({ ...Make.lane, chainId: 1n }, second)).toBeNull()
        expect(yield* journal.transactionOf({ ...Make.lane, signer: Make.address(0x52) }, second)).toBeNull()
      })
    )
  })
}
