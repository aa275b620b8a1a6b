import * as Hex from "../../../domain/primitives/Hex.js"
import type * as Egress from "./Egress.js"
import { isRecord, type RpcError } from "./JsonRpc.js"

/** Meaning of nodes' error objects. Codes, messages and the place of the data all vary. */

/** Longest message shown, in characters. */
const maxMessage = 300

const revertWords = /revert/i

/** EVM halts, in the words of Geth, Reth (anvil), Erigon, Nethermind and Besu. A halt returns no data. */
const haltWords =
  /^(?:out of gas|gas uint64 overflow|invalid opcode|invalid jump|stack (?:underflow|limit|overflow)|write protection|return data out of bounds|max (?:code|initcode) size|contract creation code storage|contract address collision|call depth|EVM error|bad (?:instruction|jump)|VM execution error)/i

/** Refusals before any code runs, which a node may word like a halt. */
const beforehand =
  /insufficient|intrinsic|allowance|nonce|fee cap|max fee|exceeds (?:block|gas)|supplied gas/i

/** EIP-1474's "limit exceeded" also stands for too many results; only the message distinguishes them. */
const tooMuchAsked =
  /results?\b|range|\blogs?\b|blocks|response size|query time[ds]?[ -]?out|too (?:large|big)|batch/i
const rateWords =
  /rate.?limit|too many requests|(?:requests|compute units|calls) per (?:second|minute|day)|throughput|request (?:rate|count|limit) (?:is )?(?:exceeded|reached)|(?:capacity|quota)(?: limit| usage)? (?:exceeded|reached)|exceeded (?:the|its|your) (?:quota|capacity)|throttl|slow down/i
const rateCodes: ReadonlySet<number> = new Set([429, -32_029, -32_097])

export const isRateLimit = ({ code, message }: RpcError): boolean => {
  if (code === 3 || revertWords.test(message)) return false
  if (rateCodes.has(code)) return true
  return code === -32005 ? !tooMuchAsked.test(message) : rateWords.test(message)
}

const dayMillis = 86_400_000

/** Wait that a rate limit requests, in Infura's form `{"rate": {"backoff_seconds": 30}}`; otherwise 0. At most a day. */
export const backoffMillis = (error: RpcError): number => {
  const rate = isRateLimit(error) && isRecord(error.data) ? error.data.rate : undefined
  const seconds = isRecord(rate) ? rate.backoff_seconds : undefined
  return typeof seconds === "number" && seconds > 0 ? Math.min(seconds * 1_000, dayMillis) : 0
}

/** Words about a missing method: "does not exist/is not available", "is not whitelisted". */
const lack =
  "(?:(?:not|n't) (?:be |yet |currently )?(?:found|supported|available|allowed|exist|implemented|enabled|permitted|whitelisted)|unsupported|unavailable|disabled|blocked|restricted)"
const missingWords = [
  new RegExp(`\\bmethod\\b.{0,120}?${lack}\\b`, "i"),
  new RegExp(`^['"]?[a-z]{2,12}_\\w{1,40}\\b.{0,40}?${lack}\\b`, "i"),
  /\b(?:unsupported|unknown|unrecognized|no such)(?: json-?rpc| rpc)? method\b/i
]

/** The node lacks the method, or does not serve it to us. */
export const isUnsupported = ({ code, message }: RpcError): boolean => {
  if (code === 3 || revertWords.test(message)) return false
  return code === -32_601 || code === -32_004 || missingWords.some((words) => words.test(message))
}

/** Methods that nodes may lack; the service then uses other calls. */
export const optional: ReadonlySet<string> = new Set([
  "eth_simulateV1",
  "eth_feeHistory",
  "eth_maxPriorityFeePerGas"
])

/** The node lacks a block that it, or another node behind the same balancer, has announced. */
const behindWords =
  /^(?:(?:the )?(?:block )?header (?:for hash )?(?:0x[0-9a-f]+ )?not found|(?:block|header) (?:#?\d+ |0x[0-9a-f]+ )?(?:is )?(?:not found|unknown|not available|could not be found)|unknown block|(?:could not|cannot|can't) find (?:the )?(?:block|header)|(?:requested )?block (?:number )?is (?:in the future|out of range)|block height is \d+ but requested was|BlockOutOfRange)/i

/** Anvil uses these words for an old block too, once it has dropped the block's state. */
const heights = /block height is (\d+) but requested was (\d+)/i

const isPast = (message: string): boolean => {
  const [, height, requested] = heights.exec(message) ?? []
  return height !== undefined && requested !== undefined && BigInt(requested) <= BigInt(height)
}

/** A call at a block that the node does not know yet; a retry may succeed. */
export const isBehind = ({ code, message }: RpcError): boolean =>
  code !== 3 && !revertWords.test(message) && behindWords.test(message) && !isPast(message)

/** Members with which nodes, proxies and libraries pass on another error. */
const nests = ["data", "return", "originalError", "error", "cause"] as const

/** Messages of the wrapped errors, excluding hex data. */
const messagesOf = (value: unknown, depth: number): ReadonlyArray<string> => {
  if (typeof value === "string") return Hex.is(value) ? [] : [value.slice(0, maxMessage)]
  if (!isRecord(value) || depth === 0) return []
  const own = typeof value.message === "string" ? [value.message.slice(0, maxMessage)] : []
  return [...own, ...nests.flatMap((name) => messagesOf(value[name], depth - 1))]
}

/** The message with the messages of wrapped errors: "internal error" explains nothing. */
export const textOf = ({ code, data, message }: RpcError): string =>
  code !== internalError
    ? message
    : messagesOf(data, 4).reduce(
        (text, words) => (text.includes(words) ? text : `${text}: ${words}`),
        message
      )

const internalError = -32_603

/** Internal errors, and the code of Optimism's proxy without a backend. */
const outageCodes: ReadonlySet<number> = new Set([internalError, -32_011])

/** Words of gateways without a node, or of nodes that cannot work, under any code. */
const outageWords =
  /\b(?:bad gateway|gateway time-?out|(?:service|server|node|backend|temporarily|currently) (?:is )?(?:temporarily |currently )?unavailable|internal (?:server|json-?rpc)? ?error|no (?:\w+ )?(?:backends?|upstreams?)\b|(?:backend|upstream)s? (?:is |are |was )?(?:currently )?(?:not |un)?(?:healthy|offline|down|request|connect|error|timed? ?out|failed|returned)|connection (?:was |is )?(?:refused|reset|closed|timed out)|ECONN(?:REFUSED|RESET|ABORTED)|ETIMEDOUT|no such host|unexpected EOF|(?:try|retry) (?:again|later)|overloaded|(?:server|node|backend) (?:is )?(?:too )?busy|under maintenance|shutting down|not (?:yet )?(?:ready|synced)|(?:still|is) syncing)|\b(?:http|status|code|error)\W{0,3}(?:(?:status )?code\W{0,3})?5(?:0[0234]|2\d)\b|^\W*50[0234]\b/i

/** Words that show that the node processed the request, so that the error is not an outage. */
const classified =
  /revert|nonce|already|\bknown transaction|underpriced|insufficient|\bfees?\b|\btip\b|\bgas\b|\bfunds\b|balance|\bprice|opcode|\bjump|\bstack\b|\bexecution (?:error|failed)|VM (?:exception|execution)|invalid (?:argument|param|request|sender|chain|signature|transaction|tx|address|input|block|hex|hash|type|length|data|instruction|json|method|key|api)|\bargument|\bparam|unsupported|not (?:supported|implemented|allowed|permitted|enabled|exist)|unimplemented|does(?:n't| not) exist|unauthori[sz]ed|forbidden|denied|\bapi[ -]?key|too (?:large|big|wide|long|many (?:results|blocks|logs|topics|addresses))|\branges?\b|\bresults?\b|\blogs\b|response size|query time|limit exceeded|exceeds|trie node|prun(?:ed|ing)|archive|\bhistor/i

/** Words of gateways without a node, in pages and in JSON, under any HTTP status. Any other page does not come from a node. */
const outagePage =
  /\bbad gateway\b|\bgateway time-?out\b|\b50[0-4]\b[^a-z]{0,16}(?:service (?:temporarily )?unavailable|internal server error)|no healthy upstream|upstream connect error/i

export const isOutagePage = (text: string): boolean => outagePage.test(text)

/**
 * The node cannot answer any call now: an outage reported as a JSON-RPC error. An internal error counts only without revert
 * data and without words that show that the node processed the request.
 */
export const isOutage = (error: RpcError): boolean => {
  if (revertData(error) !== undefined || isUnsupported(error)) return false
  const text = textOf(error)
  return (outageCodes.has(error.code) || outageWords.test(text)) && !classified.test(text)
}

/** Excludes methods of bundlers and paymasters, whose internal errors concern the op. */
export const isOfNode = (method: string): boolean => !/UserOperation|^pm_/.test(method)

/** Geth cuts off a batch whose results together are too large or take too long. */
export const isOfCrowd = ({ code, message }: RpcError): boolean =>
  (code === -32_003 && /too large/i.test(message)) || (code === -32_002 && /timed? ?out/i.test(message))

const batchWords =
  /batch|too many (?:calls|rpc)|(?:calls|requests) (?:in one|per) request|(?:number|count|limit|max\w*) of (?:rpc )?(?:calls|requests)/i

/** The message names the number of calls in a request. */
export const namesBatches = (error: RpcError): boolean =>
  batchWords.test(error.message) && revertData(error) === undefined

/** The node accepts fewer calls per request, or only single calls. */
export const isOfBatches = (error: RpcError): boolean => error.code === -32_600 || namesBatches(error)

const dataOf = (value: unknown, depth: number): Hex.Hex | undefined => {
  if (typeof value === "string") {
    const text = value.replace(/^Reverted /, "")
    return Hex.is(text) ? Hex.unsafe(text) : undefined
  }
  if (!isRecord(value) || depth === 0) return undefined
  for (const name of nests) {
    const found = dataOf(value[name], depth - 1)
    if (found !== undefined) return found
  }
  // Ganache keys its data by transaction hash.
  for (const [name, member] of Object.entries(value).slice(0, 8)) {
    if (!/^0x[0-9a-f]{64}$/i.test(name)) continue
    const found = dataOf(member, depth - 1)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * Revert data of a call that failed while running: empty when the node returns none, or the EVM halted. `undefined`: the
 * call was refused, not run.
 */
export const revertData = ({ code, data, message }: RpcError): Hex.Hex | undefined => {
  const found = dataOf(data, 4)
  if (code === 3 || revertWords.test(message)) return found ?? Hex.empty
  if (typeof data === "string" && /^Reverted\b/.test(data)) return found ?? Hex.empty
  if (beforehand.test(message)) return undefined
  if (found !== undefined && found !== "0x") return found
  return haltWords.test(message) ? Hex.empty : undefined
}

/** Whether a failed call ran out of gas, by its node's message. */
export const gas = ({ message }: RpcError): { readonly outOfGas?: true } =>
  /out ?of ?gas/i.test(message) ? { outOfGas: true } : {}

/** Shorter strings are words, such as the `v3` of a path. */
const secretLength = 8

/** Replaces these strings in others, but for short ones. */
export const hider = (texts: ReadonlyArray<string>): ((text: string) => string) => {
  const secrets = texts.filter(({ length }) => length >= secretLength).sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, "..."), text)
}

/**
 * Makes a node's message presentable: bounded, on one line, with the node's URL reduced to its origin. Nodes and gateways
 * quote the request's path, and paths contain keys.
 */
export const scrubber = (target: Egress.Target): ((text: string) => string) => {
  const [pathname = ""] = target.path.split("?")
  const secrets = [target.path, pathname, ...target.path.split(/[/?&=]/)]
    .filter((part) => part.length >= secretLength)
    .flatMap((part) => [part, safeDecode(part)])
    .filter((part) => part.length >= secretLength / 2)
    .sort((a, b) => b.length - a.length)
  return (text) => {
    let clean = text.replace(/[a-z][a-z0-9+.-]{0,15}:\/\/[^\s"'<>]*/gi, "(URL)")
    for (const secret of secrets) clean = clean.replaceAll(secret, "...")
    clean = clean.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim()
    return clean.length > maxMessage ? `${clean.slice(0, maxMessage)}...` : clean
  }
}

const safeDecode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
