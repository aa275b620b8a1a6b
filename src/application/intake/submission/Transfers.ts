import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import type { FeePrices } from "../../../domain/erc4337/gas/Fees.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import type { NonceSpace } from "../../ports/journal/Requests.js"
import type { OpContext } from "../../prepare/OpContext.js"
import * as Fit from "../../prepare/ops/Fit.js"
import type * as Signing from "../Signing.js"

/** How a request's ops are parted into transactions. */

/** One op, estimated and simulated, ready to be accepted and then signed. */
export interface Ready extends Signing.Unsigned {
  readonly op: UserOperation
  readonly space: NonceSpace
  readonly nonceKey: bigint
  readonly sequence: bigint
  /** Wei that its wallet may have to pay at most. */
  readonly reserve: bigint
  /** Wei that layer 1 may ask of the submitter for the op's data. */
  readonly l1Fee: bigint
  /** What its call returned in the simulation. */
  readonly returned: Hex.Hex
}

export interface Bounds {
  readonly prices: FeePrices
  /** Gas that one transaction may have. */
  readonly gasBound: bigint
}

/** Ops that go in one transaction. */
export interface Transfer {
  readonly ops: ReadonlyArray<Ready>
  /** No other request's ops go with them. */
  readonly alone: boolean
}

/**
 * The ops in the order in which they are sent. What has come to nothing in a transaction that it shared goes without other
 * requests the next time, and after that each component of it goes by itself: an op that reverts its transaction takes
 * no other one with it for long. `shared` says how often that has happened to an element.
 */
export const transfers = (
  route: { readonly context: OpContext },
  bounds: Pick<Bounds, "gasBound">,
  ops: ReadonlyArray<Ready>,
  dependencies: Dependencies.Dependencies,
  shared: (index: number) => number
): { readonly transfers: ReadonlyArray<Transfer>; readonly tooLarge: ReadonlyArray<number> } => {
  const among = ops.map(({ index }) => index)
  const components = Dependencies.components(Dependencies.within(dependencies, among))
  const groups = new Map<string, { readonly ops: Array<Ready>; readonly alone: boolean }>()
  for (const ready of ops) {
    const component = components[ready.index] ?? ready.index
    const members = among.filter((index) => (components[index] ?? index) === component)
    const times = Math.max(...members.map(shared))
    const name = times === 0 ? "shared" : times === 1 ? "alone" : `component ${component}`
    const group = groups.get(name) ?? { ops: [], alone: times > 0 }
    groups.set(name, group)
    group.ops.push(ready)
  }
  const parts = [...groups.values()].map(({ alone, ops: own }) => ({
    alone,
    ...Fit.split(route, bounds, own, dependencies)
  }))
  return {
    transfers: parts.flatMap(({ alone, bundles }) => bundles.map((bundle) => ({ alone, ops: bundle }))),
    tooLarge: parts.flatMap((part) => part.tooLarge)
  }
}
