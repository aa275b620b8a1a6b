import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as OpenNonces from "../../../src/application/lanes/OpenNonces.js"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import type * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import { test } from "../../support/Test.js"

const { rawOf, recordOf, service } = Monitor

const settled = [5, 6, 7].map((nonce) => recordOf(nonce, service, { state: "settled" }))

describe("settled transactions that a reorganisation took back", () => {
  test("are given to a node again, the highest first", function* () {
    const node = yield* Monitor.node("one")
    yield* OpenNonces.offer(node.chain, settled)
    expect(node.given).toEqual([7, 6, 5].map(rawOf))
  })

  test("are given once more, in nonce order, to a node that takes none above an open nonce", function* () {
    const node = yield* Monitor.node("one")
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
    yield* OpenNonces.offer(chain, settled)
    expect(offered).toEqual([7, 6, 5, 6, 7].map(rawOf))
    expect(node.given).toEqual([5, 6, 7].map(rawOf))
  })
})
