import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as OpenNonces from "../../../src/application/lanes/OpenNonces.js"
import { type ChainClient, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import type { LaneAccess } from "../../../src/application/ports/journal/Transactions.js"
import type * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import { test } from "../../support/Test.js"

const { callers, rawOf, recordOf, service } = Monitor

const { chainId, signer } = recordOf(0, service)
const records = [
  recordOf(4, service, { state: "settled" }),
  recordOf(5, service, { state: "settled" }),
  recordOf(6, callers, { state: "settled" }),
  recordOf(7, { ...callers, accountId: Make.bob }, { state: "settled" }),
  recordOf(8, callers)
]

const nodeAt5 = Effect.map(Monitor.node("one"), (node) => {
  node.nonce = 5n
  return node
})

const broadcastOpen = (chain: ChainClient, access: LaneAccess) =>
  OpenNonces.broadcastOpen(
    {
      transactionsBetween: (_, from, below) =>
        Effect.succeed(records.filter(({ nonce }) => nonce >= from && nonce < below))
    },
    { chainId, signer },
    chain,
    access
  )

describe("settled transactions whose nonces are open at a node", () => {
  test("are offered to the operator's node again, highest nonce first, and no others are", function* () {
    const node = yield* nodeAt5
    yield* broadcastOpen(node.chain, service)
    expect(node.given).toEqual([7, 6, 5].map(rawOf))
  })

  test("are offered once more, in nonce order, to a node that refuses nonces above an open one", function* () {
    const node = yield* nodeAt5
    const offered: Array<Hex.Hex> = []
    const chain = {
      ...node.chain,
      sendRawTransaction: (raw: Hex.Hex) =>
        Effect.suspend(() => {
          offered.push(raw)
          const isNext = raw === rawOf(5) || offered.includes(rawOf(5))
          return isNext
            ? node.chain.sendRawTransaction(raw)
            : new ChainRpcError({ reason: "rejected", origin: "one", message: "a nonce below is open" })
        })
    }
    yield* broadcastOpen(chain, service)
    expect(offered).toEqual([7, 6, 5, 6, 7].map(rawOf))
    expect(node.given).toEqual([5, 6, 7].map(rawOf))
  })

  test("are offered to a caller's node if they belong to its account and went through such a node", function* () {
    const node = yield* nodeAt5
    yield* broadcastOpen(node.chain, callers)
    expect(node.given).toEqual([rawOf(6)])
  })
})
