import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FollowedTransaction from "../../../../src/application/lanes/monitor/FollowedTransaction.js"
import { LaneNodes } from "../../../../src/application/lanes/monitor/LaneNodes.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import * as MemoryRpc from "../../../support/memory/ChainRpc.js"

const { callers, profile, receiptOf, recordOf } = Monitor
const now = 50_000

/** The operator's node, the home of the entries, and a node of the account. */
const { home, other } = Effect.runSync(
  Effect.map(MemoryRpc.make({ chainId: Make.chainId }), (memory) => {
    const nodes = new LaneNodes()
    return {
      home: () => nodes.ofOperator(memory.client("http://home")),
      other: nodes.ofCaller(memory.client("http://other"), callers.accountId)
    }
  })
)

const entryOf = (
  taken = true
): {
  readonly entry: FollowedTransaction.FollowedTransaction
  readonly node: FollowedTransaction.LaneNode
} => {
  const node = { ...home() }
  return {
    entry: FollowedTransaction.make({ profile, record: recordOf(0, callers) }, node, {
      now,
      taken,
      waited: 0
    }),
    node
  }
}

const minedOf = (entry: FollowedTransaction.FollowedTransaction) =>
  FollowedTransaction.mine(entry, other, receiptOf(Make.word(0x100)))

it("refused bytes of a transaction wait twice as long each time, at most ten seconds", () => {
  const { entry, node } = entryOf(false)
  const delays = Array.from({ length: 8 }, () => {
    FollowedTransaction.delayBroadcast(entry, node, now)
    return entry.broadcasts.get(node)?.delay
  })
  expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000])
})

describe("the journal's record of accepted transactions", () => {
  it("includes a transaction once, whether a node takes it at first or later", () => {
    expect(FollowedTransaction.isUnrecorded(entryOf().entry)).toBe(true)
    const { entry, node } = entryOf(false)
    expect(FollowedTransaction.isUnrecorded(entry)).toBe(false)
    FollowedTransaction.accept(entry, node, now)
    expect(FollowedTransaction.isUnrecorded(entry)).toBe(true)
    entry.isRecorded = true
    expect(FollowedTransaction.isUnrecorded(entry)).toBe(false)
  })

  it("excludes mined transactions, even after they are withdrawn", () => {
    const mined = minedOf(entryOf().entry)
    expect(FollowedTransaction.isUnrecorded({ ...mined, isRecorded: false })).toBe(false)
    expect(FollowedTransaction.isUnrecorded(mined)).toBe(false)
    expect(FollowedTransaction.isUnrecorded(FollowedTransaction.withdraw(mined, now))).toBe(false)
  })
})

it("a transaction that left the chain is offered to every node immediately, and its price waits for new blocks again", () => {
  const { entry, node } = entryOf()
  FollowedTransaction.accept(entry, other, now)
  FollowedTransaction.noteHeight(entry, node, 5n, now)
  const withdrawn = FollowedTransaction.withdraw({ ...minedOf(entry), missedSince: 7 }, now + 1)
  expect([withdrawn.record.state, withdrawn.record.mined]).toEqual(["signed", null])
  expect(FollowedTransaction.isBroadcastDue(withdrawn, node, now + 1)).toBe(true)
  expect(FollowedTransaction.isBroadcastDue(withdrawn, other, now + 1)).toBe(true)
  expect(FollowedTransaction.hasNewBlocks(withdrawn, node, 99n)).toBe(false)
  expect([withdrawn.witness, withdrawn.missedSince]).toEqual([null, null])
})

describe("a waiting transaction", () => {
  const careAt = (waited: number) =>
    FollowedTransaction.make({ profile, record: recordOf(0, callers) }, home(), { now, taken: true, waited })
      .checkAt

  it("is checked `bumpAfterMillis` after its signature, whichever process signed it", () => {
    expect(careAt(0)).toBe(now + profile.bumpAfterMillis)
    expect(careAt(1_000)).toBe(now + profile.bumpAfterMillis - 1_000)
  })

  it("is checked in time if it was signed by a clock two days ahead", () => {
    expect(careAt(-2 * 86_400_000)).toBe(now + profile.bumpAfterMillis)
  })
})

it("new blocks are blocks above the known height of the same node", () => {
  const { entry, node } = entryOf()
  expect(FollowedTransaction.hasNewBlocks(entry, node, 9n)).toBe(false)
  FollowedTransaction.noteHeight(entry, node, 5n, now)
  expect([5n, 6n].map((height) => FollowedTransaction.hasNewBlocks(entry, node, height))).toEqual([
    false,
    true
  ])
  expect(FollowedTransaction.hasNewBlocks(entry, other, 6n)).toBe(false)
})
