import * as BigInts from "effect/BigInt"
import type { ChainRpcError } from "../../ports/chain/ChainRpc.js"

/** Blocks, both ends included. */
export interface BlockRange {
  readonly from: bigint
  readonly to: bigint
}

/** Number of blocks. */
export const sizeOf = ({ from, to }: BlockRange): bigint => to - from + 1n

/**
 * How a refused query for logs may be cured.
 *
 * - `everywhere`: the node takes fewer blocks, wherever they lie; at most `size` of them
 * - `here`: this range holds too much; parts of `size` blocks may do
 */
export interface Cure {
  readonly where: "everywhere" | "here"
  /** Smaller than the refused range, at least 1. */
  readonly size: bigint
}

/** Refusals that fewer blocks do not cure, whatever else their text speaks of. */
const incurable =
  /prun(?:ed|ing)|per (?:second|minute|hour|day|month)|not (?:found|available)|unavailable|method.{0,40}(?:disabled|not supported|not allowed)|invalid block range|beyond|future|unknown block/i

/** What the plan or the key does not grant: no fewer blocks cure it, unless a limit of them is named beside it. */
const aboutPlan = /\barchive|\bauth|api[ -]?key|quota|credits?\b/i
const limitOfQuery =
  /\brange\b.{0,40}(?:limit|exceed|too (?:large|wide|big|long)|larger|greater|up to|at most|max|more than)|(?:limit|exceed|max|up to|at most|more than|fewer).{0,60}\b(?:blocks?|range|results|logs)\b|too many (?:results|logs|blocks)/i

/** Words for too many blocks, too many results, too large an answer, too long a search. */
const tooMuch =
  /\branges?\b|\bblocks\b|block ?range|\bresults?\b|\blogs\b|response|time[ds]?[ -]?out|deadline|too (?:big|large|wide|much|many|long|high|heavy)|entity|payload|limit exceeded|\bcapacity\b/i

/** JSON-RPC codes that stand for a senseless or an excessive query (EIP-1474). Ours is never senseless. */
const queryCodes = new Set<number | undefined>([-32_602, -32_005])

/** Only the answer's size or the search's duration is at fault, so that the number of blocks says nothing. */
const aboutResults =
  /results?\b|\blogs?\b (?:response|returned|requested|matched)|too many logs|response|time[ds]?[ -]?out|deadline|backend/i

/** Words of the number of blocks. */
const aboutBlocks = /\branges?\b|\bblocks?\b/i

const suggestion =
  /(?:\[|range )\s*(0x[0-9a-f]{1,16}|\d{1,19})\s*(?:,|-|to)\s*(0x[0-9a-f]{1,16}|\d{1,19})\s*\]?/gi

/** Decimal numbers, also `10,000` and `2K`, that count neither results nor time. */
const numbers =
  /(?<![\w.#-])(\d{1,3}(?:[,_']\d{3})+|\d{1,16})\s*(k|m)?\b(?!\s*(?:results?|logs?|seconds?|secs?|ms|s|mb|kb|bytes)\b)/gi

const scale: Readonly<Record<string, bigint>> = { k: 1_000n, m: 1_000_000n }

/** Blocks that the node says will do when they are asked from the same first block on. */
const suggested = (text: string, { from, to }: BlockRange): bigint | null => {
  // Stryker disable next-line StringLiteral: the pattern has both groups, which the type does not know
  for (const [, first = "", last = ""] of text.matchAll(suggestion)) {
    const begin = BigInt(first)
    const end = BigInt(last)
    if (begin === from && end >= from && end < to) return end - begin + 1n
  }
  return null
}

/** The largest number in the text that may be a limit: smaller than what was asked, and no echo of the question. */
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

/** However little a node says will do, so many parts at most come of one range: it might be wrong. */
const mostParts = 16n

/** A node that gave up without a word may have taken all of its time: three halvings at once. */
const eighth = (size: bigint): bigint => BigInts.max(size / 8n, 1n)

const refusals: ReadonlySet<ChainRpcError["reason"]> = new Set(["rejected", "unsupported", "unavailable"])

/** What the adapter says of answers that were too large to be read, or never came to an end. */
const oversized = /larger than \d+ bytes/
const endless = /answer within \d+ ms|cut off|ECONNRESET|EPIPE|HTTP status (?:408|413|500|502|504|52\d)/

/** Whether the node said more than is read: of one block no fewer blocks cure it. */
export const isTooLarge = ({ message, reason }: ChainRpcError): boolean =>
  reason === "notAnRpc" && oversized.test(message)

/**
 * What a refusal of these blocks means for the next attempt; null when fewer blocks are no cure. Every vendor words
 * its refusals differently and changes them at will, so that only words and numbers are looked for that all have in
 * common, and a wrong guess costs a few more calls, never a log.
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
