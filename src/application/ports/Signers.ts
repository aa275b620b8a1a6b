import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../domain/primitives/Hex.js"
import type { AccountId } from "./Tenants.js"

/** Names a key of an account: `versionId` for HSM and KMS, `assetId` for MPC. */
export interface SignerRef {
  readonly clientId: string
  readonly versionId?: string | undefined
  readonly assetId?: string | undefined
}

/**
 * - `clientIdIncorrect`, `versionNotFound`, `assetNotSupported`: the reference names no key of this account
 * - `notConfigured`: the operator has no system key for this purpose
 * - `unavailable`: the provider did not answer
 * - `refused`: the provider refuses to sign
 */
export class SignerError extends Data.TaggedError("SignerError")<{
  readonly reason:
    | "clientIdIncorrect"
    | "versionNotFound"
    | "assetNotSupported"
    | "notConfigured"
    | "unavailable"
    | "refused"
  readonly message: string
}> {}

/** One key. Its private half never leaves the provider. */
export interface Signer {
  readonly address: Address
  /** Uncompressed point, 130 lower-case hex digits without 0x, starting with 04. */
  readonly publicKey: string
  readonly type: "HSM" | "MPC" | "KMS" | "PRIVATE_KEY"
  /** r || s || v over the digest itself, 65 bytes: s in the lower half, v 27 or 28, recovering to `address`. */
  readonly sign: (digest: Bytes32) => Effect.Effect<Hex, SignerError>
}

/** The keys of accounts. */
export class Signers extends Context.Service<
  Signers,
  {
    /** Another account's key, or a system key, is `clientIdIncorrect`: callers cannot learn that it exists. */
    readonly resolve: (account: AccountId, ref: SignerRef) => Effect.Effect<Signer, SignerError>
  }
>()("castellan/Signers") {}

/** The operator's keys. No request can name them. */
export class SystemSigners extends Context.Service<
  SystemSigners,
  {
    /** Authorises deployments at the factories. */
    readonly deployer: Effect.Effect<Signer, SignerError>
    /** The service's submitting EOA. */
    readonly serviceEoa: Effect.Effect<Signer, SignerError>
    /** Signs the operator's payments for wallets: the verifying paymaster's key. */
    readonly sponsor: Effect.Effect<Signer, SignerError>
    /** Pays top-ups of the operator's balances. */
    readonly treasury: Effect.Effect<Signer, SignerError>
  }
>()("castellan/SystemSigners") {}
