import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as Keys from "../../../src/application/intake/Keys.js"
import * as Nonce from "../../../src/domain/erc4337/Nonce.js"
import * as Make from "../../support/journal/Make.js"

const spaceOf = (wallet: number) => Make.space(wallet)
const space = spaceOf(1)
const none: ReadonlySet<bigint> = new Set()

describe("a nonce key", () => {
  it("is the lowest key that neither the journal nor another run uses", () => {
    const keys = Keys.make()
    const look = keys.observe()
    expect(keys.take(space, 0n, new Set([0n, 2n]), look)).toBe(1n)
    expect(keys.take(space, 0n, new Set([0n, 2n]), look)).toBe(3n)
    expect(keys.take(spaceOf(2), 0n, none, look)).toBe(0n)
  })

  it("belongs to the wallet's epoch", () => {
    const keys = Keys.make()
    const { from } = Nonce.inEpoch(Nonce.serviceKeys, 7n)
    expect(keys.take(space, 7n, none, keys.observe())).toBe(from)
  })

  it("is null once sixteen are in use", () => {
    const keys = Keys.make()
    const look = keys.observe()
    const taken = Array.from({ length: 17 }, () => keys.take(space, 0n, none, look))
    expect(taken).toEqual([...Array.from({ length: 16 }, (_, key) => BigInt(key)), null])
  })

  it("stays in use for a read that began before its release", () => {
    const keys = Keys.make()
    const early = keys.observe()
    expect(keys.take(space, 0n, none, early)).toBe(0n)
    const other = keys.observe()
    keys.giveBack(space, 0n)
    expect(keys.take(space, 0n, none, other)).toBe(1n)
    expect(keys.take(space, 0n, none, keys.observe())).toBe(0n)
  })
})

describe("runs that take and release keys in any order", () => {
  interface Run {
    readonly look: Keys.Observation
    readonly used: ReadonlySet<bigint>
    key: bigint | null
  }
  const step = fc.record({
    what: fc.constantFrom("begin", "choose", "accept", "refuse"),
    which: fc.nat(7),
    wallet: fc.integer({ min: 1, max: 2 })
  })

  it("never share a key, and leave no keys behind", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const keys = Keys.make()
        /** Keys in the journal, by wallet. */
        const journal = new Map<number, Set<bigint>>()
        const runs = new Map<string, Run>()
        const end = (name: string, run: Run, wallet: number, isAccepted: boolean) => {
          if (isAccepted && run.key !== null) {
            const own = journal.get(wallet) ?? new Set()
            expect(own.has(run.key)).toBe(false)
            journal.set(wallet, own.add(run.key))
          }
          keys.end(run.look)
          if (run.key !== null) keys.giveBack(spaceOf(wallet), run.key)
          runs.delete(name)
        }
        for (const { wallet, what, which } of steps) {
          const name = `${wallet} ${which}`
          const run = runs.get(name)
          if (what === "begin" && run === undefined)
            // The read starts here, and is answered at a later time.
            runs.set(name, { look: keys.observe(), used: new Set(journal.get(wallet)), key: null })
          else if (what === "choose" && run !== undefined && run.key === null)
            run.key = keys.take(spaceOf(wallet), 0n, run.used, run.look)
          else if (run !== undefined && (what === "accept" || what === "refuse"))
            end(name, run, wallet, what === "accept")
        }
        for (const [name, run] of runs) end(name, run, Number(name[0]), false)
        expect(keys.size()).toBe(0)
      })
    )
  })
})
