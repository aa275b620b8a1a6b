import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as BundledOps from "../../../../domain/erc4337/BundledOps.js"
import * as EntryPoint from "../../../../domain/erc4337/EntryPoint.js"
import * as Nonce from "../../../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../../domain/primitives/Address.js"
import * as Hex from "../../../../domain/primitives/Hex.js"
import * as Ledger from "../../../../domain/wallet/Ledger.js"
import * as EoaTransactions from "../../../chain/EoaTransactions.js"
import * as Inclusions from "../../../chain/Inclusions.js"
import { ChainRpcError, type KnownTransaction } from "../../../ports/chain/ChainRpc.js"
import type { JournalError } from "../../../ports/journal/JournalError.js"
import type { OpJournal } from "../../../ports/journal/OpJournal.js"
import type { Op } from "../../../ports/journal/Records.js"
import type { RecoveryJournal } from "../../../ports/journal/RecoveryJournal.js"
import type { TransactionJournal } from "../../../ports/journal/TransactionJournal.js"
import { type Lane, laneKey } from "../../../ports/journal/Transactions.js"
import type { OpCall } from "../../../prepare/Call.js"
import type { IsFresh, NonceRecovery } from "../LaneState.js"
import { isSameCall } from "../LookUp.js"
import {
  asObstacle,
  type Context,
  type Obstacle,
  type Preparer,
  type SubmissionContext
} from "../rules/Context.js"
import * as Matching from "../rules/Matching.js"

/**
 * Transactions of a lane's key that the journal lacks, after a backup was restored or a lagging standby was promoted. Their
 * effects on the lane's accepted work are recorded; possible effects are held until the operator decides.
 *
 * Gotchas: an op that landed under its own nonce is found when its turn comes; see `LookUp`. An element unopened at the backup
 * may have been opened since: its request's body defines its work.
 */

export interface Dependencies {
  readonly opJournal: Pick<OpJournal["Service"], "publish" | "ready">
  readonly recoveryJournal: Pick<
    RecoveryJournal["Service"],
    "explain" | "hold" | "keepUnread" | "known" | "knownTo" | "openIn" | "provenAt"
  >
  readonly transactionJournal: Pick<TransactionJournal["Service"], "adopt">
  /** Follows the lane's unsettled transactions to their end. */
  readonly watch: (lane: Lane) => Effect.Effect<void, JournalError>
  readonly unopened: Preparer["unopened"]
}

const page = 1_024

/** Refusals in a row after which all affected work is held. */
const mostRefusals = 3

/** Maximum wallets per log query. */
const walletsAtOnce = 200

const readyOf = ({ opJournal }: Dependencies, lane: Lane, isFresh: IsFresh) =>
  Effect.gen(function* () {
    const all: Array<Op> = []
    for (let last: Op | undefined, isOver = false; !isOver; ) {
      const some = yield* opJournal.ready(lane, page, last === undefined ? {} : { after: last.opId })
      all.push(...some)
      last = some.at(-1)
      isOver = some.length < page
    }
    return all.filter((op) => !isFresh(op))
  })

const unopenedOf = ({ recoveryJournal, unopened }: Dependencies, lane: Lane, isFresh: IsFresh) =>
  Effect.flatMap(recoveryJournal.openIn(lane), (open) =>
    unopened(
      open.flatMap((request) => (isFresh(request) ? [] : [request.requestId])),
      lane.chainId
    )
  )

/** An op that another version prepared may do anything. */
const ofOp = (
  { index, nonceKey, prepared, requestId, sequence, space }: Op,
  ledger: Address | null
): ReadonlyArray<Matching.Wanted> =>
  prepared?.kind === "direct"
    ? []
    : [
        {
          requestId,
          index,
          wallet: space.wallet,
          nonce: Nonce.make(nonceKey, sequence),
          isOnce: prepared?.kind === "creation",
          makes: (callData) => prepared === null || isSameCall(prepared.unsigned.callData, callData, ledger)
        }
      ]

const ofCall = (
  { data, index, requestId, to, value, wallet }: OpCall,
  ledger: Address | null
): Matching.Wanted => ({
  requestId,
  index,
  wallet,
  nonce: null,
  isOnce: false,
  makes: (callData) => Ledger.makes(callData, { target: to, value, data }, ledger)
})

/** Ops that a transaction carries. */
const straysOf = ({ data, to, txHash }: KnownTransaction): ReadonlyArray<Matching.Stray> => {
  const version = to === null ? undefined : EntryPoint.versionOf(to)
  const ops = version === undefined ? [] : BundledOps.read(version, data)
  return ops.map(({ callData, nonce, sender }) => ({ sender, nonce, callData, txHash }))
}

/** Acceptance time of the lane's oldest open request, Unix milliseconds. */
const acceptedSince = ({ recoveryJournal }: Dependencies, lane: Lane) =>
  Effect.gen(function* () {
    const [oldest] = yield* recoveryJournal.openIn(lane)
    return oldest?.acceptedAt ?? (yield* Clock.currentTimeMillis)
  })

/** The EOA's transactions of these nonces; on a node without past states, those since the oldest open request was accepted. */
const transactionsOf = (
  dependencies: Dependencies,
  lane: Lane,
  { connection: { chain } }: Context,
  nonces: ReadonlyArray<bigint>
) =>
  Effect.catch(EoaTransactions.read(chain, lane.signer, nonces), () =>
    Effect.gen(function* () {
      const since = (yield* acceptedSince(dependencies, lane)) - Inclusions.skewMillis
      const all = yield* EoaTransactions.since(chain, lane.signer, since)
      return all.filter(({ nonce }) => nonces.includes(nonce))
    })
  )

/** Ops of these wallets on the chain that the journal lacks, by transaction. */
const unknownOf = (
  { recoveryJournal }: Dependencies,
  lane: Lane,
  { connection: { chain }, entryPoint }: SubmissionContext,
  wallets: ReadonlyArray<Address>,
  since: number
) =>
  Effect.gen(function* () {
    const head = yield* chain.block("latest")
    const seen = new Map<Hex.Bytes32, Inclusions.IncludedOp>()
    for (let from = 0; from < wallets.length; from += walletsAtOnce) {
      const some = wallets.slice(from, from + walletsAtOnce)
      const own = yield* Inclusions.ofWallets(chain, entryPoint, some, head?.number ?? 0n, since)
      for (const [userOpHash, each] of own) seen.set(userOpHash, each)
    }
    const known = yield* recoveryJournal.known(lane.chainId, entryPoint, [...seen.keys()])
    return Map.groupBy(
      [...seen].filter(([userOpHash]) => !known.has(userOpHash)),
      ([, { txHash }]) => txHash
    )
  })

export const make = (dependencies: Dependencies): NonceRecovery => {
  const { opJournal, recoveryJournal, transactionJournal, watch } = dependencies
  /** Refusals in a row to show the key's past, by query and lane. */
  const refusals = new Map<string, number>()

  const hold = (lane: Lane, requestId: string, why: string) =>
    Effect.flatMap(recoveryJournal.hold(lane, requestId, why), (isHeld) =>
      isHeld
        ? Effect.annotateLogs(
            Effect.logError("request held: perhaps done; run castellan requests release or drop"),
            { requestId, reason: why }
          )
        : Effect.void
    )

  const holdElement = (
    lane: Lane,
    { index, requestId, wallet }: Matching.Wanted,
    txHash: Hex.Bytes32,
    what: string
  ) =>
    hold(
      lane,
      requestId,
      `element ${index}: wallet ${wallet} has ${what} in transaction ${txHash}, and the journal does not know of it`
    )

  const holdDoubts = (
    lane: Lane,
    wanted: ReadonlyArray<Matching.Wanted>,
    strays: ReadonlyArray<Matching.Stray>
  ) =>
    Effect.forEach(
      Matching.doubts(wanted, strays),
      ({ stray, wanted: own }) =>
        holdElement(lane, own, stray.txHash, "made the same call, under a nonce that is not the element's,"),
      { discard: true }
    )

  /** Work of ready ops and of elements without ops. Holds requests that cannot be read. */
  const wantedOf = (
    lane: Lane,
    { connection: { profile } }: Context,
    ready: ReadonlyArray<Op>,
    isFresh: IsFresh
  ) =>
    Effect.gen(function* () {
      const wanted = ready.flatMap((op) => ofOp(op, profile.ledger))
      for (const [requestId, calls] of yield* unopenedOf(dependencies, lane, isFresh)) {
        if (calls === null) yield* hold(lane, requestId, "its body cannot be read")
        else wanted.push(...calls.map((call) => ofCall(call, profile.ledger)))
      }
      return wanted
    })

  /** The key's past is unreadable: holds all work that was not exposed. */
  const holdAll = (lane: Lane, why: string, isFresh: IsFresh) =>
    Effect.gen(function* () {
      const unexposed = (yield* readyOf(dependencies, lane, isFresh)).filter(({ exposed }) => !exposed)
      const later = yield* unopenedOf(dependencies, lane, isFresh)
      const problem = `transactions of its key since the journal's last entry cannot be read: ${why}`
      for (const requestId of new Set([...unexposed.map((op) => op.requestId), ...later.keys()]))
        yield* hold(lane, requestId, problem)
    })

  /** Retries a refusing node; after `mostRefusals` refusals runs `unread`, which holds all affected work. */
  const unless = <A>(
    what: "from" | "past" | "read",
    lane: Lane,
    search: Effect.Effect<A, ChainRpcError | JournalError | Obstacle>,
    unread: (why: string) => Effect.Effect<A, ChainRpcError | JournalError | Obstacle>
  ): Effect.Effect<A, Obstacle> =>
    Effect.gen(function* () {
      const name = `${what} ${laneKey(lane)}`
      const seen = yield* Effect.result(search)
      if (Result.isSuccess(seen)) {
        refusals.delete(name)
        return seen.success
      }
      const error = seen.failure
      const isRefusal =
        error instanceof ChainRpcError && (error.reason === "rejected" || error.reason === "unsupported")
      const count = (refusals.get(name) ?? 0) + 1
      if (isRefusal) refusals.set(name, count)
      if (!isRefusal || count < mostRefusals) return yield* Effect.fail(error)
      refusals.delete(name)
      return yield* unread(error.message)
    }).pipe(Effect.mapError(asObstacle))

  /** Adopts direct transactions, holds doubtful elements, and returns the hashes of transactions with castellan's work. */
  const match = (
    lane: Lane,
    context: Context,
    transactions: ReadonlyArray<KnownTransaction>,
    ready: ReadonlyArray<Op>,
    isFresh: IsFresh
  ) =>
    Effect.gen(function* () {
      const direct = ready.flatMap(({ prepared, requestId }) =>
        prepared?.kind === "direct" ? [{ ...prepared.unsigned, requestId }] : []
      )
      const adopted = Matching.directs(direct, transactions)
      for (const { transaction, wanted } of adopted) {
        const { requestId } = wanted
        const { nonce, txHash } = transaction
        yield* transactionJournal.adopt({ ...lane, nonce, requestId, access: context.access, transaction })
        yield* Effect.annotateLogs(
          Effect.logWarning("transaction adopted: it is on the chain, and the journal did not know it"),
          { requestId, txHash }
        )
      }
      if (adopted.length > 0) yield* watch(lane)
      const strays = transactions.flatMap(straysOf)
      if (strays.length > 0) yield* holdDoubts(lane, yield* wantedOf(lane, context, ready, isFresh), strays)
      return new Set(
        [...adopted.map(({ transaction }) => transaction), ...strays].map(({ txHash }) => txHash)
      )
    })

  return {
    provenAt: recoveryJournal.provenAt,
    from: (lane, { connection: { chain } }, isFresh) =>
      unless(
        "from",
        lane,
        Effect.gen(function* () {
          const known = yield* recoveryJournal.knownTo(lane)
          if (known !== null) return known
          const [oldest] = (yield* recoveryJournal.openIn(lane)).filter((request) => !isFresh(request))
          if (oldest === undefined) {
            const latest = yield* chain.transactionCount(lane.signer, "latest")
            // Recorded: after a restart current work is no longer fresh.
            yield* recoveryJournal.explain(lane, latest)
            return latest
          }
          const since = oldest.acceptedAt
          const head = yield* chain.block("latest")
          const block = yield* Inclusions.olderThan(chain, head?.number ?? 0n, since)
          // A node without past states may still have the blocks.
          return yield* Effect.catch(chain.transactionCount(lane.signer, block), () =>
            Effect.gen(function* () {
              const [first] = yield* EoaTransactions.since(chain, lane.signer, since - Inclusions.skewMillis)
              return first?.nonce ?? (yield* chain.transactionCount(lane.signer, "latest"))
            })
          )
        }),
        (why) =>
          Effect.gen(function* () {
            yield* holdAll(lane, why, isFresh)
            const latest = yield* chain.transactionCount(lane.signer, "latest")
            yield* recoveryJournal.explain(lane, latest)
            return latest
          })
      ),
    read: (lane, context, nonces, isFresh) =>
      Effect.gen(function* () {
        // Adoptions by this read, and signatures made meanwhile, must not end it.
        yield* recoveryJournal.keepUnread(lane)
        const ready = yield* readyOf(dependencies, lane, isFresh)
        const read = yield* unless(
          "read",
          lane,
          Effect.gen(function* () {
            const transactions = yield* transactionsOf(dependencies, lane, context, nonces)
            const ours = yield* match(lane, context, transactions, ready, isFresh)
            return transactions.map(({ nonce, txHash }) => ({ nonce, isOurs: ours.has(txHash) }))
          }),
          (why) =>
            Effect.as(
              holdAll(lane, why, isFresh),
              nonces.map((nonce) => ({ nonce, isOurs: true }))
            )
        )
        // The journal is older than the chain: bytes of ops that are not held may be in flight, too.
        if (read.some(({ isOurs }) => isOurs))
          yield* opJournal.publish(
            lane,
            (yield* readyOf(dependencies, lane, isFresh)).map(({ opId }) => opId)
          )
        const below = nonces.reduce((most, nonce) => (nonce >= most ? nonce + 1n : most), 0n)
        if (read.length === nonces.length) yield* recoveryJournal.explain(lane, below)
        return read
      }).pipe(Effect.mapError(asObstacle)),
    holdDone: (lane, context, before) =>
      Effect.gen(function* () {
        const isFresh: IsFresh = ({ acceptedAt }) => acceptedAt >= before
        const { access, connection, entryPoint, version } = context
        const ready = (yield* readyOf(dependencies, lane, isFresh)).filter(
          ({ accountId, exposed, space }) =>
            !exposed && accountId === access.accountId && space.entryPoint === entryPoint
        )
        const wanted = yield* wantedOf(lane, context, ready, isFresh)
        const wallets = new Set(wanted.map(({ wallet }) => wallet))
        if (wallets.size === 0) return
        const since = yield* acceptedSince(dependencies, lane)
        const search = unknownOf(dependencies, lane, context, [...wallets], since)
        const unknown = yield* unless("past", lane, search, (why) =>
          Effect.gen(function* () {
            const problem = `ops of its wallets since its acceptance cannot be read: ${why}`
            for (const requestId of new Set(wanted.map((each) => each.requestId)))
              yield* hold(lane, requestId, problem)
            return new Map<Hex.Bytes32, ReadonlyArray<readonly [Hex.Bytes32, Inclusions.IncludedOp]>>()
          })
        )
        const strays: Array<Matching.Stray> = []
        for (const [txHash, seen] of unknown) {
          const transaction = yield* connection.chain.transaction(txHash)
          const byHash = new Map(
            BundledOps.read(version, transaction?.data ?? Hex.empty).map((op) => [
              UserOperation.hash(version, entryPoint, lane.chainId, op),
              op
            ])
          )
          for (const [userOpHash, { sender }] of seen) {
            const op = byHash.get(userOpHash)
            if (op !== undefined) strays.push({ sender, nonce: op.nonce, callData: op.callData, txHash })
            // The transaction's calldata does not show their calls.
            else
              for (const own of wanted.filter(({ wallet }) => wallet === sender))
                yield* holdElement(lane, own, txHash, "an op that the node does not show")
          }
        }
        yield* holdDoubts(lane, wanted, strays)
      }).pipe(Effect.mapError(asObstacle))
  }
}
