import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as Group from "../../../src/application/intake/Group.js"

interface Member extends Group.Member {
  readonly id: number
}

let ids = 0
const member = (own: Partial<Group.Member> = {}): Member => {
  ids += 1
  return { id: ids, group: "a", account: "alice", ops: 1, bytes: 100, ...own }
}

const turned = (groups: Group.Groups<Member>, times: number) => {
  for (let turn = 0; turn < times; turn += 1) groups.turn()
}

describe("a group", () => {
  it("begins after four turns of the event loop", () => {
    const groups = Group.make<Member>()
    const one = member()
    groups.arrive(one)
    expect(groups.turn()).toBe(true)
    turned(groups, 2)
    expect(groups.next()).toBe(null)
    expect(groups.turn()).toBe(false)
    expect(groups.next()).toEqual([one])
    expect(groups.next()).toBe(null)
  })

  it("includes requests that arrive while it waits", () => {
    const groups = Group.make<Member>()
    const [one, other] = [member(), member()]
    groups.arrive(one)
    turned(groups, 3)
    groups.arrive(other)
    turned(groups, 1)
    expect(groups.next()).toEqual([one, other])
  })

  it.each([
    ["requests", { ops: 1, bytes: 1 }, Group.bounds.requests],
    ["ops", { ops: 128, bytes: 1 }, 2],
    ["bytes", { ops: 1, bytes: Group.bounds.bytes / 4 }, 4]
  ])("begins immediately when its %s reach the bound", (_, own, count) => {
    const groups = Group.make<Member>()
    for (let at = 0; at < count; at += 1) {
      expect(groups.next()).toBe(null)
      groups.arrive(member(own))
    }
    expect(groups.next()).toHaveLength(count)
  })

  it("holds a member larger than the bound without other members", () => {
    const groups = Group.make<Member>()
    const [small, large] = [member(), member({ ops: 10_000 })]
    groups.arrive(small)
    groups.arrive(large)
    expect(groups.next()).toEqual([small])
    expect(groups.next()).toEqual([large])
  })

  it("has at most two concurrent runs", () => {
    const groups = Group.make<Member>()
    for (let at = 0; at < 3; at += 1) groups.arrive(member({ ops: 256 }))
    expect(groups.next()).toHaveLength(1)
    expect(groups.next()).toHaveLength(1)
    expect(groups.next()).toBe(null)
    groups.end("a")
    expect(groups.next()).toHaveLength(1)
  })
})

describe("accounts", () => {
  it("take turns, however many requests one of them has", () => {
    const groups = Group.make<Member>()
    for (let at = 0; at < 20; at += 1) groups.arrive(member({ group: `alice ${at}`, ops: 256 }))
    groups.arrive(member({ account: "bob", group: "bob", ops: 256 }))
    const begun = Array.from({ length: 3 }, () => groups.next()?.[0]?.account)
    expect(begun).toEqual(["alice", "bob", "alice"])
  })
})

describe("groups under any sequence of arrivals, turns and ends", () => {
  const arrival = fc.record({
    what: fc.constant("arrive" as const),
    group: fc.constantFrom("a", "b", "c"),
    account: fc.constantFrom("alice", "bob"),
    ops: fc.integer({ min: 1, max: 300 }),
    bytes: fc.integer({ min: 1, max: 300_000 })
  })
  const other = fc.record({ what: fc.constantFrom("turn" as const, "begin" as const, "end" as const) })

  it("run each request once, within the bounds, only with its own kind, in order", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(arrival, other), { maxLength: 150 }), (steps) => {
        const groups = Group.make<Member>()
        const arrived: Array<Member> = []
        const begun: Array<Member> = []
        const running: Array<string> = []
        const begin = () => {
          const members = groups.next()
          if (members === null) return false
          const [first] = members
          if (first === undefined) throw new Error("an empty run")
          expect(new Set(members.map(({ group }) => group)).size).toBe(1)
          expect(members.length).toBeLessThanOrEqual(Group.bounds.requests)
          const sum = (of: (member: Member) => number) => members.reduce((all, each) => all + of(each), 0)
          if (members.length > 1) {
            expect(sum(({ ops }) => ops)).toBeLessThanOrEqual(Group.bounds.ops)
            expect(sum(({ bytes }) => bytes)).toBeLessThanOrEqual(Group.bounds.bytes)
          }
          begun.push(...members)
          running.push(first.group)
          expect(running.filter((group) => group === first.group).length).toBeLessThanOrEqual(
            Group.bounds.runs
          )
          expect(running.length).toBeLessThanOrEqual(Group.bounds.allRuns)
          return true
        }
        for (const step of steps) {
          if (step.what === "arrive") {
            // A group belongs to one account.
            const one = member({ ...step, group: `${step.account} ${step.group}` })
            arrived.push(one)
            groups.arrive(one)
          } else if (step.what === "turn") groups.turn()
          else if (step.what === "begin") begin()
          else {
            const group = running.shift()
            if (group !== undefined) groups.end(group)
          }
        }
        turned(groups, Group.bounds.turns)
        for (let left = arrived.length + 1; left > 0; left -= 1) {
          if (begin()) continue
          const group = running.shift()
          if (group !== undefined) groups.end(group)
        }
        while (begin() || running.length > 0) {
          const group = running.shift()
          if (group !== undefined) groups.end(group)
        }
        expect(begun.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(arrived.map(({ id }) => id))
        for (const name of new Set(arrived.map(({ group }) => group))) {
          const own = (some: ReadonlyArray<Member>) => some.filter(({ group }) => group === name)
          expect(own(begun)).toEqual(own(arrived))
        }
        expect(groups.drain()).toEqual([])
      })
    )
  })
})
