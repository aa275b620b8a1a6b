import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Hex } from "../../../domain/primitives/Hex.js"
import type { Offer } from "./BundlerRpc.js"

/**
 * A paymaster's service did not give the data that was asked for.
 *
 * - `refused`: it answered that it does not pay for this op; `message` is its own
 * - `invalidUrl`, `forbidden`: the URL; `rateLimited`: HTTP 429 or its equivalents
 * - `unsupported`: it has no such method; `unreachable`: no answer; `notAnRpc`: none that makes sense
 *
 * `message` never holds more of a URL than scheme and host: keys sit in paths.
 */
export class PaymasterRpcError extends Data.TaggedError("PaymasterRpcError")<{
  readonly reason:
    | "refused"
    | "invalidUrl"
    | "forbidden"
    | "rateLimited"
    | "unsupported"
    | "unreachable"
    | "notAnRpc"
  readonly origin: string
  readonly message: string
}> {}

/** What a service says of an op. */
export interface PaymasterAnswer {
  readonly paymaster: Address
  /** What stands behind the paymaster's address and, from v0.7 on, its limits. */
  readonly data: Hex
  /** Gas that it wants for its own frames, from v0.7 on; null: it does not tell. */
  readonly verificationGasLimit: bigint | null
  readonly postOpGasLimit: bigint | null
  /** Of a stub: it is the real data already. */
  readonly final: boolean
}

/** The service of a paymaster, by ERC-7677. */
export interface PaymasterClient {
  /** Scheme and host of the service: all of its URL that may be shown. */
  readonly origin: string
  /** `pm_getPaymasterStubData`: data of real length and cost for measuring the op, whose limits may be zero. */
  readonly stub: (chainId: bigint, offer: Offer) => Effect.Effect<PaymasterAnswer, PaymasterRpcError>
  /** `pm_getPaymasterData`: data for the op as it is. */
  readonly data: (chainId: bigint, offer: Offer) => Effect.Effect<PaymasterAnswer, PaymasterRpcError>
}

/** Connects to the service of a URL. */
export class PaymasterRpc extends Context.Service<
  PaymasterRpc,
  {
    /** The client of a URL that the operator names, made without any traffic. One client for each URL. */
    readonly connect: (url: string) => Effect.Effect<PaymasterClient, PaymasterRpcError>
  }
>()("castellan/PaymasterRpc") {}
