import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import type { SignerError } from "../ports/Signers.js"
import type { ElementFailure } from "../request/Elements.js"
import type { Failure } from "../request/Failure.js"

/** Who should pay for an op does not. */
export class PayerRefusal extends Data.TaggedError("PayerRefusal")<{ readonly failure: ElementFailure }> {}

/** An op of a request, complete but for its signature, by the index of the element that it carries. */
export interface Part {
  readonly index: number
  readonly op: UserOperation
  readonly userOpHash: Hex.Bytes32
}

/**
 * Who pays for the ops of one request, in the order in which it is asked: `draft` before an op is measured and `complete`
 * when its limits are final; then `handOut` for what leaves unsigned, or `reserve`, the wallet's own signature and `seal`
 * for what is sent. `end` when the request is through.
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
  /**
   * The op as its bytes are priced before they are final: where a byte may still change, the dearest one. Of the same
   * length.
   */
  readonly priced: (op: UserOperation) => UserOperation
  /** The op as it will be signed: its limits are final, its signature is not made. Changes paymasterAndData at most. */
  readonly complete: (op: UserOperation) => Effect.Effect<UserOperation, PayerRefusal>
  /** Remembers a completed op that leaves unsigned, so that it is paid for when it comes back, the same to the last byte. */
  readonly handOut: (op: UserOperation, userOpHash: Hex.Bytes32) => Effect.Effect<void>
  /** Keeps the money that the ops may cost; the failures of those for which there is none. */
  readonly reserve: (ops: ReadonlyArray<Part>) => Effect.Effect<ReadonlyMap<number, ElementFailure>, Failure>
  /** Gives back what was kept for ops of which nothing has left the process. What was sealed may be spent, and stays kept. */
  readonly release: (ops: ReadonlyArray<Pick<Part, "op">>) => Effect.Effect<void>
  /** Nothing of the request is on its way any more. */
  readonly end: Effect.Effect<void>
  /**
   * What comes behind the op's own signature. From here on its money is kept until the chain has decided about it. A `Failure`
   * is one of the node that is asked.
   */
  readonly seal: (
    op: UserOperation,
    userOpHash: Hex.Bytes32
  ) => Effect.Effect<Hex.Hex, SignerError | PayerRefusal | Failure>
}

/** Each wallet pays for itself. */
export const wallet: Payer = {
  paymaster: null,
  tail: 0,
  draft: Effect.succeed,
  priced: (op) => op,
  complete: Effect.succeed,
  handOut: () => Effect.void,
  reserve: () => Effect.succeed(new Map()),
  release: () => Effect.void,
  end: Effect.void,
  seal: () => Effect.succeed(Hex.empty)
}

/** What of an op's cost its wallet has to have: `prefund` and the value that its call sends, or the value alone. */
export const walletShare = (
  { paymaster }: Pick<Payer, "paymaster">,
  { prefund, value }: { readonly prefund: bigint; readonly value: bigint }
): bigint => (paymaster === null ? prefund + value : value)
