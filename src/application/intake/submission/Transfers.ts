import * as Result from "effect/Result"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import type { FeePrices } from "../../../domain/erc4337/gas/Fees.js"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import type { NonceSpace } from "../../ports/journal/Requests.js"
import type { OpContext } from "../Preparation.js"
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

/** A run of ops that stays together, and whether it is of one component only. */
interface Block {
  readonly ops: ReadonlyArray<Ready>
  readonly single: boolean
}

/** The shortest runs of ops that part no component: what stands between two ops of one is with them. */
const blocksOf = (ops: ReadonlyArray<Ready>, components: ReadonlyArray<number>): ReadonlyArray<Block> => {
  const of = ({ index }: Ready) => components[index] ?? index
  const last = new Map(ops.map((ready, position) => [of(ready), position]))
  const blocks: Array<Block> = []
  for (let from = 0, end = 0; from < ops.length; from = end + 1) {
    end = from
    for (let at = from; at <= end; at += 1) {
      const ready = ops[at]
      if (ready !== undefined) end = Math.max(end, last.get(of(ready)) ?? at)
    }
    const run = ops.slice(from, end + 1)
    blocks.push({ ops: run, single: new Set(run.map(of)).size === 1 })
  }
  return blocks
}

export interface Split {
  readonly bundles: ReadonlyArray<ReadonlyArray<Ready>>
  /** What does not fit into one transaction. */
  readonly tooLarge: ReadonlyArray<number>
  /** Something of that may fit once what hangs together is in one piece. */
  readonly scattered: boolean
}

/**
 * As few bundles as possible, in order, none of which parts what depends on each other; what does not fit even alone
 * is left out.
 */
export const split = (
  { context: { buffers, connection, version } }: { readonly context: OpContext },
  { gasBound }: Pick<Bounds, "gasBound">,
  ops: ReadonlyArray<Ready>,
  dependencies: Dependencies.Dependencies = []
): Split => {
  const fits = (some: ReadonlyArray<Ready>) =>
    Result.isSuccess(
      Gas.transactionGasLimit(
        version,
        some.map(({ op }) => op),
        {
          bound: gasBound,
          overshoot: buffers.transaction,
          withoutPostOp: connection.profile.sponsor?.paymaster ?? null
        }
      )
    )
  const among = ops.map(({ index }) => index)
  const components = Dependencies.components(Dependencies.within(dependencies, among))
  const bundles: Array<ReadonlyArray<Ready>> = []
  const tooLarge: Array<number> = []
  let scattered = false
  let open: ReadonlyArray<Ready> = []
  for (const block of blocksOf(ops, components)) {
    if (fits([...open, ...block.ops])) {
      open = [...open, ...block.ops]
      continue
    }
    if (open.length > 0) bundles.push(open)
    open = []
    if (fits(block.ops)) open = block.ops
    else {
      tooLarge.push(...block.ops.map(({ index }) => index))
      scattered ||= !block.single
    }
  }
  if (open.length > 0) bundles.push(open)
  return { bundles, tooLarge, scattered }
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
    ...split(route, bounds, own, dependencies)
  }))
  return {
    transfers: parts.flatMap(({ alone, bundles }) => bundles.map((bundle) => ({ alone, ops: bundle }))),
    tooLarge: parts.flatMap((part) => part.tooLarge)
  }
}
