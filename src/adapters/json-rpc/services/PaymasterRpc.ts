import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Offer } from "../../../application/ports/chain/BundlerRpc.js"
import type { ChainRpcError } from "../../../application/ports/chain/ChainRpc.js"
import {
  type PaymasterAnswer,
  type PaymasterClient,
  PaymasterRpc,
  PaymasterRpcError
} from "../../../application/ports/chain/PaymasterRpc.js"
import { EntryPointSpec } from "../../../domain/erc4337/entrypoint/EntryPointSpec.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import * as Answers from "../node/Answers.js"
import * as RpcSchemas from "../node/RpcSchemas.js"
import type * as Batches from "../transport/Batches.js"
import * as Refusal from "../transport/Refusal.js"
import * as OperatorServices from "./OperatorServices.js"

/** Options of the adapter. */
export type Options = OperatorServices.Options

const maybe = <A, I>(schema: Schema.Codec<A, I>) => Schema.optional(Schema.NullOr(schema))

/** Replies of ERC-7677, for v0.6 and for later versions. Other members are ignored. */
const Answer = Schema.Struct({
  paymasterAndData: maybe(Hex.schema),
  paymaster: maybe(Address.schema),
  paymasterData: maybe(Hex.schema),
  paymasterVerificationGasLimit: maybe(RpcSchemas.GasUsed),
  paymasterPostOpGasLimit: maybe(RpcSchemas.GasUsed),
  isFinal: maybe(Schema.Boolean)
})
const decode = Answers.decoder(Answer)

/** Parts of a reply for the version; null when one is missing. */
const partsOf = ({ version }: Offer, answer: typeof Answer.Type): PaymasterAnswer | null => {
  const parts = EntryPointSpec[version].rpc.readPaymaster(answer)
  return parts === null ? null : { ...parts, final: answer.isFinal === true }
}

const textsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : []
}

const clientOf = (origin: string, batches: Batches.Batches): PaymasterClient => {
  const fail = (reason: PaymasterRpcError["reason"], message: string) =>
    new PaymasterRpcError({ reason, origin, message })

  const transport = ({ message, reason }: ChainRpcError): PaymasterRpcError =>
    fail(reason === "rejected" ? "refused" : reason === "unavailable" ? "unreachable" : reason, message)

  /** Leaves out the members of an absent paymaster or signature. */
  const opOf = ({ op, version }: Offer) => {
    const { paymasterAndData, signature, ...rest } = OperatorServices.toJson(version, op)
    return {
      ...rest,
      ...(signature !== Hex.empty && { signature }),
      ...(op.paymasterAndData !== Hex.empty && paymasterAndData !== undefined && { paymasterAndData })
    }
  }

  const answerTo = (method: string, offer: Offer, chainId: bigint, context: object) =>
    Effect.gen(function* () {
      const params = [opOf(offer), offer.entryPoint, Uint.toQuantity(chainId), context]
      const outcome = yield* Effect.mapError(batches.read(method, params), transport)
      if (outcome._tag === "error")
        return yield* fail(
          Refusal.isUnsupported(outcome.error) ? "unsupported" : "refused",
          outcome.error.message
        )
      const answer = decode(outcome.value)
      const parts = Result.isFailure(answer) ? null : partsOf(offer, answer.success)
      if (parts !== null) return parts
      const where = Result.isFailure(answer) ? answer.failure : "is malformed"
      return yield* fail("notAnRpc", `${origin}: the answer to ${method} ${where}`)
    })

  const ask =
    (method: string): PaymasterClient["stub"] =>
    (chainId, offer, redacted) => {
      const context = Redacted.value(redacted)
      return Effect.mapError(
        answerTo(method, offer, chainId, context),
        // Services quote what they refuse.
        ({ message, reason }) => fail(reason, Refusal.hider(textsIn(context))(message))
      )
    }

  return { origin, stub: ask("pm_getPaymasterStubData"), data: ask("pm_getPaymasterData") }
}

/** Paymaster services over JSON-RPC (ERC-7677). */
export const make = (options: Options = {}): Effect.Effect<PaymasterRpc["Service"], never, Scope.Scope> =>
  OperatorServices.make(options, clientOf, (refusal) => new PaymasterRpcError(refusal))

/** `make` as the port `PaymasterRpc`. */
export const layer = (options: Options = {}): Layer.Layer<PaymasterRpc> =>
  Layer.effect(PaymasterRpc, make(options))
