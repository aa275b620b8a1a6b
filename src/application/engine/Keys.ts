import * as Effect from "effect/Effect"
import type { Caller } from "../Caller.js"
import { type Failure, invalid, unauthorized, unprocessable } from "../Failure.js"
import { type Signer, type SignerError, type SignerRef, Signers } from "../ports/Signers.js"

/** What a failing signer means for the request, as long as nothing was sent. */
export const refusal =
  (path: string) =>
  (error: SignerError): Failure => {
    switch (error.reason) {
      case "clientIdIncorrect":
        return unauthorized("client_id_incorrect", [{ path: `${path}.clientId`, message: error.message }])
      case "versionNotFound":
        return unauthorized("version_not_found", [{ path: `${path}.versionId`, message: error.message }])
      case "assetNotSupported":
        return unauthorized("asset_not_supported", [{ path: `${path}.assetId`, message: error.message }])
      case "unavailable":
      case "refused":
        return unprocessable("signer_unavailable", [{ path, message: error.message }])
    }
  }

/** The key that a request names. */
export const resolve = (
  caller: Caller,
  ref: SignerRef,
  path = "settings.signer"
): Effect.Effect<Signer, Failure, Signers> => {
  if ((ref.versionId === undefined) === (ref.assetId === undefined))
    return Effect.fail(
      invalid("invalid_request", [{ path, message: "expected either versionId or assetId, and not both" }])
    )
  return Effect.flatMap(Signers, (signers) =>
    Effect.mapError(signers.resolve(caller.principal.accountId, ref), refusal(path))
  )
}
