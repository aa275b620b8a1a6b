import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as OpenNonces from "../../../src/application/lanes/OpenNonces.js"
import type { LaneAccess } from "../../../src/application/ports/journal/Transactions.js"
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

/** What a node is given whose nonce is 5. */
const given = (access: LaneAccess) =>
  Effect.gen(function* () {
    const node = yield* Monitor.node("one")
    node.nonce = 5n
    yield* OpenNonces.offerOpen(
      {
        transactionsBetween: (_, from, below) =>
          Effect.succeed(records.filter(({ nonce }) => nonce >= from && nonce < below))
      },
      { chainId, signer },
      node.chain,
      access
    )
    return node.given
  })

describe("settled transactions of a lane whose nonces a node has open", () => {
  test("are given to the operator's node again, the highest first, and nothing else is", function* () {
    expect(yield* given(service)).toEqual([7, 6, 5].map(rawOf))
  })

  test("are given to a caller's node where they are of its account, and went by such a node", function* () {
    expect(yield* given(callers)).toEqual([rawOf(6)])
  })
})
