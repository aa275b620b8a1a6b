import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import * as Words from "../../domain/primitives/Words.js"
import { type Connection, refusal } from "../chain/Connection.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import { type Failure, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import type { Lack, Reservation } from "../ports/Budgets.js"

/** A paymaster's deposit at an EntryPoint, shared by the ops of several requests. */
export interface Deposit {
  readonly entryPoint: Address
  readonly paymaster: Address
}

const balanceOf = Keccak.selector("balanceOf(address)")

/** The deposit on the node now, wei. */
export const read = (
  { chain, trust }: Connection,
  { entryPoint, paymaster }: Deposit
): Effect.Effect<bigint, Failure> =>
  Effect.gen(function* () {
    const data = Words.call(balanceOf, [Words.address(paymaster)])
    const answer = yield* Effect.mapError(chain.call({ to: entryPoint, data }), refusal(trust))
    if (!answer.success || Hex.size(answer.data) !== 32)
      return yield* unprocessable("node_refused", [
        { path: "settings.entryPoint", message: Reasons.text("nodeWithoutDeposit") }
      ])
    return BigInt(answer.data)
  })

export const budget = ({ entryPoint, paymaster }: Deposit): string => `deposit:${entryPoint}:${paymaster}`

export const entry = (
  deposit: Deposit,
  available: bigint,
  op: Pick<Reservation, "accountId" | "chainId" | "id" | "wei" | "expiresAt">
): Reservation => ({ ...op, name: budget(deposit), limit: available, maxOpen: null, window: "open" })

/** The failure of an op that the deposit cannot cover next to other reservations. */
export const failure = ({ paymaster }: Deposit, wei: bigint, { available }: Lack): ElementFailure =>
  elementFailure(
    "insufficient_funds",
    Reasons.text("depositReserved", { paymaster, missing: wei - available }),
    {
      paymaster,
      required: wei.toString(),
      available: available.toString(),
      missing: (wei - available).toString()
    }
  )
