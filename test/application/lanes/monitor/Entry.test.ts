import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as MemoryRpc from "../../../../src/adapters/memory/ChainRpc.js"
import * as Entry from "../../../../src/application/lanes/monitor/Entry.js"
import { LaneNodes } from "../../../../src/application/lanes/monitor/LaneNodes.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"

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

describe("the bytes of a transaction", () => {
  it("that its home took are given to it again after ten seconds", () => {
    const { entry, node } = entryOf()
    expect(Entry.isOfferDue(entry, node, now + 9_999)).toBe(false)
    expect(Entry.isOfferDue(entry, node, now + 10_000)).toBe(true)
  })

  it("that its home refused are given to it again after a quarter of a second", () => {
    const { entry, node } = entryOf(false)
    expect(Entry.isOfferDue(entry, node, now + 249)).toBe(false)
    expect(Entry.isOfferDue(entry, node, now + 250)).toBe(true)
  })

  it("that are refused again and again wait twice as long each time, and ten seconds at most", () => {
    const { entry, node } = entryOf(false)
    const delays = Array.from({ length: 8 }, () => {
      Entry.putOff(entry, node, now)
      return entry.offers.get(node)?.delay
    })
    expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000])
  })

  it("that another node refuses at first wait as short as at its home", () => {
    const { entry } = entryOf()
    Entry.putOff(entry, other, now)
    expect(entry.offers.get(other)).toEqual({ at: now + 250, delay: 250 })
  })

  it("wait as short as at first after a node has taken them", () => {
    const { entry, node } = entryOf(false)
    Entry.putOff(entry, node, now)
    Entry.taken(entry, node, now)
    expect(entry.offers.get(node)).toEqual({ at: now + 10_000, delay: 250 })
  })

  it("are given to its home at once when it has no home that they were offered to", () => {
    const { entry, node } = entryOf()
    entry.offers.clear()
    expect(Entry.isOfferDue(entry, node, now)).toBe(true)
  })

  it("are given to another node only when its home is in doubt", () => {
    const { entry } = entryOf()
    expect(Entry.isOfferDue(entry, other, now + 3_999)).toBe(false)
    expect(Entry.isOfferDue(entry, other, now + 4_000)).toBe(true)
  })
})

describe("its home", () => {
  it("is trusted alone for four seconds when it took the transaction", () => {
    const { entry } = entryOf()
    expect(Entry.isDoubtful(entry, now + 3_999)).toBe(false)
    expect(Entry.isDoubtful(entry, now + 4_000)).toBe(true)
  })

  it("is in doubt at once when it did not, when it is silent, and when there is none", () => {
    expect(Entry.isDoubtful(entryOf(false).entry, now)).toBe(true)
    const silent = entryOf()
    silent.node.isSilent = true
    expect(Entry.isDoubtful(silent.entry, now)).toBe(true)
    const homeless = Entry.make({ profile, record: recordOf(0, callers) }, null, {
      now,
      taken: true,
      waited: 0
    })
    expect(Entry.isDoubtful(homeless, now)).toBe(true)
  })
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

describe("a transaction that was mined", () => {
  it("has the block of its receipt, and the node that showed it", () => {
    const mined = minedOf({ ...entryOf().entry, missedSince: 7 })
    expect(mined.record.state).toBe("mined")
    expect(mined.record.mined?.txHash).toBe(Make.word(0x100))
    expect([mined.lookedAt, mined.witness, mined.missedSince]).toEqual([1n, other, null])
  })

  it("and is not any more is given to every node at once, and its price waits for new blocks anew", () => {
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

describe("new blocks", () => {
  const quarter = profile.bumpAfterMillis / 4

  it("are counted from the first height that a node tells after a quarter of the time to a higher price", () => {
    const { entry, node } = entryOf()
    const young = { ...entry, careAt: Number.POSITIVE_INFINITY }
    expect(Entry.wantsHeight(young, node, now + quarter - 1)).toBe(false)
    expect(Entry.wantsHeight(young, node, now + quarter)).toBe(true)
    Entry.noteHeight(young, node, 5n, now)
    Entry.noteHeight(young, node, 6n, now)
    expect(young.since).toEqual({ node, height: 5n })
    expect(Entry.wantsHeight(young, node, now + quarter)).toBe(false)
  })

  it("are those of the node whose height is known, above it", () => {
    const { entry, node } = entryOf()
    expect(Entry.hasNewBlocks(entry, node, 9n)).toBe(false)
    Entry.noteHeight(entry, node, 5n, now)
    expect([5n, 6n].map((height) => Entry.hasNewBlocks(entry, node, height))).toEqual([false, true])
    expect(Entry.hasNewBlocks(entry, other, 6n)).toBe(false)
  })

  it("of a node that does not tell its height are asked for a second later", () => {
    const { entry, node } = entryOf()
    const young = { ...entry, careAt: Number.POSITIVE_INFINITY, sinceAt: now }
    Entry.noteHeight(young, node, null, now)
    expect(Entry.wantsHeight(young, node, now + 999)).toBe(false)
    expect(Entry.wantsHeight(young, node, now + 1_000)).toBe(true)
  })
})

describe("a look at what keeps it", () => {
  it("is due when it has waited, when its height is wanted, and when a node wants its bytes", () => {
    const { entry, node } = entryOf()
    const patient = { ...entry, careAt: Number.POSITIVE_INFINITY, sinceAt: Number.POSITIVE_INFINITY }
    expect(Entry.isDue(patient, [node], now)).toBe(false)
    expect(Entry.isDue({ ...patient, careAt: now }, [node], now)).toBe(true)
    expect(Entry.isDue({ ...patient, sinceAt: now }, [node], now)).toBe(true)
    expect(Entry.isDue({ ...patient, sinceAt: now, since: { node, height: 1n } }, [node], now)).toBe(false)
    expect(Entry.isDue(patient, [node], now + 10_000)).toBe(true)
  })
})
