import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Troubles from "../observe/Troubles.js"
import type { ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import type { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { Lane, LaneAccess, TransactionRecord } from "../ports/journal/Transactions.js"

/** Settled transactions that a reorganisation deeper than the settled depth took back: the same bytes are mined again. */

/** Nonces that one look deals with. */
const most = 64n

/** Gives the node the bytes that were mined; whether it took them. */
const give = (chain: ChainClient, { mined, nonce, versions }: TransactionRecord): Effect.Effect<boolean> => {
  const bytes = versions.find(({ txHash }) => txHash === mined?.txHash) ?? versions.at(-1)
  return bytes === undefined
    ? Effect.succeed(true)
    : Effect.matchEffect(chain.sendRawTransaction(bytes.raw), {
        onFailure: ({ message }) =>
          Effect.as(Effect.logDebug(`the node did not take a transaction: ${message}`), false),
        onSuccess: () =>
          // A node may lose them again and again.
          Effect.flatMap(Troubles.Shared, ({ failed }) =>
            failed({
              what: "a reorganisation undid a settled transaction; the same bytes were offered again",
              place: bytes.txHash,
              isDelay: true
            })
          ).pipe(Effect.annotateLogs({ txHash: bytes.txHash, openNonce: nonce.toString() }), Effect.as(true))
      })
}

/**
 * Offers them to a node, in nonce order. The highest first: a node that mines with each transaction may leave one behind
 * that comes while it mines the one before. The others once more: a node may take none above an open nonce.
 */
export const offer = (chain: ChainClient, undone: ReadonlyArray<TransactionRecord>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const refused: Array<TransactionRecord> = []
    for (const record of undone.toReversed()) if (!(yield* give(chain, record))) refused.unshift(record)
    if (undone.length > 1) for (const record of refused) yield* give(chain, record)
  })

/**
 * Offers what the journal holds as settled of a lane, and the node has open, to that node. `access` is that of the node:
 * a caller's own is given nothing of other accounts.
 */
export const offerOpen = (
  { transactionsBetween }: Pick<TransactionJournal["Service"], "transactionsBetween">,
  lane: Lane,
  chain: ChainClient,
  { accountId, trust }: Pick<LaneAccess, "accountId" | "trust">
): Effect.Effect<void, ChainRpcError | JournalError> =>
  Effect.gen(function* () {
    const from = BigInts.max(
      ...(yield* Effect.all(
        [chain.transactionCount(lane.signer, "latest"), chain.transactionCount(lane.signer, "pending")],
        { concurrency: "unbounded" }
      ))
    )
    const found = yield* transactionsBetween(lane, from, from + most)
    const isFor = ({ access }: TransactionRecord) =>
      trust === "operator" || (access.trust === "caller" && access.accountId === accountId)
    yield* offer(
      chain,
      found.filter((record) => record.state === "settled" && isFor(record))
    )
  })
