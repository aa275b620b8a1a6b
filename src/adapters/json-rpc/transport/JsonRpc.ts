import * as Result from "effect/Result"

/** JSON-RPC 2.0 over HTTP: the bodies of requests and responses. */

export interface Call {
  /** Unique within its connection. */
  readonly id: number
  readonly method: string
}

/** Error object of a response; a long message is cut. `data` is untrusted. */
export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data: unknown
}

/** A node's result for one call. */
export type Outcome =
  | { readonly _tag: "result"; readonly value: unknown }
  | { readonly _tag: "error"; readonly error: RpcError }

/** A node's response to a request: results by call id (omitted calls are missing), or one error for all calls. */
export type Answers =
  | { readonly _tag: "each"; readonly byId: ReadonlyMap<number, Outcome> }
  | { readonly _tag: "refused"; readonly error: RpcError }

/** The JSON before and after the parameters of a call. */
export const frame = ({ id, method }: Call): readonly [string, string] => [
  `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":`,
  "}"
]

/** Request body: one call as is, several as a batch. */
export const body = (encoded: ReadonlyArray<string>): string =>
  encoded.length === 1 ? (encoded[0] ?? "") : `[${encoded.join()}]`

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const maxMessage = 4_096

const errorOf = (message: Readonly<Record<string, unknown>>): RpcError | undefined => {
  const { error } = message
  if (!isRecord(error)) return undefined
  const { code, data, message: text } = error
  if (typeof code !== "number" && typeof text !== "string") return undefined
  return {
    code: typeof code === "number" ? code : 0,
    message: typeof text === "string" ? text.slice(0, maxMessage) : "",
    data
  }
}

const outcomeOf = (message: Readonly<Record<string, unknown>>): Outcome | undefined => {
  const error = errorOf(message)
  if (error !== undefined) return { _tag: "error", error }
  const failed = message.error !== undefined && message.error !== null
  return "result" in message && !failed ? { _tag: "result", value: message.result } : undefined
}

const parse = (text: string): Result.Result<unknown, string> =>
  Result.try({ try: (): unknown => JSON.parse(text), catch: () => "it is not JSON" })

/**
 * Decodes the results of `calls`, matched by id. Fails on a result for an unknown call, two results for one call, or
 * neither a result nor an error; then no result counts.
 */
export const decode = (text: string, calls: ReadonlyArray<Call>): Result.Result<Answers, string> =>
  Result.flatMap(parse(text), (parsed): Result.Result<Answers, string> => {
    const messages: ReadonlyArray<unknown> = Array.isArray(parsed) ? parsed : [parsed]
    const [only] = messages
    if (messages.length === 1 && isRecord(only)) {
      const error = errorOf(only)
      const unnamed = only.id === null || only.id === undefined
      // Geth names the first call of a batch that it refuses as a whole.
      if (error !== undefined && (unnamed || calls.length > 1))
        return Result.succeed({ _tag: "refused", error })
    }
    if (Array.isArray(parsed) !== calls.length > 1)
      return Result.fail("it does not have the form of the request")
    const asked = new Set(calls.map(({ id }) => id))
    const byId = new Map<number, Outcome>()
    for (const message of messages) {
      if (!isRecord(message)) return Result.fail("it is not JSON-RPC")
      const { id } = message
      if (typeof id !== "number" || !asked.has(id)) return Result.fail("it answers a call that was not made")
      if (byId.has(id)) return Result.fail("it answers one call twice")
      const outcome = outcomeOf(message)
      if (outcome === undefined) return Result.fail("it has neither a result nor an error")
      byId.set(id, outcome)
    }
    return Result.succeed({ _tag: "each", byId })
  })
