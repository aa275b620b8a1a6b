import * as Result from "effect/Result"
import { ChainRpcError } from "../../../application/ports/chain/ChainRpc.js"
import type * as Egress from "./Egress.js"
import type { Answer, HttpFailure } from "./Http.js"
import * as JsonRpc from "./JsonRpc.js"
import * as Refusal from "./Refusal.js"
import * as Retry from "./Retry.js"

/** Classification of one call's result. */
export type CallClassification =
  /** A result, or an error object that only the method can interpret. Its message is presentable. */
  | { readonly _tag: "answered"; readonly outcome: JsonRpc.Outcome }
  | { readonly _tag: "failed"; readonly error: ChainRpcError }
  /** A failure that a later attempt may avoid. */
  | { readonly _tag: "again"; readonly error: ChainRpcError }
  /** The node lacks the block, perhaps briefly. */
  | { readonly _tag: "behind"; readonly error: ChainRpcError }
  /** The other calls of the request left no room or time for this call. */
  | { readonly _tag: "crowded"; readonly error: ChainRpcError }

export type Classification =
  | {
      readonly _tag: "each"
      readonly of: (call: JsonRpc.Call) => CallClassification
      /** Wait before the next attempt that the node requests, in ms. */
      readonly afterMillis: number
    }
  /** The node refuses the number of calls in one request. */
  | { readonly _tag: "smaller" }
  /** The results together exceed the limit; `error` is for entries that cannot be split. */
  | { readonly _tag: "halves"; readonly error: ChainRpcError }
  /** All calls were refused, perhaps for a missing method: calls of optional methods are sent separately. */
  | { readonly _tag: "apart" }

/** Statuses of gateways in front of a node that may return soon: their response is not the node's. */
const gateway = new Set([502, 503, 504])

/** The node or its gateway has failed: the error does not concern the method. */
const isServerError = (status: number): boolean => status === 408 || (status >= 500 && status !== 501)

const payloadTooLarge = 413

/** Longest page that is searched for an outage, in characters. */
const longestPage = 16_384

/** Statuses with which gateways refuse methods, with arbitrary bodies. */
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

/** Classifies one error for all calls. */
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

/** Classifies the error of one call. */
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

/** The response has no JSON-RPC body; `garbled` says why. */
const ofUndecoded = (
  { origin, scrub }: Target,
  { body, status }: Answer,
  garbled: string,
  calls: ReadonlyArray<JsonRpc.Call>,
  afterMillis: number
): Classification => {
  const { again, all, failed } = classificationsOf(origin, scrub)
  const says = `HTTP status ${status}`
  if (isServerError(status)) return all(again("unavailable", says), afterMillis)
  // Some gateways report outages with status 200, in a page or in JSON.
  if (body.length <= longestPage && Refusal.isOutagePage(body))
    return all(again("unavailable", "its gateway has no node"), afterMillis)
  if (status >= 200 && status < 300) return all(failed("notAnRpc", garbled))
  const mayLack = calls.some(({ method }) => Refusal.optional.has(method))
  if (!mayLack || !refusesMethods.has(status)) return all(failed("unreachable", says))
  return calls.length > 1 ? { _tag: "apart" } : all(failed("unsupported", says))
}

/**
 * Classifies the response to `calls`. `now`: Unix milliseconds. A JSON-RPC body counts under any HTTP status except those
 * of rate limits, redirects and gateways.
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
    if (Result.isFailure(decoded))
      return ofUndecoded(target, posted.success, decoded.failure, calls, afterMillis)

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
