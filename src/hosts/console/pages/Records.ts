import * as Effect from "effect/Effect"
import * as Chains from "../Chains.js"
import { type Data, type Missing, placeOf, type View } from "../Data.js"
import { type Html, html } from "../Html.js"
import * as Page from "../Page.js"

const perPage = 100

const linkOf = (subject: string): Html =>
  /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(subject) ? Page.requestLink(subject) : html`${subject}`

/** Actions of operators, and signatures of keys. */
export const audit = (data: Data, view: View): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const isFirst = view.query.get("before") === null
    const acts = isFirst ? yield* data.operators.find({ limit: perPage }) : []
    const entries = yield* data.audit.find({ ...placeOf(view), limit: perPage })
    const last = entries.length < perPage ? undefined : entries.at(-1)
    return html`${Page.head("Audit", "Nothing here is ever changed or removed.")}
${
  isFirst
    ? Page.box(
        "Acts of operators",
        Page.table(
          "Acts of operators, the newest first",
          ["When", "Operator", "Act", "Subject", "Reason"],
          acts.map(({ act, at, operator, reason, subject }) => [
            Page.ago(at, view.now),
            operator,
            act,
            linkOf(subject),
            reason
          ]),
          "No operator has acted here yet."
        )
      )
    : null
}
${Page.box(
  "Signatures",
  Page.table(
    "Signatures, the newest first",
    ["When", "Kind", "Account", "By", "Signer", "Hash", "Chain", "Nonce", "Request"],
    entries.map((entry) => [
      Page.ago(entry.at, view.now),
      entry.kind,
      entry.accountId ?? "the operator",
      entry.by ?? "–",
      Page.address(entry.signer, entry.chainId),
      entry.chainId !== null && entry.kind === "transaction"
        ? Page.transaction(entry.hash, entry.chainId)
        : Page.hash(entry.hash, "digest"),
      entry.chainId === null ? "–" : Chains.of(entry.chainId).name,
      entry.nonce?.toString() ?? "–",
      entry.requestId === null ? "–" : linkOf(entry.requestId)
    ]),
    "Nothing was signed yet."
  )
)}
${last === undefined ? null : html`<p><a href="${Page.path}/audit?before=${last.number}">Older entries</a></p>`}`
  }).pipe(Effect.mapError(({ message }) => ({ message: `the audit log cannot be read: ${message}` })))
