import * as Effect from "effect/Effect"
import * as BundledOps from "../../../domain/erc4337/BundledOps.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Ledger from "../../../domain/wallet/Ledger.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import * as Inclusions from "../../chain/Inclusions.js"
import * as WalletEpochs from "../../chain/WalletEpochs.js"
import { elementFailure } from "../../failures/Elements.js"
import { type BlockTag, type ChainClient, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import type { OpJournal } from "../../ports/journal/OpJournal.js"
import type { RecoveryJournal } from "../../ports/journal/RecoveryJournal.js"
import type { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import * as Epochs from "../../prepare/wallets/Epochs.js"
import type { FailureCause } from "./LaneState.js"
import * as Bundle from "./rules/Bundle.js"
import { asObstacle, type Obstacle, type SubmissionContext } from "./rules/Context.js"

/**
 * Looks up an op's nonce and wallet on the chain: by the op's hashes, and by nonce and call, before a used nonce counts against
 * it. An unbound op may land in any transaction, and a restored journal may lack versions.
 */

export interface Journals {
  readonly opJournal: Pick<OpJournal["Service"], "versions">
  readonly recoveryJournal: Pick<RecoveryJournal["Service"], "identifyAnew">
  readonly remoteOpJournal: Pick<RemoteOpJournal["Service"], "recordInclusions">
}

/** Calls of a wallet's op, without its links to other ops. */
const callsOf = (callData: Hex.Hex, ledger: Address | null): ReadonlyArray<WalletCalls.Call> =>
  WalletCalls.read(callData).filter(({ target }) => target !== ledger)

/** Whether both make the same calls; versions of an op may link to different nonces. */
export const isSameCall = (one: Hex.Hex, other: Hex.Hex, ledger: Address | null): boolean => {
  if (one === other) return true
  const [ours, theirs] = [callsOf(one, ledger), callsOf(other, ledger)]
  const [call] = ours
  return ours.length === 1 && theirs.length === 1 && call !== undefined && Ledger.makes(other, call, ledger)
}

const headOf = ({ block }: ChainClient) => Effect.map(block("latest"), (head) => head?.number ?? 0n)

type Inclusion = Inclusions.LandedOp & { readonly landedAs: Hex.Bytes32 }

/** The sequence of the op's nonce key after a block; null: the node does not return it. */
const sequenceAt = (
  { key, wallet }: Bundle.Held,
  { connection, entryPoint }: SubmissionContext,
  at: BlockTag
) =>
  Effect.map(
    connection.chain.call({ to: entryPoint, data: Nonce.getNonceCall(wallet, key) }, undefined, at),
    Nonce.ofAnswer
  )

/** Another version of the op that used its nonce; null: the op that used it makes another call. */
const versionOf = (
  op: Bundle.Held,
  { connection: { chain, profile }, entryPoint, version }: SubmissionContext,
  at: bigint
) =>
  Effect.gen(function* () {
    const { prepared } = op
    if (prepared === null || prepared.kind === "direct") return null
    const nonce = Nonce.make(op.key, op.sequence)
    const seen = yield* Inclusions.ofWallets(chain, entryPoint, [op.wallet], at, op.op.acceptedAt)
    for (const [userOpHash, outcome] of seen) {
      if (outcome.nonce !== nonce || outcome.sender !== op.wallet) continue
      const transaction = yield* chain.transaction(outcome.txHash)
      if (transaction === null)
        return yield* new ChainRpcError({
          reason: "unreachable",
          origin: chain.origin,
          message: "it does not show the transaction that has used an op's nonce"
        })
      const landed = BundledOps.read(version, transaction.data).find(
        (each) => UserOperation.hash(version, entryPoint, profile.chainId, each) === userOpHash
      )
      const isSame =
        landed !== undefined && isSameCall(prepared.unsigned.callData, landed.callData, profile.ledger)
      return isSame ? ({ ...outcome, landedAs: userOpHash } satisfies Inclusion) : null
    }
    return null
  })

/** `head`: the newest block that was seen. */
const ofUsedNonce = (
  { opJournal, recoveryJournal, remoteOpJournal }: Journals,
  op: Bundle.Held,
  context: SubmissionContext,
  { head, next }: { readonly head: bigint; readonly next: bigint },
  mayBeLost: boolean
): Effect.Effect<FailureCause, ChainRpcError | JournalError> =>
  Effect.gen(function* () {
    const { access, connection, entryPoint } = context
    const { chain, profile } = connection
    const own = op.userOpHash
    const versions = (yield* opJournal.versions([op.opId])).map(({ userOpHash }) => userOpHash)
    const hashes = own === null ? versions : [own, ...versions]
    const byHash = yield* Inclusions.find(chain, entryPoint, hashes, head, op.op.acceptedAt)
    const [known] = [...byHash].map(([landedAs, found]): Inclusion => ({ ...found, landedAs }))
    // Another op may make the same call: it counts as this op only if the journal may have lost versions.
    const found = known ?? (mayBeLost ? yield* versionOf(op, context, head) : null)
    if (found !== null) {
      const { blockNumber, landedAs, revertData, success, txHash } = found
      const confirmations = Inclusions.confirmationsOf(blockNumber, head)
      const final = confirmations >= profile.settledDepth
      if (known === undefined)
        yield* Effect.annotateLogs(
          Effect.logWarning("op adopted: it is on the chain in an unknown version"),
          { requestId: op.requestId, txHash }
        )
      const { authority } = op.op.space
      // Its hash depends on a signature that the journal has lost.
      if (own === null)
        yield* recoveryJournal.identifyAnew({ chainId: profile.chainId, signer: authority }, op.requestId, [
          { index: op.index, userOpHash: landedAs }
        ])
      const userOpHash = own ?? landedAs
      const inclusion = {
        userOpHash,
        landedAs,
        blockNumber,
        confirmations,
        final,
        revertData,
        success,
        txHash
      }
      yield* remoteOpJournal.recordInclusions(authority, profile.chainId, [inclusion], access)
      return { _tag: "landed" }
    }
    const settled = yield* sequenceAt(op, context, Inclusions.settledTo(head, profile))
    return settled !== null && settled > op.sequence
      ? { _tag: "dead", why: elementFailure("invalid_nonce") }
      : { _tag: "sequence", sequence: next }
  })

/** Whether the time in which a version of the op could land had passed at this block. */
const isOver = ({ prepared }: Bundle.Held, { connection: { chain } }: SubmissionContext, at: bigint) => {
  const validUntil = prepared?.window?.validUntil ?? 0
  return validUntil === 0
    ? Effect.succeed(false)
    : Effect.map(chain.block(at), (block) => block !== null && block.timestamp > validUntil)
}

/** Checks whether the wallet's configuration differs from the one in the op's nonce. `at`: settled block. */
const ofConfiguration = (
  op: Bundle.Held,
  { connection: { chain } }: SubmissionContext,
  { at, head }: { readonly at: bigint; readonly head: bigint }
): Effect.Effect<FailureCause, ChainRpcError> =>
  Effect.gen(function* () {
    const named = Nonce.epochOf(Nonce.make(op.key, op.sequence))
    const epoch = yield* WalletEpochs.at(chain, op.wallet, head)
    if (epoch === null || epoch === named) return { _tag: "nothing" }
    // An unexposed op moves to the current configuration immediately.
    const dead: FailureCause = { _tag: "dead", why: Epochs.changeFailure(named, epoch) }
    if (!op.exposed) return dead
    const settled = yield* WalletEpochs.at(chain, op.wallet, at)
    return settled !== null && settled !== named ? dead : { _tag: "waits" }
  })

export const make =
  (journals: Journals) =>
  (op: Bundle.Held, context: SubmissionContext, mayBeLost: boolean): Effect.Effect<FailureCause, Obstacle> =>
    Effect.gen(function* (): Effect.fn.Return<FailureCause, ChainRpcError | JournalError> {
      const { chain, profile } = context.connection
      const [next, head, code] = yield* Effect.all(
        [
          sequenceAt(op, context, "latest"),
          headOf(chain),
          op.creates ? chain.code(op.wallet) : Effect.succeed(Hex.empty)
        ],
        { concurrency: "unbounded" }
      )
      if (next === null)
        return yield* new ChainRpcError({
          reason: "notAnRpc",
          origin: chain.origin,
          message: "it does not return the wallet's nonce"
        })
      if (next > op.sequence) return yield* ofUsedNonce(journals, op, context, { head, next }, mayBeLost)
      const at = Inclusions.settledTo(head, profile)
      /** A node that lags may have shown the nonce unused: the block that makes the op dead decides. */
      const unlessUsed = (dead: FailureCause) =>
        Effect.flatMap(sequenceAt(op, context, at), (settled) =>
          settled !== null && settled > op.sequence
            ? ofUsedNonce(journals, op, context, { head, next: settled }, mayBeLost)
            : Effect.succeed(dead)
        )
      // An op with the next nonce can be signed again, unless a third party may land an earlier version.
      const needsAnother = next < op.sequence ? op.exposed : Bundle.mayLand(op)
      if (needsAnother && (yield* isOver(op, context, at)))
        return yield* unlessUsed({ _tag: "dead", why: elementFailure("window_passed") })
      if (next < op.sequence) return { _tag: "sequence", sequence: next }
      if (op.creates) return code === Hex.empty ? { _tag: "nothing" } : { _tag: "stale" }
      const found = yield* ofConfiguration(op, context, { at, head })
      return op.exposed && found._tag === "dead" ? yield* unlessUsed(found) : found
    }).pipe(Effect.mapError(asObstacle))
