import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Hex from "../../../domain/primitives/Hex.js"
import { DecodedLog } from "../../answers/TransactionResult.js"
import * as Connection from "../../chain/Connection.js"
import * as Inclusions from "../../chain/Inclusions.js"
import * as Span from "../../observe/Span.js"
import type * as Port from "../../ports/chain/ChainRpc.js"
import { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { node, optional } from "../../request/Fields.js"
import * as EventLoop from "../../runtime/EventLoop.js"

export const Request = Schema.Struct({
  txHashes: Schema.Array(Hex.schema32).annotate({
    description: "Transaction hashes. A repeated hash is answered once."
  }),
  ...node,
  useABI: optional(
    Schema.Array(Schema.Unknown).annotate({
      description:
        "Events and errors for decoding, as JSON fragments or human-readable text; struct lines name tuples for the other lines."
    }),
    []
  )
}).annotate({ identifier: "ReceiptRequest" })
export type Request = typeof Request.Type

export const Receipt = Schema.Struct({
  status: Schema.Int.annotate({
    description: "0 failed, 1 success"
  }),
  txHash: Schema.String,
  requestedHash: optional(
    Schema.String.annotate({
      description:
        "The hash in the request, where another is mined: the service has replaced that transaction by txHash."
    })
  ),
  gasUsed: Schema.Int,
  cumulativeGasUsed: Schema.Int.annotate({
    description: "Gas used in the block, up to this transaction."
  }),
  effectiveGasPrice: Schema.String.annotate({ description: "Wei, decimal." }),
  logs: Schema.Array(DecodedLog),
  missing: optional(
    Schema.Array(Schema.String).annotate({
      description:
        "Members that the node's receipt lacks, or that cannot be read (logs.3.data: that log is not shown). Their values in this answer are placeholders."
    })
  ),
  error: Schema.NullOr(Schema.String).annotate({
    description:
      "Why the transaction failed: the revert reason of its call on the state of the block before. Null for a success, and when the node lacks that state."
  })
}).annotate({ identifier: "Receipt" })
export type Receipt = typeof Receipt.Type

export const Response = Schema.Struct({
  requestStatus: Schema.Int.annotate({ description: "200 when all are mined, otherwise 202" }),
  receipts: Schema.Array(Receipt).annotate({
    description: "Of the mined transactions, in request order."
  }),
  pending: Schema.Array(Schema.String).annotate({
    description:
      "Hashes that wait to be mined, themselves or in what the service has replaced them by, and those of incomplete."
  }),
  unknown: Schema.Array(Schema.String).annotate({
    description: "Hashes that neither the node nor the service knows."
  }),
  incomplete: optional(
    Schema.Array(Schema.Struct({ txHash: Schema.String, missing: Schema.Array(Schema.String) })).annotate({
      description:
        "Pending hashes whose receipt does not show that they are mined, or whether they failed. missing names the members that the receipt lacks or that cannot be read (block: the latest block and the receipt's). Ask again, or ask another node."
    })
  )
}).annotate({ identifier: "ReceiptResponse" })
export type Response = typeof Response.Type

const together = { concurrency: "unbounded" } as const

/** Reason for a transaction's failure, from its call on the state of the block before; null: unknown. */
const reasonOf = Effect.fnUntraced(
  function* (
    chain: Port.ChainClient,
    decoding: Decoding.Decoding,
    { blockNumber, gasUsed, txHash }: Port.Receipt
  ) {
    const transaction = yield* chain.transaction(txHash)
    if (transaction === null || blockNumber === 0n) return null
    const { data, from, gasLimit, to, value } = transaction
    const call = { from, data, value, gas: gasLimit, ...(to !== null && { to }) }
    const again = yield* chain.call(call, undefined, blockNumber - 1n)
    if (again.success) return null
    return again.data === Hex.empty && gasUsed === gasLimit
      ? "used all of its gas: out of gas, or an invalid instruction"
      : decoding.revert(again.data)
  },
  Effect.orElseSucceed(() => null)
)

/** Without these members it is unknown whether the transaction is mined, or whether it failed. */
const essential: ReadonlySet<string> = new Set([
  "transactionHash",
  "status",
  "blockNumber",
  "blockHash",
  "block"
])

const isWhole = ({ missing = [] }: Port.Receipt): boolean => !missing.some((name) => essential.has(name))

/** The node's answer for a block, or a mark that it cannot be read. */
const readable = <A>(effect: Effect.Effect<A, Port.ChainRpcError>) =>
  Effect.catchIf(
    effect,
    ({ reason }) => reason === "notAnRpc",
    () => Effect.succeed("unreadable" as const)
  )

/** The receipt once its block is sealed; if that cannot be read, `block` is missing. */
const sealedBy =
  (chain: Port.ChainClient, head: Port.Block | "unreadable" | null) => (receipt: Port.Receipt) => {
    if (!isWhole(receipt)) return Effect.succeed(receipt)
    if (head !== "unreadable")
      return Effect.succeed(Inclusions.isSealedBy(receipt, head) === false ? null : receipt)
    return Effect.map(readable(Inclusions.seal(chain, receipt)), (own) =>
      own === "unreadable" ? { ...receipt, missing: [...(receipt.missing ?? []), "block"] } : own
    )
  }

/** Receipts of the hashes; null for hashes that are in no sealed block. */
const receiptsOf = (chain: Port.ChainClient, hashes: ReadonlyArray<Hex.Bytes32>) =>
  hashes.length === 0
    ? Effect.succeed([])
    : Effect.flatMap(
        Effect.all(
          [
            Effect.forEach(hashes, (txHash) => chain.receipt(txHash, "lenient"), together),
            readable(chain.block("latest"))
          ],
          together
        ),
        ([receipts, head]) => {
          const sealed = sealedBy(chain, head)
          return Effect.forEach(
            receipts,
            (receipt) => (receipt === null ? Effect.succeed(null) : sealed(receipt)),
            together
          )
        }
      )

/**
 * The fate of a hash that is not mined: the receipt of a mined version of the same transaction, or whether it may still
 * be mined. A node forgets replaced transactions, the journal does not.
 */
const fateOf = Effect.fnUntraced(function* (
  caller: Caller,
  { chain, profile }: Connection.Connection,
  txHash: Hex.Bytes32
) {
  const transactionJournal = yield* TransactionJournal
  const [known, ours] = yield* Effect.all(
    [
      chain.knows(txHash),
      Effect.orDie(transactionJournal.findTransaction(caller.principal.accountId, profile.chainId, txHash))
    ],
    together
  )
  const versions = ours?.versions.map((version) => version.txHash) ?? []
  const others = yield* receiptsOf(
    chain,
    versions.filter((version) => version !== txHash)
  )
  const mined = others.find((receipt) => receipt !== null && isWhole(receipt)) ?? null
  if (mined !== null) return mined
  return known || (ours !== null && ours.state !== "external") ? "pending" : "unknown"
})

/** Receipts of mined transactions with decoded logs; other hashes are pending, unknown or incomplete. */
export const run = Effect.fnUntraced(function* (caller: Caller, request: Request) {
  const decoding = yield* Decoding.load(caller, request.useABI, "useABI")
  const connection = yield* Connection.open(caller, request, "rpc")
  const { chain, trust } = connection
  const hashes = Arr.dedupe(request.txHashes)
  const refused = Effect.mapError(Connection.refusal(trust, "rpc"))
  const mined = yield* refused(receiptsOf(chain, hashes))
  const fates = yield* refused(
    Effect.forEach(
      Arr.zip(hashes, mined),
      ([txHash, receipt]) =>
        receipt === null ? fateOf(caller, connection, txHash) : Effect.succeed(receipt),
      together
    )
  )
  const shown = ([requested, fate]: readonly [Hex.Bytes32, Port.Receipt | "pending" | "unknown"]) => {
    if (typeof fate === "string" || !isWhole(fate)) return []
    const { missing = [], txHash } = fate
    return Effect.zipWith(
      fate.success ? Effect.succeed(null) : reasonOf(chain, decoding, fate),
      EventLoop.map(fate.logs, decoding.log),
      (error, logs): Receipt => ({
        status: fate.success ? 1 : 0,
        txHash,
        ...(txHash !== requested && { requestedHash: requested }),
        gasUsed: Number(fate.gasUsed),
        cumulativeGasUsed: Number(fate.cumulativeGasUsed),
        effectiveGasPrice: fate.effectiveGasPrice.toString(),
        logs,
        ...(missing.length > 0 && { missing }),
        error
      })
    )
  }
  const results = Arr.zip(hashes, fates)
  const receipts = yield* Effect.all(results.flatMap(shown), together)
  const incomplete = fates.flatMap((fate) =>
    typeof fate === "string" || isWhole(fate) ? [] : [{ txHash: fate.txHash, missing: fate.missing ?? [] }]
  )
  const unread = new Set(incomplete.map(({ txHash }) => txHash))
  const pending = hashes.filter((txHash, index) => fates[index] === "pending" || unread.has(txHash))
  const unknown = hashes.filter((_, index) => fates[index] === "unknown")
  return {
    requestStatus: pending.length + unknown.length === 0 ? 200 : 202,
    receipts,
    pending,
    unknown,
    ...(incomplete.length > 0 && { incomplete })
  }
}, Span.named("GetReceipts"))
