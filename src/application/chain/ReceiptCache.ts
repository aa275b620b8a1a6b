import type { Bytes32 } from "../../domain/primitives/Hex.js"
import { Lru } from "../../domain/primitives/Lru.js"
import type { Receipt } from "../ports/chain/ChainRpc.js"
import type { AccountId } from "../ports/Tenants.js"

/** Who waits for a transaction asks within seconds of its block: some thousand receipts are enough. */
const maxBytes = 8 * 1_024 * 1_024

/** Memory of a receipt or a log beside its texts, and of a text beside its digits, about. */
const objectBytes = 256
const textBytes = 32

/** Bytes of memory that a receipt takes, about. */
export const bytesOf = ({ logs }: Receipt): number => {
  let bytes = 2 * objectBytes
  for (const { data, topics } of logs)
    bytes += objectBytes + textBytes + data.length + topics.length * (textBytes + 66)
  return bytes
}

/**
 * The receipts that were seen last, bounded over all nodes together. What an account's node showed is told to that account
 * only; what the operator's node showed (`null`) is told to everybody.
 */
export class ReceiptCache {
  private readonly receipts: Lru<string, Receipt>

  /** `most`: bytes of memory of all of them. */
  constructor(most = maxBytes) {
    this.receipts = new Lru(most, bytesOf)
  }

  /** What a reader may be told: `null` is who believes the operator's node only. */
  get(reader: AccountId | null, txHash: Bytes32): Receipt | undefined {
    const told = this.receipts.get(keyOf(null, txHash))
    return told ?? (reader === null ? undefined : this.receipts.get(keyOf(reader, txHash)))
  }

  set(teller: AccountId | null, receipt: Receipt): void {
    this.receipts.set(keyOf(teller, receipt.txHash), receipt)
  }

  /** The account's transaction has left the chain: nobody is told of it any more. */
  delete(account: AccountId, txHash: Bytes32): void {
    this.receipts.delete(keyOf(null, txHash))
    this.receipts.delete(keyOf(account, txHash))
  }
}

const keyOf = (teller: AccountId | null, txHash: Bytes32): string => `${txHash} ${teller ?? ""}`
