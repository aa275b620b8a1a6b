import * as BigInts from "effect/BigInt"
import {
  type Budget,
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

/** A row. `parts`: JSON of `[account_id, pot, wei]`. `note`: one a line. */
export interface Row {
  readonly hold_no: number | string
  readonly chain_id: string
  readonly id: string
  readonly parts: string
  readonly day: number
  readonly hour: number
  readonly landed: string | null
  readonly state: Totals.Counted["state"]
  readonly note: string
  readonly expires_at: number | string
}

/** A hold as it is stored, and as a call changes it. */
export interface Held extends Omit<Totals.Counted, "wei"> {
  /** Null: it is not stored yet. */
  readonly holdNo: Row["hold_no"] | null
  readonly chainId: bigint
  readonly id: string
  /** By the name of their budget, see `Totals.nameOf`. */
  readonly parts: ReadonlyMap<string, Part>
  readonly notes: ReadonlyArray<string>
  readonly expiresAt: number
}

type StoredPart = readonly [accountId: string, pot: string, wei: string]

export const heldOf = (row: Row): Held => {
  const chainId = BigInt(row.chain_id)
  const parts = (JSON.parse(row.parts) as ReadonlyArray<StoredPart>).map(
    ([account, name, wei]): Part => ({
      accountId: Totals.accountOf(account),
      chainId,
      name,
      wei: BigInt(wei)
    })
  )
  return {
    holdNo: row.hold_no,
    chainId,
    id: row.id,
    parts: new Map(parts.map((part) => [Totals.nameOf(part), part])),
    day: row.day,
    hour: row.hour,
    landed: row.landed === null ? null : BigInt(row.landed),
    state: row.state,
    notes: row.note.split("\n").filter((line) => line !== ""),
    expiresAt: Number(row.expires_at)
  }
}

export const partsText = ({ parts }: Held): string =>
  JSON.stringify(
    [...parts.values()].map(({ accountId, name, wei }): StoredPart => [accountId ?? "", name, wei.toString()])
  )

/** The account of a hold; empty: the operator's. */
export const ownerOf = ({ parts }: Held): string =>
  [...parts.values()].find(({ accountId }) => accountId !== null)?.accountId ?? ""

/** The hold in each of its budgets. */
export const each = ({ expiresAt, id, landed, notes, parts, state }: Held): ReadonlyArray<Hold> =>
  [...parts.values()].map((part) => ({ ...part, id, bound: state === "bound", landed, expiresAt, notes }))

/** Budgets of holds, each once. */
export const budgetsOf = (holds: Iterable<Held>): ReadonlyMap<string, Budget> =>
  new Map([...holds].flatMap(({ parts }) => [...parts]))

/** A reservation that expired before it was bound. */
export const isOver = ({ expiresAt, state }: Held, now: number): boolean =>
  state === "reserved" && expiresAt <= now

/** Counts a change of a hold in the totals of its budgets; null: it is not held any more. */
export const shift = (totals: ReadonlyMap<string, Totals.Totals>, before: Held, after: Held | null): void => {
  for (const [name, { wei }] of before.parts) {
    const own = totals.get(name)
    if (own !== undefined) Totals.shift(own, { ...before, wei }, after === null ? null : { ...after, wei })
  }
}

/** Totals and holds as calls read and change them. */
export interface Books {
  /** By the names of the budgets. */
  readonly totals: ReadonlyMap<string, Totals.Totals>
  /** By `keyOf`. */
  readonly holds: Map<string, Held>
}

export const keyOf = ({ chainId, id }: Pick<Reservation, "chainId" | "id">): string => `${chainId} ${id}`

/** Lack that keeps an entry from being held next to the others; null: none. */
const lackOf = (
  totals: Totals.Totals,
  { limit, maxOpen, name, window }: Reservation,
  before: Totals.Counted | null,
  after: Totals.Counted
): Lack | null => {
  if (limit !== null) {
    const isCounted = before !== null && (window !== "open" || before.landed === null)
    const others = Totals.fullest(totals, window, after) - (isCounted ? Totals.weiOf(before) : 0n)
    if (others + after.wei > limit)
      return { budget: name, reason: "limit", available: limit > others ? limit - others : 0n }
  }
  const others = Totals.holdsOf(totals) - (before?.landed === null ? 1 : 0)
  return maxOpen !== null && others >= maxOpen ? { budget: name, reason: "maxOpen", available: 0n } : null
}

/** Holds an entry and returns the undoing of that, or returns the lack that keeps it from being held. */
const hold = ({ holds, totals }: Books, entry: Reservation, now: number): Lack | (() => void) => {
  const { accountId, chainId, expiresAt, id, name: pot, wei: asked } = entry
  const [key, name] = [keyOf(entry), Totals.nameOf(entry)]
  const own = totals.get(name) ?? Totals.none(entry)
  const before = holds.get(key)
  if (before?.state === "settled") return { budget: pot, reason: "ended", available: 0n }
  const part = before?.parts.get(name)
  const wei = part === undefined ? asked : BigInts.max(part.wei, asked)
  const made = { holdNo: null, landed: null, state: "reserved", notes: [] } as const
  const after: Held = {
    ...(before ?? { ...made, chainId, id, day: dayOf(now), hour: hourOf(now) }),
    expiresAt: Math.max(before?.expiresAt ?? 0, expiresAt),
    parts: new Map([...(before?.parts ?? []), [name, { accountId, chainId, name: pot, wei }]])
  }
  const counted = before === undefined || part === undefined ? null : { ...before, wei: part.wei }
  const lack = lackOf(own, entry, counted, { ...after, wei })
  if (lack !== null) return lack
  Totals.shift(own, counted, { ...after, wei })
  holds.set(key, after)
  return () => {
    Totals.shift(own, { ...after, wei }, counted)
    if (before === undefined) holds.delete(key)
    else holds.set(key, before)
  }
}

/** Holds groups in their order, each whole or not at all. Changes the books. */
export const holdAll = (
  books: Books,
  groups: ReadonlyArray<ReadonlyArray<Reservation>>,
  now: number
): ReadonlyArray<Lack | null> =>
  groups.map((group) => {
    const undo: Array<() => void> = []
    for (const entry of group) {
      const held = hold(books, entry, now)
      if (typeof held === "function") undo.unshift(held)
      else {
        for (const each of undo) each()
        return held
      }
    }
    return null
  })
