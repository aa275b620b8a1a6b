import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Inclusions from "../../chain/Inclusions.js"
import type { Block, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { Entry, LaneNode } from "./Entry.js"
import * as TransactionState from "./TransactionState.js"

/** What a node told of the entries that it was asked of; of those that are missing it told nothing. */
export interface NodeAnswers {
  readonly head: Block | null
  readonly answers: Map<Entry, TransactionState.Answer>
}

const orNull = <A>(effect: Effect.Effect<A, ChainRpcError>): Effect.Effect<A | null> =>
  Effect.orElseSucceed(effect, () => null)

/** The receipt of whichever version was mined. One that fails is asked for again, and holds up none of the others. */
const receiptOf = ({ chain }: LaneNode, { record }: Entry) => {
  const emitters = new Set(record.ops.map(({ entryPoint }) => entryPoint))
  const hashes = record.mined === null ? record.versions.map(({ txHash }) => txHash) : [record.mined.txHash]
  return Effect.map(
    Effect.forEach(hashes, (hash) => Effect.result(chain.receipt(hash, { emitters })), {
      concurrency: "unbounded"
    }),
    (answers) => ({
      receipt: Arr.getSuccesses(answers).find((receipt) => receipt !== null) ?? null,
      told: answers.every(Result.isSuccess)
    })
  )
}

/**
 * Of what was not known as mined the receipt counts once its block is sealed. A block below the head is looked at when it
 * is deep enough to count, and not at each look until then.
 */
const sealed = (
  { chain }: LaneNode,
  entry: Entry | undefined,
  seen: Effect.Success<ReturnType<typeof receiptOf>>,
  head: Block | null
) => {
  const { receipt } = seen
  if (receipt === null || entry === undefined || entry.record.mined !== null) return Effect.succeed(seen)
  const isShallow = TransactionState.depthOf(receipt.blockNumber, head, entry.profile) === "shallow"
  if (isShallow && Inclusions.isSealedBy(receipt, head) === null) return Effect.succeed(seen)
  return Effect.match(Inclusions.sealed(chain, receipt, head), {
    onFailure: () => ({ receipt: null, told: false }),
    onSuccess: (ours) => ({ ...seen, receipt: ours })
  })
}

/** Asks a node of all these entries, in one batch; of blocks with new receipts in another one where that does not tell. */
export const at = (node: LaneNode, entries: ReadonlyArray<Entry>): Effect.Effect<NodeAnswers> => {
  const { chain } = node
  // A receipt's block is mostly the latest: then no further question tells whether it is sealed.
  const needsHead = entries.some(({ profile, record }) => profile.settledDepth > 1 || record.mined === null)
  const blockOf = ({ missedSince, record: { mined } }: Entry) =>
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
      ([chainId, head, told]) =>
        Effect.map(
          Effect.forEach(
            told,
            ([seen, block], place) =>
              Effect.map(sealed(node, entries[place], seen, head), (ours) => [ours, block] as const),
            { concurrency: "unbounded" }
          ),
          (checked) => [chainId, head, checked] as const
        )
    ),
    ([chainId, head, told]) => {
      const answers = new Map<Entry, TransactionState.Answer>()
      // What a node of another chain tells is of no meaning.
      if (entries.some(({ record }) => record.chainId !== chainId)) return { head: null, answers }
      const replaced = new Set<bigint>()
      for (const [place, { record }] of entries.entries()) {
        const block = told[place]?.[1] ?? null
        if (record.mined !== null && block !== null && block.hash !== record.mined.blockHash)
          replaced.add(record.mined.blockNumber)
      }
      for (const [place, entry] of entries.entries()) {
        const [seen, block] = told[place] ?? [null, null]
        const { mined } = entry.record
        if (seen === null || (!seen.told && seen.receipt === null)) continue
        // The new chain may be shorter as yet: what was above a block that is replaced is gone with it.
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
