import * as BigInts from "effect/BigInt"
import {
  type Budget,
  type Cost,
  dayOf,
  type Hold,
  hourOf,
  type Lack,
  type Part,
  type Reservation
} from "../../../application/ports/Budgets.js"
import * as Totals from "./Totals.js"

/**
 * Stored holds, and whether groups of reservations fit into their budgets. Pure. A hold has one row for all budgets that
 * hold money for its purpose, so that limits cost totals, which calls share, and no rows.
 */

/** A row. `parts`: JSON of `[account_id, pot, wei, books?]`. `note`: one a line. */
export interface Row {
  readonly hold_no: number | string
  readonly chain_id: string
  readonly id: string
  readonly parts: string
  readonly day: number
  readonly hour: number
  readonly landed: string | null
  readonly state: "reserved" | "bound" | "settled"
  readonly note: string
  readonly expires_at: number | string
}

/** A hold as it is stored, and as a call changes it. */
export interface Held extends Totals.Place {
  /** Null: it is not stored yet. */
  readonly holdNo: Row["hold_no"] | null
  readonly chainId: bigint
  readonly id: string
  /** By `Totals.keyOf` of their budgets. */
  readonly parts: ReadonlyMap<string, Part>
  /** Null: the cost is unknown. */
  readonly landed: bigint | null
  readonly state: Row["state"]
  readonly notes: ReadonlyArray<string>
  readonly expiresAt: number
}

type StoredPart = readonly [accountId: string, pot: string, wei: string, books?: Part["books"]]

export const heldOf = (row: Row): Held => {
  const chainId = BigInt(row.chain_id)
  const parts = new Map<string, Part>()
  for (const [account, name, wei, books] of JSON.parse(row.parts) as ReadonlyArray<StoredPart>) {
    const budget = { accountId: Totals.accountOf(account), chainId, name }
    parts.set(Totals.keyOf(budget), { ...budget, wei: BigInt(wei), ...(books && { books }) })
  }
  return {
    holdNo: row.hold_no,
    chainId,
    id: row.id,
    parts,
    day: row.day,
    hour: row.hour,
    landed: row.landed === null ? null : BigInt(row.landed),
    state: row.state,
    notes: row.note.split("\n").filter((line) => line !== ""),
    expiresAt: Number(row.expires_at)
  }
}

export const partsText = (parts: Iterable<Part>): string =>
  JSON.stringify(
    Array.from(parts, ({ accountId, books, name, wei }): StoredPart => {
      const stored = [accountId ?? "", name, wei.toString()] as const
      return books === undefined ? stored : [...stored, books]
    })
  )

/** The account of a hold; empty: the operator's. */
export const ownerOf = ({ parts }: Held): string =>
  [...parts.values()].find(({ accountId }) => accountId !== null)?.accountId ?? ""

/** The hold in each of its budgets. */
export const each = ({ expiresAt, id, landed, notes, parts, state }: Held): ReadonlyArray<Hold> =>
  [...parts.values()].map((part) => ({ ...part, id, bound: state === "bound", landed, expiresAt, notes }))

/** Budgets of holds, each once. */
export const budgetsOf = (holds: Iterable<Held>): ReadonlyMap<string, Budget> => {
  const budgets = new Map<string, Budget>()
  for (const { parts } of holds) for (const [key, part] of parts) budgets.set(key, part)
  return budgets
}

/** A reservation that expired before it was bound. */
export const isOver = ({ expiresAt, state }: Held, now: number): boolean =>
  state === "reserved" && expiresAt <= now

type Counted = Pick<Held, "landed" | "state">

/** Amounts that a part of a hold counts. */
const countOf = (held: Counted | null, part: Part | undefined): Totals.Count => {
  if (held === null || part === undefined || held.state === "settled") return Totals.nothing
  if (held.landed !== null) return { wei: held.landed, open: 0n, holds: 0 }
  return part.books === undefined
    ? { wei: part.wei, open: part.wei, holds: 1 }
    : { wei: part.wei, open: 0n, holds: 0 }
}

/** Counts a change of a hold in the totals of its budgets; null: it is not held any more. */
export const shift = (totals: Totals.All, held: Held, after: Counted | null): void => {
  for (const [key, part] of held.parts) {
    const own = totals.get(key)
    if (own !== undefined) Totals.shift(own, held, countOf(held, part), countOf(after, part))
  }
}

const bookedOf = ({ books, wei }: Part, cost: Cost): bigint => {
  if (typeof cost === "bigint") return cost
  if (cost !== "held" && books === "cost") return cost.cost
  return cost === "held" || cost.success ? wei : 0n
}

/** Ends a hold in the totals of its budgets, and books its cost; returns whether there is any. */
export const end = (totals: Totals.All, held: Held, cost: Cost | null): boolean => {
  shift(totals, held, null)
  let isBooked = false
  for (const [key, part] of held.parts) {
    const wei = bookedOf(part, cost ?? held.landed ?? 0n)
    const own = totals.get(key)
    if (wei === 0n || own === undefined) continue
    Totals.book(own, held, wei)
    isBooked = true
  }
  return isBooked
}

/** Totals and holds as calls read and change them. */
export interface Books {
  readonly totals: Totals.All
  /** By `keyOf`. */
  readonly holds: Map<string, Held>
}

export const keyOf = ({ chainId, id }: Pick<Reservation, "chainId" | "id">): string => `${chainId} ${id}`

/** Lack that keeps an entry from counting so much instead of what it counted before; null: none. */
const lackOf = (
  totals: Totals.Totals,
  { limit, maxOpen, name, window }: Reservation,
  place: Totals.Place,
  before: Totals.Count,
  wei: bigint
): Lack | null => {
  // A limit that was lowered meanwhile leaves what is held; a deposit must cover it still.
  if (limit !== null && (window === "open" || wei > before.wei)) {
    const others = Totals.fullest(totals, window, place) - (window === "open" ? before.open : before.wei)
    if (others + wei > limit)
      return { budget: name, reason: "limit", available: limit > others ? limit - others : 0n }
  }
  const others = Totals.holdsOf(totals) - before.holds
  return maxOpen !== null && others >= maxOpen ? { budget: name, reason: "maxOpen", available: 0n } : null
}

/** Holds a group in the books, or returns the lack that keeps it from being held and changes nothing. */
const hold = ({ holds, totals }: Books, group: ReadonlyArray<Reservation>, now: number): Lack | null => {
  const drafts = new Map<string, Held & { readonly parts: Map<string, Part> }>()
  const undo: Array<() => void> = []
  for (const entry of group) {
    const { accountId, books, chainId, expiresAt, id, name, wei: asked } = entry
    const [key, budget] = [keyOf(entry), Totals.keyOf(entry)]
    const own = totals.get(budget) ?? Totals.none(entry)
    const before = drafts.get(key) ?? holds.get(key)
    const made = { holdNo: null, landed: null, state: "reserved", notes: [] } as const
    const held = before ?? {
      ...made,
      chainId,
      id,
      day: dayOf(now),
      hour: hourOf(now),
      expiresAt,
      parts: new Map()
    }
    const part = before?.parts.get(budget)
    const after: Part = {
      accountId,
      chainId,
      name,
      wei: BigInts.max(part?.wei ?? 0n, asked),
      ...(part === undefined ? books && { books } : part.books && { books: part.books })
    }
    const counted = countOf(held, part)
    const lack: Lack | null =
      held.state === "settled"
        ? { budget: name, reason: "ended", available: 0n }
        : lackOf(own, entry, held, counted, after.wei)
    if (lack !== null) {
      for (const each of undo.reverse()) each()
      return lack
    }
    const count = countOf(held, after)
    Totals.shift(own, held, counted, count)
    undo.push(() => Totals.shift(own, held, count, counted))
    const parts = drafts.get(key)?.parts ?? new Map(held.parts)
    drafts.set(key, {
      ...held,
      expiresAt: Math.max(held.expiresAt, expiresAt),
      parts: parts.set(budget, after)
    })
  }
  for (const [key, held] of drafts) holds.set(key, held)
  return null
}

/** Holds groups in their order, each whole or not at all. Changes the books. */
export const holdAll = (
  books: Books,
  groups: ReadonlyArray<ReadonlyArray<Reservation>>,
  now: number
): ReadonlyArray<Lack | null> => groups.map((group) => hold(books, group, now))
