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

/** What the chain and the bundler tell of ops at remote bundlers. */

/** An op that somebody else's bundler was given, or that somebody else landed. */
export interface Held {
  readonly chain: ChainClient
  readonly profile: NetworkProfile
  /** Null: the profile names none any more, and the op can only be waited for. */
  readonly bundler: BundlerClient | null
  readonly submission: RemoteSubmission
  /** Null: nobody is to be given it; its landing was found, and is watched. */
  readonly offer: Offer | null
  /** Last second at which it may land, by the chain's clock; 0: no bound. */
  readonly validUntil: number
}

/** What is remembered of one op until its inclusion is at settled depth, or it can land no more. */
export interface Entry extends Held {
  /** These change when the operator replaces them. */
  chain: ChainClient
  profile: NetworkProfile
  bundler: BundlerClient | null
  /** Another version of it was on the chain, perhaps, and is no more: it is watched under its own hash again. */
  submission: RemoteSubmission
  /** First block that is still to be looked at. */
  next: bigint
  /** The transaction in which it landed, as the bundler says. */
  hint: Hex.Bytes32 | null
  /** Where it landed, once that is recorded. The block is null until it was looked at in this life of the process. */
  landed: {
    readonly txHash: Hex.Bytes32
    readonly block: Pick<Inclusions.Inclusion, "blockNumber" | "blockHash"> | null
  } | null
  /** Head at which its inclusion was last looked at. */
  lookedAt: bigint
  /** Since when a recorded inclusion is not to be seen any more, by `MonotonicTime`; null: it was seen at the last look. */
  missedSince: number | null
  /** When it was given to the bundler, by `MonotonicTime`; infinite: not yet, in another life, or it was seen on the chain. */
  givenAt: number
  /** When the bundler is asked for it again, milliseconds, and how long after that once more. */
  offerAt: number
  offerDelay: number
  /** Something with it is under way in a fiber of its own. */
  busy: boolean
  /** The bundler has it, or had it once. */
  isTaken: boolean
  /** The journal was told so. */
  isTold: boolean
  /** Its element has come to nothing, as the bundler said: it is offered no more. */
  isRefused: boolean
}

/** Last second at which the op may land, as its signature says; 0: no bound, or not to be told. */
export const validUntilOf = (version: Version, op: UserOperation.UserOperation): number => {
  const own = Conditions.decodeSignature(op.signature)
  if (Result.isSuccess(own)) return own.success.conditions.validUntil
  // A sponsor's signature stands behind the wallet's, and has a bound of its own.
  const bounds = Result.gen(function* () {
    const { signature } = yield* Sponsorship.split(op.signature)
    const { conditions } = yield* Conditions.decodeSignature(signature)
    const terms = yield* Sponsorship.read(version, op.paymasterAndData)
    return [conditions.validUntil, terms.validUntil]
  })
  const least = Math.min(...Result.getOrElse(bounds, () => []).filter((bound) => bound !== 0))
  return Number.isFinite(least) ? least : 0
}

/** Most blocks of one look, and most ops. */
const maxBlocks = 1_024n
export const maxOps = 128
/** Blocks that are looked at again although they are at settled depth: nodes behind a balancer lag. */
const lagBlocks = 8n

export const laneOf = ({ submission: { space } }: Pick<Held, "submission">): Lane => ({
  chainId: space.chainId,
  signer: space.authority
})

export const deepEnough = (blockNumber: bigint, depth: number, head: Block) =>
  blockNumber + BigInt(depth) - 1n <= head.number

/** The newest block that is at settled depth. */
const settledBlock = ({ profile }: Held, head: Block) => Inclusions.settledTo(head.number, profile)

/** What the blocks that were not looked at yet say of these ops of one EntryPoint; true: all of them were. */
export const look = (
  chain: ChainClient,
  entryPoint: RemoteSubmission["space"]["entryPoint"],
  entries: ReadonlyArray<Entry>,
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
 * Whether the op can land no more: its time is over, another op has its nonce, its wallet has another configuration than
 * its nonce names, or the wallet that it deploys exists, for good.
 */
export const isPast = (entry: Entry, head: Block): Effect.Effect<boolean, ChainRpcError> =>
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
    const data = Nonce.question(wallet, Nonce.keyOf(nonce))
    const next = Nonce.answered(yield* chain.call({ to: entryPoint, data }, undefined, at))
    if (next !== null && next > Nonce.sequenceOf(nonce)) return true
    const epoch = yield* WalletEpochs.at(chain, wallet, at)
    return epoch !== null && (initCode !== Hex.empty || epoch !== Nonce.epochOf(nonce))
  })

/**
 * The inclusion of which the bundler told, as the chain has it now: for nodes that give no logs. What a reorganisation
 * has taken back is none.
 */
export const hinted = ({
  chain,
  hint,
  submission: { space, userOpHash }
}: Pick<Entry, "chain" | "hint" | "submission">): Effect.Effect<Inclusions.Inclusion | null> =>
  hint === null
    ? Effect.succeed(null)
    : Effect.map(
        Effect.orElseSucceed(
          Effect.flatMap(chain.receipt(hint, { emitters: new Set([space.entryPoint]) }), (receipt) =>
            receipt === null ? Effect.succeed(null) : Inclusions.sealed(chain, receipt)
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
 * What the chain says of a recorded inclusion, by the same rules as of a transaction: what is only not to be seen may be
 * unknown to a node that lags, and has left the chain after a while; another block in its place is proof.
 */
export const confirm = (
  { chain, missedSince, profile, submission }: Entry,
  { block: known, txHash }: NonNullable<Entry["landed"]>,
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

/** Asks the bundler for the op, and gives it the op again when it has none. */
export const offer = (entry: Entry, bundler: BundlerClient, head: Block) =>
  Effect.gen(function* () {
    const { submission } = entry
    const found = yield* Effect.orElseSucceed(bundler.find(submission.userOpHash), () => null)
    entry.hint = found?.txHash ?? null
    if (found !== null) {
      entry.isTaken = true
      return
    }
    if (isOver(entry, head) || entry.offer === null || entry.isRefused) return
    yield* bundler.send(entry.offer, submission.userOpHash)
    entry.isTaken = true
  })

/**
 * Where the op landed, of all blocks since it was handed over and some before, when it may have been so for the first time:
 * what was overlooked would be done twice. What made it past is at settled depth, which the node has to have.
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
