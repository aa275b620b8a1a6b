import * as BigInts from "effect/BigInt"
import type { ChainRpcError } from "../../ports/chain/ChainRpc.js"

/** Blocks, both ends included. */
export interface BlockRange {
  readonly from: bigint
  readonly to: bigint
}

export const sizeOf = ({ from, to }: BlockRange): bigint => to - from + 1n

/**
 * A retry that may succeed after a refused query for logs.
 *
 * - `everywhere`: the node takes fewer blocks in any range; at most `size`
 * - `here`: this range holds too much; parts of `size` blocks may succeed
 */
export interface Cure {
  readonly where: "everywhere" | "here"
  /** Smaller than the refused range, at least 1. */
  readonly size: bigint
}

/** Refusals that fewer blocks cannot cure, whatever else their text mentions. */
const incurable =
  /prun(?:ed|ing)|per (?:second|minute|hour|day|month)|not (?:found|available)|unavailable|method.{0,40}(?:disabled|not supported|not allowed)|invalid block range|beyond|future|unknown block/i

/** Refusals by the plan or the key: fewer blocks cannot cure them, unless the text also names a limit of blocks. */
const aboutPlan = /\barchive|\bauth|api[ -]?key|quota|credits?\b/i
const limitOfQuery =
  /\brange\b.{0,40}(?:limit|exceed|too (?:large|wide|big|long)|larger|greater|up to|at most|max|more than)|(?:limit|exceed|max|up to|at most|more than|fewer).{0,60}\b(?:blocks?|range|results|logs)\b|too many (?:results|logs|blocks)/i

/** Words for too many blocks, too many results, too large an answer, too long a search. */
const tooMuch =
  /\branges?\b|\bblocks\b|block ?range|\bresults?\b|\blogs\b|response|time[ds]?[ -]?out|deadline|too (?:big|large|wide|much|many|long|high|heavy)|entity|payload|limit exceeded|\bcapacity\b/i

/** JSON-RPC codes for an invalid or an excessive query (EIP-1474). Our queries are never invalid. */
const queryCodes = new Set<number | undefined>([-32_602, -32_005])

/** The answer's size or the search's duration is at fault; the text says nothing about block numbers. */
const aboutResults =
  /results?\b|\blogs?\b (?:response|returned|requested|matched)|too many logs|response|time[ds]?[ -]?out|deadline|backend/i

/** Words for the number of blocks. */
const aboutBlocks = /\branges?\b|\bblocks?\b/i

const suggestion =
  /(?:\[|range )\s*(0x[0-9a-f]{1,16}|\d{1,19})\s*(?:,|-|to)\s*(0x[0-9a-f]{1,16}|\d{1,19})\s*\]?/gi

/** Decimal numbers, also `10,000` and `2K`, that count neither results nor time. */
const numbers =
  /(?<![\w.#-])(\d{1,3}(?:[,_']\d{3})+|\d{1,16})\s*(k|m)?\b(?!\s*(?:results?|logs?|seconds?|secs?|ms|s|mb|kb|bytes)\b)/gi

const scale: Readonly<Record<string, bigint>> = { k: 1_000n, m: 1_000_000n }

/** Number of blocks from the same first block on that the node suggests. */
const suggested = (text: string, { from, to }: BlockRange): bigint | null => {
  // Stryker disable next-line StringLiteral: the pattern has both groups, which the type does not know
  for (const [, first = "", last = ""] of text.matchAll(suggestion)) {
    const begin = BigInt(first)
    const end = BigInt(last)
    if (begin === from && end >= from && end < to) return end - begin + 1n
  }
  return null
}

/** The largest number in the text that may be a limit: smaller than the query, and not an echo of it. */
const stated = (text: string, range: BlockRange): bigint | null => {
  const size = sizeOf(range)
  const echoes = new Set([size - 1n, range.from, range.to])
  let limit = 0n
  // Stryker disable next-line StringLiteral: the pattern has digits, and a unit that is none has no scale
  for (const [, digits = "", unit = ""] of text.matchAll(numbers)) {
    const number = BigInt(digits.replace(/\D/g, "")) * (scale[unit.toLowerCase()] ?? 1n)
    if (number < size && !echoes.has(number)) limit = BigInts.max(limit, number)
  }
  return limit === 0n ? null : limit
}

const half = (size: bigint): bigint => (size + 1n) / 2n

/** Most parts of one range, however low the node's stated limit is: it might be wrong. */
const mostParts = 16n

/** A node that failed without a reason may have used all of its time: halve three times. */
const eighth = (size: bigint): bigint => BigInts.max(size / 8n, 1n)

const refusals: ReadonlySet<ChainRpcError["reason"]> = new Set(["rejected", "unsupported", "unavailable"])

/** The adapter's wording for answers that were too large to read, or never ended. */
const oversized = /larger than \d+ bytes/
const endless = /answer within \d+ ms|cut off|ECONNRESET|EPIPE|HTTP status (?:408|413|500|502|504|52\d)/

/** Whether the answer exceeded the reading limit: for one block, fewer blocks cannot cure that. */
export const isTooLarge = ({ message, reason }: ChainRpcError): boolean =>
  reason === "notAnRpc" && oversized.test(message)

/**
 * Derives the next attempt from a refusal of these blocks; null when fewer blocks do not help. Every vendor words
 * refusals differently and changes them at will, so only words and numbers that all have in common are matched. A wrong
 * guess costs a few more calls, never a log.
 */
export const cure = ({ message, reason, rpcCode }: ChainRpcError, range: BlockRange): Cure | null => {
  const size = sizeOf(range)
  if (size <= 1n) return null
  if (
    reason === "unreachable" ||
    reason === "notAnRpc" ||
    (reason === "unavailable" && rpcCode === undefined)
  )
    return oversized.test(message) || endless.test(message) ? { where: "here", size: eighth(size) } : null
  if (!refusals.has(reason) || incurable.test(message)) return null
  if (aboutPlan.test(message) && !limitOfQuery.test(message)) return null
  if (!tooMuch.test(message) && !queryCodes.has(rpcCode)) return null

  const limit = aboutBlocks.test(message) ? stated(message, range) : null
  const offered = suggested(message, range)
  if (!aboutResults.test(message) && aboutBlocks.test(message))
    return { where: "everywhere", size: limit ?? offered ?? half(size) }
  const part = offered ?? limit
  return {
    where: "here",
    size: part === null ? half(size) : BigInts.max(part, (size + mostParts - 1n) / mostParts)
  }
}
