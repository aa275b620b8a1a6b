import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import type { OpContext } from "../../../../src/application/intake/Preparation.js"
import * as Transfers from "../../../../src/application/intake/submission/Transfers.js"
import type { Dependencies } from "../../../../src/domain/erc4337/Dependencies.js"
import type { Version } from "../../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../../src/domain/erc4337/gas/Gas.js"
import * as Percent from "../../../../src/domain/erc4337/Percent.js"
import type { UserOperation } from "../../../../src/domain/erc4337/UserOperation.js"
import type { Address } from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"
import { plain } from "../../../support/lanes/Ops.js"

const small: UserOperation = { ...plain, callGasLimit: 100_000n }
const large: UserOperation = { ...plain, callGasLimit: 1_000_000n }

const route = (version: Version = "v0.7", paymaster?: Address) => {
  const profile = paymaster === undefined ? {} : { sponsor: { paymaster } }
  const context = { version, buffers: { transaction: Percent.zero }, connection: { profile } }
  return { context: context as unknown as OpContext }
}

const ready = (index: number, op = small): Transfers.Ready => ({
  index,
  op,
  userOpHash: Make.word(index),
  complete: Effect.dieMessage("nothing is signed here"),
  sign: () => Effect.dieMessage("nothing is signed here"),
  space: Make.space(1),
  nonceKey: BigInt(index),
  sequence: 0n,
  reserve: 0n,
  l1Fee: 0n,
  returned: Hex.empty
})
const many = (count: number) => Array.from({ length: count }, (_, index) => ready(index))

/** Gas that a transaction of these ops needs. */
const gasOf = (ops: ReadonlyArray<UserOperation>, version: Version = "v0.7") =>
  Gas.transactionGasLimit(version, ops, { bound: 0n, overshoot: Percent.zero }).pipe(
    Either.flip,
    Either.getOrThrow
  ).needed
/** A bound under which so many small ops go in one transaction, and none more. */
const boundFor = (count: number) => ({ gasBound: gasOf(Array.from({ length: count }, () => small)) })

const indexesOf = (ops: ReadonlyArray<Transfers.Ready>) => ops.map(({ index }) => index)
const split = (
  bounds: { readonly gasBound: bigint },
  ops: ReadonlyArray<Transfers.Ready>,
  dependencies?: Dependencies
) => {
  const { bundles, ...rest } = Transfers.split(route(), bounds, ops, dependencies)
  return { bundles: bundles.map(indexesOf), ...rest }
}
const sent = (
  bounds: { readonly gasBound: bigint },
  ops: ReadonlyArray<Transfers.Ready>,
  dependencies: Dependencies,
  times: ReadonlyArray<number>
) => {
  const { tooLarge, transfers } = Transfers.transfers(
    route(),
    bounds,
    ops,
    dependencies,
    (index) => times[index] ?? 0
  )
  return { tooLarge, transfers: transfers.map(({ alone, ops: own }) => [alone, indexesOf(own)]) }
}

describe("split", () => {
  it("fills each bundle before it begins the next one", () => {
    expect(split(boundFor(2), many(5))).toEqual({
      bundles: [[0, 1], [2, 3], [4]],
      tooLarge: [],
      scattered: false
    })
  })

  it("makes no bundle of no ops", () => {
    expect(split(boundFor(2), [])).toEqual({ bundles: [], tooLarge: [], scattered: false })
  })

  it("leaves out an op that does not fit alone; those before and behind it go in two bundles", () => {
    expect(split(boundFor(2), [ready(0), ready(1, large), ready(2)])).toEqual({
      bundles: [[0], [2]],
      tooLarge: [1],
      scattered: false
    })
  })

  it("makes no empty bundle of an op that is too large at the beginning or the end", () => {
    expect(split(boundFor(2), [ready(0, large), ready(1), ready(2, large)])).toEqual({
      bundles: [[1]],
      tooLarge: [0, 2],
      scattered: false
    })
  })

  it("parts no component, though the bundle before has room for one of its ops", () => {
    expect(split(boundFor(2), many(3), [null, null, 1])).toEqual({
      bundles: [[0], [1, 2]],
      tooLarge: [],
      scattered: false
    })
  })

  it("keeps what stands between two ops of a component with them", () => {
    expect(split(boundFor(3), many(5), [null, null, null, 1, null])).toEqual({
      bundles: [[0], [1, 2, 3], [4]],
      tooLarge: [],
      scattered: false
    })
  })

  it("keeps components together that are entangled", () => {
    expect(split(boundFor(4), many(5), [null, null, 0, 1, null])).toEqual({
      bundles: [[0, 1, 2, 3], [4]],
      tooLarge: [],
      scattered: false
    })
  })

  it("says that what is too large is scattered when it is of several components", () => {
    expect(split(boundFor(2), many(3), [null, null, 0])).toEqual({
      bundles: [],
      tooLarge: [0, 1, 2],
      scattered: true
    })
  })

  it("says of a single component that is too large that it is not scattered", () => {
    expect(split(boundFor(2), many(4), [null, 0, 1, null])).toEqual({
      bundles: [[3]],
      tooLarge: [0, 1, 2],
      scattered: false
    })
  })

  it("remembers a scattered component though a whole one is too large behind it", () => {
    expect(split(boundFor(2), many(6), [null, null, 0, null, 3, 3]).scattered).toBe(true)
  })

  it("knows what hangs together by the indexes of the ops, wherever they stand", () => {
    expect(split(boundFor(2), [ready(4), ready(7), ready(9)], [...Array(9).fill(null), 7]).bundles).toEqual([
      [4],
      [7, 9]
    ])
  })

  it("heeds no dependency on what is not among the ops", () => {
    expect(split(boundFor(2), [ready(1), ready(2), ready(3)], [null, 0, null, 0]).bundles).toEqual([
      [1, 2],
      [3]
    ])
  })

  it("counts no gas on v0.6 for a postOp of the operator's own paymaster, which has none", () => {
    const [own, other] = [Make.address(0xb1), Make.address(0xb2)]
    const op: UserOperation = { ...small, verificationGasLimit: 100_000n, paymasterAndData: Hex.unsafe(own) }
    const bounds = { gasBound: gasOf([op], "v0.6") - 1n }
    expect(Transfers.split(route("v0.6", own), bounds, [ready(0, op)]).tooLarge).toEqual([])
    expect(Transfers.split(route("v0.6", other), bounds, [ready(0, op)]).tooLarge).toEqual([0])
    expect(Transfers.split(route("v0.6"), bounds, [ready(0, op)]).tooLarge).toEqual([0])
  })

  it("sends each op once or names it as too large, in order, within the bound, and parts no component", () => {
    const Case = fc.integer({ min: 1, max: 9 }).chain((count) =>
      fc.record({
        dependencies: fc.tuple(
          ...Array.from({ length: count }, (_, index) =>
            index === 0 ? fc.constant(null) : fc.option(fc.nat(index - 1))
          )
        ),
        large: fc.array(fc.boolean(), { minLength: count, maxLength: count }),
        room: fc.integer({ min: 1, max: 5 })
      })
    )
    fc.assert(
      fc.property(Case, ({ dependencies, large: isLarge, room }) => {
        const ops = isLarge.map((is, index) => ready(index, is ? large : small))
        const bounds = boundFor(room)
        const { bundles, tooLarge } = Transfers.split(route(), bounds, ops, dependencies)
        const flat = bundles.flatMap(indexesOf)
        expect([...flat, ...tooLarge].sort((a, b) => a - b)).toEqual([...ops.keys()])
        expect(flat).toEqual(flat.toSorted((a, b) => a - b))
        for (const bundle of bundles) {
          expect(bundle.length).toBeGreaterThan(0)
          expect(gasOf(bundle.map(({ op }) => op))).toBeLessThanOrEqual(bounds.gasBound)
        }
        const where = (index: number) => bundles.findIndex((bundle) => indexesOf(bundle).includes(index))
        for (const [index, on] of dependencies.entries())
          if (on !== null) expect(where(index)).toBe(where(on))
      })
    )
  })
})

describe("transfers", () => {
  it("lets ops go with other requests' ones at first", () => {
    expect(sent(boundFor(2), many(3), [], [])).toEqual({
      transfers: [
        [false, [0, 1]],
        [false, [2]]
      ],
      tooLarge: []
    })
  })

  it("sends what has come to nothing in a shared transaction without other requests' ops, all in one", () => {
    expect(sent(boundFor(4), many(4), [], [1, 0, 1, 0])).toEqual({
      transfers: [
        [true, [0, 2]],
        [false, [1, 3]]
      ],
      tooLarge: []
    })
  })

  it("sends each component by itself after the second time, and after every later one", () => {
    expect(sent(boundFor(5), many(5), [null, null, 0, null, null], [2, 2, 0, 3, 1])).toEqual({
      transfers: [
        [true, [0, 2]],
        [true, [1]],
        [true, [3]],
        [true, [4]]
      ],
      tooLarge: []
    })
  })

  it("treats a component as the one of its ops that came to nothing most often", () => {
    expect(sent(boundFor(4), many(4), [null, 0, null, null], [0, 1, 0, 0])).toEqual({
      transfers: [
        [true, [0, 1]],
        [false, [2, 3]]
      ],
      tooLarge: []
    })
  })

  it("counts for an op what happened to those it hangs together with among these, no others", () => {
    expect(sent(boundFor(4), [ready(1), ready(2)], [null, 0, null], [2, 0, 0])).toEqual({
      transfers: [[false, [1, 2]]],
      tooLarge: []
    })
  })

  it("names what is too large of every group", () => {
    expect(sent(boundFor(2), [ready(0, large), ready(1), ready(2, large)], [], [0, 0, 1])).toEqual({
      transfers: [[false, [1]]],
      tooLarge: [0, 2]
    })
  })
})
