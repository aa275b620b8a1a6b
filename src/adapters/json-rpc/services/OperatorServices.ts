import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { EntryPointSpec, type Version } from "../../../domain/erc4337/entrypoint/EntryPointSpec.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import * as ChainRpc from "../node/ChainRpc.js"
import * as Batches from "../transport/Batches.js"
import * as Egress from "../transport/Egress.js"
import * as Http from "../transport/Http.js"

export type Options = Pick<ChainRpc.Options, "http" | "retry" | "onExchange">

/** A bundler or paymaster does more work per call than a node. */
const patience = { firstByteMillis: 15_000 }

export interface Refusal {
  readonly reason: "invalidUrl" | "forbidden"
  readonly origin: ""
  readonly message: string
}

/**
 * Clients of the operator's JSON-RPC services other than nodes, one per URL, created without traffic. The services need not
 * support batches, so each call is a separate request.
 */
export const make = Effect.fnUntraced(function* <C, E>(
  options: Options,
  clientOf: (origin: string, batches: Batches.Batches) => C,
  refused: (refusal: Refusal) => E
): Effect.fn.Return<{ readonly connect: (url: string) => Effect.Effect<C, E> }, never, Scope.Scope> {
  const { defaults } = ChainRpc
  const retry = { ...defaults.retry, ...options.retry }
  const onExchange = options.onExchange ?? (() => undefined)
  const http = yield* Http.make(defaults.egress, { ...defaults.http, ...patience, ...options.http })
  const background = yield* FiberSet.makeRuntime()
  const limits = { ...defaults.batches, batchCalls: 1 }
  const clients = new Map<string, C>()
  return {
    connect: (url) =>
      Result.match(Egress.target(url, "operator", defaults.egress), {
        onFailure: (reason) =>
          Effect.fail(refused({ reason, origin: "", message: "expected an http or https URL" })),
        onSuccess: (target) =>
          Effect.sync(() => {
            const client =
              clients.get(target.href) ??
              clientOf(target.origin, Batches.make({ background, http, limits, onExchange, retry, target }))
            clients.set(target.href, client)
            return client
          })
      })
  }
})

/**
 * The op as JSON of ERC-7769: v0.6 keeps initCode and paymasterAndData whole, later versions split them. Takes ops that fit
 * the EntryPoint (`UserOperation.fits`).
 */
export const toJson = (version: Version, op: UserOperation): Readonly<Record<string, string>> => ({
  sender: op.sender,
  nonce: Uint.toQuantity(op.nonce),
  callData: op.callData,
  callGasLimit: Uint.toQuantity(op.callGasLimit),
  verificationGasLimit: Uint.toQuantity(op.verificationGasLimit),
  preVerificationGas: Uint.toQuantity(op.preVerificationGas),
  maxFeePerGas: Uint.toQuantity(op.maxFeePerGas),
  maxPriorityFeePerGas: Uint.toQuantity(op.maxPriorityFeePerGas),
  signature: op.signature,
  ...EntryPointSpec[version].rpc.write(op)
})
