import type { Route } from "../../../ports/journal/Transactions.js"
import { type Candidate, componentsOf } from "./Queue.js"

/**
 * Which ready ops the next transaction of a lane carries. Pure.
 *
 * Gotchas: an op goes with everything that has to stand before it, or not at all: its component, and the ops of its nonce
 * key from the chain's sequence on.
 */

/** What counts for one transaction's gas, however it is counted. */
export interface Capacity<C, Total> {
  readonly start: Total
  /** Null: the op does not fit any more. */
  readonly add: (total: Total, op: C) => Total | null
}

export interface Surroundings<C extends Candidate, Total> {
  /** Of the transactions in flight; null: none has one. */
  readonly route: Route
  /** Nonce keys whose ops are in a transaction that is not mined, see `keyOf`. */
  readonly keysInFlight: ReadonlySet<string>
  /** A transaction in flight calls targets outside the suite. */
  readonly isCalling: boolean
  /** The chain's sequence of a nonce key, see `keyOf`, where it was read; else the lowest that is ready is taken for it. */
  readonly sequences: ReadonlyMap<string, bigint>
  /** False: a nonce of the lane is unknown; what nobody has seen signed stays here, under the nonce that it has. */
  readonly maySign: boolean
  /** Ops that are not to go now: they pause, are looked up, or are tried alone. */
  readonly isHeld: (op: C, component: string) => boolean
  /** Components that go before all others; by the name of the component. */
  readonly leads: (component: string) => boolean
  /** Components that share their transaction with no other one. */
  readonly isAlone: (component: string) => boolean
  /** Components of one transaction at most. */
  readonly most: number
  readonly capacity: Capacity<C, Total>
}

export interface Choice<C extends Candidate> {
  /** In the order in which they are executed. Empty: nothing can go now. */
  readonly ops: ReadonlyArray<C>
  /** Unexposed ops behind a gap of their nonce key, and the sequences that close it. */
  readonly renumbered: ReadonlyArray<{ readonly op: C; readonly sequence: bigint }>
  /** Ops whose nonces the chain has used. */
  readonly used: ReadonlyArray<C>
  /** Exposed ops behind a gap of their nonce key that nothing closes: they go under other nonces once they are dead. */
  readonly blocked: ReadonlyArray<C>
  /** Components that do not fit into a transaction even alone. */
  readonly tooLarge: ReadonlyArray<C>
  /** What an op hangs together with, see `componentsOf`. */
  readonly componentOf: (op: C) => string
}

/** The nonce key of an op, as its EntryPoint counts it. */
export const keyOf = ({ key, route, wallet }: Pick<Candidate, "key" | "route" | "wallet">): string =>
  `${route} ${wallet} ${key}`

const bySequence = (one: Candidate, other: Candidate): number =>
  one.sequence < other.sequence ? -1 : one.sequence > other.sequence ? 1 : 0

/** Whether a transaction of the one route may be in flight beside one of the other, see `Route`. */
const goTogether = (one: Route, other: Route): boolean => one === null || other === null || one === other

/** The ops of a nonce key that is not in flight, held against the chain's sequence. */
interface KeyLine<C extends Candidate> {
  /** Consecutive from the chain's sequence on. */
  readonly line: ReadonlyArray<C>
  readonly used: ReadonlyArray<C>
  readonly renumbered: Choice<C>["renumbered"]
  readonly blocked: ReadonlyArray<C>
}

/**
 * Unexposed ops behind a gap move up, in their order, to the sequences that exposed and given ones leave free: bytes of
 * those are out, under the nonces that they have.
 */
export const lineOf = <C extends Candidate>(
  ops: ReadonlyArray<C>,
  sequence: bigint | undefined,
  mayRenumber: boolean
): KeyLine<C> => {
  const sorted = ops.toSorted(bySequence)
  const next = sequence ?? sorted[0]?.sequence ?? 0n
  const used = sorted.filter((op) => op.sequence < next)
  const open = sorted.slice(used.length)
  const gap = open.findIndex((op, at) => op.sequence !== next + BigInt(at))
  const line = gap < 0 ? open : open.slice(0, gap)
  if (gap < 0 || !mayRenumber) return { line, used, renumbered: [], blocked: [] }
  const fixed = new Set(open.filter(({ exposed, given }) => exposed || given).map((op) => op.sequence))
  const renumbered: Array<Choice<C>["renumbered"][number]> = []
  let free = next
  for (const op of open) {
    if (op.exposed || op.given) continue
    while (fixed.has(free)) free += 1n
    if (op.sequence !== free) renumbered.push({ op, sequence: free })
    free += 1n
  }
  const blocked = renumbered.length > 0 ? [] : open.slice(gap).filter(({ exposed }) => exposed)
  return { line, used, renumbered, blocked }
}

/** In the order of acceptance, but for what has to stand before: the op that one depends on, and the sequence before its own. */
const inOrder = <C extends Candidate>(
  ops: ReadonlyArray<C>,
  before: (op: C) => ReadonlyArray<C>
): ReadonlyArray<C> => {
  const wanted = new Set(ops)
  const placed = new Set<C>()
  const place = (op: C): void => {
    if (placed.has(op) || !wanted.has(op)) return
    for (const each of before(op)) place(each)
    placed.add(op)
  }
  for (const op of ops) place(op)
  return [...placed]
}

/**
 * The oldest op that can go decides route and company; the first ones that fit go with it. `ops` are in the order in which
 * they are to go.
 */
export const choose = <C extends Candidate, Total>(
  ops: ReadonlyArray<C>,
  around: Surroundings<C, Total>
): Choice<C> => {
  const components = componentsOf(ops)
  const componentOf = (op: C): string => components.get(op.opId) ?? ""
  const members = Map.groupBy(ops, componentOf)
  const element = new Map(ops.map((op) => [`${op.requestId} ${op.index}`, op]))

  const used: Array<C> = []
  const blocked: Array<C> = []
  const renumbered: Array<Choice<C>["renumbered"][number]> = []
  /** By op that may go as far as its nonce key says, the one before it there; null: it is the next one. */
  const predecessor = new Map<C, C | null>()
  for (const [key, own] of Map.groupBy(ops, keyOf)) {
    if (around.keysInFlight.has(key)) continue
    const line = lineOf(own, around.sequences.get(key), around.maySign)
    used.push(...line.used)
    blocked.push(...line.blocked)
    renumbered.push(...line.renumbered)
    for (const [at, op] of line.line.entries()) predecessor.set(op, line.line[at - 1] ?? null)
  }

  const isHeld = (op: C): boolean =>
    !predecessor.has(op) || around.isHeld(op, componentOf(op)) || !(around.maySign || op.exposed)

  /** All that has to go with a component and is not chosen yet; null: some of it can not go. */
  const withAll = (component: string, chosen: ReadonlySet<string>): ReadonlySet<string> | null => {
    const needed = new Set<string>()
    const left = [component]
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      if (needed.has(next) || chosen.has(next)) continue
      needed.add(next)
      for (const op of members.get(next) ?? []) {
        if (isHeld(op)) return null
        const before = predecessor.get(op) ?? null
        if (before !== null) left.push(componentOf(before))
      }
    }
    return needed
  }

  const order = [...members.keys()].toSorted(
    (one, other) => Number(around.leads(other)) - Number(around.leads(one))
  )
  const chosen = new Set<string>()
  const tooLarge: Array<C> = []
  let head: C | null = null
  let total = around.capacity.start
  let creationWaits = false
  for (const component of order) {
    if (chosen.has(component)) continue
    const needed = withAll(component, chosen)
    if (needed === null) continue
    const group = [...needed].flatMap((each) => members.get(each) ?? [])
    const [first] = members.get(component) ?? []
    if (first === undefined) continue
    // What waits for a lane that is free of another route keeps the way behind it free.
    if (head === null && !goTogether(first.route, around.route)) break
    if (head !== null && group.some(({ company }) => company !== head?.company)) continue
    if (head === null && group.some(({ company }) => company !== first.company)) continue
    const alone = [...needed].some(around.isAlone)
    if (head !== null && (alone || chosen.size + needed.size > around.most)) continue
    if (around.isCalling && group.some(({ creates }) => creates)) {
      creationWaits = true
      continue
    }
    if (creationWaits && group.some(({ calls }) => calls)) continue
    let sum: Total | null = total
    for (const op of group) sum = sum === null ? null : around.capacity.add(sum, op)
    if (sum === null) {
      if (head === null && needed.size === 1) tooLarge.push(...group)
      continue
    }
    head ??= first
    total = sum
    for (const each of needed) chosen.add(each)
    if (alone || chosen.size >= around.most) break
  }

  const own = ops.filter((op) => chosen.has(componentOf(op)))
  const before = (op: C): ReadonlyArray<C> => {
    const previous = predecessor.get(op) ?? null
    const on = op.dependsOn.flatMap((index) => element.get(`${op.requestId} ${index}`) ?? [])
    return previous === null ? on : [...on, previous]
  }
  return { ops: inOrder(own, before), renumbered, used, blocked, tooLarge, componentOf }
}
