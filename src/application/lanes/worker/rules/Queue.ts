import type { Address } from "../../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../../domain/primitives/Hex.js"
import type { OpId } from "../../../ports/journal/Records.js"
import type { Route } from "../../../ports/journal/Transactions.js"
import type { AccountId } from "../../../ports/Tenants.js"

/**
 * The ready ops that a lane's worker holds: at most two bundles. Pure.
 *
 * Gotchas: the queue is a copy. The journal decides readiness, and the queue may be read again at any time.
 */

/** Properties of a ready op that choosing needs. */
export interface Candidate {
  /** In the order of acceptance. */
  readonly opId: OpId
  readonly requestId: string
  readonly index: number
  readonly accountId: AccountId
  readonly route: Exclude<Route, null>
  /** Equal for ops that may share a transaction: account, node, EntryPoint and their other demands. */
  readonly company: string
  /** Elements of its request that must land before it, or precede it in the same transaction. */
  readonly dependsOn: ReadonlyArray<number>
  readonly wallet: Address
  readonly key: bigint
  readonly sequence: bigint
  /** Signed bytes were recorded or handed over: they may land. */
  readonly exposed: boolean
  /** Signed by its caller: its bytes must not change. */
  readonly given: boolean
  /** It creates its wallet. */
  readonly creates: boolean
  /** It makes calls, which may deploy a wallet that a later op creates. */
  readonly calls: boolean
  readonly userOpHash: Bytes32 | null
}

export interface Queue<C extends Candidate> {
  /** Oldest first. */
  readonly ops: ReadonlyArray<C>
  /** The journal had more when it was read. */
  readonly hasMore: boolean
}

/** Maximum ops of a bundle; a slice of a request fits. */
export const bundle = 256
export const most = 2 * bundle

/** Rows per read: the component of the last kept op may extend one slice further. */
export const rows = most + bundle

export const empty: Queue<never> = { ops: [], hasMore: true }

const elementOf = (requestId: string, index: number): string => `${requestId} ${index}`

/** Component of each op: ops linked by dependencies, in any number of steps. */
export const componentsOf = (ops: ReadonlyArray<Candidate>): ReadonlyMap<OpId, string> => {
  const parents = new Map(
    ops.map(({ index, requestId }) => [elementOf(requestId, index), elementOf(requestId, index)])
  )
  const rootOf = (name: string): string => {
    let root = name
    for (let up = parents.get(root); up !== undefined && up !== root; up = parents.get(root)) root = up
    parents.set(name, root)
    return root
  }
  for (const { dependsOn, index, requestId } of ops)
    for (const on of dependsOn) {
      const before = elementOf(requestId, on)
      // The dependency may have landed.
      if (parents.has(before)) parents.set(rootOf(elementOf(requestId, index)), rootOf(before))
    }
  return new Map(ops.map(({ index, opId, requestId }) => [opId, rootOf(elementOf(requestId, index))]))
}

/** Makes a queue of one read; a truncated read keeps only whole components. */
export const of = <C extends Candidate>(read: ReadonlyArray<C>, hasMore: boolean): Queue<C> => {
  if (read.length <= most) return { ops: read, hasMore }
  const components = componentsOf(read)
  const kept = new Set(read.slice(0, most).map(({ opId }) => components.get(opId)))
  return { ops: read.filter(({ opId }) => kept.has(components.get(opId))), hasMore: true }
}

/** Whether less than a bundle is left and a read may yield more. */
export const isLow = ({ hasMore, ops }: Queue<Candidate>): boolean => hasMore && ops.length < bundle

export const without = <C extends Candidate>(
  { hasMore, ops }: Queue<C>,
  gone: { readonly has: (opId: OpId) => boolean }
): Queue<C> => ({ ops: ops.filter(({ opId }) => !gone.has(opId)), hasMore })

/** Orders ops by their accounts' turns, least recently served first, so that one account's backlog delays no other. */
export const inTurn = <C extends Candidate>(
  ops: ReadonlyArray<C>,
  servedAt: ReadonlyMap<AccountId, number>
): ReadonlyArray<C> =>
  ops.toSorted(
    (one, other) =>
      (servedAt.get(one.accountId) ?? 0) - (servedAt.get(other.accountId) ?? 0) || one.opId - other.opId
  )
