import type { Bytes32 } from "../../domain/primitives/Hex.js"
import { Lru } from "../../domain/primitives/Lru.js"
import type { Receipt } from "../ports/chain/ChainRpc.js"
import type { AccountId } from "../ports/Tenants.js"

/** Callers read a transaction within seconds of its block, so the receipts of some seconds are enough. */
const maxBytes = 2 * 1_024 * 1_024

/** Approximate memory of a receipt or a log in addition to its strings, and of a string in addition to its digits. */
const objectBytes = 256
const textBytes = 32

/** Approximate memory of a receipt, bytes. */
export const bytesOf = ({ logs }: Receipt): number => {
  let bytes = 2 * objectBytes
  for (const { data, topics } of logs)
    bytes += objectBytes + textBytes + data.length + topics.length * (textBytes + 66)
  return bytes
}

/**
 * The receipts last seen, bounded over all nodes together. Receipts from an account's node are visible only to that
 * account; those from the operator's node (`null`) to all.
 */
export class ReceiptCache {
  private readonly receipts: Lru<string, Receipt>

  /** `most`: bytes of memory of all of them. */
  constructor(most = maxBytes) {
    this.receipts = new Lru(most, bytesOf)
  }

  /** The receipt that this reader may see; `null` is a reader that only trusts the operator's node. */
  get(reader: AccountId | null, txHash: Bytes32): Receipt | undefined {
    const cached = this.receipts.get(keyOf(null, txHash))
    return cached ?? (reader === null ? undefined : this.receipts.get(keyOf(reader, txHash)))
  }

  set(source: AccountId | null, receipt: Receipt): void {
    this.receipts.set(keyOf(source, receipt.txHash), receipt)
  }

  delete(account: AccountId, txHash: Bytes32): void {
    this.receipts.delete(keyOf(null, txHash))
    this.receipts.delete(keyOf(account, txHash))
  }
}

const keyOf = (source: AccountId | null, txHash: Bytes32): string => `${txHash} ${source ?? ""}`
