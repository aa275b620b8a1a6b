import * as Either from "effect/Either"
import { ChainRpcError } from "../../../application/ports/chain/ChainRpc.js"
import type { Answer, HttpFailure } from "./Http.js"
import * as JsonRpc from "./JsonRpc.js"
import * as Refusal from "./Refusal.js"
import * as RetryAfter from "./RetryAfter.js"

/** What the node said to one call. */
export type CallClassification =
  /** A result, or an error object that only the method can interpret. Its message is presentable. */
  | { readonly _tag: "answered"; readonly outcome: JsonRpc.Outcome }
  | { readonly _tag: "failed"; readonly error: ChainRpcError }
  /** A failure that a later attempt may not meet. */
  | { readonly _tag: "again"; readonly error: ChainRpcError }
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

/** Gateways that stand in for a node which may be back soon. */
const gateway = new Set([502, 503, 504])

const payloadTooLarge = 413

/** By these gateways refuse methods that they do not serve, in words of their own. */
const refusesMethods = new Set([400, 403, 404, 405, 501])

const classificationsOf = (origin: string) => {
  const errorOf = (reason: ChainRpcError["reason"], message: string) =>
    new ChainRpcError({ reason, origin, message: `${origin}: ${message}` })
  const failed = (reason: ChainRpcError["reason"], message: string): CallClassification => ({
    _tag: "failed",
    error: errorOf(reason, message)
  })
  const again = (reason: "rateLimited" | "unreachable", message: string): CallClassification => ({
    _tag: "again",
    error: errorOf(reason, message)
  })
  const all = (classification: CallClassification, afterMillis = 0): Classification => ({
    _tag: "each",
    of: () => classification,
    afterMillis
  })
  return { errorOf, failed, again, all }
}

/**
 * What came back for `calls`. `now`: Unix milliseconds. A JSON-RPC answer counts whatever its HTTP status is,
 * those of rate limits, redirects and gateways apart.
 */
export const judge =
  ({ origin, scrub }: { readonly origin: string; readonly scrub: ReturnType<typeof Refusal.scrubber> }) =>
  (
    posted: Either.Either<Answer, HttpFailure>,
    calls: ReadonlyArray<JsonRpc.Call>,
    now: number
  ): Classification => {
    const { again, all, errorOf, failed } = classificationsOf(origin)
    if (Either.isLeft(posted)) {
      const { message, passing, reason } = posted.left
      if (passing) return all(again("unreachable", message))
      if (reason === "oversized" && calls.length > 1)
        return { _tag: "halves", error: errorOf("notAnRpc", message) }
      return all(failed(reason === "garbled" || reason === "oversized" ? "notAnRpc" : reason, message))
    }

    const { body, json, retryAfter, status } = posted.right
    const afterMillis = RetryAfter.millis(retryAfter, now)
    const says = `HTTP status ${status}`
    if (status === 429) return all(again("rateLimited", says), afterMillis)
    if (gateway.has(status)) return all(again("unreachable", says), afterMillis)
    if (status >= 300 && status < 400)
      return all(failed("unreachable", `${says}: redirects are not followed`))
    if (status === payloadTooLarge && calls.length > 1) return { _tag: "smaller" }

    const mayLack = calls.some(({ method }) => Refusal.optional.has(method))
    const decoded = JsonRpc.decode(body, calls, json)
    if (Either.isLeft(decoded)) {
      if (status >= 200 && status < 300) return all(failed("notAnRpc", decoded.left))
      if (!mayLack || !refusesMethods.has(status)) return all(failed("unreachable", says))
      return calls.length > 1 ? { _tag: "apart" } : all(failed("unsupported", says))
    }

    const answers = decoded.right
    if (answers._tag === "refused") {
      const { code, message } = answers.error
      if (Refusal.isRateLimit(answers.error))
        return all(
          again("rateLimited", scrub(message)),
          Math.max(afterMillis, Refusal.backoffMillis(answers.error))
        )
      if (calls.length > 1 && mayLack && Refusal.isUnsupported(answers.error)) return { _tag: "apart" }
      if (calls.length > 1 && Refusal.isOfBatches(answers.error)) return { _tag: "smaller" }
      const reason = Refusal.isUnsupported(answers.error) ? "unsupported" : "rejected"
      return all({
        _tag: "failed",
        error: new ChainRpcError({ reason, origin, message: scrub(message), rpcCode: code })
      })
    }

    const asked = [...answers.byId.values()].map((outcome) =>
      outcome._tag === "error" ? Refusal.backoffMillis(outcome.error) : 0
    )
    return {
      _tag: "each",
      afterMillis: Math.max(afterMillis, ...asked),
      of: ({ id, method }) => {
        const outcome = answers.byId.get(id)
        if (outcome === undefined) return failed("notAnRpc", `it left out the answer to ${method}`)
        if (outcome._tag === "result") return { _tag: "answered", outcome }
        const { code, data, message } = outcome.error
        if (Refusal.isRateLimit(outcome.error)) return again("rateLimited", scrub(message))
        const error = new ChainRpcError({
          reason: "rejected",
          origin,
          message: scrub(message),
          rpcCode: code
        })
        if (calls.length > 1 && Refusal.isOfCrowd(outcome.error)) return { _tag: "crowded", error }
        if (method === "eth_call" && Refusal.isBehind(outcome.error)) return { _tag: "again", error }
        return { _tag: "answered", outcome: { _tag: "error", error: { code, message: error.message, data } } }
      }
    }
  }
