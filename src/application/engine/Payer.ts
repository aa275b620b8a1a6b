import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/evm/Address.js"
import * as Hex from "../../domain/evm/Hex.js"
import type { UserOperation } from "../../domain/op/UserOperation.js"
import type { Failure } from "../Failure.js"
import type { SignerError } from "../ports/Signers.js"
import type { ElementFailure } from "./Elements.js"

/** Who should pay for an op does not. */
export class PayerRefusal extends Data.TaggedError("PayerRefusal")<{ readonly failure: ElementFailure }> {}

/** An op of a request, by the index of the element that it carries. */
export interface Part {
  readonly index: number
  readonly op: UserOperation
}

/**
 * Who pays for the ops of a request, in the order in which it is asked: `draft` before an op is measured, `complete`
 * when its limits are final, then (for what is handed out) `handOut`, or `reserve`, the wallet's own signature, `seal`.
 */
export interface Payer {
  /** Null: each wallet pays for itself. Else the prefunds come out of this one's deposit, and wallets pay values only. */
  readonly paymaster: Address | null
  /** Bytes that it adds behind the wallet's own signature. */
  readonly tail: number
  /**
   * The op as it is measured: with paymasterAndData and, behind its dummy signature, `tail` bytes, of real length and
   * cost. One that has its paymasterAndData already stays as it is.
   */
  readonly draft: (op: UserOperation) => Effect.Effect<UserOperation, Failure>
  /** The op as it will be signed: its limits are final, its signature is not made. Changes paymasterAndData at most. */
  readonly complete: (op: UserOperation) => Effect.Effect<UserOperation, SignerError | PayerRefusal>
  /** Remembers a completed op that leaves unsigned, so that it is paid for when it comes back, the same to the last byte. */
  readonly handOut: (op: UserOperation, userOpHash: Hex.Bytes32) => Effect.Effect<void, Failure>
  /** Keeps the money that the ops may cost; the failures of those for which there is none. */
  readonly reserve: (ops: ReadonlyArray<Part>) => Effect.Effect<ReadonlyMap<number, ElementFailure>, Failure>
  /** Gives back what was kept for ops of which nothing has left the process. */
  readonly release: (ops: ReadonlyArray<Part>) => Effect.Effect<void>
  /** What comes behind the op's own signature. */
  readonly seal: (
    op: UserOperation,
    userOpHash: Hex.Bytes32
  ) => Effect.Effect<Hex.Hex, SignerError | PayerRefusal>
}

/** Each wallet pays for itself. */
export const wallet: Payer = {
  paymaster: null,
  tail: 0,
  draft: Effect.succeed,
  complete: Effect.succeed,
  handOut: () => Effect.void,
  reserve: () => Effect.succeed(new Map()),
  release: () => Effect.void,
  seal: () => Effect.succeed(Hex.empty)
}

/** What of an op's cost its wallet has to have: `prefund` and the value that its call sends, or the value alone. */
export const walletShare = (
  { paymaster }: Payer,
  { prefund, value }: { readonly prefund: bigint; readonly value: bigint }
): bigint => (paymaster === null ? prefund + value : value)
