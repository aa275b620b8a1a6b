import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Reconcile from "../../../../../src/application/lanes/worker/rules/Reconcile.js"

const looked = (
  latest: bigint,
  pending: bigint,
  known: ReadonlyArray<bigint>,
  from = 0n
): Reconcile.Event => ({
  _tag: "compared",
  latest,
  pending,
  from,
  isKnown: (nonce) => known.includes(nonce)
})

const through = (...events: ReadonlyArray<Reconcile.Event>): Reconcile.State =>
  events.reduce(Reconcile.step, Reconcile.clear)

describe("nonces that the journal lacks", () => {
  it("hold up nothing where there are none", () => {
    const state = through(looked(1n, 2n, [0n, 1n]))
    expect(Reconcile.maySign(state)).toBe(true)
    expect(Reconcile.mayGiveUp(state, 0, 50)).toBe(true)
  })

  it("hold up all unexposed work, from the pool on", () => {
    const state = through(looked(0n, 1n, []))
    expect([...state.unknown]).toEqual([0n])
    expect(Reconcile.maySign(state)).toBe(false)
    expect(Reconcile.mayGiveUp(state, 0, 50)).toBe(false)
    expect(Reconcile.readable(state, 0n)).toEqual([])
  })

  it("stay unknown when the pool drops them", () => {
    expect([...through(looked(0n, 1n, []), looked(0n, 0n, [])).unknown]).toEqual([0n])
  })

  it("stay unknown while another transaction under their nonce waits for a block", () => {
    const waiting = through(looked(0n, 1n, []), looked(0n, 1n, [0n]))
    expect([...waiting.unknown]).toEqual([0n])
    expect([...Reconcile.step(waiting, looked(1n, 1n, [0n])).unknown]).toEqual([])
  })

  it("are read in order once a block has used them", () => {
    expect(Reconcile.readable(through(looked(2n, 4n, [1n])), 3n)).toEqual([0n, 2n])
  })

  it("are known once they were read", () => {
    const state = through(looked(1n, 1n, []), { _tag: "read", nonce: 0n, isOurs: false, at: 50, now: 5 })
    expect(Reconcile.maySign(state)).toBe(true)
    expect(Reconcile.mayGiveUp(state, 5, 50)).toBe(true)
  })

  it("expose all open ops for their validity if one of the nonces was ours", () => {
    const state = through(looked(1n, 1n, []), { _tag: "read", nonce: 0n, isOurs: true, at: 50, now: 5 })
    expect(Reconcile.maySign(state)).toBe(true)
    expect(Reconcile.mayGiveUp(state, 5 + Reconcile.lostMillis - 1, 50)).toBe(false)
    expect(Reconcile.mayGiveUp(state, 5 + Reconcile.lostMillis, 50)).toBe(true)
    const later = Reconcile.step(state, { _tag: "read", nonce: 1n, isOurs: false, at: 60, now: 6 })
    expect(later.provenUntil).toBe(state.provenUntil)
  })

  it("expose no ops accepted later", () => {
    const state = through(looked(1n, 1n, []), { _tag: "read", nonce: 0n, isOurs: true, at: 50, now: 5 })
    expect(Reconcile.mayGiveUp(state, 5, 51)).toBe(true)
  })

  it("expose ops after a restart for the remaining time", () => {
    const left = (at: number) => through({ _tag: "resumed", provenAt: 50, at, now: 7 }).provenUntil - 7
    expect(left(60)).toBe(Reconcile.lostMillis - 10)
    expect(left(50 + 2 * Reconcile.lostMillis)).toBe(0)
    // By a clock that was set back.
    expect(left(40)).toBe(Reconcile.lostMillis)
    expect(through({ _tag: "resumed", provenAt: null, at: 60, now: 7 })).toEqual(Reconcile.clear)
  })

  it("are all nonces below the pending one, without known ones", () => {
    const nonce = fc.bigInt({ min: 0n, max: 12n })
    fc.assert(
      fc.property(nonce, nonce, fc.array(nonce), (one, other, known) => {
        const [latest, pending] = one < other ? [one, other] : [other, one]
        const { unknown } = through(looked(latest, pending, known))
        for (let each = 0n; each < 13n; each += 1n)
          expect(unknown.has(each)).toBe(each < pending && !known.includes(each))
      })
    )
  })
})
