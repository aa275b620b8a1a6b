import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { AccountId } from "./Tenants.js"

/** The store failed; no effect of the call is durable. */
export class BudgetsError extends Data.TaggedError("BudgetsError")<{ readonly message: string }> {}

/**
 * The reservations that a limit counts:
 *
 * - `open`: reservations without a landed sum. The limit is a reading that landed sums have lowered already.
 * - `day`: reservations of the same UTC day.
 * - `24h`, `30d`: reservations of the same and the 24 preceding hours, or the 30 preceding UTC days. No such span exceeds
 *   the limit.
 */
export type Window = "open" | "day" | "24h" | "30d"

/** A bounded amount of money on one chain. */
export interface Budget {
  /** Owner; null: the operator, for every account that uses it. */
  readonly accountId: AccountId | null
  readonly chainId: bigint
  readonly name: string
}

/** A sum that a budget holds, wei. */
export interface Part extends Budget {
  readonly wei: bigint
  /** Of a limit, which counts no open reservations: the sum that a landing books there, see `Landing`. */
  readonly books?: "cost" | "held"
}

export interface Reservation extends Part {
  /**
   * Identifies the purpose, unique on the chain. Budgets that hold money for the same purpose, the operator's and those of
   * one account, share the id: they are bound, released and settled together.
   */
  readonly id: string
  /** Highest possible cost. */
  readonly wei: bigint
  /** Most that may be held, with the booked sums of the window; null: no bound. */
  readonly limit: bigint | null
  /** Most open reservations of the budget, excluding landed ones; null: no bound. */
  readonly maxOpen: number | null
  readonly window: Window
  /** Unix milliseconds. An unbound reservation expires then. */
  readonly expiresAt: number
}

/**
 * A refused reservation. `limit`: only `available` wei are left. `maxOpen`: too many open reservations. `ended`: the
 * id's work has cost something and is settled.
 */
export interface Lack {
  readonly budget: string
  readonly reason: "limit" | "maxOpen" | "ended"
  readonly available: bigint
}

/** A reservation that is not settled. */
export interface Hold extends Part {
  readonly id: string
  readonly bound: boolean
  /** Cost that the chain shows so far; null: unknown. */
  readonly landed: bigint | null
  readonly expiresAt: number
  /** Notes of `bind`, oldest first. */
  readonly notes: ReadonlyArray<string>
}

/** A hold in all of its budgets. */
export interface Held extends Pick<Hold, "expiresAt" | "id" | "landed" | "notes"> {
  readonly parts: ReadonlyArray<Part>
}

/** Terms of binding a reservation. */
export interface Binding {
  /** Number of a block before which it cannot end; the least of several counts, and none is 0. */
  readonly due?: bigint
  /** Only if it holds exactly these sums, in this order, and was not bound before. */
  readonly exactly?: ReadonlyArray<Part>
}

/** An op that has landed, as limits book it: its cost in wei, and what they hold unless its call was reverted. */
export interface Landing {
  readonly cost: bigint
  readonly success: boolean
}

/** Sums that the end of a hold books: one for each of its budgets, wei, their held sums, or those of a landing. */
export type Cost = bigint | "held" | Landing

/** The end of a hold and its cost, see `settle`, or its cost so far, see `land`. */
export type Outcome =
  | { readonly isEnd: true; readonly cost: Cost | null }
  | { readonly isEnd: false; readonly cost: bigint | null }

/** Use of a budget, wei. */
export interface Figures {
  /** Held for open reservations: the real cost once landed, the highest possible cost before. */
  readonly held: bigint
  readonly booked: bigint
}

/**
 * The UTC day of an instant (Unix milliseconds), counted from 1970-01-01.
 *
 * @example Budgets.dayOf(Date.UTC(1970, 0, 2))
 * // 1
 */
export const dayOf = (millis: number): number => Math.floor(millis / 86_400_000)

/**
 * The hour of an instant (Unix milliseconds), counted from 1970-01-01.
 *
 * @example Budgets.hourOf(Date.UTC(1970, 0, 2))
 * // 24
 */
export const hourOf = (millis: number): number => Math.floor(millis / 3_600_000)

/**
 * Bounded money: the operator's payments and risks for accounts, and deposits that several requests share. Each method
 * is one transaction, and all processes together never hold more than a limit. A reservation counts for the UTC day and the
 * hour in which it was made, however it ends. Only `open` takes longer with more open reservations.
 */
export class Budgets extends Context.Service<
  Budgets,
  {
    /**
     * Handles the groups in order: holds all entries of a group (null) or none of them. An open reservation with the
     * same budget and id rises to the higher sum, keeps the later expiry and stays in its day. Without a rise it needs no
     * room of a window but `open`.
     */
    readonly reserve: (
      groups: ReadonlyArray<ReadonlyArray<Reservation>>
    ) => Effect.Effect<ReadonlyArray<Lack | null>, BudgetsError>
    /**
     * Holds the reservation until `settle`. `note` is data that its keeper needs to find its end; earlier notes stay. False,
     * and no change: no reservation with that id is held, or a budget holds less than `wei`.
     */
    readonly bind: (
      hold: Pick<Reservation, "chainId" | "id" | "wei"> & Binding,
      note: string
    ) => Effect.Effect<boolean, BudgetsError>
    /** Releases unbound reservations. Unknown ids are ignored. */
    readonly release: (chainId: bigint, ids: ReadonlyArray<string>) => Effect.Effect<void, BudgetsError>
    /**
     * Records a cost that a reorganisation may still undo; null: it was undone. A landed cost frees the difference to
     * the held sum. Ids that are not held are ignored.
     */
    readonly land: (chainId: bigint, id: string, wei: bigint | null) => Effect.Effect<void, BudgetsError>
    /**
     * Ends the reservation and books its cost: 0 for none; null: the landed cost. The first call counts; ids that are
     * not held are ignored.
     */
    readonly settle: (chainId: bigint, id: string, cost: Cost | null) => Effect.Effect<void, BudgetsError>
    /** Settles and lands by ids, all or none. */
    readonly record: (
      chainId: bigint,
      outcomes: ReadonlyMap<string, Outcome>
    ) => Effect.Effect<void, BudgetsError>
    /** All holds of the chain, in order of reservation; `beginning`: only of ids that start with it. */
    readonly open: (chainId: bigint, beginning?: string) => Effect.Effect<ReadonlyArray<Hold>, BudgetsError>
    /** The account's bound holds that are due at a block, in order of reservation, and whether others are due later. */
    readonly due: (
      chainId: bigint,
      accountId: AccountId,
      block: bigint
    ) => Effect.Effect<{ readonly holds: ReadonlyArray<Held>; readonly hasLater: boolean }, BudgetsError>
    /** Figures for the window that ends with the hour or day of the instant `at` (Unix milliseconds). */
    readonly figures: (budget: Budget, at: number, window: Window) => Effect.Effect<Figures, BudgetsError>
    /** Owners whose budget of that name has reservations of the UTC day of the instant `at` (Unix milliseconds). */
    readonly owners: (
      chainId: bigint,
      name: string,
      at: number
    ) => Effect.Effect<ReadonlyArray<AccountId | null>, BudgetsError>
    /** Remembers until `until` (Unix seconds) that the account received this unsigned op. Idempotent. */
    readonly handOut: (
      accountId: AccountId,
      chainId: bigint,
      userOpHash: Bytes32,
      until: number
    ) => Effect.Effect<void, BudgetsError>
    /** Whether the account received this op and the record has not expired. */
    readonly handedOut: (
      accountId: AccountId,
      chainId: bigint,
      userOpHash: Bytes32
    ) => Effect.Effect<boolean, BudgetsError>
  }
>()("castellan/Budgets") {}
