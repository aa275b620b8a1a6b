/**
 * What a failure means to the caller. A host says it in the terms of its protocol.
 *
 * - `invalid`: the request can never succeed as it is. Nothing was sent or spent
 * - `unauthorized`: the key or the signer does not grant this
 * - `notFound`: the account, or the service, has nothing of that name
 * - `notAllowed`: it is there, and does not do this
 * - `refused`: well-formed, and the chain, the custody provider or the state of a wallet refused it. Nothing was sent
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
