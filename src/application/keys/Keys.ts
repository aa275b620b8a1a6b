import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import { type Detail, type Failure, invalidAt, unauthorized, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import * as StoreFailure from "../failures/StoreFailure.js"
import * as Troubles from "../observe/Troubles.js"
import { type Signer, SignerError, type SignerRef, Signers } from "../ports/Signers.js"
import type { Caller } from "../request/Caller.js"
import * as Wait from "../runtime/Wait.js"

/** The message for callers about a signer that did not sign, without the provider's words. */
export const unavailable = ({ reason }: SignerError): Reasons.Text =>
  Reasons.text(
    reason === "refused" ? "signerRefused" : reason === "notConfigured" ? "systemKeyMissing" : "signerSilent"
  )

/** The hint for an unknown signer, the same for another account's signer and a missing one. */
const unknown = (path: string, { message }: SignerError): Detail => ({
  path,
  message: `${message}; call /getSigner with the signer only. The operator lists this account's signers with castellan signers list`
})

/** Maps a signer's failure to the request's failure, as long as nothing was sent. */
export const refusal =
  (path: string) =>
  (error: SignerError): Failure => {
    switch (error.reason) {
      case "clientIdIncorrect":
        return unauthorized("client_id_incorrect", [unknown(`${path}.clientId`, error)])
      case "versionNotFound":
        return unauthorized("version_not_found", [unknown(`${path}.versionId`, error)])
      case "assetNotSupported":
        return unauthorized("asset_not_supported", [unknown(`${path}.assetId`, error)])
      case "notConfigured":
      case "unavailable":
      case "refused":
        return unprocessable("signer_unavailable", [{ path, message: unavailable(error) }])
    }
  }

/** Time limit of a provider for one signature, milliseconds. */
const signMillis = 30_000

const crashOf = ({ address }: Signer): Troubles.Trouble => ({
  what: "a key provider crashed",
  place: address
})

/**
 * The same key, but `unavailable` after `signMillis`, even where the fiber is uninterruptible: a lane waits for one
 * signature at a time. A late signature is dropped.
 */
export const withPatience = (signer: Signer): Signer => ({
  ...signer,
  sign: (digest) =>
    Wait.within(
      signer.sign(digest),
      signMillis,
      () => new SignerError({ reason: "unavailable", message: "the key provider did not answer" })
    ).pipe(
      Effect.tap(() => Effect.flatMap(Troubles.Shared, ({ passed }) => passed(crashOf(signer)))),
      // Providers' libraries may throw, which should not affect other work. A store that does not accept the audit
      // entry is not a provider's failure.
      Effect.catchDefect((defect) =>
        StoreFailure.is(defect)
          ? Effect.die(defect)
          : Effect.flatMap(Troubles.Shared, ({ failed }) =>
              Effect.andThen(
                failed(crashOf(signer), Cause.die(defect)),
                new SignerError({ reason: "unavailable", message: "the key provider failed" })
              )
            )
      )
    )
})

/** Logs the digest that a caller has a key sign, signed or not, and no part of what it is the digest of. */
export const audited =
  (
    { principal, requestId }: Caller,
    { address }: Signer,
    digest: Bytes32,
    more: Readonly<Record<string, unknown>>
  ) =>
  <A, E, R>(signing: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.onExit(signing, ({ _tag }) =>
      Effect.annotateLogs(Effect.logInfo(_tag === "Success" ? "digest signed" : "digest not signed"), {
        requestId,
        accountId: principal.accountId,
        signer: address,
        digest,
        ...more
      })
    )

/** Resolves the key that a request names. */
export const resolve = (
  caller: Caller,
  ref: SignerRef,
  path = "settings.signer"
): Effect.Effect<Signer, Failure, Signers> => {
  if ((ref.versionId === undefined) === (ref.assetId === undefined))
    return invalidAt(path, "expected either versionId or assetId, and not both")
  return Effect.flatMap(Signers, (signers) =>
    Effect.mapBoth(signers.resolve(caller.principal.accountId, ref), {
      onFailure: refusal(path),
      onSuccess: withPatience
    })
  )
}
