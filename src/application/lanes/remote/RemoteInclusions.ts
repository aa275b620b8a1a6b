import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as Sponsorship from "../../../domain/erc4337/paymaster/Sponsorship.js"
import type * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import * as Inclusions from "../../chain/Inclusions.js"
import * as WalletEpochs from "../../chain/WalletEpochs.js"
import type { BundlerClient, Offer } from "../../ports/chain/BundlerRpc.js"
import type { Block, ChainClient, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { RemoteSubmission } from "../../ports/journal/RemoteSubmissions.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import * as TransactionState from "../monitor/TransactionState.js"

/** Reads inclusions of ops at remote bundlers from the chain and the bundler. */

export interface Held {
  readonly chain: ChainClient
  readonly profile: NetworkProfile
  /** Null: the profile no longer names a bundler, and the op can only be awaited. */
  readonly bundler: BundlerClient | null
  readonly submission: RemoteSubmission
  /** Null: the op is offered to no bundler; its inclusion was found and is watched. */
  readonly offer: Offer | null
  /** Last second at which it may land, by the chain's clock; 0: no bound. */
  readonly validUntil: number
}

/** State of one op until its inclusion is at settled depth, or it can no longer land. */
export interface AwaitedOp extends Held {
  /** These change when the operator replaces them. */
  chain: ChainClient
  profile: NetworkProfile
  bundler: BundlerClient | null
  /** Watched under its own hash again after another version left the chain. */
  submission: RemoteSubmission
  next: bigint
  /** Transaction in which it landed, according to the bundler. */
  hint: Hex.Bytes32 | null
  /** Recorded inclusion. The block is null until this process has read it. */
  landed: {
    readonly txHash: Hex.Bytes32
    readonly block: Pick<Inclusions.Inclusion, "blockNumber" | "blockHash"> | null
  } | null
  /** Head of the last inclusion check. */
  checkedBlock: bigint
  /** Time at which a recorded inclusion was first missed, by `MonotonicTime`; null: the last poll showed it. */
  missedSince: number | null
  /**
   * Time at which this process gave it to the bundler, by `MonotonicTime`; infinite: not yet, by an earlier process, or already
   * seen on the chain.
   */
  givenAt: number
  /** Time of the next query at the bundler, and delay of the query after it, milliseconds. */
  offerAt: number
  offerDelay: number
  busy: boolean
  /** The bundler has or had it. */
  isAccepted: boolean
  /** The journal knows that the bundler took it. */
  isRecorded: boolean
  /** The bundler refused its element: it is not offered again. */
  isRefused: boolean
}

/** Last second at which the op may land, according to its signature; 0: no bound, or unreadable. */
export const validUntilOf = (version: Version, op: UserOperation.UserOperation): number => {
  const own = Conditions.decodeSignature(op.signature)
  if (Result.isSuccess(own)) return own.success.conditions.validUntil
  // A sponsor's signature follows the wallet's, with a separate bound.
  const bounds = Result.gen(function* () {
    const { signature } = yield* Sponsorship.split(op.signature)
    const { conditions } = yield* Conditions.decodeSignature(signature)
    const terms = yield* Sponsorship.read(version, op.paymasterAndData)
    return [conditions.validUntil, terms.validUntil]
  })
  const least = Math.min(...Result.getOrElse(bounds, () => []).filter((bound) => bound !== 0))
  return Number.isFinite(least) ? least : 0
}

/** Maximum blocks and ops per read. */
const maxBlocks = 1_024n
export const maxOps = 128
/** Blocks read again although they are at settled depth: nodes behind a balancer lag. */
const lagBlocks = 8n

export const laneOf = ({ submission: { space } }: Pick<Held, "submission">): Lane => ({
  chainId: space.chainId,
  signer: space.authority
})

export const deepEnough = (blockNumber: bigint, depth: number, head: Block) =>
  blockNumber + BigInt(depth) - 1n <= head.number

/** Newest block at settled depth. */
const settledBlock = ({ profile }: Held, head: Block) => Inclusions.settledTo(head.number, profile)

/** Reads inclusions of these ops of one EntryPoint from blocks not yet read; `complete`: up to the head. */
export const find = (
  chain: ChainClient,
  entryPoint: RemoteSubmission["space"]["entryPoint"],
  entries: ReadonlyArray<AwaitedOp>,
  head: Block
) =>
  Effect.gen(function* () {
    const from = entries.reduce((least, { next }) => BigInts.min(least, next), head.number)
    const to = BigInts.min(head.number, from + maxBlocks - 1n)
    const hashes = entries.map(({ submission }) => submission.userOpHash)
    const inclusions = yield* Inclusions.within(chain, entryPoint, hashes, { from, to })
    for (const entry of entries) {
      const bound = BigInts.min(to + 1n, settledBlock(entry, head) - lagBlocks)
      entry.next = BigInts.max(entry.next, bound)
    }
    return { inclusions, complete: to === head.number }
  })

export const isOver = ({ validUntil }: Held, head: Block) => validUntil !== 0 && head.timestamp > validUntil

/**
 * Whether the op can never land, at settled depth: its time is over, another op used its nonce, its wallet's configuration
 * differs from its nonce's, or the wallet that it deploys exists.
 */
export const isPast = (entry: AwaitedOp, head: Block): Effect.Effect<boolean, ChainRpcError> =>
  Effect.gen(function* () {
    const { chain, submission, offer, validUntil } = entry
    const at = settledBlock(entry, head)
    if (isOver(entry, head)) {
      const settled = at === head.number ? head : yield* chain.block(at)
      if (settled !== null && settled.timestamp > validUntil) return true
    }
    if (offer === null) return false
    const { entryPoint, wallet } = submission.space
    const { initCode, nonce } = offer.op
    const data = Nonce.getNonceCall(wallet, Nonce.keyOf(nonce))
    const next = Nonce.ofAnswer(yield* chain.call({ to: entryPoint, data }, undefined, at))
    if (next !== null && next > Nonce.sequenceOf(nonce)) return true
    const epoch = yield* WalletEpochs.at(chain, wallet, at)
    return epoch !== null && (initCode !== Hex.empty || epoch !== Nonce.epochOf(nonce))
  })

/**
 * Inclusion that the bundler reported, read again from the chain: for nodes without logs. An inclusion that a reorganisation
 * undid does not count.
 */
export const ofHint = ({
  chain,
  hint,
  submission: { space, userOpHash }
}: Pick<AwaitedOp, "chain" | "hint" | "submission">): Effect.Effect<Inclusions.Inclusion | null> =>
  hint === null
    ? Effect.succeed(null)
    : Effect.map(
        Effect.orElseSucceed(
          Effect.flatMap(chain.receipt(hint, { emitters: new Set([space.entryPoint]) }), (receipt) =>
            receipt === null ? Effect.succeed(null) : Inclusions.seal(chain, receipt)
          ),
          () => null
        ),
        (receipt) => {
          if (receipt === null) return null
          const outcome = Inclusions.inReceipt(space.entryPoint, receipt, [userOpHash]).get(userOpHash)
          const { blockHash, blockNumber } = receipt
          return outcome === undefined ? null : { ...outcome, blockHash, blockNumber }
        }
      )

/**
 * State of a recorded inclusion, by the same rules as a transaction: an unseen inclusion may be unknown to a lagging node, and
 * has left the chain after a while; another block at its number is proof.
 */
export const confirm = (
  { chain, missedSince, profile, submission }: AwaitedOp,
  { block: known, txHash }: NonNullable<AwaitedOp["landed"]>,
  head: Block
) =>
  Effect.gen(function* () {
    const { landedAs, space } = submission
    const receipt = yield* chain.receipt(txHash, { emitters: new Set([space.entryPoint]) })
    const isThere = receipt !== null && Inclusions.inReceipt(space.entryPoint, receipt, [landedAs]).size > 0
    const shown = isThere ? receipt : null
    const before = known ?? shown
    const now = yield* MonotonicTime.millis
    const state: TransactionState.State = {
      _tag: "mined",
      txHash,
      blockHash: before?.blockHash ?? txHash,
      missedSince
    }
    const depthOf = (blockNumber: bigint) => TransactionState.depthOf(blockNumber, head, profile)
    const eventOf = Effect.gen(function* () {
      if (shown !== null) return { _tag: "shown", receipt: shown, depth: depthOf(shown.blockNumber) } as const
      const there = before === null || missedSince === null ? null : yield* chain.block(before.blockNumber)
      if (before === null || there === null) return { _tag: "unseen" } as const
      return there.hash === before.blockHash
        ? ({ _tag: "blockKept", depth: depthOf(before.blockNumber) } as const)
        : ({ _tag: "blockReplaced" } as const)
    })
    const event: TransactionState.Event = yield* eventOf
    return { step: TransactionState.step(state, event, now), block: before }
  })

/** Queries the bundler for the op, and offers the op again if the bundler lacks it. */
export const offer = (entry: AwaitedOp, bundler: BundlerClient, head: Block) =>
  Effect.gen(function* () {
    const { submission } = entry
    const found = yield* Effect.orElseSucceed(bundler.find(submission.userOpHash), () => null)
    entry.hint = found?.txHash ?? null
    if (found !== null) {
      entry.isAccepted = true
      return
    }
    if (isOver(entry, head) || entry.offer === null || entry.isRefused) return
    yield* bundler.send(entry.offer, submission.userOpHash)
    entry.isAccepted = true
  })

/**
 * Searches for the op's inclusion in all blocks since its hand-over and some before: an overlooked op would be executed twice.
 * The event that ended the op is at settled depth, so the node must have blocks up to there.
 */
export const anywhere = (held: Held, head: Block) =>
  Effect.gen(function* () {
    const { chain, submission } = held
    const known = settledBlock(held, head)
    for (
      let from = BigInts.max(0n, submission.since - maxBlocks + 1n);
      from <= head.number;
      from += maxBlocks
    ) {
      const to = BigInts.min(head.number, from + maxBlocks - 1n)
      const hashes = [submission.userOpHash]
      const found = yield* Inclusions.within(
        chain,
        submission.space.entryPoint,
        hashes,
        { from, to },
        { known }
      )
      const inclusion = found.get(submission.userOpHash)
      if (inclusion !== undefined) return inclusion
    }
    return null
  })
