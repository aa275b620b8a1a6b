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

/** The payer of an op refuses. `passes`: it may pay later. */
export class PayerRefusal extends Data.TaggedError("PayerRefusal")<{
  readonly failure: ElementFailure
  readonly passes?: boolean
}> {}

/** An element with held money. `given`: an externally built op's hash; null: the op may change until signing. */
export interface Held {
  readonly requestId: string
  readonly index: number
  readonly given: Hex.Bytes32 | null
}

/** An element with its op, complete except for its signature. */
export interface Part extends Held {
  readonly op: UserOperation
}

/**
 * Id of the hold for an element. At most one of its signed versions lands, so they share it. An externally built op
 * that comes again holds the same money.
 */
export const holdId = ({ given, index, requestId }: Held): string => given ?? `${requestId}/${index}`

/** The request of such an id; null: another kind of id. */
export const requestOf = (id: string): string | null => /^(.+)\/[0-9]+$/.exec(id)?.[1] ?? null

/** Life of a hold for unsigned work, milliseconds: it bounds the money that a dead process blocks. */
export const heldMillis = 600_000

/**
 * Pays for ops. Calls in order: `draft` before an op is measured, and `complete` when its limits are final. Then
 * `handOut` for an op that leaves unsigned; or `reserve` before its request is accepted, and `seal` after the wallet's
 * own signature, for an op that is sent.
 */
export interface Payer {
  /** Null: each wallet pays for itself. Otherwise its deposit pays prefunds, and wallets only values. */
  readonly paymaster: Address | null
  /** Bytes that it appends to the wallet's own signature. */
  readonly tail: number
  /**
   * The op for measurement: with paymasterAndData and, after its dummy signature, `tail` bytes, of real length and
   * cost. An existing paymasterAndData stays unchanged.
   */
  readonly draft: (op: UserOperation) => Effect.Effect<UserOperation, Failure>
  /**
   * The op for pricing before its bytes are final: bytes that may still change have the most expensive value. Of the
   * same length.
   */
  readonly priced: (op: UserOperation) => UserOperation
  /** The op for signing: its limits are final, its signature is not made. Changes at most paymasterAndData. */
  readonly complete: (op: UserOperation) => Effect.Effect<UserOperation, PayerRefusal>
  /** Remembers a completed op that leaves unsigned, so that it is paid for when exactly this op comes back. */
  readonly handOut: (op: UserOperation, userOpHash: Hex.Bytes32) => Effect.Effect<void>
  /** Its objection to an externally built op, apart from money, at this time (Unix seconds); null: none. */
  readonly objection: (part: Part, now: number) => Effect.Effect<ElementFailure | null>
  /** Holds the ops' possible costs, in one call; returns null or the failure for each. An existing hold is raised. */
  readonly reserve: (
    parts: ReadonlyArray<Part>
  ) => Effect.Effect<ReadonlyArray<ElementFailure | null>, Failure>
  /** Releases the holds of failed or landed elements. Sealed ops may still be spent: their holds stay. */
  readonly release: (held: ReadonlyArray<Held>) => Effect.Effect<void>
  /**
   * The bytes after the op's own signature. From here on its money is held until the chain has decided about it. A
   * `Failure` is the queried node's.
   */
  readonly seal: (
    part: Part,
    userOpHash: Hex.Bytes32
  ) => Effect.Effect<Hex.Hex, SignerError | PayerRefusal | Failure>
}

export interface Payers {
  /**
   * The payer for an account's ops. Without a paymaster: its wallets, or the paymasters that externally built ops name.
   * Otherwise the operator's own paymaster, one of the profile's services, or any other paymaster, which gets no data.
   * For the operator's own paymaster, the connection must use the operator's node.
   */
  readonly of: (
    accountId: AccountId,
    connection: Connection,
    terms: {
      readonly entryPoint: Address
      readonly version: Version
      readonly paymaster: Address | undefined
      /** The request's own members for the paymaster's service. */
      readonly paymasterContext?: Readonly<Record<string, unknown>> | undefined
      readonly submitter: Address
    }
  ) => Effect.Effect<Payer>
}

export const Payers: Context.Key<Payers, Payers> = Context.Service("castellan/Payers")

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

/** The wallet's share of an op's cost: `prefund` and the value that its call sends, or only the value. */
export const walletShare = (
  { paymaster }: Pick<Payer, "paymaster">,
  { prefund, value }: { readonly prefund: bigint; readonly value: bigint }
): bigint => (paymaster === null ? prefund + value : value)
