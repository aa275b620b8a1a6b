import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fc from "fast-check"
import * as Transfers from "../../../../src/application/intake/submission/Transfers.js"
import type { OpContext } from "../../../../src/application/prepare/OpContext.js"
import * as Fit from "../../../../src/application/prepare/ops/Fit.js"
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
  complete: Effect.die(new Error("nothing is signed here")),
  sign: () => Effect.die(new Error("nothing is signed here")),
  space: Make.space(1),
  nonceKey: BigInt(index),
  sequence: 0n,
  reserve: 0n,
  l1Fee: 0n,
  returned: Hex.empty
})
/** Ops of these indexes; one with a mark is so large that it fits in no transaction. */
const opsOf = (text: string) =>
  text.split(" ").map((each) => ready(Number.parseInt(each, 10), each.endsWith("!") ? large : small))

/** Gas that a transaction of these ops needs. */
const gasOf = (ops: ReadonlyArray<UserOperation>, version: Version = "v0.7") =>
  Gas.transactionGasLimit(version, ops, { bound: 0n, overshoot: Percent.zero }).pipe(
    Result.flip,
    Result.getOrThrow
  ).needed
/** A bound under which so many small ops go in one transaction, and none more. */
const boundFor = (count: number) => ({ gasBound: gasOf(Array.from({ length: count }, () => small)) })

const indexesOf = (ops: ReadonlyArray<Transfers.Ready>) => ops.map(({ index }) => index)
const none = null

describe("split", () => {
  it.each<readonly [string, number, string, Dependencies, string, string]>([
    ["fills each bundle before the next", 2, "0 1 2 3 4", [], "0 1 | 2 3 | 4", ""],
    ["leaves out what does not fit alone", 2, "0 1! 2", [], "0 | 2", "1"],
    ["makes no empty bundle of what does not", 2, "0! 1 2!", [], "1", "0 2"],
    ["parts no component for room in the bundle before", 2, "0 1 2", [none, none, 1], "0 | 1 2", ""],
    ["keeps what stands in a component with it", 3, "0 1 2 3 4", [none, none, none, 1], "0 | 1 2 3 | 4", ""],
    ["keeps entangled components together", 4, "0 1 2 3 4", [none, none, 0, 1], "0 1 2 3 | 4", ""],
    ["says that what is too large is scattered", 2, "0 1 2", [none, none, 0], "", "0 1 2, scattered"],
    ["says of one component that it is not", 2, "0 1 2 3", [none, 0, 1, none], "3", "0 1 2"],
    [
      "remembers what was scattered",
      2,
      "0 1 2 3 4 5",
      [none, none, 0, none, 3, 3],
      "",
      "0 1 2 3 4 5, scattered"
    ],
    ["goes by indexes, wherever ops stand", 2, "4 7 9", [...Array(9).fill(none), 7], "4 | 7 9", ""],
    ["heeds no dependency on an op of others", 2, "1 2 3", [none, 0, none, 0], "1 2 | 3", ""]
  ])("%s", (_, room, ops, dependencies, bundles, tooLarge) => {
    const split = Fit.split(route(), boundFor(room), opsOf(ops), dependencies)
    expect(split.bundles.map((bundle) => indexesOf(bundle).join(" ")).join(" | ")).toBe(bundles)
    expect(`${split.tooLarge.join(" ")}${split.scattered ? ", scattered" : ""}`).toBe(tooLarge)
  })

  it("makes no bundle of no ops", () => {
    expect(Fit.split(route(), boundFor(2), [])).toEqual({ bundles: [], tooLarge: [], scattered: false })
  })

  it("counts no gas on v0.6 for a postOp of the operator's own paymaster, which has none", () => {
    const [own, other] = [Make.address(0xb1), Make.address(0xb2)]
    const op: UserOperation = { ...small, verificationGasLimit: 100_000n, paymasterAndData: Hex.unsafe(own) }
    const bounds = { gasBound: gasOf([op], "v0.6") - 1n }
    expect(Fit.split(route("v0.6", own), bounds, [ready(0, op)]).tooLarge).toEqual([])
    expect(Fit.split(route("v0.6", other), bounds, [ready(0, op)]).tooLarge).toEqual([0])
    expect(Fit.split(route("v0.6"), bounds, [ready(0, op)]).tooLarge).toEqual([0])
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
        const { bundles, tooLarge } = Fit.split(route(), bounds, ops, dependencies)
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
  it.each<readonly [string, number, string, Dependencies, ReadonlyArray<number>, string]>([
    ["lets ops go with other requests' at first", 2, "0 1 2", [], [], "0 1 | 2"],
    [
      "sends what came to nothing once without those, all in one",
      4,
      "0 1 2 3",
      [],
      [1, 0, 1],
      "alone 0 2 | 1 3"
    ],
    [
      "sends a component by itself after the second time",
      4,
      "0 1 2 3",
      [none, none, 0],
      [2, 2, 0, 3],
      "alone 0 2 | alone 1 | alone 3"
    ],
    [
      "takes a component for its op that came to nothing most often",
      4,
      "0 1 2",
      [none, 0],
      [0, 1],
      "alone 0 1 | 2"
    ],
    ["counts for an op what happened to these alone", 4, "1 2", [none, 0], [2], "1 2"],
    ["leaves out what is too large of every group", 2, "0! 1 2!", [], [0, 0, 1], "1"]
  ])("%s", (_, room, ops, dependencies, times, sent) => {
    const timesOf = (index: number) => times[index] ?? 0
    const { transfers } = Transfers.transfers(route(), boundFor(room), opsOf(ops), dependencies, timesOf)
    const shown = transfers.map((each) => `${each.alone ? "alone " : ""}${indexesOf(each.ops).join(" ")}`)
    expect(shown.join(" | ")).toBe(sent)
  })
})
