import * as BigInts from "effect/BigInt"
import * as Schema from "effect/Schema"
import type { Receipt } from "../../../application/ports/chain/ChainRpc.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import { isRecord } from "../transport/JsonRpc.js"
import {
  BlockNumber,
  GasUsed,
  quantityOrNull,
  type ReceiptLog,
  readOrNull,
  type TransactionAnswer,
  zeroHash
} from "./RpcSchemas.js"

/** Receipts; nodes leave out one member or another. */

const hashOrNull = readOrNull(Hex.schema32)
const gasOrNull = readOrNull(GasUsed)
const statusOrNull = readOrNull(Schema.Literals(["0x1", "0x0", "0x01", "0x00"]))
const blockNumberOrNull = readOrNull(BlockNumber)
const addressOrNull = readOrNull(Address.schema)
const listOrNull = readOrNull(Schema.Array(Schema.Unknown))

/** Null for a missing or unreadable member; `malformed` names the unreadable ones. */
const membersOf = (answer: Readonly<Record<string, unknown>>) => {
  const members = {
    transactionHash: hashOrNull(answer.transactionHash),
    status: statusOrNull(answer.status),
    blockNumber: blockNumberOrNull(answer.blockNumber),
    blockHash: hashOrNull(answer.blockHash),
    gasUsed: gasOrNull(answer.gasUsed),
    cumulativeGasUsed: gasOrNull(answer.cumulativeGasUsed),
    effectiveGasPrice: quantityOrNull(answer.effectiveGasPrice),
    l1Fee: quantityOrNull(answer.l1Fee),
    from: addressOrNull(answer.from),
    logs: listOrNull(answer.logs)
  }
  const malformed = Object.entries(members).flatMap(([name, member]) =>
    member === null && answer[name] != null ? [name] : []
  )
  return { ...members, odd: new Set(malformed) }
}
export type ReceiptAnswer = ReturnType<typeof membersOf>

/** Null while the transaction is pending: some nodes return receipts without a block. */
export const readReceipt = (answer: unknown): ReceiptAnswer | null => {
  if (!isRecord(answer)) return answer === null ? null : membersOf({})
  return answer.blockHash === null ? null : membersOf(answer)
}

/** Facts about a transaction from outside its receipt; null when unknown. */
export interface BesideReceipt {
  readonly transaction: typeof TransactionAnswer.Type | null
  /** Base fee of the transaction's block. */
  readonly baseFeePerGas: bigint | null
}

/** Price per gas unit that the transaction paid, from its own fields and its block; null when they do not suffice. */
const paidOf = ({ baseFeePerGas, transaction }: BesideReceipt): bigint | null => {
  if (transaction === null) return null
  const { gasPrice, maxFeePerGas, maxPriorityFeePerGas } = transaction
  if (typeof maxFeePerGas !== "bigint") return gasPrice ?? null
  if (baseFeePerGas === null || typeof maxPriorityFeePerGas !== "bigint") return null
  return BigInts.min(baseFeePerGas + maxPriorityFeePerGas, maxFeePerGas)
}

/** A failed transaction leaves no logs, so logs prove success. An unreadable status overrides them. */
const statusOf = ({ logs, odd, status }: ReceiptAnswer): "0x0" | "0x1" | null => {
  if (status !== null) return status.endsWith("1") ? "0x1" : "0x0"
  return logs !== null && logs.length > 0 && !odd.has("status") ? "0x1" : null
}

/** Builds the receipt; `missing` names unknown fields, which hold placeholders. */
export const toReceipt = (
  txHash: Hex.Bytes32,
  answer: ReceiptAnswer,
  logs: ReadonlyArray<typeof ReceiptLog.Type>,
  beside: BesideReceipt
): Receipt & { readonly missing: ReadonlyArray<string> } => {
  const status = statusOf(answer)
  const price = answer.effectiveGasPrice ?? paidOf(beside)
  const from = answer.from ?? beside.transaction?.from ?? null
  const fields = {
    transactionHash: answer.transactionHash === txHash ? txHash : null,
    status,
    blockNumber: answer.blockNumber,
    blockHash: answer.blockHash,
    gasUsed: answer.gasUsed,
    cumulativeGasUsed: answer.cumulativeGasUsed,
    effectiveGasPrice: price,
    l1Fee: answer.odd.has("l1Fee") ? null : (answer.l1Fee ?? 0n),
    from,
    logs: answer.logs
  }
  return {
    txHash,
    success: status === "0x1",
    blockNumber: answer.blockNumber ?? 0n,
    blockHash: answer.blockHash ?? zeroHash,
    gasUsed: answer.gasUsed ?? 0n,
    cumulativeGasUsed: answer.cumulativeGasUsed ?? 0n,
    effectiveGasPrice: price ?? 0n,
    ...(answer.l1Fee !== null && { l1Fee: answer.l1Fee }),
    from: from ?? Address.zero,
    logs,
    missing: Object.entries(fields).flatMap(([name, value]) => (value === null ? [name] : []))
  }
}
