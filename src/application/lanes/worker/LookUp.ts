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
import { type ChainClient, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import type { OpJournal } from "../../ports/journal/OpJournal.js"
import type { RecoveryJournal } from "../../ports/journal/RecoveryJournal.js"
import type { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import * as Epochs from "../../prepare/wallets/Epochs.js"
import type { Found } from "./LaneState.js"
import * as Bundle from "./rules/Bundle.js"
import { asObstacle, type Obstacle, type OpContext } from "./rules/Context.js"

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

type Inclusion = Inclusions.Found & { readonly landedAs: Hex.Bytes32 }

/** Another version of the op that used its nonce; null: the op that used it makes another call. */
const versionOf = (
  op: Bundle.Held,
  { connection: { chain, profile }, entryPoint, version }: OpContext,
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

const ofUsedNonce = (
  { opJournal, recoveryJournal, remoteOpJournal }: Journals,
  op: Bundle.Held,
  context: OpContext,
  next: bigint,
  mayBeLost: boolean
): Effect.Effect<Found, ChainRpcError | JournalError> =>
  Effect.gen(function* () {
    const { access, connection, entryPoint } = context
    const { chain, profile } = connection
    const own = op.userOpHash
    const versions = (yield* opJournal.versions([op.opId])).map(({ userOpHash }) => userOpHash)
    const hashes = own === null ? versions : [own, ...versions]
    const at = yield* headOf(chain)
    const byHash = yield* Inclusions.find(chain, entryPoint, hashes, at, op.op.acceptedAt)
    const [known] = [...byHash].map(([landedAs, found]): Inclusion => ({ ...found, landedAs }))
    // Another op may make the same call: it counts as this op only if the journal may have lost versions.
    const found = known ?? (mayBeLost ? yield* versionOf(op, context, at) : null)
    if (found !== null) {
      const { blockNumber, landedAs, revertData, success, txHash } = found
      const confirmations = Inclusions.confirmationsOf(blockNumber, at)
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
    const question = { to: entryPoint, data: Nonce.question(op.wallet, op.key) }
    const settled = Nonce.answered(yield* chain.call(question, undefined, Inclusions.settledTo(at, profile)))
    return settled !== null && settled > op.sequence
      ? { _tag: "dead", why: elementFailure("invalid_nonce") }
      : { _tag: "sequence", sequence: next }
  })

/** Whether, at settled depth, the time has passed in which a version of the op could land. */
const isOverForGood = ({ prepared }: Bundle.Held, { connection: { chain, profile } }: OpContext) =>
  Effect.gen(function* () {
    const validUntil = prepared?.window?.validUntil ?? 0
    if (validUntil === 0) return false
    const settled = yield* chain.block(Inclusions.settledTo(yield* headOf(chain), profile))
    return settled !== null && settled.timestamp > validUntil
  })

/** Checks whether the wallet's configuration differs from the one in the op's nonce. */
const ofConfiguration = (
  op: Bundle.Held,
  { connection: { chain, profile } }: OpContext
): Effect.Effect<Found, ChainRpcError> =>
  Effect.gen(function* () {
    const head = yield* headOf(chain)
    const named = Nonce.epochOf(Nonce.make(op.key, op.sequence))
    const epoch = yield* WalletEpochs.at(chain, op.wallet, head)
    if (epoch === null || epoch === named) return { _tag: "nothing" }
    // An unexposed op moves to the current configuration immediately.
    const dead: Found = { _tag: "dead", why: Epochs.changed(named, epoch) }
    if (!op.exposed) return dead
    const settled = yield* WalletEpochs.at(chain, op.wallet, Inclusions.settledTo(head, profile))
    return settled !== null && settled !== named ? dead : { _tag: "waits" }
  })

export const make =
  (journals: Journals) =>
  (op: Bundle.Held, context: OpContext, mayBeLost: boolean): Effect.Effect<Found, Obstacle> =>
    Effect.gen(function* (): Effect.fn.Return<Found, ChainRpcError | JournalError> {
      const { connection, entryPoint } = context
      const { chain } = connection
      const [next, code] = yield* Effect.all(
        [
          Effect.map(chain.call({ to: entryPoint, data: Nonce.question(op.wallet, op.key) }), Nonce.answered),
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
      if (next > op.sequence) return yield* ofUsedNonce(journals, op, context, next, mayBeLost)
      // An op with the next nonce can be signed again, unless a third party may land an earlier version.
      const needsAnother = next < op.sequence ? op.exposed : Bundle.mayLand(op)
      if (needsAnother && (yield* isOverForGood(op, context)))
        return { _tag: "dead", why: elementFailure("window_passed") }
      if (next < op.sequence) return { _tag: "sequence", sequence: next }
      if (op.creates) return code === Hex.empty ? { _tag: "nothing" } : { _tag: "stale" }
      return yield* ofConfiguration(op, context)
    }).pipe(Effect.mapError(asObstacle))
