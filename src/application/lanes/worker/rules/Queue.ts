import type { Address } from "../../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../../domain/primitives/Hex.js"
import type { OpId } from "../../../ports/journal/Records.js"
import type { Route } from "../../../ports/journal/Transactions.js"
import type { AccountId } from "../../../ports/Tenants.js"

/**
 * The ready ops that a lane's worker holds: two bundles at most, whatever waits in the journal behind them. Pure.
 *
 * Gotchas: the queue is a copy. The journal decides what is ready, and a queue may be read anew at any time.
 */

/** A ready op, as far as choosing needs to know it. */
export interface Candidate {
  /** In the order of acceptance. */
  readonly opId: OpId
  readonly requestId: string
  readonly index: number
  readonly accountId: AccountId
  readonly route: Exclude<Route, null>
  /** Ops of one transaction have the same: account, node, EntryPoint, and what else each of them demands of it. */
  readonly company: string
  /** Elements of its request that have to land before it, or in front of it in the same transaction. */
  readonly dependsOn: ReadonlyArray<number>
  readonly wallet: Address
  readonly key: bigint
  readonly sequence: bigint
  /** Signed bytes of it were recorded or handed over: somebody may land it. */
  readonly exposed: boolean
  /** Its bytes are its caller's: nothing of it may change. */
  readonly given: boolean
  /** It brings its wallet into being. */
  readonly creates: boolean
  /** It calls a target outside the suite, which may deploy a wallet that an op behind it creates. */
  readonly calls: boolean
  readonly userOpHash: Bytes32 | null
}

export interface Queue<C extends Candidate> {
  /** Oldest first. */
  readonly ops: ReadonlyArray<C>
  /** The journal had more when it was read. */
  readonly hasMore: boolean
}

/** Ops of one bundle at most: a slice of a request is whole in it. */
export const bundle = 256
export const most = 2 * bundle

/** Rows that one read asks for: behind the last op that is kept there may be the rest of its component, one slice away at most. */
export const rows = most + bundle

export const empty: Queue<never> = { ops: [], hasMore: true }

const elementOf = (requestId: string, index: number): string => `${requestId} ${index}`

/** By op, the name of what it hangs together with, by however many steps. */
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
      // What it depends on may have landed.
      if (parents.has(before)) parents.set(rootOf(elementOf(requestId, index)), rootOf(before))
    }
  return new Map(ops.map(({ index, opId, requestId }) => [opId, rootOf(elementOf(requestId, index))]))
}

/** What one read of the journal gave: whole components alone, where the read was cut off. */
export const of = <C extends Candidate>(read: ReadonlyArray<C>, hasMore: boolean): Queue<C> => {
  if (read.length <= most) return { ops: read, hasMore }
  const components = componentsOf(read)
  const kept = new Set(read.slice(0, most).map(({ opId }) => components.get(opId)))
  return { ops: read.filter(({ opId }) => kept.has(components.get(opId))), hasMore: true }
}

/** Whether a read may give a bundle more than there is. */
export const isLow = ({ hasMore, ops }: Queue<Candidate>): boolean => hasMore && ops.length < bundle

export const without = <C extends Candidate>(
  { hasMore, ops }: Queue<C>,
  gone: { readonly has: (opId: OpId) => boolean }
): Queue<C> => ({ ops: ops.filter(({ opId }) => !gone.has(opId)), hasMore })

/**
 * The ops in the order in which accounts have their turn: whoever was served longest ago comes first. One account's backlog
 * keeps no other account waiting.
 */
export const inTurn = <C extends Candidate>(
  ops: ReadonlyArray<C>,
  servedAt: ReadonlyMap<AccountId, number>
): ReadonlyArray<C> =>
  ops.toSorted(
    (one, other) =>
      (servedAt.get(one.accountId) ?? 0) - (servedAt.get(other.accountId) ?? 0) || one.opId - other.opId
  )
