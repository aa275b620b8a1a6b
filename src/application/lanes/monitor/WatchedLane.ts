import * as Latch from "effect/Latch"
import type { TransactionRecord } from "../../ports/journal/Transactions.js"
import type { InFlight } from "../InFlight.js"
import type * as FollowedTransaction from "./FollowedTransaction.js"
import * as LaneNodes from "./LaneNodes.js"
import type { Resting } from "./ReceiptSchedule.js"

export interface WatchedLane extends Resting {
  readonly entries: Map<bigint, FollowedTransaction.FollowedTransaction>
  readonly nodes: LaneNodes.LaneNodes
  operatorsAt: number
  /** Nonces of transactions in their first broadcast. */
  readonly arriving: Array<bigint>
  isRunning: boolean
  readonly put: (entry: FollowedTransaction.FollowedTransaction) => void
  readonly drop: (record: Pick<TransactionRecord, "nonce">) => void
  readonly isCurrent: (entry: FollowedTransaction.FollowedTransaction) => boolean
}

export const isSame = (one: TransactionRecord, other: TransactionRecord): boolean =>
  one.state === other.state &&
  one.versions.at(-1)?.txHash === other.versions.at(-1)?.txHash &&
  one.mined?.blockHash === other.mined?.blockHash

export const describe = ({ nonce, signer }: TransactionRecord) => ({ nonce: nonce.toString(), signer })

/** Makes a lane without transactions; `inFlight` counts the signed ones. */
export const make = (inFlight: InFlight): WatchedLane => {
  const entries = new Map<bigint, FollowedTransaction.FollowedTransaction>()
  const signedOf = (nonce: bigint): TransactionRecord | null => {
    const record = entries.get(nonce)?.record
    return record?.state === "signed" ? record : null
  }
  return {
    entries,
    nodes: new LaneNodes.LaneNodes(),
    operatorsAt: 0,
    arriving: [],
    isRunning: false,
    regularAt: 0,
    roundAt: 0,
    rest: Latch.makeUnsafe(true),
    put: (entry) => {
      const { record } = entry
      const before = signedOf(record.nonce)
      // To the end of the queue.
      entries.delete(record.nonce)
      entries.set(record.nonce, entry)
      if (record.state !== "signed") {
        if (before !== null) inFlight.remove(before)
      } else inFlight.add(record)
    },
    drop: ({ nonce }) => {
      const before = signedOf(nonce)
      entries.delete(nonce)
      if (before !== null) inFlight.remove(before)
    },
    isCurrent: (entry) => entries.get(entry.record.nonce) === entry
  }
}
