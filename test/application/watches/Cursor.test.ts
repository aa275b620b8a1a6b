import { describe, expect, it } from "@effect/vitest"
import type { Header } from "../../../src/application/ports/chain/ChainRpc.js"
import type { Position } from "../../../src/application/ports/Watches.js"
import * as Cursor from "../../../src/application/watches/Cursor.js"
import * as Make from "../../support/journal/Make.js"

/** A block of the chain that all nodes share, or of a fork of it. */
const hash = (number: bigint, fork = 0n) => Make.word(1_000n * fork + number)
const header = (number: bigint, fork = 0n, onFork = fork): Header => ({
  number,
  hash: hash(number, fork),
  parentHash: hash(number - 1n, onFork)
})
/** Blocks up to `next` were read; the hashes of the last `known` are stored. */
const at = (next: bigint, known: number, first = 1n): Position => ({
  first,
  next,
  hashes: Array.from({ length: known }, (_, index) => hash(next - BigInt(known - index)))
})
const bounds: Cursor.Bounds = { depth: 64n, settledBlocks: 50n, recentBlocks: 8n, until: null }

it("plan reads final blocks by number and others one by one, within its bounds, and waits where there is no block", () => {
  const settled = (to: bigint) => ({ _tag: "settled", from: 100n, to })
  const recent = (to: bigint) => ({ _tag: "recent", from: 100n, to })
  const wait = { _tag: "wait" }
  for (const [position, head, plan, until] of [
    [at(100n, 1), header(194n), settled(130n)],
    [at(100n, 1), header(164n), settled(100n)],
    [at(100n, 1), header(1_000n), settled(149n)],
    [at(100n, 1), header(163n), recent(107n)],
    [at(100n, 1), header(102n), recent(102n)],
    [at(100n, 1), header(100n), recent(100n)],
    [at(100n, 1), header(110n), recent(101n), 101n],
    [at(100n, 1), header(300n), settled(101n), 101n],
    [at(102n, 1), header(300n), wait, 101n],
    [at(100n, 3), header(99n), wait],
    [at(100n, 0), header(99n, 1n), wait],
    // Another block at the height of the last block read; a lagging node reports none.
    [at(100n, 3), header(99n, 1n), { _tag: "fork" }],
    [at(100n, 3), header(98n, 1n), wait]
  ] as const)
    expect(Cursor.plan(position, head, { ...bounds, until: until ?? null })).toEqual(plan)
})

describe("extend", () => {
  it("appends blocks to those read, and forgets hashes beyond the depth", () => {
    expect(Cursor.extend(at(100n, 3), [header(100n), header(101n)], 64n)).toEqual(at(102n, 5))
    expect(Cursor.extend(at(100n, 3), [header(100n), header(101n)], 4n)).toEqual(at(102n, 4))
    expect(Cursor.extend(at(100n, 0), [header(100n)], 4n)).toEqual(at(101n, 1))
  })

  it("rejects a block whose parent is not the last block read", () => {
    expect(Cursor.extend(at(100n, 3), [header(100n, 1n)], 64n)).toBe("forked")
    expect(Cursor.extend(at(100n, 3), [header(100n, 1n, 0n)], 64n)).toEqual({
      first: 1n,
      next: 101n,
      hashes: [...at(100n, 3).hashes, hash(100n, 1n)]
    })
  })

  it("rejects blocks of several chains, with a gap, or from another height", () => {
    expect(Cursor.extend(at(100n, 3), [header(100n), header(101n, 1n)], 64n)).toBe("incoherent")
    const skipped = { ...header(102n), parentHash: hash(100n) }
    expect(Cursor.extend(at(100n, 3), [header(100n), skipped], 64n)).toBe("incoherent")
    expect(Cursor.extend(at(100n, 3), [header(101n)], 64n)).toBe("incoherent")
    expect(Cursor.extend(at(100n, 0), [header(99n)], 64n)).toBe("incoherent")
  })
})

it("pass continues after the last final block and knows only its hash", () => {
  expect(Cursor.pass(at(100n, 3), 149n, hash(149n))).toEqual(at(150n, 1))
})

describe("ancestor", () => {
  const present = (from: bigint, to: bigint, forkFrom: bigint) =>
    new Map(
      Array.from({ length: Number(to - from) + 1 }, (_, index) => {
        const number = from + BigInt(index)
        return [number, hash(number, number < forkFrom ? 0n : 1n)] as const
      })
    )

  it("is the highest block read that is still in the chain", () => {
    expect(Cursor.ancestor(at(100n, 5), present(90n, 110n, 98n))).toBe(97n)
    expect(Cursor.ancestor(at(100n, 5), present(90n, 110n, 110n))).toBe(99n)
    expect(Cursor.ancestor(at(100n, 5), present(90n, 110n, 96n))).toBe(95n)
  })

  it("is unknown when a reorganisation is deeper than the known hashes", () => {
    expect(Cursor.ancestor(at(100n, 5), present(90n, 110n, 95n))).toBeNull()
    expect(Cursor.ancestor(at(100n, 0), present(90n, 110n, 95n))).toBeNull()
  })

  it("is the block before the first one read when all of them were orphaned", () => {
    expect(Cursor.ancestor(at(100n, 5, 95n), present(90n, 110n, 95n))).toBe(94n)
    expect(Cursor.ancestor(at(100n, 0, 100n), new Map())).toBe(99n)
  })
})

it("rewind returns to the position after a block that was read", () => {
  expect(Cursor.rewind(at(100n, 5), 97n)).toEqual({ ...at(98n, 3) })
  expect(Cursor.rewind(at(100n, 5), 99n)).toEqual(at(100n, 5))
  expect(Cursor.rewind(at(100n, 5, 95n), 94n)).toEqual(at(95n, 0, 95n))
})

it("cut is the position after a block with a known hash, and never an older one", () => {
  expect(Cursor.cut(at(100n, 5), 97n)).toEqual(at(98n, 3))
  expect(Cursor.cut(at(100n, 5), 95n)).toEqual(at(96n, 1))
  expect(Cursor.cut(at(100n, 5), 94n)).toBeNull()
})

describe("meets", () => {
  it("holds where the next block and the last block read are the same", () => {
    expect(Cursor.meets(at(100n, 5), at(100n, 3, 50n))).toBe(true)
    expect(Cursor.meets(at(100n, 5), at(101n, 5))).toBe(false)
    expect(Cursor.meets(at(100n, 1), { ...at(100n, 1), hashes: [hash(99n, 1n)] })).toBe(false)
  })

  it("holds at one height where one of them has no hash", () => {
    expect(Cursor.meets(at(100n, 0), at(100n, 5))).toBe(true)
    expect(Cursor.meets(at(100n, 5), at(100n, 0))).toBe(true)
    expect(Cursor.meets(at(100n, 0), at(101n, 0))).toBe(false)
  })
})
