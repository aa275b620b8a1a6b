import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Inclusions from "../../chain/Inclusions.js"
import type { Block, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { FollowedTransaction, LaneNode } from "./FollowedTransaction.js"
import * as TransactionState from "./TransactionState.js"

/** A node's replies by entry; entries without a reply are missing. */
export interface NodeAnswers {
  readonly head: Block | null
  readonly answers: Map<FollowedTransaction, TransactionState.Answer>
}

const orNull = <A>(effect: Effect.Effect<A, ChainRpcError>): Effect.Effect<A | null> =>
  Effect.orElseSucceed(effect, () => null)

/** Receipt of whichever version was mined. A failed request delays no other, and is repeated later. */
const receiptOf = ({ chain }: LaneNode, { record }: FollowedTransaction) => {
  const emitters = new Set(record.ops.map(({ entryPoint }) => entryPoint))
  const hashes = record.mined === null ? record.versions.map(({ txHash }) => txHash) : [record.mined.txHash]
  return Effect.map(
    Effect.forEach(hashes, (hash) => Effect.result(chain.receipt(hash, { emitters })), {
      concurrency: "unbounded"
    }),
    (answers) => ({
      receipt: Arr.getSuccesses(answers).find((receipt) => receipt !== null) ?? null,
      isComplete: answers.every(Result.isSuccess)
    })
  )
}

/**
 * A newly mined receipt counts once its block is sealed. A block below the head is checked when it is deep enough to count, not
 * at each poll.
 */
const sealed = (
  { chain }: LaneNode,
  entry: FollowedTransaction | undefined,
  seen: Effect.Success<ReturnType<typeof receiptOf>>,
  head: Block | null
) => {
  const { receipt } = seen
  if (receipt === null || entry === undefined || entry.record.mined !== null) return Effect.succeed(seen)
  const isShallow = TransactionState.depthOf(receipt.blockNumber, head, entry.profile) === "shallow"
  if (isShallow && Inclusions.isSealedBy(receipt, head) === null) return Effect.succeed(seen)
  return Effect.match(Inclusions.seal(chain, receipt, head), {
    onFailure: () => ({ receipt: null, isComplete: false }),
    onSuccess: (ours) => ({ ...seen, receipt: ours })
  })
}

/**
 * Polls a node for all entries in one batch. Blocks of new receipts need a second batch if the head does not show that they are
 * sealed.
 */
export const at = (
  node: LaneNode,
  entries: ReadonlyArray<FollowedTransaction>
): Effect.Effect<NodeAnswers> => {
  const { chain } = node
  // The receipt's block is mostly the latest, which then shows that it is sealed without another request.
  const needsHead = entries.some(({ profile, record }) => profile.settledDepth > 1 || record.mined === null)
  const blockOf = ({ missedSince, record: { mined } }: FollowedTransaction) =>
    mined === null || missedSince === null ? Effect.succeed(null) : orNull(chain.block(mined.blockNumber))
  return Effect.map(
    Effect.flatMap(
      Effect.all(
        [
          orNull(chain.chainId),
          needsHead ? orNull(chain.block("latest")) : Effect.succeed(null),
          Effect.forEach(
            entries,
            (entry) => Effect.all([receiptOf(node, entry), blockOf(entry)], { concurrency: "unbounded" }),
            { concurrency: "unbounded" }
          )
        ],
        { concurrency: "unbounded" }
      ),
      ([chainId, head, details]) =>
        Effect.map(
          Effect.forEach(
            details,
            ([seen, block], place) =>
              Effect.map(sealed(node, entries[place], seen, head), (ours) => [ours, block] as const),
            { concurrency: "unbounded" }
          ),
          (checked) => [chainId, head, checked] as const
        )
    ),
    ([chainId, head, details]) => {
      const answers = new Map<FollowedTransaction, TransactionState.Answer>()
      // Replies of a node on another chain mean nothing.
      if (entries.some(({ record }) => record.chainId !== chainId)) return { head: null, answers }
      const replaced = new Set<bigint>()
      for (const [place, { record }] of entries.entries()) {
        const block = details[place]?.[1] ?? null
        if (record.mined !== null && block !== null && block.hash !== record.mined.blockHash)
          replaced.add(record.mined.blockNumber)
      }
      for (const [place, entry] of entries.entries()) {
        const [seen, block] = details[place] ?? [null, null]
        const { mined } = entry.record
        if (seen === null || (!seen.isComplete && seen.receipt === null)) continue
        // The new chain may still be shorter: transactions above a replaced block are gone with it.
        const isReplaced = mined !== null && [...replaced].some((number) => number <= mined.blockNumber)
        answers.set(entry, {
          isOperators: node.account === null,
          isWitness: entry.witness === node,
          receipt: seen.receipt,
          head,
          block: isReplaced ? "replaced" : block === null ? null : "kept"
        })
      }
      return { head, answers }
    }
  )
}
