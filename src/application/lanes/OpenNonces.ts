import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { FeePrices } from "../../domain/erc4337/gas/Fees.js"
import * as Percent from "../../domain/erc4337/Percent.js"
import * as EoaNonces from "../chain/EoaNonces.js"
import * as Prices from "../chain/Prices.js"
import * as Troubles from "../observe/Troubles.js"
import type { ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import type { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import { type Lane, type LaneAccess, laneKey, type TransactionRecord } from "../ports/journal/Transactions.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { Signer, SignerError } from "../ports/Signers.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import type { AccessNodes } from "./monitor/AccessNodes.js"
import type * as FollowedTransaction from "./monitor/FollowedTransaction.js"
import { serves } from "./monitor/LaneNodes.js"
import * as TransactionState from "./monitor/TransactionState.js"
import type * as NonceManager from "./NonceManager.js"
import type { TransactionMonitor } from "./TransactionMonitor.js"

/**
 * Nonces below a lane's waiting transactions that are open on the chain: until they are used, later transactions cannot be
 * mined.
 */

const overshoot = Result.getOrElse(Percent.from(20), () => Percent.zero)

/** Current prices of a transaction; null: above the operator's caps. */
export const quote = (
  chain: ChainClient,
  profile: NetworkProfile
): Effect.Effect<FeePrices | null, ChainRpcError> =>
  Effect.map(chain.fees, (market) => Result.getOrNull(Prices.quote(profile, market, overshoot)))

/** Maximum nonces handled per pass. */
const maxBelow = 64n

export interface Dependencies {
  readonly transactionJournal: Pick<TransactionJournal["Service"], "transactionsBetween">
  readonly lanes: NonceManager.NonceManager
  readonly signerOf: (access: LaneAccess) => Effect.Effect<Signer, SignerError>
  readonly accessNodes: AccessNodes
  readonly troubles: Troubles.Troubles
}

/** Gives a node bytes that were mined and then undone by a reorganisation; returns whether it accepted them. */
const give = (chain: ChainClient, { mined, nonce, versions }: TransactionRecord): Effect.Effect<boolean> => {
  const bytes = versions.find(({ txHash }) => txHash === mined?.txHash) ?? versions.at(-1)
  return bytes === undefined
    ? Effect.succeed(true)
    : Effect.matchEffect(chain.sendRawTransaction(bytes.raw), {
        onFailure: ({ message }) =>
          Effect.as(Effect.logDebug(`transaction refused by the node: ${message}`), false),
        onSuccess: () =>
          // Through `Troubles`: a node may lose the bytes repeatedly.
          Effect.flatMap(Troubles.Shared, ({ failed }) =>
            failed({
              what: "a reorganisation undid a settled transaction; the same bytes were broadcast again",
              place: bytes.txHash,
              isDelay: true
            })
          ).pipe(Effect.annotateLogs({ txHash: bytes.txHash, openNonce: nonce.toString() }), Effect.as(true))
      })
}

/**
 * Broadcasts the transactions to a node, highest nonce first: a node that mines on arrival may leave behind a transaction that
 * arrives meanwhile. It gives refused transactions once more in nonce order: a node may refuse nonces above an open one.
 */
const broadcast = (chain: ChainClient, undone: ReadonlyArray<TransactionRecord>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const refused: Array<TransactionRecord> = []
    for (const record of undone.toReversed()) if (!(yield* give(chain, record))) refused.unshift(record)
    if (undone.length > 1) for (const record of refused) yield* give(chain, record)
  })

/**
 * Broadcasts to the node all transactions that are settled in the journal but open on the node. `access` belongs to the node: a
 * caller's node gets no bytes of other accounts.
 */
export const broadcastOpen = (
  { transactionsBetween }: Dependencies["transactionJournal"],
  lane: Lane,
  chain: ChainClient,
  { accountId, trust }: Pick<LaneAccess, "accountId" | "trust">
): Effect.Effect<void, ChainRpcError | JournalError> =>
  Effect.gen(function* () {
    const { next: from } = yield* EoaNonces.read(chain, lane.signer)
    const isFor = ({ access }: TransactionRecord) =>
      trust === "operator" || (access.trust === "caller" && access.accountId === accountId)
    yield* broadcast(
      chain,
      (yield* transactionsBetween(lane, from, from + maxBelow)).filter(
        (record) => record.state === "settled" && isFor(record)
      )
    )
  })

export const make = ({ accessNodes, transactionJournal, lanes, signerOf, troubles }: Dependencies) => {
  const fill = (
    { profile, record }: FollowedTransaction.FollowedTransaction,
    { chain }: FollowedTransaction.LaneNode,
    nonce: bigint,
    monitor: TransactionMonitor
  ) =>
    Effect.gen(function* () {
      const prices = yield* quote(chain, profile)
      if (prices === null) return
      const signer = yield* signerOf(record.access)
      yield* lanes.exclusive(
        record,
        Effect.gen(function* () {
          // For a nonce with signed bytes the journal would allocate another nonce, above all waiting transactions.
          if ((yield* transactionJournal.transactionsBetween(record, nonce, nonce + 1n)).length > 0) return
          const [pending, balance] = yield* Effect.all(
            [chain.transactionCount(record.signer, "pending"), chain.balance(record.signer)],
            { concurrency: "unbounded" }
          )
          if (pending > nonce) return
          const { access, chainId } = record
          const filler = yield* lanes.fill(chainId, { access, signer, prices, chainNonce: nonce, balance })
          yield* monitor.watch({ chain, profile, record: filler })
          yield* Effect.logInfo("unused nonce filled")
        })
      )
    })

  /** Broadcasts the transaction to the node that its access names: no node of the lane's waiting transactions may receive it. */
  const broadcastToOwnNode = (used: TransactionRecord) =>
    Effect.gen(function* () {
      const { access, chainId } = used
      const chain = (yield* accessNodes.ofOperator(access, chainId)) ?? (yield* accessNodes.ofCaller(access))
      if (chain !== null) yield* broadcast(chain, [used])
    })

  /**
   * Closes open nonces below a waiting transaction. A reorganisation beyond the settled depth undid nonces that the journal has
   * as settled: their bytes go to the nodes again.
   */
  return (
    entry: FollowedTransaction.FollowedTransaction,
    nodes: ReadonlySet<FollowedTransaction.LaneNode>,
    open: { readonly from: bigint; readonly isStuck: boolean },
    monitor: TransactionMonitor
  ) =>
    Effect.gen(function* () {
      const { record } = entry
      const [lead] = nodes
      const below = record.nonce < open.from + maxBelow ? record.nonce : open.from + maxBelow
      const known = new Map(
        (yield* transactionJournal.transactionsBetween(record, open.from, below)).map((each) => [
          each.nonce,
          each
        ])
      )
      const now = yield* MonotonicTime.millis
      const undone: Array<TransactionRecord> = []
      for (let nonce = open.from; nonce < below; nonce += 1n) {
        const used = known.get(nonce)
        if (used === undefined) {
          // One at a time: on a node that is far behind all nonces seem open.
          if (lead !== undefined && open.isStuck) yield* fill(entry, lead, nonce, monitor)
          break
        }
        const { action } = TransactionState.step(TransactionState.from(used), { _tag: "nonceOpen" }, now)
        // A node may lag for a moment.
        if (action._tag === "report" && open.isStuck)
          yield* Effect.annotateLogs(
            troubles.failed({
              what: "the chain has a nonce open again that a transaction from elsewhere had used: have its sender send it again",
              place: `${laneKey(used)}:${nonce}`
            }),
            { openNonce: nonce.toString() }
          )
        if (action._tag === "broadcastAgain") undone.push(used)
      }
      for (const node of nodes)
        yield* broadcast(
          node.chain,
          undone.filter(({ access }) => serves(node, access))
        )
      for (const used of undone)
        if (![...nodes].some((node) => serves(node, used.access))) yield* broadcastToOwnNode(used)
    })
}
