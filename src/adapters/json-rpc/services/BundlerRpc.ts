import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import {
  type BundlerClient,
  BundlerRpc,
  BundlerRpcError,
  type Offer
} from "../../../application/ports/chain/BundlerRpc.js"
import type { ChainRpcError } from "../../../application/ports/chain/ChainRpc.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Answers from "../node/Answers.js"
import * as Params from "../node/Params.js"
import * as RpcSchemas from "../node/RpcSchemas.js"
import type * as Batches from "../transport/Batches.js"
import type { RpcError } from "../transport/JsonRpc.js"
import * as Refusal from "../transport/Refusal.js"
import * as OperatorServices from "./OperatorServices.js"

/** Options of the adapter. */
export type Options = OperatorServices.Options

type Reason = BundlerRpcError["reason"]

/** Error codes of ERC-7769, and the JSON-RPC codes with which bundlers refuse fields of an op. */
const reasons: ReadonlyMap<number, Reason> = new Map<number, Reason>([
  [-32_500, "validation"],
  [-32_501, "paymaster"],
  [-32_502, "opcode"],
  [-32_503, "expired"],
  [-32_504, "throttled"],
  [-32_505, "stake"],
  [-32_506, "aggregator"],
  [-32_507, "signature"],
  [-32_508, "deposit"],
  [-32_521, "reverted"],
  [-32_600, "invalid"],
  [-32_602, "invalid"]
])

const reasonOf = (error: RpcError): Reason =>
  reasons.get(error.code) ?? (Refusal.isUnsupported(error) ? "unsupported" : "other")

/** The bundler already has the op, under any code. Excludes AA10: the sender already exists. */
const known =
  /already (?:known|present|exists?|submitted|received|pending|in\b|been (?:submitted|received|added))/i

const Quantity = RpcSchemas.Quantity
const entryPoint = RpcSchemas.readOrNull(Address.schema)
/** An EntryPoint in an unreadable form cannot be a supported one. */
const EntryPoints = Schema.Array(Schema.Unknown).check(
  Schema.makeFilter((list) => list.length === 0 || list.some((each) => entryPoint(each) !== null))
)
const Estimate = Schema.Struct({ preVerificationGas: Quantity })
const Found = Schema.NullOr(Schema.Struct({ transactionHash: Schema.optional(Schema.NullOr(Hex.schema32)) }))

const clientOf = (origin: string, batches: Batches.Batches): BundlerClient => {
  const errorOf = (error: RpcError) =>
    new BundlerRpcError({ reason: reasonOf(error), origin, message: error.message, rpcCode: error.code })

  const transport = (error: ChainRpcError): BundlerRpcError => {
    const { message, reason, rpcCode } = error
    if (reason === "unavailable") return new BundlerRpcError({ reason: "unreachable", origin, message })
    if (reason !== "rejected") return new BundlerRpcError({ reason, origin, message })
    return errorOf({ code: rpcCode ?? 0, message, data: undefined })
  }

  const malformed = (method: string, where: string) =>
    new BundlerRpcError({
      reason: "notAnRpc",
      origin,
      message: `${origin}: the answer to ${method} ${where}`
    })

  const decoder = <A, I>(method: string, schema: Schema.Codec<A, I>) => {
    const decode = Answers.decoder(schema)
    return (value: unknown) =>
      Effect.mapError(Effect.fromResult(decode(value)), (where) => malformed(method, where))
  }

  const read = <A, I>(method: string, schema: Schema.Codec<A, I>, params: ReadonlyArray<unknown>) => {
    const decode = decoder(method, schema)
    return Effect.flatMap(Effect.mapError(batches.read(method, params), transport), (outcome) =>
      outcome._tag === "error" ? errorOf(outcome.error) : decode(outcome.value)
    )
  }

  const paramsOf = ({ entryPoint, op, version }: Offer) => [OperatorServices.toJson(version, op), entryPoint]
  const decodeHash = decoder("eth_sendUserOperation", Hex.schema32)

  return {
    origin,
    chainId: read("eth_chainId", Quantity, []),
    entryPoints: Effect.map(read("eth_supportedEntryPoints", EntryPoints, []), (list) =>
      list.map(entryPoint).filter((each) => each !== null)
    ),
    preVerificationGas: (offer, state) =>
      Effect.map(
        read("eth_estimateUserOperationGas", Estimate, [
          ...paramsOf(offer),
          ...(state.size === 0 ? [] : [Params.toOverrides(state)])
        ]),
        ({ preVerificationGas }) => preVerificationGas
      ),
    send: Effect.fnUntraced(function* (offer: Offer, userOpHash: Hex.Bytes32) {
      const outcome = yield* Effect.mapError(
        batches.once("eth_sendUserOperation", paramsOf(offer)),
        transport
      )
      if (outcome._tag === "error") {
        if (known.test(outcome.error.message)) return
        return yield* errorOf(outcome.error)
      }
      if ((yield* decodeHash(outcome.value)) !== userOpHash)
        return yield* malformed("eth_sendUserOperation", "is the hash of another op")
    }),
    find: (userOpHash) =>
      Effect.map(read("eth_getUserOperationByHash", Found, [userOpHash]), (found) =>
        found === null ? null : { txHash: found.transactionHash ?? null }
      )
  }
}

/** Bundlers over JSON-RPC (ERC-7769). */
export const make = (options: Options = {}): Effect.Effect<BundlerRpc["Service"], never, Scope.Scope> =>
  OperatorServices.make(options, clientOf, (refusal) => new BundlerRpcError(refusal))

/** `make` as the port `BundlerRpc`. */
export const layer = (options: Options = {}): Layer.Layer<BundlerRpc> =>
  Layer.effect(BundlerRpc, make(options))
