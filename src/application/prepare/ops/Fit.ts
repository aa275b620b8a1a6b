import * as Result from "effect/Result"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { OpContext } from "../OpContext.js"

/** Which ops fit into one transaction. */

export interface Fitting {
  readonly index: number
  /** With a signature of the length that it will have. */
  readonly op: UserOperation
}

/** A run of ops that stays together, and whether it is of one component only. */
interface Block<A> {
  readonly ops: ReadonlyArray<A>
  readonly single: boolean
}

/** The shortest runs of ops that part no component: what stands between two ops of one is with them. */
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
  /** What does not fit into one transaction. */
  readonly tooLarge: ReadonlyArray<number>
  /** Something of that may fit once what hangs together is in one piece. */
  readonly scattered: boolean
}

/**
 * As few bundles as possible, in order, none of which parts what depends on each other; what does not fit even alone
 * is left out.
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
