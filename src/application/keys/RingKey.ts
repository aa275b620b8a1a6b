import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Secp256k1 from "../../domain/crypto/Secp256k1.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import * as Troubles from "../observe/Troubles.js"
import type { KeyProviderError, ProviderKey } from "../ports/KeyProvider.js"
import { type Signer, SignerError } from "../ports/Signers.js"
import * as Call from "./RingKeyCall.js"
import * as Signing from "./RingKeySigning.js"
import * as SingleFlight from "./SingleFlight.js"

export interface Options {
  /** The key's name in logs. */
  readonly label: string
  /** The required address; null: any. */
  readonly pinned: Address | null
  readonly limits: Call.RingKeyLimits
}

/** Messages for callers, without the provider's words. */
export const messages: Readonly<Record<SignerError["reason"], string>> = {
  clientIdIncorrect: "invalid client ID: client ID incorrect",
  versionNotFound: "version not found: HSM version does not exist",
  assetNotSupported: "asset not supported: MPC asset unavailable",
  notConfigured: "no such key is configured",
  unavailable: "the key provider did not answer",
  refused: "the key provider refused to sign"
}

export const signerError = (reason: SignerError["reason"]): SignerError =>
  new SignerError({ reason, message: messages[reason] })

const digestShape = /^0x[0-9a-f]{64}$/

/** Wrong answers are errors; other failures are warnings, which the operator should still see. */
const logged = <A>(
  effect: Effect.Effect<A, Call.RingKeyError>,
  troubles: Troubles.Troubles,
  { key, doing }: { readonly key: string; readonly doing: "sign" | "resolve" }
) => {
  const trouble = { what: "key unavailable", place: key, subject: doing }
  return Effect.matchEffect(effect, {
    onFailure: ({ message, reason }) => {
      const isDelay = reason !== "wrongSignature" && reason !== "addressMismatch"
      return troubles
        .failed({ ...trouble, isDelay }, Cause.fail(`${reason}: ${message}`))
        .pipe(
          Effect.annotateLogs({ key, doing, reason, detail: message }),
          Effect.andThen(Effect.fail(signerError(reason === "unavailable" ? "unavailable" : "refused")))
        )
    },
    onSuccess: (value) => Effect.as(Effect.annotateLogs(troubles.passed(trouble), { key }), value)
  })
}

const publicKeyOf = Effect.fnUntraced(function* (key: ProviderKey, { limits, pinned }: Options) {
  const publicKey = yield* Effect.mapError(
    Call.withPatience(() => key.publicKey, Call.ofResolving(limits)),
    Call.ofRing
  )
  if (!Secp256k1.isPublicKey(publicKey))
    return yield* new Call.RingKeyError({
      reason: "unsuitable",
      message: "its public key is no point of secp256k1"
    })
  const address = Secp256k1.addressOf(publicKey)
  if (pinned !== null && address !== pinned)
    return yield* new Call.RingKeyError({
      reason: "addressMismatch",
      message: `its address is ${address}, configured is ${pinned}`
    })
  return { publicKey, address }
})

export interface RingKey {
  /** The signer; its public key is fetched once, at the first use that succeeds. */
  readonly resolve: Effect.Effect<Signer, Call.RingKeyError>
  /** The signer for callers; failures are logged. */
  readonly signer: Effect.Effect<Signer, SignerError>
}

export const make = Effect.fnUntraced(function* (
  provided: Effect.Effect<ProviderKey, KeyProviderError>,
  options: Options
): Effect.fn.Return<RingKey, never, Scope.Scope> {
  const { label, limits } = options
  const troubles = Troubles.make()
  const resolve = yield* SingleFlight.make(
    Effect.gen(function* () {
      const key = yield* Effect.mapError(provided, Call.ofRing)
      const { address, publicKey } = yield* publicKeyOf(key, options)
      const sign =
        key.signNow === undefined
          ? yield* Signing.make(key, publicKey, limits)
          : Signing.now(key.signNow, publicKey)
      const signer: Signer = {
        address,
        publicKey,
        type: key.type,
        sign: (digest: Bytes32) =>
          digestShape.test(digest)
            ? logged(sign(digest), troubles, { key: label, doing: "sign" })
            : new SignerError({ reason: "refused", message: "the digest is not 32 bytes" })
      }
      return signer
    })
  )
  return { resolve, signer: logged(resolve, troubles, { key: label, doing: "resolve" }) }
})
