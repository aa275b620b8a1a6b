import * as Effect from "effect/Effect"
import type { NetworkProfile } from "../../../application/ports/NetworkProfile.js"
import type { Data, View } from "./Data.js"
import * as Figures from "./Figures.js"
import { type Html, html } from "./Html.js"
import { age, code, facts, native, table } from "./Page.js"

type Found = Effect.Success<typeof Figures.read>

const sum = (figures: ReadonlyArray<Figures.Figure> = []): number =>
  figures.reduce((total, { value }) => total + value, 0)

const chainRow = (profile: NetworkProfile) => [
  profile.chainId.toString(),
  profile.confirmations,
  profile.settledDepth,
  profile.rpc === null ? "of callers only" : "the operator's",
  profile.sponsor === null ? "none" : code(profile.sponsor.paymaster),
  profile.remoteBundler === null ? "castellan's own" : "another one"
]

/** EOAs with measured lanes or balances. */
const eoas = (found: Found) => {
  const by = (name: string) =>
    new Map((found.get(name) ?? []).map(({ labels, value }) => [`${labels.chain} ${labels.signer}`, value]))
  const [balances, pending, oldest] = [by("eoa_balance_wei"), by("lane_pending"), by("lane_oldest_seconds")]
  return [...new Set([...balances.keys(), ...pending.keys()])].sort().map((name) => {
    const [chain = "", signer = ""] = name.split(" ")
    const balance = balances.get(name)
    const waiting = pending.get(name) ?? 0
    return [
      chain,
      html`<a href="/console/lanes/${chain}/${signer}">${code(signer)}</a>`,
      balance === undefined ? "not read yet" : native(BigInt(Math.trunc(balance))),
      waiting,
      waiting === 0 ? "-" : age(oldest.get(name) ?? 0)
    ]
  })
}

/** Requests since the start, by endpoint, with the numbers refused and failed. */
const endpoints = (found: Found) => {
  const rows = new Map<string, { all: number; refused: number; failed: number }>()
  for (const { labels, value } of found.get("requests_total") ?? []) {
    const endpoint = labels.endpoint ?? ""
    const row = rows.get(endpoint) ?? { all: 0, refused: 0, failed: 0 }
    const status = Number(labels.status)
    row.all += value
    if (status >= 400 && status < 500) row.refused += value
    if (status >= 500) row.failed += value
    rows.set(endpoint, row)
  }
  return [...rows]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([endpoint, { all, failed, refused }]) => [
      code(endpoint),
      all,
      refused,
      failed === 0 ? 0 : html`<span class="wrong">${failed} (${((100 * failed) / all).toFixed(1)} %)</span>`
    ])
}

export const overview = (data: Data, _view: View): Effect.Effect<Html> =>
  Effect.map(Effect.andThen(data.refresh, Figures.read), (found) => {
    const stranded = sum(found.get("work_stranded"))
    const isDoubted = sum(found.get("clock_doubted")) > 0
    const journalErrors = sum(found.get("journal_errors_total"))
    const marked = (count: number) => (count === 0 ? 0 : html`<span class="wrong">${count}</span>`)
    return html`${facts([
      ["Pending transactions", sum(found.get("lane_pending"))],
      ["Blocked work", marked(stranded)],
      [
        "Clock",
        isDoubted
          ? html`<span class="wrong">over an hour from a chain's time: nothing is deleted for its age, see the log</span>`
          : "not in doubt"
      ],
      ["Failed journal calls", marked(journalErrors)],
      ["Failed JSON-RPC calls", sum(found.get("rpc_errors_total"))],
      ["Failed signatures", marked(sum(found.get("signature_errors_total")))]
    ])}
${table(
  "Chains",
  ["Chain", "Confirmations", "Settled depth", "Node", "Sponsor paymaster", "Bundler"],
  data.profiles.map(chainRow),
  "The configuration has no network."
)}
${table(
  "Submitting EOAs",
  ["Chain", "Address", "Balance (native token)", "Waiting", "Oldest"],
  eoas(found),
  "None has been used since this process started."
)}
${table(
  "Requests since this process started",
  ["Endpoint", "Answered", "Refused (4xx)", "Failed (5xx)"],
  endpoints(found),
  "None yet."
)}`
  })
