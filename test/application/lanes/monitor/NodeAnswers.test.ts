import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FollowedTransaction from "../../../../src/application/lanes/monitor/FollowedTransaction.js"
import { LaneNodes } from "../../../../src/application/lanes/monitor/LaneNodes.js"
import * as NodeAnswers from "../../../../src/application/lanes/monitor/NodeAnswers.js"
import type { Receipt } from "../../../../src/application/ports/chain/ChainRpc.js"
import { type ChainClient, ChainRpcError } from "../../../../src/application/ports/chain/ChainRpc.js"
import type { TransactionRecord } from "../../../../src/application/ports/journal/Transactions.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import { test } from "../../../support/Test.js"

const { callers, profile, receiptOf, recordOf } = Monitor
const down = new ChainRpcError({ reason: "unreachable", origin: "a", message: "down" })

const nodeOf = (over: Partial<ChainClient> = {}) =>
  Effect.map(Monitor.node("a"), (state) => ({
    state,
    node: new LaneNodes().ofOperator({ ...state.chain, ...over })
  }))

const entryOf = (
  node: FollowedTransaction.LaneNode,
  nonce: number,
  over: Partial<TransactionRecord> = {},
  settledDepth = 64
) =>
  FollowedTransaction.make(
    { profile: { ...profile, settledDepth }, record: recordOf(nonce, callers, over) },
    node,
    {
      now: 0,
      taken: true,
      waited: 0
    }
  )

/** Mined in a block of this height, and missed since. */
const missedIn = (
  node: FollowedTransaction.LaneNode,
  nonce: number,
  blockNumber: bigint,
  blockHash = Make.word(0xb10c)
) => ({
  ...entryOf(node, nonce, {
    state: "mined",
    mined: { blockHash, blockNumber, success: true, txHash: Make.word(0x100 + nonce) }
  }),
  missedSince: 1
})

describe("a node", () => {
  test("counts as silent if it has another chain ID or returns none", function* () {
    for (const chainId of [Effect.succeed(Make.chainId + 1n), Effect.fail(down)]) {
      const { node, state } = yield* nodeOf({ chainId })
      state.shows.add(Make.word(0x100))
      const { answers, head } = yield* NodeAnswers.at(node, [entryOf(node, 0)])
      expect([answers.size, head]).toEqual([0, null])
    }
  })

  test("answers for other transactions when one receipt fails", function* () {
    const { node } = yield* nodeOf({
      receipt: (hash) => (hash === Make.word(0x100) ? Effect.fail(down) : Effect.succeed(null))
    })
    const [failed, told] = [entryOf(node, 0), entryOf(node, 1)]
    const { answers } = yield* NodeAnswers.at(node, [failed, told])
    expect(answers.has(failed)).toBe(false)
    expect(answers.get(told)).toMatchObject({ receipt: null, isOperators: true, isWitness: false })
  })

  test("returns the receipt of whichever version was mined, even if requests for other versions fail", function* () {
    const { node } = yield* nodeOf({
      receipt: (hash) => (hash === Make.word(0x200) ? Effect.succeed(receiptOf(hash)) : Effect.fail(down))
    })
    const [version] = recordOf(0, callers).versions
    if (version === undefined) return
    const versions = [
      version,
      { ...version, txHash: Make.word(0x200) },
      { ...version, txHash: Make.word(0x300) }
    ]
    const entry = entryOf(node, 0, { versions })
    const { answers } = yield* NodeAnswers.at(node, [entry])
    expect(answers.get(entry)?.receipt?.txHash).toBe(Make.word(0x200))
  })

  it.effect.each([
    ["of the next block", { blockNumber: 2n }],
    ["without a hash", { blockHash: Make.word(0) }],
    ["with a hash different from its block's", { blockHash: Make.word(0xdead) }]
  ] as const)("does not show a receipt %s, whether or not its head is requested", ([, over]) =>
    Effect.gen(function* () {
      let given: Partial<Receipt> = over
      const { node, state } = yield* nodeOf({
        receipt: (hash) => Effect.succeed({ ...receiptOf(hash), ...given })
      })
      // All the node's blocks have one hash, and none is above its head.
      const { block } = node.chain
      const chain = {
        ...node.chain,
        block: (tag: Parameters<typeof block>[0]) =>
          typeof tag === "bigint" && tag > state.height ? Effect.succeed(null) : block(tag)
      }
      for (const depth of [1, 64]) {
        given = over
        const entry = entryOf(node, 0, {}, depth)
        const early = yield* NodeAnswers.at({ ...node, chain }, [entry])
        expect(early.answers.get(entry)).toMatchObject({ receipt: null })
        given = {}
        const late = yield* NodeAnswers.at({ ...node, chain }, [entry])
        expect(late.answers.get(entry)?.receipt?.blockNumber).toBe(1n)
        // Later blocks do not put it on the chain.
        state.height = 9n
        given = over
        const above = yield* NodeAnswers.at({ ...node, chain }, [entry])
        expect(above.answers.get(entry)?.receipt ?? null).toEqual(
          "blockNumber" in over ? expect.anything() : null
        )
        state.height = 1n
      }
    })
  )

  test("shows no receipt if it cannot return the receipt's block", function* () {
    const { node, state } = yield* nodeOf()
    const { block } = node.chain
    const chain = {
      ...node.chain,
      block: (tag: Parameters<typeof block>[0]) => (typeof tag === "bigint" ? Effect.fail(down) : block(tag))
    }
    state.shows.add(Make.word(0x100))
    state.height = 9n
    const entry = entryOf(node, 0)
    const { answers } = yield* NodeAnswers.at({ ...node, chain }, [entry])
    expect(answers.get(entry)?.receipt ?? null).toBeNull()
  })

  test("is queried for a receipt's block once that is deep enough to count, and not earlier", function* () {
    const { node, state } = yield* nodeOf({
      receipt: (hash) => Effect.succeed({ ...receiptOf(hash), blockNumber: 5n })
    })
    const asked: Array<bigint> = []
    const { block } = node.chain
    const chain = {
      ...node.chain,
      block: (tag: Parameters<typeof block>[0]) => {
        if (typeof tag === "bigint") asked.push(tag)
        return block(tag)
      }
    }
    const entry = { ...entryOf(node, 0), profile: { ...profile, confirmations: 3 } }
    for (const height of [5n, 6n, 7n]) {
      state.height = height
      const { answers } = yield* NodeAnswers.at({ ...node, chain }, [entry])
      expect(answers.get(entry)?.receipt?.blockNumber).toBe(5n)
      expect(asked).toEqual(height < 7n ? [] : [5n])
    }
  })
})

describe("a replaced block", () => {
  test("undoes the transactions in it and above it, and none below", function* () {
    const { node, state } = yield* nodeOf()
    state.height = 9n
    const kept = missedIn(node, 0, 4n)
    const replaced = missedIn(node, 1, 5n, Make.word(0xdead))
    const above = missedIn(node, 2, 6n)
    const { answers } = yield* NodeAnswers.at(node, [kept, replaced, above])
    expect([kept, replaced, above].map((entry) => answers.get(entry)?.block)).toEqual([
      "kept",
      "replaced",
      "replaced"
    ])
  })

  test("is read only for a missed transaction", function* () {
    const { node } = yield* nodeOf()
    const entry = { ...missedIn(node, 0, 5n, Make.word(0xdead)), missedSince: null }
    const { answers } = yield* NodeAnswers.at(node, [entry])
    expect(answers.get(entry)?.block).toBeNull()
  })
})
