import type { FoundLog, LogFilter } from "../../../application/ports/chain/ChainRpc.js"
import * as Outcome from "../../../domain/erc4337/Outcome.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import { isRecord } from "../transport/JsonRpc.js"
import { BlockNumber, Count, readOrNull, Topics, zeroHash } from "./RpcSchemas.js"

/** Logs with missing or malformed fields: their readable parts, and whether to ignore them. */

const addressOf = readOrNull(Address.schema)
const topicsOf = readOrNull(Topics)
const dataOf = readOrNull(Hex.schema)
const countOf = readOrNull(Count)
const hashOf = readOrNull(Hex.schema32)
const blockOf = readOrNull(BlockNumber)

type Filter = Pick<LogFilter, "address" | "topics"> & Partial<Pick<LogFilter, "fromBlock" | "toBlock">>

/** A pending log has no place yet; a removed log has lost it. */
const isPlaced = (log: Readonly<Record<string, unknown>>): boolean =>
  log.removed !== true &&
  ["blockNumber", "blockHash", "logIndex", "transactionHash"].every((name) => log[name] !== null)

const isOutside = (block: bigint | null, { fromBlock, toBlock }: Filter): boolean =>
  block !== null &&
  ((typeof fromBlock === "bigint" && block < fromBlock) || (typeof toBlock === "bigint" && block > toBlock))

/** Whether the filter may match the log; an unreadable field matches. */
export const mayMatch = (value: unknown, filter: Filter): boolean => {
  if (!isRecord(value)) return true
  const address = addressOf(value.address)
  const topics = topicsOf(value.topics)
  return (
    isPlaced(value) &&
    !isOutside(blockOf(value.blockNumber), filter) &&
    (address === null || filter.address === undefined || filter.address.includes(address)) &&
    (topics === null ||
      filter.topics.every((wanted, place) => {
        const topic = topics[place]
        if (wanted === null) return true
        return topic !== undefined && (typeof wanted === "string" ? wanted === topic : wanted.includes(topic))
      }))
  )
}

/** The log's readable fields and the names of the others; null when its fields do not prove that the filter matches. */
export const readIncomplete = (value: unknown, filter: Filter): FoundLog | null => {
  if (!isRecord(value) || !mayMatch(value, filter)) return null
  const topics = topicsOf(value.topics)
  const address = addressOf(value.address)
  if (topics === null || (address === null && filter.address !== undefined)) return null
  const fields = {
    address,
    data: dataOf(value.data),
    logIndex: countOf(value.logIndex),
    transactionHash: hashOf(value.transactionHash),
    blockNumber: blockOf(value.blockNumber),
    removed: value.removed == null || value.removed === false ? false : null
  }
  const missing = Object.entries(fields).flatMap(([name, member]) => (member === null ? [name] : []))
  return {
    address: address ?? Address.zero,
    topics,
    data: fields.data ?? Hex.empty,
    logIndex: fields.logIndex ?? 0,
    txHash: fields.transactionHash ?? zeroHash,
    blockNumber: fields.blockNumber ?? 0n,
    blockHash: hashOf(value.blockHash) ?? zeroHash,
    ...(missing.length > 0 && { missing })
  }
}

/** Whether a log may show the outcome of an op: not with topics of another event, nor from a contract outside `emitters`. */
export const mayTellOfOps = (value: unknown, emitters?: ReadonlySet<Address.Address>): boolean => {
  if (!isRecord(value)) return emitters === undefined || emitters.size > 0
  const topics = topicsOf(value.topics)
  const address = addressOf(value.address)
  return (
    (topics === null || Outcome.isOfOutcome(topics)) &&
    (emitters === undefined || (address === null ? emitters.size > 0 : emitters.has(address)))
  )
}

/** Whether the log's place identifies it, so that receivers are notified once. */
export const isPlain = ({ missing = [] }: FoundLog): boolean =>
  !["address", "blockNumber", "logIndex"].some((name) => missing.includes(name))
