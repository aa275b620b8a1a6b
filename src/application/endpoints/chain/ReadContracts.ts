import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as FunctionSignature from "../../../domain/abi/FunctionSignature.js"
import type { Parameter } from "../../../domain/abi/Parameter.js"
import * as Parameters from "../../../domain/abi/Parameters.js"
import * as Revert from "../../../domain/abi/Revert.js"
import * as Values from "../../../domain/abi/Values.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import { RevertData } from "../../answers/TransactionResult.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import * as Connection from "../../chain/Connection.js"
import * as Reads from "../../chain/Reads.js"
import type { Failure } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { Call, ChainRpc, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import * as SilentRevert from "../../prepare/estimate/SilentRevert.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { node, optional } from "../../request/Fields.js"
import * as EventLoop from "../../runtime/EventLoop.js"

const Read = Schema.Struct({
  to: Schema.String.annotate({ description: "Contract address." }),
  funcSignature: Schema.String.annotate({ description: "For example balanceOf(address)." }),
  funcParams: optional(
    Schema.Array(Schema.Unknown).annotate({
      description: "Strings; arrays and tuples as JSON text or JSON arrays. Default []."
    }),
    []
  ),
  returnSignature: Schema.String.annotate({
    description:
      "Return types: uint256, (uint256,string), returns (uint256 a, string b). A tuple value is ((a,b))."
  }),
  from: optional(
    Schema.String.annotate({
      description: "msg.sender of the call. Default: the zero address."
    })
  )
})
type Read = typeof Read.Type

export const Request = Schema.Struct({
  reads: Schema.Array(Read),
  ...node,
  useABI: optional(
    Schema.Array(Schema.Unknown).annotate({
      description:
        "Errors for decoding, as JSON fragments or human-readable text; struct lines name tuples for the other lines."
    }),
    []
  )
}).annotate({ identifier: "ReadRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Array(
  Schema.Struct({
    readIndex: Schema.Int.annotate({ description: "Index in the request." }),
    results: Schema.Array(Schema.Unknown).annotate({
      description: "The decoded values in order; empty when the read failed."
    }),
    errors: Schema.NullOr(Schema.String).annotate({ description: "Why the read failed." }),
    data: RevertData
  })
).annotate({ identifier: "ReadResponse" })
export type Response = typeof Response.Type

interface Prepared {
  readonly call: Call & SilentRevert.FailedCall
  readonly outputs: ReadonlyArray<Parameter>
}

const addressOf = (field: "to" | "from", text: string) =>
  Result.mapError(Address.from(text), ({ message }) => `invalid ${field}: ${message}`)

/** One read as a call, or its error. */
const prepare = ({
  from,
  funcParams,
  funcSignature,
  returnSignature,
  to
}: Read): Result.Result<Prepared, string> =>
  Result.gen(function* () {
    const text = ({ message, why }: FunctionSignature.InvalidSignature) => `${message}: ${why}`
    const target = yield* addressOf("to", to)
    const sender = from === undefined ? undefined : yield* addressOf("from", from)
    const signature = yield* Result.mapError(FunctionSignature.parse(funcSignature), text)
    const outputs = yield* Result.mapError(FunctionSignature.parseReturns(returnSignature), text)
    const data = yield* Result.mapError(
      Parameters.encodeCall(signature, funcParams ?? [], Parameters.maxValues),
      ({ message }) => message
    )
    return { call: { to: target, data, ...(sender !== undefined && { from: sender }) }, outputs }
  })

const nothing = "nothing was returned: there is no contract at the address, or no such function"

/** The message for a call without a result from the node. Nodes' messages show of the URL only scheme and host. */
const refused = ({ message, origin, reason }: ChainRpcError): string =>
  reason === "rejected" ? `${origin} answered: ${message}` : message

/** Most decoded values of all reads of a request. */
export const maxValuesInAll = 65_536

const decodingProblem = ({ message, tooMuch }: Values.UndecodableData): string =>
  tooMuch
    ? `${message}: a read is decoded to at most ${Values.maxValues} values, all reads of a request to ${maxValuesInAll}; split the request`
    : message

/** Reads contracts, all at one block. An error fails only its own read. */
export const run = Effect.fnUntraced(function* (
  caller: Caller,
  request: Request
): Effect.fn.Return<Response, Failure, AbiStore | ChainFacts | ChainRpc | Networks> {
  const decoding = yield* Decoding.load(caller, request.useABI, "useABI")
  const facts = yield* ChainFacts
  const { chain, trust } = yield* Connection.open(caller, request, "rpc")
  const prepared = yield* EventLoop.map(request.reads, prepare)
  const asked = Arr.getSuccesses(prepared)
  const outcomes = yield* Effect.mapError(
    Reads.run(
      chain,
      facts,
      asked.map(({ call }) => call)
    ),
    Connection.refusal(trust, "rpc")
  )
  const reasons = new Map<Reads.Outcome, string>()
  yield* Effect.forEach(
    Arr.zip(asked, outcomes),
    ([{ call }, outcome]) => {
      if (Result.isFailure(outcome) || !SilentRevert.isSilent(outcome.success)) return Effect.void
      const why = outcome.success.outOfGas
        ? Effect.succeed(SilentRevert.outOfGas)
        : SilentRevert.reason(chain, facts, call)
      return Effect.map(why, (reason) => void reasons.set(outcome, reason))
    },
    { concurrency: "unbounded" }
  )
  const undecoded = (outcome: Reads.Outcome | undefined, message: string) => {
    const data =
      outcome === undefined || Result.isFailure(outcome)
        ? null
        : Revert.unreadableData(outcome.success.data, message)
    return data === null ? {} : { data }
  }
  const allowance: Values.Allowance = { left: maxValuesInAll }
  const valuesOf = ({ outputs }: Prepared, outcome: Reads.Outcome) =>
    Effect.gen(function* () {
      const { data, success } = yield* Effect.fromResult(Result.mapError(outcome, refused))
      if (!success)
        return yield* Effect.fromResult(Result.fail(reasons.get(outcome) ?? decoding.revert(data)))
      if (data === Hex.empty && outputs.length > 0) return yield* Effect.fromResult(Result.fail(nothing))
      const decoded = Values.decode(outputs, data, { allowance, maxValues: Values.maxValues })
      return yield* Effect.fromResult(Result.mapError(decoded, decodingProblem))
    })
  const read = yield* EventLoop.each(Arr.zip(asked, outcomes), ([one, outcome]) =>
    Effect.map(Effect.result(valuesOf(one, outcome)), (values) => [one, values] as const)
  )
  const values = new Map(read)
  const outcomeOf = new Map(Arr.zip(asked, outcomes))
  return prepared.map((one, readIndex) =>
    Result.match(
      Result.flatMap(one, (asking) => values.get(asking) ?? Result.fail(nothing)),
      {
        onFailure: (errors) => ({
          readIndex,
          results: [],
          errors,
          ...undecoded(Result.isSuccess(one) ? outcomeOf.get(one.success) : undefined, errors)
        }),
        onSuccess: (results) => ({ readIndex, results, errors: null })
      }
    )
  )
}, Span.named("ReadContracts"))
