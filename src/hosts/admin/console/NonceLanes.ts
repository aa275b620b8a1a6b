import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { Lane, LaneAccess, TransactionRecord } from "../../../application/ports/journal/Transactions.js"
import type * as UnstickLane from "../../../application/usecases/operator/UnstickLane.js"
import type { Data, Missing, View } from "./Data.js"
import { type Html, html, type Part } from "./Html.js"
import { age, code, hidden, native, problem, table, time } from "./Page.js"

const keyOf = ({ accountId, key }: LaneAccess): string => {
  if (key === "serviceEoa") return "serviceEoa"
  return `${accountId}: ${key.clientId} ${key.versionId ?? key.assetId}`
}

const unreadable = ({ message }: { readonly message: string }): Missing => ({
  message: `the journal cannot be read: ${message}`
})

const waitingOf = (records: ReadonlyArray<TransactionRecord>) =>
  records.filter(({ state }) => state === "signed")

const oldest = (records: ReadonlyArray<TransactionRecord>, now: number): string => {
  const waiting = waitingOf(records)
  return waiting.length === 0
    ? "-"
    : age((now - Math.min(...waiting.map(({ signedAt }) => signedAt))) / 1_000)
}

export const lanes = (data: Data, { now }: View): Effect.Effect<Html, Missing> =>
  Effect.map(Effect.mapError(data.transactions.open, unreadable), (records) =>
    table(
      "Lanes that have transactions under way",
      ["Chain", "EOA", "Key", "Waiting", "Oldest", "Mined, not settled", "Lowest pending nonce"],
      Object.values(Arr.groupBy(records, ({ chainId, signer }): string => `${chainId} ${signer}`)).map(
        (own) => {
          const [first] = own
          const waiting = waitingOf(own)
          return [
            first.chainId.toString(),
            html`<a href="/console/lanes/${first.chainId}/${first.signer}">${code(first.signer)}</a>`,
            [...new Set(own.map(({ access }) => keyOf(access)))].join("; "),
            waiting.length,
            oldest(own, now),
            own.length - waiting.length,
            waiting[0]?.nonce.toString() ?? "-"
          ]
        }
      ),
      "No transaction is under way."
    )
  )

const transactionRow =
  (now: number) =>
  (record: TransactionRecord): ReadonlyArray<Part> => {
    const newest = record.versions.at(-1)
    const requests = [
      ...new Set([
        ...record.ops.map(({ requestId }) => requestId),
        ...(record.direct === null ? [] : [record.direct])
      ])
    ]
    return [
      record.nonce.toString(),
      record.state,
      code(record.mined?.txHash ?? newest?.txHash ?? ""),
      record.versions.length,
      newest?.maxFeePerGas.toString() ?? "-",
      html`${time(record.signedAt)} (${age((now - record.signedAt) / 1_000)})`,
      requests.length === 0
        ? "fills the nonce"
        : requests.map((id) => html`<a href="/console/requests/${id}">${code(id)}</a> `)
    ]
  }

const form = ({ formToken }: View, { chainId, signer }: Lane, dryRun: boolean, label: string): Html =>
  html`<form class="inline" method="post" action="/console/unstick">${hidden({
    formToken,
    chain: chainId.toString(),
    signer,
    dryRun: String(dryRun)
  })}<button class="${dryRun ? "second" : "danger"}">${label}</button></form>`

export const lane = (data: Data, view: View, of: Lane): Effect.Effect<Html, Missing> =>
  Effect.map(Effect.mapError(data.transactions.openOf(of), unreadable), (records) => {
    const waits = waitingOf(records).length > 0
    return html`<p>Chain ${of.chainId}, ${code(of.signer)}</p>
${waits ? form(view, of, true, "See what new prices would be") : null}
${table(
  "Transactions under way",
  ["Nonce", "State", "Transaction", "Versions", "Max fee (wei a gas unit)", "Signed", "Requests"],
  records.map(transactionRow(view.now)),
  "None is under way."
)}`
  })

export const unstuck = (data: Data, view: View, of: Lane, dryRun: boolean): Effect.Effect<Html, Missing> =>
  Effect.map(data.unstick(of, dryRun), ({ left, replaced }: UnstickLane.Unstuck) => {
    const nothing = left.length + replaced.length === 0
    return html`<p>Chain ${of.chainId}, <a href="/console/lanes/${of.chainId}/${of.signer}">${code(of.signer)}</a></p>
${nothing ? problem("The lane has no pending transactions.") : html`<p>${dryRun ? "Dry run: no transaction was sent." : "The replacements were sent at the new prices."}</p>`}
${table(
  dryRun ? "Would be replaced" : "Replaced",
  ["Nonce", "Transaction", "New transaction", "Max fee (wei)", "Priority fee (wei)"],
  replaced.map(({ maxFeePerGas, maxPriorityFeePerGas, newTxHash, nonce, oldTxHash }) => [
    nonce.toString(),
    code(oldTxHash ?? "-"),
    code(newTxHash ?? "-"),
    html`${maxFeePerGas} (${native(maxFeePerGas * 1_000_000_000n)} Gwei)`,
    maxPriorityFeePerGas
  ]),
  "None."
)}
${table(
  "Not replaced",
  ["Nonce", "Reason"],
  left.map(({ nonce, reason }) => [nonce.toString(), reason]),
  "None."
)}
${dryRun && replaced.length > 0 ? form(view, of, false, "Send these at new prices") : null}`
  })
