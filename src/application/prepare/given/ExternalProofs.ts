import * as Result from "effect/Result"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Base64 from "../../../domain/primitives/Base64.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import * as Proof from "../../../domain/signature/Proof.js"
import * as Consents from "../../../domain/signature/ProofVerification.js"
import * as WebAuthn from "../../../domain/signature/WebAuthn.js"
import type { WalletConfig } from "../../../domain/wallet/WalletConfig.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import * as Reasons from "../../failures/Reasons.js"
import type { Window } from "../../ports/journal/Records.js"
import type { Evidence } from "../Call.js"

/** A wallet's consent to an op that was returned unsigned before. */
export interface Consented {
  readonly conditions: Conditions.Conditions
  readonly proof: Hex.Hex
}

/** Conditions that an op may have been signed with. */
export interface Terms {
  readonly bounds: Window
  /** The EOA that will submit it; zero: any EOA. */
  readonly bundler: Address
}

const refusal = (problem: string): Result.Result<never, ElementFailure> =>
  Result.fail(elementFailure("invalid_signature", Reasons.text("invalidSignature", { problem })))

const tooFew = (have: number, { threshold }: WalletConfig): Result.Result<never, ElementFailure> =>
  Result.fail(elementFailure("threshold_not_met", Reasons.text("threshold", { have, threshold })))

/** The possible conditions of a proof: the request's, or none if the request names no window. */
const candidates = ({ bounds, bundler }: Terms): ReadonlyArray<Conditions.Conditions> => {
  const bound = { ...bounds, bundler }
  const windowed = bounds.validUntil !== 0 || bounds.validAfter !== 0
  return windowed || Conditions.isNone(bound) ? [bound] : [bound, Conditions.none]
}

/** The hashes that a valid proof may sign. */
const expected = (userOpHash: Hex.Bytes32, conditions: ReadonlyArray<Conditions.Conditions>): string =>
  conditions
    .map((each) =>
      Conditions.isNone(each)
        ? `userOpHash ${userOpHash}`
        : `signingHash ${Conditions.signingHash(userOpHash, each)}`
    )
    .join(" or ")

const byProof = (
  given: Hex.Hex,
  userOpHash: Hex.Bytes32,
  config: WalletConfig,
  terms: Terms
): Result.Result<Consented, ElementFailure> => {
  const normal = Proof.normalise(given)
  if (Result.isFailure(normal)) return refusal(normal.failure)
  const proof = normal.success
  const tried = candidates(terms)
  const refusals: Array<Consents.Refusal> = []
  for (const conditions of tried) {
    const verified = Consents.verify(config, Conditions.signingHash(userOpHash, conditions), proof)
    if (Result.isSuccess(verified)) return Result.succeed({ conditions, proof })
    refusals.push(verified.failure)
  }
  // Good signatures over one of the hashes, but too few.
  const short = refusals.find(({ kind }) => kind === "threshold")
  if (short !== undefined)
    return Result.fail(elementFailure("threshold_not_met", Reasons.known(short.message)))
  return Result.fail(
    elementFailure(
      "invalid_signature",
      Reasons.text("unexpectedSignature", {
        problem: refusals[0]?.message ?? "",
        expected: expected(userOpHash, tried)
      })
    )
  )
}

const byAssertion = (
  auth: WebAuthn.Auth,
  userOpHash: Hex.Bytes32,
  config: WalletConfig,
  terms: Terms
): Result.Result<Consented, ElementFailure> => {
  if (config.passkeys.length === 0) return refusal("the wallet has no passkeys")
  const tried = candidates(terms)
  const hashOf = (conditions: Conditions.Conditions) => Conditions.signingHash(userOpHash, conditions)
  const conditions = tried.find((each) =>
    auth.clientDataJSON.includes(`"challenge":"${Base64.encodeUrl(hashOf(each))}"`)
  )
  if (conditions === undefined)
    return refusal(`clientDataJSON: the challenge is not base64url of ${expected(userOpHash, tried)}`)
  const checked = WebAuthn.check(auth, hashOf(conditions))
  if (Result.isFailure(checked)) return refusal(checked.failure)
  const index = WebAuthn.signedBy(auth, config.passkeys)
  if (index === null) return refusal("signature: it is by none of the wallet's passkeys")
  if (config.threshold > 1) return tooFew(1, config)
  const proof = Proof.encode({ ecdsa: Hex.empty, passkeys: [{ index, auth }] })
  return Result.succeed({ conditions, proof })
}

/** Checks how the wallet consents to an op; `Failure` names the problem with the evidence and the expected hash. */
export const consent = (
  evidence: Exclude<Evidence, { readonly _tag: "keys" }>,
  userOpHash: Hex.Bytes32,
  config: WalletConfig,
  terms: Terms
): Result.Result<Consented, ElementFailure> =>
  evidence._tag === "proof"
    ? byProof(evidence.proof, userOpHash, config, terms)
    : byAssertion(evidence.auth, userOpHash, config, terms)
