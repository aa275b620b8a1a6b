import * as Effect from "effect/Effect"
import { limitsOf } from "../../../application/ports/RateLimit.js"
import * as KnownKeys from "../../../application/tenants/KnownKeys.js"
import type { Data, Missing, View } from "../Data.js"
import { type Html, html, type Part } from "../Html.js"
import * as Page from "../Page.js"
import * as Pauses from "./Pauses.js"

/** Keys that are shown; the command line lists all. */
const mostKeys = 500

const revoke = ({ formToken }: View, { accountId, id }: KnownKeys.KnownKey): Html =>
  Page.act({
    id: `revoke-${id}`,
    button: "Revoke…",
    question: `Revoke key ${id}?`,
    effects: [
      html`Requests of ${accountId} with this key get 401 within a second, on every process. A revoked key never works again.`
    ],
    stays: "Accepted work continues. Other keys of the account stay valid.",
    action: "/revoke",
    fields: { formToken, key: id },
    confirm: "Revoke",
    isStop: true,
    typed: id
  })

const keyRow =
  (view: View) =>
  (key: KnownKeys.KnownKey): ReadonlyArray<Part> => {
    const { accountId, endsAt, id, issuedAt, origin, scopes, usedAt } = key
    const isOver = endsAt !== null && endsAt <= view.now
    return [
      Page.code(id),
      accountId,
      scopes.join(", "),
      origin === "file" ? "configuration file" : Page.ago(issuedAt, view.now),
      usedAt === null ? "never" : Page.ago(usedAt, view.now),
      isOver
        ? Page.status("pause", "Ended")
        : endsAt === null
          ? Page.status("ok", "Active")
          : html`${Page.status("late", "Ends")} in ${Page.age((endsAt - view.now) / 1_000)}`,
      isOver ? null : revoke(view, key)
    ]
  }

export const accounts = (data: Data, view: View): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const content = yield* data.tenants.content
    const keys = KnownKeys.of(data.accounts, content, yield* data.tenants.uses)
    const isPaused = (id: string) =>
      content.pauses.some(({ kind, subject }) => kind === "account" && subject === id)
    const all = [
      ...data.accounts.map((account) => ({ ...account, origin: "configuration file" })),
      ...content.accounts.map((account) => ({ ...account, paused: false, origin: "command" }))
    ]
    return html`${Page.head("Accounts")}
${Page.box(
  "Accounts",
  Page.table(
    "Accounts",
    [
      "Account",
      "Name",
      "Tier",
      { name: "A minute", isRight: true },
      { name: "An hour", isRight: true },
      "From",
      "State",
      ""
    ],
    all.map(({ accountId, name, origin, paused, ...account }, at) => [
      Page.accountLink(accountId),
      name,
      account.tier,
      Page.count(limitsOf(account).minute),
      Page.count(limitsOf(account).hour),
      origin,
      paused || isPaused(accountId) ? Page.status("pause", "Paused") : Page.status("ok", "Active"),
      // Only the file can resume a pause set in the file.
      paused
        ? "paused in the file"
        : Pauses.act(view, isPaused(accountId) ? "resume" : "pause", "account", accountId, `a${at}`)
    ]),
    "There is no account."
  )
)}
${Page.box(
  "API keys",
  Page.table(
    "API keys",
    ["Key", "Account", "Scopes", "Issued", "Last use", "State", ""],
    keys
      .toSorted((one, other) => Number(other.endsAt === null) - Number(one.endsAt === null))
      .slice(0, mostKeys)
      .map(keyRow(view)),
    "There is no key."
  )
)}`
  }).pipe(Effect.mapError(Pauses.unreadable))
