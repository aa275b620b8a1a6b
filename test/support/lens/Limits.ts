import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import type { Measure } from "../../../src/domain/erc4337/gas/GasLens.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import type { Op } from "./World.js"

/** A measure of an op that ran to its end. */
export const completed = (measure: Measure | undefined, op = "op"): Measure => {
  if (measure?.stage !== "ok") throw new Error(`${op}: ${measure?.stage} ${measure?.data}`)
  return measure
}

/** The op under the limits that the formulas give for its measure; its signature has the real length. */
export const withLimits = (op: Op, measure: Measure | undefined, version: Version): Op => ({
  ...op,
  ...Gas.meteredLimits(version, op, completed(measure), Percent.zero)
})
