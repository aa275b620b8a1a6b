import { describe, expect, it } from "vitest"
import { type Code, catalogue } from "../../../src/application/failures/Catalogue.js"
import * as Delays from "../../../src/application/failures/Delays.js"
import { elementFailure } from "../../../src/application/failures/Elements.js"
import { invalid, Unavailable, unprocessable } from "../../../src/application/failures/Failure.js"
import * as Reasons from "../../../src/application/failures/Reasons.js"

const wei = { missing: 5n }

describe("the cause of delayed work", () => {
  it.each([
    elementFailure("node_refused"),
    elementFailure("wallet_busy"),
    elementFailure("fees_above_cap"),
    elementFailure("submission_limit", Reasons.text("tooManyInFlight", { count: 3 })),
    elementFailure("paymaster_unavailable"),
    elementFailure("signer_unavailable"),
    elementFailure("signer_unavailable", undefined, { reason: Reasons.text("signerSilent") }),
    elementFailure("signer_unavailable", Reasons.text("systemKeyMissing")),
    elementFailure("insufficient_funds", Reasons.text("submitterFunds", { ...wei, submitter: "0x01" })),
    elementFailure("insufficient_funds", Reasons.text("depositReserved", { ...wei, paymaster: "0x01" })),
    elementFailure("submission_unpaid", Reasons.text("maxFeePerGas", { given: 1n, least: 2n }))
  ])("is a temporary failure: $message $figures", (failure) => {
    expect(Delays.isPassing(failure)).toBe(true)
    const whole = unprocessable(failure.code, [{ path: "", message: failure.message }])
    if (failure.message !== Reasons.ofCode(failure.code)) expect(Delays.ofFailure(whole)).not.toBeNull()
  })

  it.each([
    elementFailure("execution_failed", Reasons.text("reverted", { reason: "no" })),
    elementFailure("insufficient_funds", Reasons.text("walletFunds", { ...wei, wallet: "0x01" })),
    elementFailure("signer_unavailable", undefined, { reason: Reasons.text("signerRefused") }),
    elementFailure("submission_unpaid", Reasons.text("preVerificationGas", { given: 1n, least: 2n })),
    elementFailure("submission_unpaid", Reasons.text("notMeasured")),
    elementFailure("sponsorship_exhausted"),
    elementFailure("paymaster_refused"),
    elementFailure("too_large_to_bundle"),
    elementFailure("invalid_nonce"),
    elementFailure("threshold_not_met"),
    elementFailure("window_passed")
  ])("is not a final failure: $message $figures", (failure) => {
    expect(Delays.isPassing(failure)).toBe(false)
  })

  it("is the service when it cannot reply, or the caller's node when it is away", () => {
    const { text: message } = catalogue.unavailable
    const away = new Unavailable({ code: "unavailable", message, details: [], retryAfterSeconds: 1 })
    for (const failure of [away, invalid("invalid_rpc")]) expect(Delays.ofFailure(failure)).not.toBeNull()
    for (const code of ["factory_not_allowed", "invalid_request"] as const satisfies ReadonlyArray<Code>)
      expect(Delays.ofFailure(invalid(code))).toBeNull()
  })
})
