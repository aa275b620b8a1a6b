/**
 * A failure's meaning for the caller; hosts map it to their protocol.
 *
 * - `invalid`: the request can never succeed as it is. Nothing was sent or spent
 * - `unauthorized`: the key or the signer does not grant this
 * - `notFound`: the account, or the service, has no object of that name
 * - `notAllowed`: the object exists, but does not support this
 * - `refused`: well-formed, but the chain, the custody provider or the state of a wallet refused it. Nothing was sent
 * - `unknown`: sent, and its outcome is not known yet
 * - `limited`: too much at a time
 * - `internal`: a defect of the service
 * - `unavailable`: the service cannot answer now
 */
export type FailureKind =
  | "invalid"
  | "unauthorized"
  | "notFound"
  | "notAllowed"
  | "refused"
  | "unknown"
  | "limited"
  | "internal"
  | "unavailable"
