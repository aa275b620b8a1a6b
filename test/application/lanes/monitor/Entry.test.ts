import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Entry from "../../../../src/application/lanes/monitor/Entry.js"
import { LaneNodes } from "../../../../src/application/lanes/monitor/LaneNodes.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import * as MemoryRpc from "../../../support/memory/ChainRpc.js"

const { callers, profile, receiptOf, recordOf } = Monitor
const now = 50_000

/** The operator's node, at which the entries are at home, and one of the account. */
const { home, other } = Effect.runSync(
  Effect.map(MemoryRpc.make({ chainId: Make.chainId }), (memory) => {
    const nodes = new LaneNodes()
    return {
      home: () => nodes.ofOperator(memory.client("http://home")),
      other: nodes.ofCaller(memory.client("http://other"), callers.accountId)
    }
  })
)

const entryOf = (taken = true): { readonly entry: Entry.Entry; readonly node: Entry.LaneNode } => {
  const node = { ...home() }
  return {
    entry: Entry.make({ profile, record: recordOf(0, callers) }, node, { now, taken, waited: 0 }),
    node
  }
}

const minedOf = (entry: Entry.Entry) => Entry.mined(entry, other, receiptOf(Make.word(0x100)))

it("the bytes of a transaction that are refused again and again wait twice as long each time, and ten seconds at most", () => {
  const { entry, node } = entryOf(false)
  const delays = Array.from({ length: 8 }, () => {
    Entry.putOff(entry, node, now)
    return entry.offers.get(node)?.delay
  })
  expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000])
})

describe("what the journal is told", () => {
  it("is what a node took, at first or later, and once", () => {
    expect(Entry.isUntold(entryOf().entry)).toBe(true)
    const { entry, node } = entryOf(false)
    expect(Entry.isUntold(entry)).toBe(false)
    Entry.taken(entry, node, now)
    expect(Entry.isUntold(entry)).toBe(true)
    entry.isTold = true
    expect(Entry.isUntold(entry)).toBe(false)
  })

  it("is nothing of what is mined, nor again when that is withdrawn", () => {
    const mined = minedOf(entryOf().entry)
    expect(Entry.isUntold({ ...mined, isTold: false })).toBe(false)
    expect(Entry.isUntold(mined)).toBe(false)
    expect(Entry.isUntold(Entry.withdrawn(mined, now))).toBe(false)
  })
})

it("a transaction that was mined and is not any more is given to every node at once, and its price waits for new blocks anew", () => {
  const { entry, node } = entryOf()
  Entry.taken(entry, other, now)
  Entry.noteHeight(entry, node, 5n, now)
  const withdrawn = Entry.withdrawn({ ...minedOf(entry), missedSince: 7 }, now + 1)
  expect([withdrawn.record.state, withdrawn.record.mined]).toEqual(["signed", null])
  expect(Entry.isOfferDue(withdrawn, node, now + 1)).toBe(true)
  expect(Entry.isOfferDue(withdrawn, other, now + 1)).toBe(true)
  expect(Entry.hasNewBlocks(withdrawn, node, 99n)).toBe(false)
  expect([withdrawn.witness, withdrawn.missedSince]).toEqual([null, null])
})

describe("a transaction that waits", () => {
  const careAt = (waited: number) =>
    Entry.make({ profile, record: recordOf(0, callers) }, home(), { now, taken: true, waited }).careAt

  it("is cared for when its bytes are as old as that, whoever has signed them", () => {
    expect(careAt(0)).toBe(now + profile.bumpAfterMillis)
    expect(careAt(1_000)).toBe(now + profile.bumpAfterMillis - 1_000)
  })

  it("is cared for in time when its bytes were signed by a clock that was two days ahead", () => {
    expect(careAt(-2 * 86_400_000)).toBe(now + profile.bumpAfterMillis)
  })
})

it("new blocks are those of the node whose height is known, above it", () => {
  const { entry, node } = entryOf()
  expect(Entry.hasNewBlocks(entry, node, 9n)).toBe(false)
  Entry.noteHeight(entry, node, 5n, now)
  expect([5n, 6n].map((height) => Entry.hasNewBlocks(entry, node, height))).toEqual([false, true])
  expect(Entry.hasNewBlocks(entry, other, 6n)).toBe(false)
})
