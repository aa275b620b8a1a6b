import * as Effect from "effect/Effect"
import { limitsOf } from "../../../application/ports/RateLimit.js"
import type { Pause } from "../../../application/ports/TenantStore.js"
import type { Data, Missing, View } from "./Data.js"
import { type Html, html } from "./Html.js"
import { code, hidden, table, time } from "./Page.js"

const control = (
  { formToken }: View,
  action: "pause" | "resume",
  kind: Pause["kind"],
  subject: string
): Html =>
  html`<form method="post" action="/console/${action}">${hidden({ formToken, kind, subject })}<button class="${
    action === "pause" ? "danger" : "second"
  }" aria-label="${action} ${kind} ${subject}">${action === "pause" ? "Pause" : "Resume"}</button></form>`

export const accounts = (data: Data, view: View): Effect.Effect<Html, Missing> =>
  Effect.map(
    Effect.mapError(data.tenants.content, ({ message }) => ({
      message: `accounts cannot be read: ${message}`
    })),
    (content) => {
      const { pauses } = content
      const isPaused = (kind: Pause["kind"], subject: string) =>
        pauses.some((pause) => pause.kind === kind && pause.subject === subject)
      const switched = (kind: Pause["kind"], subject: string) =>
        control(view, isPaused(kind, subject) ? "resume" : "pause", kind, subject)
      const live = ({ endsAt }: { readonly endsAt: number | null }) => endsAt === null || endsAt > view.now
      const keysOf = (id: string) =>
        content.keys.filter((key) => key.accountId === id && key.origin === "command" && live(key)).length
      const all = [
        ...data.accounts.map((account) => ({ ...account, origin: "configuration file" })),
        ...content.accounts.map((account) => ({ ...account, paused: false, origin: "command" }))
      ]
      const signers = [...new Set(content.signers.flatMap(({ address }) => address ?? []))]
      return html`${table(
        "Accounts",
        [
          "Account",
          "Name",
          "Tier",
          "A minute",
          "An hour",
          "From",
          "API keys by command",
          "State",
          "Kill switch"
        ],
        all.map(({ accountId, name, origin, paused, ...account }) => [
          code(accountId),
          name,
          account.tier,
          limitsOf(account).minute,
          limitsOf(account).hour,
          origin,
          keysOf(accountId),
          paused || isPaused("account", accountId) ? html`<span class="wrong">paused</span>` : "active",
          // Only the file can resume a pause set in the file.
          paused ? "paused in the file" : switched("account", accountId)
        ]),
        "There is no account."
      )}
${table(
  "Chains",
  ["Chain", "State", "Kill switch"],
  data.profiles.map(({ chainId }) => [
    chainId.toString(),
    isPaused("chain", chainId.toString()) ? html`<span class="wrong">paused</span>` : "active",
    switched("chain", chainId.toString())
  ]),
  "The configuration has no network."
)}
${table(
  "Signers of accounts made by command",
  ["Address", "State", "Kill switch"],
  signers.map((address) => [
    code(address),
    isPaused("signer", address) ? html`<span class="wrong">paused</span>` : "active",
    switched("signer", address)
  ]),
  "None."
)}
${table(
  "Active kill switches",
  ["Kind", "Subject", "Since (UTC)", ""],
  pauses.map(({ kind, since, subject }) => [
    kind,
    code(subject),
    time(since),
    control(view, "resume", kind, subject)
  ]),
  "None."
)}`
    }
  )
