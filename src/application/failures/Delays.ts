import type { Code } from "./Catalogue.js"
import { type ElementFailure, elementFailure } from "./Elements.js"
import type { Failure, RefusalDetail } from "./Failure.js"
import * as Reasons from "./Reasons.js"

/**
 * Failures that only delay accepted work until it expires: nodes, key providers, external services, money of the
 * operator, and other work in the way. Refusals by the chain, its signer, a spent budget or the caller's own bytes are
 * final.
 */

/** The obstacle to accepted work, as a detail of an answer. */
export const detailsOf = (why: string | null): ReadonlyArray<RefusalDetail> =>
  why === null ? [] : [{ path: "", message: Reasons.text("delayed", { message: why }) }]

const passing: ReadonlySet<Code> = new Set<Code>([
  "decision_unavailable",
  "deployment_pending",
  "fees_above_cap",
  "implementation_changed",
  "invalid_rpc",
  "node_limit",
  "node_refused",
  "operator_rpc_missing",
  "outcome_unknown",
  "paymaster_unavailable",
  "submission_limit",
  "wallet_busy",
  "writes_paused"
])

/** Passing reasons of codes whose other reasons are final. */
const passingReasons = [
  "depositReserved",
  "maxFeePerGas",
  "maxPriorityFeePerGas",
  "signerFunds",
  "submitterFunds"
] as const satisfies ReadonlyArray<keyof typeof Reasons.reasons>

/** A signer's refusal says so; any other failure may pass. */
const isSignerAway = (code: Code, texts: ReadonlyArray<string>): boolean =>
  code === "signer_unavailable" &&
  !texts.some((text) => Reasons.is("signerRefused", text) || Reasons.is("notReplaceable", text))

const passes = (code: Code, texts: ReadonlyArray<string>): boolean =>
  passing.has(code) ||
  isSignerAway(code, texts) ||
  passingReasons.some(
    (reason) => code === Reasons.reasons[reason].code && texts.some((text) => Reasons.is(reason, text))
  )

/** Whether the element is only delayed. */
export const isPassing = ({ code, figures, message }: ElementFailure): boolean =>
  passes(code, [message, ...Object.values(figures)])

/** A failure of the whole request as a failure of an element, once others have been accepted. */
export const asElement = (failure: Failure): ElementFailure => {
  const [detail] = failure.details
  if (failure.code === "node_unavailable")
    return elementFailure(
      "node_refused",
      Reasons.text("nodeUnavailable", { message: detail?.message ?? failure.message })
    )
  return elementFailure(
    failure._tag === "Unprocessable" ? failure.code : "execution_failed",
    detail === undefined
      ? Reasons.known(failure.message)
      : Reasons.text("refusedBeforeSending", { text: failure.message, problem: detail.message })
  )
}

/** The delay of an accepted request; null: the failure is final. */
export const ofFailure = (failure: Failure): ElementFailure | null =>
  failure._tag === "Unavailable" ||
  failure._tag === "TooManyRequests" ||
  passes(
    failure.code,
    failure.details.map(({ message }) => message)
  )
    ? asElement(failure)
    : null
