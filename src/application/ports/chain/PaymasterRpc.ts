import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Hex } from "../../../domain/primitives/Hex.js"
import type { Offer } from "./BundlerRpc.js"

/**
 * A paymaster's service did not return the data.
 *
 * - `refused`: it answered that it does not pay for this op; `message` is its own
 * - `invalidUrl`, `forbidden`: the URL
 * - `rateLimited`, `unsupported`: HTTP 429 or its equivalents; no such method
 * - `unreachable`, `notAnRpc`: no answer; an unintelligible one
 *
 * `message` holds of a URL at most scheme and host: paths may hold keys.
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

/** A service's answer for an op. */
export interface PaymasterAnswer {
  readonly paymaster: Address
  /** The bytes after the paymaster's address and, from v0.7 on, after its limits. */
  readonly data: Hex
  /** Gas for the paymaster's frames, from v0.7 on; null: the service does not say. */
  readonly verificationGasLimit: bigint | null
  readonly postOpGasLimit: bigint | null
  /** Of a stub: the data is the real data already. */
  readonly final: boolean
}

/** The context object of both methods: members that the service defines. It may hold secrets. */
export type PaymasterContext = Redacted.Redacted<Readonly<Record<string, unknown>>>

/** A paymaster's service, by ERC-7677. */
export interface PaymasterClient {
  /** Scheme and host of the service, the only parts of its URL that may be shown. */
  readonly origin: string
  /** `pm_getPaymasterStubData`: data of real length and cost to measure the op, whose limits may be zero. */
  readonly stub: (
    chainId: bigint,
    offer: Offer,
    context: PaymasterContext
  ) => Effect.Effect<PaymasterAnswer, PaymasterRpcError>
  /** `pm_getPaymasterData`: data for the op as it is. */
  readonly data: PaymasterClient["stub"]
}

/** Connects to a URL's service. */
export class PaymasterRpc extends Context.Service<
  PaymasterRpc,
  {
    /** Returns the client of a URL that the operator names, without any traffic; one client per URL. */
    readonly connect: (url: string) => Effect.Effect<PaymasterClient, PaymasterRpcError>
  }
>()("castellan/PaymasterRpc") {}
