import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { ChainRpcError } from "../../../application/ports/chain/ChainRpc.js"
import * as EventLoop from "../../../application/runtime/EventLoop.js"
import type { Batches } from "../transport/Batches.js"
import type { RpcError } from "../transport/JsonRpc.js"
import * as Refusal from "../transport/Refusal.js"

/** Pause before a missing method is called again, in ms. A node upgrade or a new plan may add it. */
const missingMillis = 3_600_000

/** Path of the first mismatch. Names come from our schemas, never from the node. */
const pathOf = (issue: SchemaIssue.Issue): ReadonlyArray<PropertyKey> => {
  switch (issue._tag) {
    case "Pointer":
      return [...issue.path, ...pathOf(issue.issue)]
    case "AnyOf":
    case "Composite": {
      const [first] = issue.issues
      return first === undefined ? [] : pathOf(first)
    }
    case "Encoding":
    case "Filter":
      return pathOf(issue.issue)
    default:
      return []
  }
}

/** Decodes a value; `Failure` holds the path of the first mismatch. */
export const decoder = <A, I>(schema: Schema.Codec<A, I>) => {
  const decode = SchemaParser.decodeUnknownResult(schema)
  return (value: unknown): Result.Result<A, string> =>
    Result.mapError(decode(value), (issue) => {
      const path = pathOf(issue)
      return path.length === 0 ? "is malformed" : `is malformed at ${path.map(String).join(".")}`
    })
}

/** Calls a node and decodes its replies. A reply that does not fit fails as `notAnRpc`, with its path. */
export const make = (origin: string, batches: Batches) => {
  const malformed = (method: string, where: string) =>
    new ChainRpcError({
      reason: "notAnRpc",
      origin,
      message: `${origin}: the answer to ${method} ${where}`
    })

  const rejected = (error: RpcError) =>
    new ChainRpcError({
      reason: Refusal.isUnsupported(error) ? "unsupported" : "rejected",
      origin,
      message: error.message,
      rpcCode: error.code
    })

  const decoderOf = <A, I>(method: string, schema: Schema.Codec<A, I>) => {
    const decode = decoder(schema)
    // The replies of a batch arrive together, and each may be 1 MB.
    return (value: unknown) =>
      Effect.flatMap(EventLoop.breathe, () =>
        Effect.mapError(Effect.fromResult(decode(value)), (where) => malformed(method, where))
      )
  }

  /** Decodes each element; the elements that fail are returned raw, with their paths. */
  const readable = <A, I>(element: Schema.Codec<A, I>) => {
    const decodeElement = SchemaParser.decodeUnknownResult(element)
    return (list: ReadonlyArray<unknown>, ...at: ReadonlyArray<PropertyKey>) =>
      Effect.map(
        EventLoop.map(list, (value, index) =>
          Result.mapError(decodeElement(value), (issue) => ({
            value,
            where: [...at, index, ...pathOf(issue)].map(String).join(".")
          }))
        ),
        (decoded) => ({ values: Arr.getSuccesses(decoded), malformed: Arr.getFailures(decoded) })
      )
  }

  const reader = <A, I>(method: string, schema: Schema.Codec<A, I>) => {
    const decode = decoderOf(method, schema)
    return (...params: ReadonlyArray<unknown>): Effect.Effect<A, ChainRpcError> =>
      Effect.flatMap(batches.read(method, params), (outcome) =>
        outcome._tag === "error" ? rejected(outcome.error) : decode(outcome.value)
      )
  }

  /** Missing methods, with the Unix milliseconds of the refusal. */
  const missing = new Map<string, { readonly at: number; readonly error: ChainRpcError }>()

  /** Reads a method that nodes may lack. After a refusal it is not called for `missingMillis`. */
  const optional = <A, I>(method: string, schema: Schema.Codec<A, I>) => {
    const ask = reader(method, schema)
    return (...params: ReadonlyArray<unknown>): Effect.Effect<A, ChainRpcError> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const known = missing.get(method)
        // A clock that was set back must not prolong the pause.
        if (known !== undefined && now >= known.at && now < known.at + missingMillis) return known.error
        return Effect.tapError(ask(...params), (error) =>
          Effect.sync(() => {
            if (error.reason === "unsupported") missing.set(method, { at: now, error })
          })
        )
      })
  }

  return { malformed, rejected, decoderOf, readable, reader, optional }
}
