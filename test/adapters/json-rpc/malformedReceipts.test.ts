import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Outcome from "../../../src/domain/erc4337/Outcome.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { honest } from "../../support/HostileNode.js"
import { address, block, connect, hash, http, log, other, transaction, receipt as whole } from "./support.js"

/** A node with this receipt, and this transaction. */
const telling = (receipt: object, of: object | null = transaction) =>
  Effect.flatMap(
    http((response, body) =>
      honest(response, body, ({ method }) => {
        if (method === "eth_getTransactionReceipt") return receipt
        return method === "eth_getTransactionByHash" ? of : block
      })
    ),
    connect
  )

const without = (...names: ReadonlyArray<keyof typeof whole>) =>
  Object.fromEntries(Object.entries(whole).filter(([name]) => !names.some((one) => one === name)))

describe("a receipt that lacks", () => {
  it.live("a receipt without price and sender takes them from transaction and block", () =>
    Effect.gen(function* () {
      const receipt = without("effectiveGasPrice", "from")
      for (const [terms, price] of [
        [{}, 3n],
        [{ gasPrice: "0x64", maxFeePerGas: "0x64", maxPriorityFeePerGas: "0x2" }, 9n],
        [{ gasPrice: "0x8", maxFeePerGas: "0x8", maxPriorityFeePerGas: "0x2" }, 8n]
      ] as const) {
        const chain = yield* telling(receipt, { ...transaction, ...terms })
        const told = yield* chain.receipt(hash)
        expect(told).toMatchObject({ effectiveGasPrice: price, from: address, success: true })
        expect(told).not.toHaveProperty("missing")
      }
    })
  )

  it.live("a receipt without price is rejected when its transaction is unknown or in another block", () =>
    Effect.gen(function* () {
      for (const of of [null, { ...transaction, blockNumber: "0x6" }, { ...transaction, hash: other }]) {
        const chain = yield* telling(without("effectiveGasPrice"), of)
        const { message, reason } = yield* Effect.flip(chain.receipt(hash))
        expect([reason, message.endsWith("at effectiveGasPrice")]).toEqual(["notAnRpc", true])
        expect(yield* chain.receipt(hash, "lenient")).toMatchObject({
          missing: ["effectiveGasPrice"],
          from: address
        })
      }
    })
  )

  it.live("a receipt without status is a success with logs, and rejected without logs", () =>
    Effect.gen(function* () {
      const proven = yield* telling(without("status"))
      expect(yield* proven.receipt(hash)).toMatchObject({ success: true })
      const open = yield* telling({ ...without("status"), logs: [] })
      expect((yield* Effect.flip(open.receipt(hash))).reason).toBe("notAnRpc")
      expect(yield* open.receipt(hash, "lenient")).toMatchObject({ missing: ["status"] })
    })
  )

  it.live("a receipt without another field is rejected, or returned incomplete on request", () =>
    Effect.gen(function* () {
      const { data: _, ...bare } = { ...log, topics: [Outcome.userOperationEvent, other, other, other] }
      const { topics: __, ...mute } = log
      const cases: ReadonlyArray<readonly [object, string, number]> = [
        [without("cumulativeGasUsed"), "cumulativeGasUsed", 1],
        [without("gasUsed"), "gasUsed", 1],
        [{ ...whole, gasUsed: 21_000 }, "gasUsed", 1],
        [{ ...whole, cumulativeGasUsed: "many" }, "cumulativeGasUsed", 1],
        [{ ...whole, status: 1 }, "status", 1],
        [{ ...whole, status: "0x2" }, "status", 1],
        [{ ...whole, l1Fee: "0x" }, "l1Fee", 1],
        [without("blockNumber"), "blockNumber", 1],
        [without("blockHash"), "blockHash", 1],
        [without("transactionHash"), "transactionHash", 1],
        [without("logs"), "logs", 0],
        [{ ...whole, logs: "none" }, "logs", 0],
        [{ ...whole, logs: [log, bare, log] }, "logs.1.data", 2],
        [{ ...whole, logs: [log, mute, log] }, "logs.1.topics", 2],
        [{ ...whole, logs: [log, { ...log, topics: Array(5).fill(other) }, log] }, "logs.1.topics", 2],
        [{ ...whole, logs: [log, null, log] }, "logs.1", 2]
      ]
      for (const [receipt, name, logs] of cases) {
        const chain = yield* telling(receipt)
        expect((yield* Effect.flip(chain.receipt(hash))).message).toMatch(new RegExp(`at ${name}$`))
        const told = yield* chain.receipt(hash, "lenient")
        expect(told).toMatchObject({ missing: [name], effectiveGasPrice: 1n })
        expect(told?.logs.length).toBe(logs)
      }
    })
  )

  it.live("a receipt that lacks a part of a foreign log is read without that log", () =>
    Effect.gen(function* () {
      const { data: _, ...silent } = log
      for (const odd of [
        silent,
        { ...log, logIndex: null },
        { ...log, address: "0x1" },
        { ...log, data: "0x1" }
      ]) {
        const chain = yield* telling({ ...whole, logs: [log, odd] })
        expect(yield* chain.receipt(hash)).toMatchObject({ success: true, logs: [{ logIndex: 3 }] })
      }
    })
  )

  it.live("the topics of a log is believed where that is of none of the contracts that count", () =>
    Effect.gen(function* () {
      const { topics: _, ...odd } = log
      const chain = yield* telling({ ...whole, logs: [log, odd] })
      const own = Address.unsafe(log.address)
      const another = Address.unsafe(`0x${"5a".repeat(20)}`)
      for (const emitters of [[], [another]])
        expect(yield* chain.receipt(hash, { emitters: new Set(emitters) })).toMatchObject({ success: true })
      for (const reading of [undefined, { emitters: new Set([another, own]) }])
        expect((yield* Effect.flip(chain.receipt(hash, reading))).message).toContain("logs.1.topics")
      const nameless = yield* telling({ ...whole, logs: [{ ...odd, address: null }] })
      expect((yield* Effect.flip(nameless.receipt(hash, { emitters: new Set([own]) }))).reason).toBe(
        "notAnRpc"
      )
    })
  )

  it.live("an empty receipt or another transaction's receipt is returned without fields", () =>
    Effect.gen(function* () {
      for (const odd of ["0x", [], {}, { ...whole, transactionHash: other }]) {
        const chain = yield* telling(odd)
        expect((yield* Effect.flip(chain.receipt(hash))).reason).toBe("notAnRpc")
        const told = yield* chain.receipt(hash, "lenient")
        expect(told).toMatchObject({ txHash: hash, missing: expect.arrayContaining(["transactionHash"]) })
      }
    })
  )
})

describe("a block", () => {
  it.live("a block has its readable transactions, despite unreadable ones", () =>
    Effect.gen(function* () {
      const { nonce: _, ...kindless } = transaction
      const { input, ...alias } = transaction
      const odd = [kindless, { type: "0x7e" }, null, alias]
      const chain = yield* Effect.flatMap(
        http((response, body) =>
          honest(response, body, () => ({
            ...block,
            transactions: [...odd, transaction, { ...alias, data: input }]
          }))
        ),
        connect
      )
      const found = yield* chain.transactionsIn(5n)
      expect(found?.map(({ data, nonce }) => [nonce, data])).toEqual([
        [7n, "0x60"],
        [7n, "0x60"]
      ])
    })
  )
})
