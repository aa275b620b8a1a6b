import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { AccountId } from "./Tenants.js"

/** The store failed; nothing of the call is durable. */
export class BudgetsError extends Data.TaggedError("BudgetsError")<{ readonly message: string }> {}

/** Money on one chain that is bounded. */
export interface Budget {
  /** Whose it is; null: the operator's, whichever account uses it. */
  readonly accountId: AccountId | null
  readonly chainId: bigint
  readonly name: string
}

export interface Reservation extends Budget {
  /** What it is for, unique on the chain: budgets that hold money for the same thing know it by the same id. */
  readonly id: string
  /** Most that it may cost. */
  readonly wei: bigint
  /**
   * What may be held at most. Of a daily budget: with what was booked in the same UTC day. Of another one: a reading that
   * what has been spent has lowered already, so that what is booked does not count. Null: no bound.
   */
  readonly limit: bigint | null
  /** Most reservations of the budget that are open, landed ones aside; null: no bound. */
  readonly maxOpen: number | null
  readonly daily: boolean
  /** Unix milliseconds until which it is held when it is not bound by then. */
  readonly expiresAt: number
}

/**
 * Why nothing was reserved: `limit`, of which `available` wei are left; `maxOpen`; or `ended`: what is of that id has cost
 * something, and is settled.
 */
export interface Lack {
  readonly budget: string
  readonly reason: "limit" | "maxOpen" | "ended"
  readonly available: bigint
}

/** A reservation that is not settled. */
export interface Hold extends Budget {
  readonly id: string
  readonly wei: bigint
  readonly bound: boolean
  /** What it has cost as far as the chain says for now; null: nothing known. */
  readonly landed: bigint | null
  readonly expiresAt: number
  /** See `bind`, oldest first. */
  readonly notes: ReadonlyArray<string>
}

/** What stands against a budget, wei. */
export interface Figures {
  /** Held for what is open: real costs of what has landed, highest ones of the rest. */
  readonly held: bigint
  /** Settled. */
  readonly booked: bigint
}

/** The UTC day of an instant (Unix milliseconds), counted from 1970-01-01. */
export const dayOf = (millis: number): number => Math.floor(millis / 86_400_000)

/**
 * Bounded money: what the operator pays or risks for accounts, and deposits that several requests draw on. Each method
 * is one transaction, and no two processes together hold more than a limit. A reservation counts for the UTC day in
 * which it was made, however it ends.
 */
export class Budgets extends Context.Service<
  Budgets,
  {
    /**
     * Holds all entries of a group (null), or none of them: group by group, in their order, in one call. An open reservation
     * of the same budget and id is raised to the higher sum, lasts as long as the later one, and stays of its day.
     */
    readonly reserve: (
      groups: ReadonlyArray<ReadonlyArray<Reservation>>
    ) => Effect.Effect<ReadonlyArray<Lack | null>, BudgetsError>
    /**
     * From here on it is held until it is settled. `note`: what its keeper needs to find out how it ends; those of earlier
     * calls stay. False, and nothing is bound: nothing of that id is held, or less than that.
     */
    readonly bind: (
      hold: Pick<Reservation, "chainId" | "id" | "wei">,
      note: string
    ) => Effect.Effect<boolean, BudgetsError>
    /** Gives back what is not bound. Unknown ids are ignored. */
    readonly release: (chainId: bigint, ids: ReadonlyArray<string>) => Effect.Effect<void, BudgetsError>
    /**
     * Notes what it has cost, as long as the chain may undo that; null: it was undone. Landed sums free the rest. Ignored
     * for ids that are not held.
     */
    readonly land: (chainId: bigint, id: string, wei: bigint | null) => Effect.Effect<void, BudgetsError>
    /**
     * Its end: books what it has cost, 0 for nothing; null: what it landed at. The first one counts; ids that are not
     * held are ignored.
     */
    readonly settle: (chainId: bigint, id: string, wei: bigint | null) => Effect.Effect<void, BudgetsError>
    /** Everything of the chain that is held, in the order of reservation. */
    readonly open: (chainId: bigint) => Effect.Effect<ReadonlyArray<Hold>, BudgetsError>
    /** Of the UTC day in which that instant (Unix milliseconds) lies. */
    readonly figures: (budget: Budget, at: number) => Effect.Effect<Figures, BudgetsError>
    /**
     * Remembers until that Unix second that the account was handed out an op, unsigned. The same again changes nothing.
     */
    readonly handOut: (
      accountId: AccountId,
      chainId: bigint,
      userOpHash: Bytes32,
      until: number
    ) => Effect.Effect<void, BudgetsError>
    /** Whether the account was handed out that very op, and it is remembered still. */
    readonly handedOut: (
      accountId: AccountId,
      chainId: bigint,
      userOpHash: Bytes32
    ) => Effect.Effect<boolean, BudgetsError>
  }
>()("castellan/Budgets") {}
