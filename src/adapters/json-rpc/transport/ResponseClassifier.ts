import * as Result from "effect/Result"
import { ChainRpcError } from "../../../application/ports/chain/ChainRpc.js"
import type * as Egress from "./Egress.js"
import type { Answer, HttpFailure } from "./Http.js"
import * as JsonRpc from "./JsonRpc.js"
import * as Refusal from "./Refusal.js"
import * as Retry from "./Retry.js"

/** What the node said to one call. */
export type CallClassification =
  /** A result, or an error object that only the method can interpret. Its message is presentable. */
  | { readonly _tag: "answered"; readonly outcome: JsonRpc.Outcome }
  | { readonly _tag: "failed"; readonly error: ChainRpcError }
  /** A failure that a later attempt may not meet. */
  | { readonly _tag: "again"; readonly error: ChainRpcError }
  /** The node has not got the block yet: it may soon. */
  | { readonly _tag: "behind"; readonly error: ChainRpcError }
  /** The other calls of the request left no room or no time for it. */
  | { readonly _tag: "crowded"; readonly error: ChainRpcError }

export type Classification =
  | {
      readonly _tag: "each"
      readonly of: (call: JsonRpc.Call) => CallClassification
      /** What the node asks to wait at least before the next attempt. */
      readonly afterMillis: number
    }
  /** The node does not take so many calls in one request. */
  | { readonly _tag: "smaller" }
  /** The answers to all calls together are larger than what is read; `error` is for those that can not be parted. */
  | { readonly _tag: "halves"; readonly error: ChainRpcError }
  /** All calls were refused, perhaps for one whose method the node lacks: those that it may lack go alone. */
  | { readonly _tag: "apart" }

/** Gateways that stand in for a node which may be back soon: what they say is not the node's. */
const gateway = new Set([502, 503, 504])

/** The node, or what is before it, has failed: another answer is no other method's. */
const isServerError = (status: number): boolean => status === 408 || (status >= 500 && status !== 501)

const payloadTooLarge = 413

/** Characters of a page in which an outage is looked for. */
const longestPage = 16_384

/** By these gateways refuse methods that they do not serve, in words of their own. */
const refusesMethods = new Set([400, 403, 404, 405, 501])

const classificationsOf = (origin: string, scrub: ReturnType<typeof Refusal.scrubber>) => {
  const errorOf = (reason: ChainRpcError["reason"], message: string) =>
    new ChainRpcError({ reason, origin, message: `${origin}: ${message}` })
  const failed = (reason: ChainRpcError["reason"], message: string): CallClassification => ({
    _tag: "failed",
    error: errorOf(reason, message)
  })
  const again = (
    reason: "rateLimited" | "unreachable" | "unavailable",
    message: string
  ): CallClassification => ({
    _tag: "again",
    error: errorOf(reason, message)
  })
  const all = (classification: CallClassification, afterMillis = 0): Classification => ({
    _tag: "each",
    of: () => classification,
    afterMillis
  })
  const ofNode = (reason: ChainRpcError["reason"], error: JsonRpc.RpcError) =>
    new ChainRpcError({ reason, origin, message: scrub(Refusal.textOf(error)), rpcCode: error.code })
  return { errorOf, failed, again, all, ofNode }
}

type Target = Pick<Egress.Target, "origin"> & { readonly scrub: ReturnType<typeof Refusal.scrubber> }

/** One error for all of the calls. */
const ofRefusal = (
  { origin, scrub }: Target,
  error: JsonRpc.RpcError,
  calls: ReadonlyArray<JsonRpc.Call>,
  afterMillis: number
): Classification => {
  const { again, all, ofNode } = classificationsOf(origin, scrub)
  const isUnsupported = Refusal.isUnsupported(error)
  if (Refusal.isRateLimit(error))
    return all(
      again("rateLimited", scrub(error.message)),
      Math.max(afterMillis, Refusal.backoffMillis(error))
    )
  const mayLack = calls.some(({ method }) => Refusal.optional.has(method))
  if (calls.length > 1 && mayLack && isUnsupported) return { _tag: "apart" }
  if (calls.length > 1 && Refusal.isOfBatches(error)) return { _tag: "smaller" }
  const isOfNode = calls.every(({ method }) => Refusal.isOfNode(method))
  return isOfNode && (Refusal.isBehind(error) || Refusal.isOutage(error))
    ? all({ _tag: "again", error: ofNode("unavailable", error) }, afterMillis)
    : all({ _tag: "failed", error: ofNode(isUnsupported ? "unsupported" : "rejected", error) })
}

/** The error of one call out of so many. */
const ofError = (
  { origin, scrub }: Target,
  error: JsonRpc.RpcError,
  { method }: JsonRpc.Call,
  calls: number
): CallClassification => {
  const { again, ofNode } = classificationsOf(origin, scrub)
  if (Refusal.isRateLimit(error)) return again("rateLimited", scrub(error.message))
  if (calls > 1 && Refusal.isOfCrowd(error)) return { _tag: "crowded", error: ofNode("rejected", error) }
  if (Refusal.isOfNode(method)) {
    const outage = ofNode("unavailable", error)
    if (Refusal.isBehind(error))
      return { _tag: method === "eth_getLogs" ? "failed" : "behind", error: outage }
    if (Refusal.isOutage(error)) return { _tag: "again", error: outage }
  }
  return {
    _tag: "answered",
    outcome: { _tag: "error", error: { ...error, message: scrub(Refusal.textOf(error)) } }
  }
}

/**
 * What came back for `calls`. `now`: Unix milliseconds. A JSON-RPC answer counts whatever its HTTP status is,
 * those of rate limits, redirects and gateways apart.
 */
export const judge =
  (target: Target) =>
  (
    posted: Result.Result<Answer, HttpFailure>,
    calls: ReadonlyArray<JsonRpc.Call>,
    now: number
  ): Classification => {
    const { again, all, errorOf, failed } = classificationsOf(target.origin, target.scrub)
    if (Result.isFailure(posted)) {
      const { message, passing, reason } = posted.failure
      if (passing) return all(again("unreachable", message))
      if (reason === "oversized" && calls.length > 1)
        return { _tag: "halves", error: errorOf("notAnRpc", message) }
      return all(failed(reason === "garbled" || reason === "oversized" ? "notAnRpc" : reason, message))
    }

    const { body, retryAfter, status } = posted.success
    const afterMillis = Retry.afterMillis(retryAfter, now)
    const says = `HTTP status ${status}`
    if (status === 429) return all(again("rateLimited", says), afterMillis)
    if (gateway.has(status)) return all(again("unavailable", says), afterMillis)
    if (status >= 300 && status < 400)
      return all(failed("unreachable", `${says}: redirects are not followed`))
    if (status === payloadTooLarge && calls.length > 1) return { _tag: "smaller" }

    const decoded = JsonRpc.decode(body, calls)
    if (Result.isFailure(decoded)) {
      if (isServerError(status)) return all(again("unavailable", says), afterMillis)
      // Some gateways say it with 200, in a page or in JSON of their own.
      if (body.length <= longestPage && Refusal.isOutagePage(body))
        return all(again("unavailable", "its gateway has no node"), afterMillis)
      if (status >= 200 && status < 300) return all(failed("notAnRpc", decoded.failure))
      const mayLack = calls.some(({ method }) => Refusal.optional.has(method))
      if (!mayLack || !refusesMethods.has(status)) return all(failed("unreachable", says))
      return calls.length > 1 ? { _tag: "apart" } : all(failed("unsupported", says))
    }

    const answers = decoded.success
    if (answers._tag === "refused") return ofRefusal(target, answers.error, calls, afterMillis)
    const outcomes = [...answers.byId.values()]
    const errors = outcomes.flatMap((outcome) => (outcome._tag === "error" ? [outcome.error] : []))
    if (calls.length > 1 && errors.length === calls.length && errors.every(Refusal.namesBatches))
      return { _tag: "smaller" }
    return {
      _tag: "each",
      afterMillis: Math.max(afterMillis, ...errors.map(Refusal.backoffMillis)),
      of: (call) => {
        const outcome = answers.byId.get(call.id)
        if (outcome === undefined) return failed("notAnRpc", `it left out the answer to ${call.method}`)
        return outcome._tag === "result"
          ? { _tag: "answered", outcome }
          : ofError(target, outcome.error, call, calls.length)
      }
    }
  }
