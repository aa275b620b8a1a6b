import * as Effect from "effect/Effect"
import type { Pause } from "../../../application/ports/TenantStore.js"
import * as Chains from "../Chains.js"
import type { Data, Missing, View } from "../Data.js"
import { type Html, html, type Part } from "../Html.js"
import * as Page from "../Page.js"
import * as Policies from "./Policies.js"

/** Kill switches: chains, accounts and signers that an operator pauses and resumes. */

const subjectOf = (kind: Pause["kind"], subject: string): string => {
  if (kind === "chain") return Chains.of(BigInt(subject)).name
  return kind === "account" ? `account ${subject}` : `signer ${Page.shorten(subject)}`
}

const scopeOf = (kind: Pause["kind"], name: string): string => {
  if (kind === "chain")
    return `New writes on ${name} get 422 \`writes are paused\`, from every account, within a second.`
  return kind === "account"
    ? `Requests of ${name} get 401 \`account paused\`, on every chain, within a second.`
    : `New writes that ${name} signs or submits get 422 \`writes are paused\`, on every chain, within a second.`
}

export const act = (
  { formToken }: View,
  action: "pause" | "resume",
  kind: Pause["kind"],
  subject: string,
  id: string
): Html => {
  const name = subjectOf(kind, subject)
  const isStop = action === "pause"
  return Page.act({
    id: `${action}-${id}`,
    button: isStop ? "Pause…" : "Resume…",
    question: isStop ? `Pause writes: ${name}?` : `Resume writes: ${name}?`,
    effects: isStop
      ? [Page.mark(scopeOf(kind, name)), ...(kind === "account" ? [] : ["Reads and estimates continue."])]
      : ["New writes are accepted again, within a second."],
    stays: isStop
      ? "Accepted work is still sent, replaced and settled."
      : "Refused requests do not come back by themselves.",
    action: `/${action}`,
    fields: { formToken, kind, subject },
    confirm: isStop ? `Pause ${name}` : `Resume ${name}`,
    isStop
  })
}

export const unreadable = ({ message }: { readonly message: string }): Missing => ({
  message: `accounts cannot be read: ${message}`
})

/** Kill switches, active ones first, and spending rules. */
export const rules = (data: Data, view: View): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const { pauses, signers } = yield* Effect.mapError(data.tenants.content, unreadable)
    const isPaused = (kind: Pause["kind"], subject: string) =>
      pauses.some((pause) => pause.kind === kind && pause.subject === subject)
    const state = (kind: Pause["kind"], subject: string) =>
      isPaused(kind, subject) ? Page.status("pause", "Paused") : Page.status("ok", "Active")
    const rowsOf = (
      kind: Pause["kind"],
      subjects: ReadonlyArray<readonly [subject: string, shown: Part]>
    ): ReadonlyArray<ReadonlyArray<Part>> =>
      subjects.map(([subject, shown], at) => [
        shown,
        state(kind, subject),
        act(view, isPaused(kind, subject) ? "resume" : "pause", kind, subject, `${kind}-${at}`)
      ])
    const addresses = [...new Set(signers.flatMap(({ address }) => address ?? []))]
    return html`${Page.head("Rules", "Kill switches stop new work of an account, a signer or a chain; spending rules bound it. Accepted work continues.")}
${Page.box(
  "Paused now",
  Page.table(
    "Active kill switches",
    ["Subject", "Kind", "Since", ""],
    pauses.map(({ kind, since, subject }, at) => [
      kind === "signer" ? Page.address(subject) : subjectOf(kind, subject),
      kind,
      Page.ago(since, view.now),
      act(view, "resume", kind, subject, `now-${at}`)
    ]),
    "Nothing is paused."
  )
)}
${Page.box(
  "Chains",
  Page.table(
    "Chains",
    ["Chain", "State", ""],
    rowsOf(
      "chain",
      data.profiles.map(({ chainId }) => [
        chainId.toString(),
        html`${Chains.of(chainId).name} <small>chain ${chainId}</small>`
      ])
    ),
    "The configuration has no network."
  )
)}
${Page.box(
  "Signers of accounts made by command",
  Page.table(
    "Signers",
    ["Address", "State", ""],
    rowsOf(
      "signer",
      addresses.map((address) => [address, Page.address(address)])
    ),
    "None."
  )
)}
${yield* Policies.boxes(data, view)}`
  })
