import type { Route } from "../../../ports/journal/Transactions.js"
import { type Candidate, componentsOf } from "./Queue.js"

/**
 * Chooses the ready ops of a lane's next transaction. Pure.
 *
 * Gotchas: an op goes with all ops that must precede it, or not: its component, and the ops of its nonce key from the chain's
 * sequence on.
 */

/** Capacity of one transaction, in any unit. */
export interface Capacity<C, Total> {
  readonly start: Total
  /** Null: the op does not fit. */
  readonly add: (total: Total, op: C) => Total | null
}

export interface Surroundings<C extends Candidate, Total> {
  /** Of the transactions in flight; null: none has a route. */
  readonly route: Route
  /** Nonce keys whose ops are in a transaction that is not mined, see `keyOf`. */
  readonly keysInFlight: ReadonlySet<string>
  /** Ops in flight call contracts, see `InFlight.isCalling`. */
  readonly isCalling: boolean
  /** The chain's sequence of a nonce key (see `keyOf`), if read; otherwise the lowest ready sequence counts. */
  readonly sequences: ReadonlyMap<string, bigint>
  /** False: a nonce of the lane is unknown, and unexposed ops wait with their nonces. */
  readonly maySign: boolean
  /** Ops that must not go now: paused, not signed yet, or tried separately. */
  readonly isHeld: (op: C, component: string) => boolean
  /** Components that go first, by name. */
  readonly leads: (component: string) => boolean
  /** Components that go without others. */
  readonly isAlone: (component: string) => boolean
  readonly most: number
  readonly capacity: Capacity<C, Total>
}

export interface Choice<C extends Candidate> {
  /** In execution order. Empty: no op can go now. */
  readonly ops: ReadonlyArray<C>
  /** Unexposed ops behind a gap of their nonce key, and the sequences that close it. */
  readonly renumbered: ReadonlyArray<{ readonly op: C; readonly sequence: bigint }>
  readonly used: ReadonlyArray<C>
  /** Exposed ops behind a gap of their nonce key that nothing closes: they need other nonces once dead. */
  readonly blocked: ReadonlyArray<C>
  readonly tooLarge: ReadonlyArray<C>
  /** Component of an op; see `componentsOf`. */
  readonly componentOf: (op: C) => string
}

/** The nonce key of an op, as its EntryPoint counts it. */
export const keyOf = ({ key, route, wallet }: Pick<Candidate, "key" | "route" | "wallet">): string =>
  `${route} ${wallet} ${key}`

const bySequence = (one: Candidate, other: Candidate): number =>
  one.sequence < other.sequence ? -1 : one.sequence > other.sequence ? 1 : 0

/** Whether transactions of both routes may be in flight together; see `Route`. */
const goTogether = (one: Route, other: Route): boolean => one === null || other === null || one === other

/** Ops of a nonce key that is not in flight, compared with the chain's sequence. */
interface KeyLine<C extends Candidate> {
  /** Consecutive from the chain's sequence on. */
  readonly line: ReadonlyArray<C>
  readonly used: ReadonlyArray<C>
  readonly renumbered: Choice<C>["renumbered"]
  readonly blocked: ReadonlyArray<C>
}

/**
 * Unexposed ops behind a gap move up, in order, to sequences that exposed and caller-signed ops leave free: bytes of the latter
 * are out, with fixed nonces.
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

/** In order of acceptance, but each op after its dependencies and after the previous sequence of its key. */
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

/** The oldest op that can go sets route and company; the first fitting ops go with it. `ops`: in the desired order. */
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
  /** For each op that its nonce key allows, its predecessor there; null: it is the next op. */
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

  /** Components that must go with a component and are not yet chosen; null: one of them cannot go. */
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
    // An op that waits for another route to drain must not be overtaken.
    if (head === null && !goTogether(first.route, around.route)) break
    const { company } = head ?? first
    if (group.some((op) => op.company !== company)) continue
    const alone = [...needed].some(around.isAlone)
    if (head !== null && (alone || chosen.size + needed.size > around.most)) continue
    if (around.isCalling && group.some(({ creates }) => creates)) {
      creationWaits = true
      continue
    }
    if (creationWaits && group.some(({ calls }) => calls)) continue
    const sum = group.reduce<Total | null>(
      (before, op) => (before === null ? null : around.capacity.add(before, op)),
      total
    )
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
