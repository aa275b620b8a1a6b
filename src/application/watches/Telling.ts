import type { FoundLog } from "../ports/chain/ChainRpc.js"
import type { WatchedEvent } from "../ports/Watches.js"
import type { Found } from "./Matching.js"

/** Characters of JSON that are told of one event: the node decides how long a log is. */
const mostCharacters = 65_536

/** What a watch is told of a log. What is too long to be told is in the transaction's receipt. */
export const event = (log: FoundLog, { decoded, definition, watch }: Found): WatchedEvent => {
  const place = {
    blockNumber: Number(log.blockNumber),
    blockHash: log.blockHash,
    txHash: log.txHash,
    logIndex: log.logIndex,
    address: log.address,
    eventName: definition.name,
    eventDef: definition.canonical
  }
  // A log of more values than are decoded has no definition, and no arguments.
  const isWhole = decoded.eventDef !== null && JSON.stringify(decoded.args).length <= mostCharacters
  return {
    watch: watch.watch,
    blockNumber: log.blockNumber,
    blockHash: log.blockHash,
    logIndex: log.logIndex,
    data: isWhole ? { ...place, args: decoded.args } : { ...place, args: null, isTooLarge: true }
  }
}
