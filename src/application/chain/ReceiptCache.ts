import type { Receipt } from "../ports/chain/ChainRpc.js"
import { NodeCache } from "./NodeCache.js"

const maxBytes = 32 * 1_024 * 1_024

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

/** The receipts that were seen last, by their transactions' hashes. */
export const make = (most = maxBytes): NodeCache<Receipt> => new NodeCache(most, bytesOf)
