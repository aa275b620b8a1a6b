import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Choose from "../../../../../src/application/lanes/worker/rules/Choose.js"
import * as Queue from "../../../../../src/application/lanes/worker/rules/Queue.js"
import * as Make from "../../../../support/journal/Make.js"
import { candidate, candidates, entryPoint, otherEntryPoint } from "../../../../support/worker/Candidates.js"

type Candidate = Queue.Candidate

const roomy: Choose.Capacity<Candidate, number> = { start: 0, add: (total) => total + 1 }
const upTo = (most: number): Choose.Capacity<Candidate, number> => ({
  start: 0,
  add: (total) => (total < most ? total + 1 : null)
})

const around = (
  rest: Partial<Choose.Surroundings<Candidate, number>> = {}
): Choose.Surroundings<Candidate, number> => ({
  route: null,
  keysInFlight: new Set(),
  isCalling: false,
  sequences: new Map(),
  maySign: true,
  isHeld: () => false,
  leads: () => false,
  isAlone: () => false,
  most: Queue.bundle,
  capacity: roomy,
  ...rest
})

const chosen = (
  ops: ReadonlyArray<Candidate>,
  rest: Partial<Choose.Surroundings<Candidate, number>> = {}
): ReadonlyArray<number> => Choose.choose(ops, around(rest)).ops.map(({ opId }) => opId)

const many = (count: number, rest: (opId: number) => Partial<Candidate> = () => ({})) =>
  Array.from({ length: count }, (_, opId) => candidate({ opId, ...rest(opId) }))
/** Ops of one key of one wallet, one request each. */
const line = (...sequences: ReadonlyArray<number>) =>
  sequences.map((sequence, opId) =>
    candidate({ opId, requestId: `r${opId}`, wallet: Make.address(1), sequence: BigInt(sequence) })
  )
const key = Choose.keyOf(candidate({ wallet: Make.address(1) }))
const except = (...opIds: ReadonlyArray<number>) => ({ isHeld: (op: Candidate) => opIds.includes(op.opId) })
const component = (op: Candidate) => Queue.componentsOf([op]).get(op.opId) ?? ""

describe("the ops of a transaction", () => {
  it("are empty when no op is ready", () => {
    expect(Choose.choose([], around())).toMatchObject({ ops: [], renumbered: [], used: [], tooLarge: [] })
  })

  it("are the oldest op and the fitting ops of its company", () => {
    const ops = many(5, (opId) => ({ company: opId === 1 ? "another" : "same" }))
    expect(chosen(ops)).toEqual([0, 2, 3, 4])
    expect(chosen(ops, { capacity: upTo(2) })).toEqual([0, 2])
    expect(chosen(ops, { most: 1 })).toEqual([0])
  })

  it("share one route, set by the oldest op that can go", () => {
    const ops = many(3, (opId) => ({
      route: opId === 0 ? "direct" : entryPoint,
      company: opId === 0 ? "0" : "c"
    }))
    expect(chosen(ops)).toEqual([0])
    expect(chosen(ops, except(0))).toEqual([1, 2])
  })

  it("wait, with later ops, while a transaction of another route is in flight", () => {
    const ops = many(2, (opId) => ({
      route: opId === 0 ? otherEntryPoint : entryPoint,
      company: String(opId)
    }))
    expect(chosen(ops, { route: entryPoint })).toEqual([])
    expect(chosen(ops, { route: otherEntryPoint })).toEqual([0])
    expect(chosen(ops, { route: null })).toEqual([0])
  })

  it("form whole components, in the order of their dependencies", () => {
    const ops = many(3, (opId) => ({ dependsOn: opId === 0 ? [2] : [] }))
    expect(chosen(ops)).toEqual([2, 0, 1])
    expect(chosen(ops, except(2))).toEqual([1])
    expect(chosen(ops, { capacity: upTo(1) })).toEqual([1])
  })

  it("exclude and name components larger than a transaction", () => {
    const ops = many(3, (opId) => ({ dependsOn: opId === 2 ? [0] : [] }))
    const { ops: own, tooLarge } = Choose.choose(ops, around({ capacity: upTo(1) }))
    expect([own, tooLarge].map((some) => some.map(({ opId }) => opId))).toEqual([[1], [0, 2]])
  })

  it("never count as too large because of ops that must precede them", () => {
    const ops = line(1, 0)
    const { ops: own, tooLarge } = Choose.choose(ops, around({ capacity: upTo(1) }))
    expect([own, tooLarge].map((some) => some.map(({ opId }) => opId))).toEqual([[1], []])
  })

  it("are consecutive sequences of a key, from the chain's on", () => {
    expect(chosen(line(4, 5, 6))).toEqual([0, 1, 2])
    expect(chosen(line(4, 6))).toEqual([0])
    expect(chosen(line(4, 5), { sequences: new Map([[key, 3n]]) })).toEqual([])
    expect(chosen(line(5, 4))).toEqual([1, 0])
    expect(chosen(line(4, 5, 6), except(1))).toEqual([0])
  })

  it("exclude a key that is in flight", () => {
    expect(chosen(line(4, 5), { keysInFlight: new Set([key]) })).toEqual([])
  })

  it("exclude and name ops whose nonces the chain has used", () => {
    const { ops, used } = Choose.choose(line(4, 5), around({ sequences: new Map([[key, 5n]]) }))
    expect([ops, used].map((some) => some.map(({ opId }) => opId))).toEqual([[1], [0]])
  })

  it("keep interleaved components of one key together", () => {
    const interleaved = line(0, 1, 2, 3).map((op) => ({
      ...op,
      requestId: op.opId % 2 === 0 ? "even" : "odd",
      index: op.opId,
      dependsOn: op.opId < 2 ? [] : [op.opId - 2]
    }))
    expect(chosen(interleaved)).toEqual([0, 1, 2, 3])
    expect(chosen(interleaved, except(3))).toEqual([])
    expect(chosen(interleaved, { capacity: upTo(3) })).toEqual([])
  })

  it("are only exposed ops while a nonce is unknown", () => {
    const ops = many(3, (opId) => ({ exposed: opId === 1 }))
    expect(chosen(ops, { maySign: false })).toEqual([1])
  })

  it("start with a leading component, and share no transaction with a component that goes separately", () => {
    const ops = many(3)
    const third = component(candidate({ opId: 2 }))
    expect(chosen(ops, { leads: (each) => each === third })).toEqual([0, 1, 2])
    expect(chosen(ops, { leads: (each) => each === third, capacity: upTo(1) })).toEqual([2])
    expect(chosen(ops, { isAlone: (each) => each === third })).toEqual([0, 1])
    expect(chosen(ops, { isAlone: (each) => each === third, ...except(0, 1) })).toEqual([2])
    const first = component(candidate({ opId: 0 }))
    expect(chosen(ops, { isAlone: (each) => each === first })).toEqual([0])
  })

  it("contain no creation behind calls in flight, and no call behind a waiting creation", () => {
    const ops = many(4, (opId) => ({ creates: opId === 1, calls: opId !== 1 && opId !== 3 }))
    expect(chosen(ops, { isCalling: true })).toEqual([0, 3])
    expect(chosen(ops)).toEqual([0, 1, 2, 3])
  })
})

describe("renumbering", () => {
  const numbers = (
    ops: ReadonlyArray<Candidate>,
    rest: Partial<Choose.Surroundings<Candidate, number>> = {}
  ) => Choose.choose(ops, around(rest)).renumbered.map(({ op, sequence }) => [op.opId, Number(sequence)])

  it("moves ops behind a gap up", () => {
    expect(numbers(line(0, 2, 3))).toEqual([
      [1, 1],
      [2, 2]
    ])
    expect(numbers(line(2, 3), { sequences: new Map([[key, 1n]]) })).toEqual([
      [0, 1],
      [1, 2]
    ])
  })

  it("leaves exposed and caller-signed ops in place, and fills the gap before them", () => {
    const ops = line(1, 2, 4, 5).map((op) => ({ ...op, exposed: op.opId === 1, given: op.opId === 2 }))
    expect(numbers(ops, { sequences: new Map([[key, 0n]]) })).toEqual([
      [0, 0],
      [3, 1]
    ])
  })

  it("names exposed ops behind a gap that no other op closes", () => {
    const blocked = (ops: ReadonlyArray<Candidate>, maySign = true) =>
      Choose.choose(ops, around({ maySign, sequences: new Map([[key, 1n]]) })).blocked.map(({ opId }) => opId)
    const exposed = line(2, 3).map((op) => ({ ...op, exposed: true }))
    expect(blocked(exposed)).toEqual([0, 1])
    expect(blocked(exposed, false)).toEqual([])
    expect(blocked(line(2, 3).map((op) => ({ ...op, given: true })))).toEqual([])
    expect(blocked(line(2, 3).map((op) => ({ ...op, exposed: op.opId === 0 })))).toEqual([])
    expect(blocked(line(1, 2).map((op) => ({ ...op, exposed: true })))).toEqual([])
  })

  it("waits while a nonce is unknown, and while the key is in flight", () => {
    expect(numbers(line(0, 2), { maySign: false })).toEqual([])
    expect(numbers(line(0, 2), { keysInFlight: new Set([key]) })).toEqual([])
  })
})

describe("any choice", () => {
  const drawn = fc.record({
    ops: candidates(40),
    held: fc.array(fc.nat(39), { maxLength: 3 }),
    most: fc.integer({ min: 1, max: 12 }),
    fits: fc.integer({ min: 1, max: 20 }),
    isCalling: fc.boolean(),
    maySign: fc.boolean(),
    busy: fc.array(fc.nat(2), { maxLength: 1 })
  })

  it("keeps all rules", () => {
    fc.assert(
      fc.property(drawn, ({ busy, fits, held, isCalling, maySign, most, ops }) => {
        const keysInFlight = new Set(ops.filter((op) => busy.includes(Number(op.key))).map(Choose.keyOf))
        const rest = {
          most,
          isCalling,
          maySign,
          keysInFlight,
          capacity: upTo(fits),
          ...except(...held)
        }
        const { ops: own, renumbered, tooLarge } = Choose.choose(ops, around(rest))
        const components = Queue.componentsOf(ops)
        const of = (op: Candidate) => components.get(op.opId)
        const place = new Map(own.map((op, at) => [op, at]))
        expect(place.size).toBe(own.length)
        expect(own.length).toBeLessThanOrEqual(fits)
        expect(new Set(own.map(({ company }) => company)).size).toBeLessThanOrEqual(1)
        for (const op of own) {
          expect(held).not.toContain(op.opId)
          expect(keysInFlight.has(Choose.keyOf(op))).toBe(false)
          if (!maySign) expect(op.exposed).toBe(true)
          if (isCalling) expect(op.creates).toBe(false)
          // Its component is whole, and follows its dependencies.
          for (const other of ops.filter((each) => of(each) === of(op))) expect(place.has(other)).toBe(true)
          const on = ops.find(
            ({ index, requestId }) => requestId === op.requestId && op.dependsOn.includes(index)
          )
          if (on !== undefined) expect(place.get(on)).toBeLessThan(place.get(op) ?? 0)
          // No lower sequence is left out.
          for (const below of ops)
            if (Choose.keyOf(below) === Choose.keyOf(op) && below.sequence < op.sequence)
              expect(place.get(below)).toBeLessThan(place.get(op) ?? 0)
        }
        const mine = new Set(own.map(of))
        // More only if one component needs others before it.
        if (own.length > 0 && mine.size > most) expect(most).toBeLessThan(own.length)
        if (!maySign) expect(renumbered).toEqual([])
        for (const { op } of renumbered) expect(op.exposed || op.given).toBe(false)
        const after = new Map(renumbered.map(({ op, sequence }) => [op, sequence]))
        const places = ops.map((op) => `${Choose.keyOf(op)} ${after.get(op) ?? op.sequence}`)
        expect(new Set(places).size).toBe(places.length)
        for (const op of tooLarge)
          expect(ops.filter((each) => of(each) === of(op)).length).toBeGreaterThan(fits)
      }),
      { numRuns: 300 }
    )
  })

  it("contains an op whenever an op can go", () => {
    fc.assert(
      fc.property(candidates(40), (ops) => {
        const heads = ops.filter((op) =>
          ops.every(
            (other) =>
              other === op || Choose.keyOf(other) !== Choose.keyOf(op) || other.sequence > op.sequence
          )
        )
        const free = heads.filter(
          (op) =>
            op.dependsOn.length === 0 &&
            ops.every(
              ({ dependsOn, requestId }) => requestId !== op.requestId || !dependsOn.includes(op.index)
            )
        )
        if (free.length > 0) expect(chosen(ops).length).toBeGreaterThan(0)
      })
    )
  })
})
