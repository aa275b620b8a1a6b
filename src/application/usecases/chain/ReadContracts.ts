import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as FunctionSignature from "../../../domain/abi/FunctionSignature.js"
import type { Parameter } from "../../../domain/abi/Parameter.js"
import * as Parameters from "../../../domain/abi/Parameters.js"
import * as Revert from "../../../domain/abi/Revert.js"
import * as Values from "../../../domain/abi/Values.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import * as Connection from "../../chain/Connection.js"
import * as Reads from "../../chain/Reads.js"
import * as SilentRevert from "../../intake/SilentRevert.js"
import * as Span from "../../observe/Span.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { Call, ChainRpc, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import type { Failure } from "../../request/Failure.js"
import { node, optional } from "../../request/Fields.js"
import { RevertData } from "../../request/TransactionResult.js"
import * as EventLoop from "../../runtime/EventLoop.js"

const Read = Schema.Struct({
  to: Schema.String.annotations({ description: "Contract address." }),
  funcSignature: Schema.String.annotations({ description: "For example balanceOf(address)." }),
  funcParams: optional(
    Schema.Array(Schema.Unknown).annotations({
      description: "Strings; arrays and tuples as JSON text or JSON arrays. Default []."
    }),
    []
  ),
  returnSignature: Schema.String.annotations({
    description:
      "What it returns: uint256, (uint256,string), returns (uint256 a, string b). A tuple value is ((a,b))."
  }),
  from: optional(
    Schema.String.annotations({
      description: "msg.sender of the call. Default: the zero address."
    })
  )
})
type Read = typeof Read.Type

export const Request = Schema.Struct({
  reads: Schema.Array(Read),
  ...node,
  useABI: optional(
    Schema.Array(Schema.Unknown).annotations({
      description:
        "Errors for decoding, as JSON fragments or human-readable text; struct lines name tuples for the other lines."
    }),
    []
  )
}).annotations({ identifier: "ReadRequest" })
export type Request = typeof Request.Type

export const Response = Schema.Array(
  Schema.Struct({
    readIndex: Schema.Int.annotations({ description: "Index in the request." }),
    results: Schema.Array(Schema.Unknown).annotations({
      description: "The decoded values in order; empty when the read failed."
    }),
    errors: Schema.NullOr(Schema.String).annotations({ description: "Why the read failed." }),
    data: RevertData
  })
).annotations({ identifier: "ReadResponse" })
export type Response = typeof Response.Type

interface Prepared {
  readonly call: Call & SilentRevert.FailedCall
  readonly outputs: ReadonlyArray<Parameter>
}

const addressOf = (field: "to" | "from", text: string) =>
  Either.mapLeft(Address.from(text), ({ message }) => `invalid ${field}: ${message}`)

/** One read as a call, or what is wrong with it. */
const prepare = ({
  from,
  funcParams,
  funcSignature,
  returnSignature,
  to
}: Read): Either.Either<Prepared, string> =>
  Either.gen(function* () {
    const told = ({ message, why }: FunctionSignature.InvalidSignature) => `${message}: ${why}`
    const target = yield* addressOf("to", to)
    const sender = from === undefined ? undefined : yield* addressOf("from", from)
    const signature = yield* Either.mapLeft(FunctionSignature.parse(funcSignature), told)
    const outputs = yield* Either.mapLeft(FunctionSignature.parseReturns(returnSignature), told)
    const data = yield* Either.mapLeft(
      Parameters.encodeCall(signature, funcParams ?? [], Parameters.maxValues),
      ({ message }) => message
    )
    return { call: { to: target, data, ...(sender !== undefined && { from: sender }) }, outputs }
  })

const nothing = "nothing was returned: there is no contract at the address, or no such function"

/** Why the node gave no result of one call. Messages of nodes show nothing of the URL but scheme and host. */
const refused = ({ message, origin, reason }: ChainRpcError): string =>
  reason === "rejected" ? `${origin} answered: ${message}` : message

/** Values that all reads of a request are decoded to. */
export const maxValuesInAll = 65_536

const told = ({ message, tooMuch }: Values.UndecodableData): string =>
  tooMuch
    ? `${message}: a read is decoded to at most ${Values.maxValues} values, all reads of a request to ${maxValuesInAll}; ask for less at once`
    : message

/** Reads contracts, all at one block. Whatever is wrong with one read is its own error. */
export const run = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure, AbiStore | ChainFacts | ChainRpc | Networks> =>
  Effect.gen(function* () {
    const decoding = yield* Decoding.load(caller, request.useABI, "useABI")
    const facts = yield* ChainFacts
    const { chain, trust } = yield* Connection.open(caller, request, "rpc")
    const prepared = yield* EventLoop.map(request.reads, prepare)
    const asked = Arr.getRights(prepared)
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
        if (Either.isLeft(outcome) || !SilentRevert.isSilent(outcome.right)) return Effect.void
        const why = outcome.right.outOfGas
          ? Effect.succeed(SilentRevert.outOfGas)
          : SilentRevert.reason(chain, facts, call)
        return Effect.map(why, (reason) => void reasons.set(outcome, reason))
      },
      { concurrency: "unbounded" }
    )
    const undecoded = (outcome: Reads.Outcome | undefined, message: string) => {
      const data =
        outcome === undefined || Either.isLeft(outcome) ? null : Revert.undecoded(outcome.right.data, message)
      return data === null ? {} : { data }
    }
    const allowance: Values.Allowance = { left: maxValuesInAll }
    const valuesOf = ({ outputs }: Prepared, outcome: Reads.Outcome) =>
      Effect.gen(function* () {
        const { data, success } = yield* Either.mapLeft(outcome, refused)
        if (!success) return yield* Either.left(reasons.get(outcome) ?? decoding.revert(data))
        if (data === Hex.empty && outputs.length > 0) return yield* Either.left(nothing)
        const decoded = yield* EventLoop.drive(() =>
          Values.decodeSteps(outputs, data, { allowance, maxValues: Values.maxValues })
        )
        return yield* Either.mapLeft(decoded, told)
      })
    const read = yield* EventLoop.each(Arr.zip(asked, outcomes), ([one, outcome]) =>
      Effect.map(Effect.either(valuesOf(one, outcome)), (values) => [one, values] as const)
    )
    const values = new Map(read)
    const outcomeOf = new Map(Arr.zip(asked, outcomes))
    return prepared.map((one, readIndex) =>
      Either.match(
        Either.flatMap(one, (asking) => values.get(asking) ?? Either.left(nothing)),
        {
          onLeft: (errors) => ({
            readIndex,
            results: [],
            errors,
            ...undecoded(Either.isRight(one) ? outcomeOf.get(one.right) : undefined, errors)
          }),
          onRight: (results) => ({ readIndex, results, errors: null })
        }
      )
    )
  }).pipe(Span.named("ReadContracts"))
