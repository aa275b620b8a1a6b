import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { Hold } from "../../../application/ports/Budgets.js"
import { type Data, type Missing, placeOf, type View } from "./Data.js"
import { type Html, html } from "./Html.js"
import { code, native, table, time } from "./Page.js"

const sum = (holds: ReadonlyArray<Hold>): bigint =>
  holds.reduce((total, { landed, wei }) => total + (landed ?? wei), 0n)

/** Reserved amounts, by owner and budget. */
export const budgets = (data: Data, _view: View): Effect.Effect<Html, Missing> =>
  Effect.map(
    Effect.forEach(data.profiles, ({ chainId }) =>
      Effect.mapError(data.budgets.open(chainId), ({ message }) => ({
        message: `budgets cannot be read: ${message}`
      }))
    ),
    (chains) =>
      table(
        "Held budgets",
        ["Chain", "Account", "Budget", "Open", "Landed", "Held (native token)"],
        Object.values(
          Arr.groupBy(chains.flat(), ({ accountId, chainId, name }) => `${chainId} ${accountId} ${name}`)
        ).map((holds) => {
          const [first] = holds
          return [
            first.chainId.toString(),
            first.accountId === null ? "the operator's" : code(first.accountId),
            first.name,
            holds.filter(({ landed }) => landed === null).length,
            holds.filter(({ landed }) => landed !== null).length,
            native(sum(holds))
          ]
        }),
        "Nothing is held."
      )
  )

const perPage = 100

export const audit = (data: Data, view: View): Effect.Effect<Html, Missing> =>
  Effect.map(data.audit.find({ ...placeOf(view), limit: perPage }), (entries) => {
    const last = entries.length < perPage ? undefined : entries.at(-1)
    return html`${table(
      "Signatures, newest first",
      ["Number", "Time (UTC)", "Kind", "Account", "By", "Signer", "Hash", "Chain", "Nonce", "Request"],
      entries.map((entry) => [
        entry.number.toString(),
        time(entry.at),
        entry.kind,
        entry.accountId ?? "the operator",
        entry.by ?? "-",
        code(entry.signer),
        code(entry.hash),
        entry.chainId?.toString() ?? "-",
        entry.nonce?.toString() ?? "-",
        entry.requestId === null
          ? "-"
          : html`<a href="/console/requests/${entry.requestId}">${code(entry.requestId)}</a>`
      ]),
      "Nothing was signed yet."
    )}
${last === undefined ? null : html`<p><a href="/console/audit?before=${last.number}">Older entries</a></p>`}`
  })
