import * as Result from "effect/Result"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { OpContext } from "../OpContext.js"

/** Fits ops into transactions. */

export interface Fitting {
  readonly index: number
  /** Its signature has the final length. */
  readonly op: UserOperation
}

/** A run of ops that stays together. `single`: its ops are of one component. */
interface Block<A> {
  readonly ops: ReadonlyArray<A>
  readonly single: boolean
}

/** The shortest runs of ops that split no component: ops between two ops of a component are in its run. */
const blocksOf = <A extends Fitting>(
  ops: ReadonlyArray<A>,
  components: ReadonlyArray<number>
): ReadonlyArray<Block<A>> => {
  const of = ({ index }: A) => components[index] ?? index
  const last = new Map(ops.map((ready, position) => [of(ready), position]))
  const blocks: Array<Block<A>> = []
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

export interface Split<A> {
  readonly bundles: ReadonlyArray<ReadonlyArray<A>>
  /** Ops that do not fit into one transaction. */
  readonly tooLarge: ReadonlyArray<number>
  /** Some of them may fit when the ops of a component are adjacent. */
  readonly scattered: boolean
}

/**
 * Splits ops into as few bundles as possible, in order, without splitting dependencies; runs that are too large for a
 * transaction are left out.
 */
export const split = <A extends Fitting>(
  { context: { buffers, connection, version } }: { readonly context: OpContext },
  { gasBound }: { readonly gasBound: bigint },
  ops: ReadonlyArray<A>,
  dependencies: Dependencies.Dependencies = []
): Split<A> => {
  const fits = (some: ReadonlyArray<A>) =>
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
  const bundles: Array<ReadonlyArray<A>> = []
  const tooLarge: Array<number> = []
  let scattered = false
  let open: ReadonlyArray<A> = []
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
