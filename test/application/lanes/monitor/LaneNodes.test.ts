import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as MemoryRpc from "../../../../src/adapters/memory/ChainRpc.js"
import * as Entry from "../../../../src/application/lanes/monitor/Entry.js"
import * as LaneNodes from "../../../../src/application/lanes/monitor/LaneNodes.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"

const { callers, profile, receiptOf, recordOf, service } = Monitor
const now = 50_000

const memory = Effect.runSync(MemoryRpc.make({ chainId: Make.chainId }))
const client = (name: string) => memory.client(`http://${name}`)

const entryAt = (home: Entry.LaneNode | null, access = callers): Entry.Entry =>
  Entry.make({ profile, record: recordOf(0, access) }, home, { now, taken: true, waited: 0 })

describe("the nodes of a lane", () => {
  it("serve a transaction in the order home, operator's, those of the account that were used last", () => {
    const nodes = new LaneNodes.LaneNodes()
    const [a, b] = ["a", "b"].map((name) => nodes.ofCaller(client(name), callers.accountId))
    nodes.ofCaller(client("bob's"), Make.bob)
    const operators = nodes.ofOperator(client("operator's"))
    expect(nodes.of(entryAt(null))).toEqual([operators, b, a])
    expect(nodes.of(entryAt(a ?? null))).toEqual([a, operators, b])
    expect(nodes.of(entryAt(a ?? null, service))).toEqual([operators])
  })

  it("are remembered, eight of an account, and those of others beside them", () => {
    const nodes = new LaneNodes.LaneNodes()
    const [first] = Array.from({ length: 9 }, (_, n) => nodes.ofCaller(client(`n${n}`), callers.accountId))
    const others = nodes.ofCaller(client("bob's"), Make.bob)
    expect(nodes.all).toHaveLength(9)
    expect(nodes.all).not.toContain(first)
    expect(nodes.all).toContain(others)
    expect(nodes.ofCaller(client("n8"), callers.accountId)).toBe(nodes.all.at(-1))
  })

  it("of the operator are the present ones, and keep what is known of them", () => {
    const nodes = new LaneNodes.LaneNodes()
    const [former, kept, present] = ["former", "kept", "present"].map(client)
    if (former === undefined || kept === undefined || present === undefined) return
    nodes.ofOperator(former)
    const known = nodes.ofOperator(kept)
    nodes.setOperators([present, kept, present])
    expect(nodes.all.map(({ chain }) => chain)).toEqual([present, kept])
    expect(nodes.all[1]).toBe(known)
  })
})

describe("a look", () => {
  it("at a node that told nothing makes it silent, and unknown", () => {
    const [node] = [new LaneNodes.LaneNodes().ofOperator(client("a"))]
    const answers = new Map([[entryAt(node), { receipt: null }]]) as unknown as Entry.LaneNode["answers"]
    const head = { number: 7n, hash: Make.word(7), timestamp: 0, gasLimit: 1n, baseFeePerGas: 1n }
    LaneNodes.note(node, { answers, head })
    expect([node.isSilent, node.isKnown, node.head, node.answers]).toEqual([false, true, head, answers])
    LaneNodes.note(node, { answers: new Map(), head: null })
    expect([node.isSilent, node.isKnown, node.head, node.answers.size]).toEqual([true, false, null, 0])
  })
})

describe("of a transaction that waits", () => {
  const nodes = () => {
    const lane = new LaneNodes.LaneNodes()
    return [lane.ofOperator(client("home")), lane.ofCaller(client("other"), callers.accountId)] as const
  }

  it("its home is asked alone as long as it is trusted, and others beside it when they do not rest", () => {
    const [home, other] = nodes()
    const entry = entryAt(home)
    expect(LaneNodes.asked(entry, [home, other], entry.doubtAt - 1)).toEqual([home])
    expect(LaneNodes.asked(entry, [home, other], entry.doubtAt)).toEqual([home, other])
    other.restsUntil = entry.doubtAt + 1
    expect(LaneNodes.asked(entry, [home, other], entry.doubtAt)).toEqual([home])
  })

  it("all are asked when its home is silent, those that rest as well", () => {
    const [home, other] = nodes()
    home.isSilent = true
    other.restsUntil = now + 1
    expect(LaneNodes.asked(entryAt(home), [home, other], now)).toEqual([home, other])
  })

  it("nobody is asked where no node serves it", () => {
    expect(LaneNodes.asked(entryAt(null), [], now)).toEqual([])
  })
})

describe("of a transaction that is mined", () => {
  it("the node that showed it is asked, its home where that one does not serve it, and all when it is silent", () => {
    const lane = new LaneNodes.LaneNodes()
    const home = lane.ofOperator(client("home"))
    const witness = lane.ofCaller(client("other"), callers.accountId)
    const entry = Entry.mined(entryAt(home), witness, receiptOf(Make.word(0x100)))
    const late = entry.doubtAt + 1_000
    expect(LaneNodes.asked(entry, [home, witness], late)).toEqual([witness])
    expect(LaneNodes.asked(entry, [home], late)).toEqual([home])
    witness.isSilent = true
    expect(LaneNodes.asked(entry, [home, witness], late)).toEqual([home, witness])
  })
})
