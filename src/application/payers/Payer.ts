import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import type { Connection } from "../chain/Connection.js"
import type { ElementFailure } from "../failures/Elements.js"
import type { Failure } from "../failures/Failure.js"
import type { SignerError } from "../ports/Signers.js"
import type { AccountId } from "../ports/Tenants.js"

/** Who should pay for an op does not. `passes`: it may later. */
export class PayerRefusal extends Data.TaggedError("PayerRefusal")<{
  readonly failure: ElementFailure
  readonly passes?: boolean
}> {}

/** An element for which money is held. The hash of an op that comes as it is; null: it may change until it is signed. */
export interface Held {
  readonly requestId: string
  readonly index: number
  readonly given: Hex.Bytes32 | null
}

/** An element with its op, complete but for its signature. */
export interface Part extends Held {
  readonly op: UserOperation
}

/**
 * Names what is held for an element: whichever version of it is signed, at most one lands. Whoever brings the same op again
 * holds the same money for it.
 */
export const holdId = ({ given, index, requestId }: Held): string => given ?? `${requestId}/${index}`

/** The request that holds it by such a name; null: the name is of something else. */
export const requestOf = (id: string): string | null => /^(.+)\/[0-9]+$/.exec(id)?.[1] ?? null

/** How long money is held for what is not signed, milliseconds: what a dead process holds back. */
export const heldMillis = 600_000

/**
 * Who pays for ops, in the order in which it is asked: `draft` before an op is measured and `complete` when its limits are
 * final; then `handOut` for what leaves unsigned, or `reserve` before its request is accepted, the wallet's own signature
 * and `seal` for what is sent.
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
  /**
   * Why it does not pay for an op that comes as it is, whatever money there is, at this time (Unix seconds); null: nothing
   * against it.
   */
  readonly objection: (part: Part, now: number) => Effect.Effect<ElementFailure | null>
  /**
   * Holds the money that the ops may cost, in one call: for each of them in turn, null, or why there is none. Of an op for
   * which some is held already it is raised.
   */
  readonly reserve: (
    parts: ReadonlyArray<Part>
  ) => Effect.Effect<ReadonlyArray<ElementFailure | null>, Failure>
  /** Gives back what is held for what comes to nothing, or has landed. What was sealed may be spent, and stays held. */
  readonly release: (held: ReadonlyArray<Held>) => Effect.Effect<void>
  /**
   * What comes behind the op's own signature. From here on its money is held until the chain has decided about it. A `Failure`
   * is one of the node that is asked.
   */
  readonly seal: (
    part: Part,
    userOpHash: Hex.Bytes32
  ) => Effect.Effect<Hex.Hex, SignerError | PayerRefusal | Failure>
}

export interface Payers {
  /**
   * Who pays for the ops of an account: where no paymaster is named its wallets, and whom ops name that come as they are;
   * else the operator's own one, one of the profile's services, or any other, which is given no data. For the operator's
   * own one the connection is that to the operator's node.
   */
  readonly of: (
    accountId: AccountId,
    connection: Connection,
    terms: {
      readonly entryPoint: Address
      readonly version: Version
      readonly paymaster: Address | undefined
      /** The EOA that submits the transactions. */
      readonly submitter: Address
    }
  ) => Effect.Effect<Payer>
}

export const Payers: Context.Key<Payers, Payers> = Context.Service("castellan/Payers")

/** Each wallet pays for itself. */
export const wallet: Payer = {
  paymaster: null,
  tail: 0,
  draft: Effect.succeed,
  priced: (op) => op,
  complete: Effect.succeed,
  handOut: () => Effect.void,
  objection: () => Effect.succeed(null),
  reserve: (parts) => Effect.succeed(parts.map(() => null)),
  release: () => Effect.void,
  seal: () => Effect.succeed(Hex.empty)
}

/** What of an op's cost its wallet has to have: `prefund` and the value that its call sends, or the value alone. */
export const walletShare = (
  { paymaster }: Pick<Payer, "paymaster">,
  { prefund, value }: { readonly prefund: bigint; readonly value: bigint }
): bigint => (paymaster === null ? prefund + value : value)
