import * as Arr from "effect/Array"
import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as UnstickLane from "../../../application/operate/UnstickLane.js"
import {
  type Lane,
  type LaneAccess,
  laneKey,
  type TransactionRecord
} from "../../../application/ports/journal/Transactions.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Chains from "../Chains.js"
import type { Data, Missing, View } from "../Data.js"
import { type Html, html, type Part } from "../Html.js"
import * as Page from "../Page.js"

const keyOf = ({ accountId, key }: LaneAccess): string => {
  if (typeof key === "string") return key === "treasury" ? "the treasury" : "the service's EOA"
  return `${accountId}: ${key.clientId}, version ${key.versionId ?? key.assetId}`
}

/** The lane of a path or a form; null: it names none. */
export const laneOf = (chain: string, signer: string): Lane | null => {
  const address = Address.from(signer)
  return /^[1-9][0-9]{0,15}$/.test(chain) && Result.isSuccess(address)
    ? { chainId: BigInt(chain), signer: address.success }
    : null
}

export const unreadable = ({ message }: { readonly message: string }): Missing => ({
  message: `the journal cannot be read: ${message}`
})

const waitingOf = (records: ReadonlyArray<TransactionRecord>) =>
  records.filter(({ state }) => state === "signed")

const requestsOf = ({ direct, ops }: TransactionRecord): ReadonlyArray<string> => [
  ...new Set([...ops.map(({ requestId }) => requestId), ...(direct === null ? [] : [direct])])
]

/** Pending requests whose acceptance is read, the oldest ones. */
const mostPending = 1_000

/** When the lane's oldest waiting work was accepted: a replacement is signed later. Null: none waits. */
const oldestOf =
  (acceptedAt: ReadonlyMap<string, number>) =>
  (records: ReadonlyArray<TransactionRecord>): number | null => {
    const times = waitingOf(records).flatMap((record) => [
      record.signedAt,
      ...requestsOf(record).flatMap((requestId) => acceptedAt.get(requestId) ?? [])
    ])
    return times.length === 0 ? null : Math.min(...times)
  }

const linkTo = ({ chainId, signer }: Lane): Html =>
  Page.laneLink(chainId, signer, `${Chains.of(chainId).name} · `)

/** Lanes with work first: those whose oldest transaction waits longest. */
export const lanes = (data: Data, { now }: View): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const records = yield* data.transactions.open
    const pending = yield* data.history.find({ state: "pending", isOldestFirst: true, limit: mostPending })
    const oldest = oldestOf(new Map(pending.map(({ acceptedAt, requestId }) => [requestId, acceptedAt])))
    const all = Object.values(Arr.groupBy(records, (record): string => laneKey(record)))
    const sorted = all.toSorted(
      (one, other) => (oldest(one) ?? Number.MAX_SAFE_INTEGER) - (oldest(other) ?? Number.MAX_SAFE_INTEGER)
    )
    return html`${Page.head("Lanes", "A lane is the ordered stream of transactions of one EOA on one chain.")}
${Page.box(
  "Lanes with transactions",
  Page.table(
    "Lanes with transactions",
    ["Lane", "Key", "State", "Waiting", "Mined, not settled", "Lowest waiting nonce"],
    sorted.map((own) => {
      const [first] = own
      const waiting = waitingOf(own)
      const since = oldest(own)
      const profile = data.profiles.find(({ chainId }) => chainId === first.chainId)
      const isLate = since !== null && now - since > (profile?.bumpAfterMillis ?? 30_000)
      return [
        linkTo(first),
        [...new Set(own.map(({ access }) => keyOf(access)))].join("; "),
        waiting.length === 0
          ? Page.status("ok", "Mined")
          : Page.status(isLate ? "late" : "wait", `Waits ${Page.age((now - (since ?? now)) / 1_000)}`),
        `${waiting.length} of ${profile?.maxInFlight ?? "?"}`,
        own.length - waiting.length,
        waiting[0]?.nonce.toString() ?? "–"
      ]
    }),
    "No transaction is under way."
  ),
  null,
  true
)}`
  }).pipe(Effect.mapError(unreadable))

const transactionRow =
  (now: number) =>
  (record: TransactionRecord): ReadonlyArray<Part> => {
    const newest = record.versions.at(-1)
    const requests = requestsOf(record)
    const txHash = record.mined?.txHash ?? newest?.txHash
    return [
      record.nonce.toString(),
      record.state === "signed" ? Page.status("wait", "Waiting") : Page.status("ok", "Mined"),
      requests.length === 0 ? "fills the nonce" : requests.map((id) => html`${Page.requestLink(id)} `),
      Page.ago(record.signedAt, now),
      newest === undefined ? "–" : Page.gwei(newest.maxFeePerGas),
      record.versions.length,
      txHash === undefined ? "–" : Page.transaction(txHash, record.chainId)
    ]
  }

const columns = ["Nonce", "State", "Requests", "Last signed", "Max fee", "Versions", "Transaction"]

const dryRun = ({ formToken }: View, { chainId, signer }: Lane): Html =>
  html`<form method="post" action="${Page.path}/unstick">${Page.hiddenField({
    formToken,
    chain: chainId.toString(),
    signer,
    dryRun: "true"
  })}<button>Show new prices</button></form>`

export const lane = (data: Data, view: View, of: Lane): Effect.Effect<Html, Missing> =>
  Effect.map(Effect.mapError(data.transactions.openOf(of), unreadable), (records) => {
    const waiting = waitingOf(records)
    const rest = records.filter((record) => !waiting.includes(record))
    const held = data.unknown(of)
    return html`${Page.head(
      html`${Chains.of(of.chainId).name} · ${Page.shorten(of.signer)}`,
      html`${Page.address(of.signer, of.chainId)} ${[...new Set(records.map(({ access }) => keyOf(access)))].join("; ")}`,
      waiting.length > 0 || held.length > 0 ? dryRun(view, of) : null,
      html`<a href="${Page.path}/lanes">Lanes</a>`
    )}
${held.length === 0 ? null : Page.problem(`The journal does not know the transactions of nonce ${held.join(", ")}: the lane signs nothing new until it has read them.`)}
${Page.box("Waiting", Page.table("Waiting transactions", columns, waiting.map(transactionRow(view.now)), "None waits."), null, true)}
${rest.length === 0 ? null : html`<details class="box"><summary>Mined, not yet settled: ${rest.length}</summary>${Page.table("Mined transactions", columns, rest.map(transactionRow(view.now)), "None.")}</details>`}`
  })

const confirm = (
  { formToken }: View,
  { chainId, signer }: Lane,
  replaced: UnstickLane.Unstuck["replaced"]
): Html => {
  const [least, most] = [replaced.at(0)?.nonce, replaced.at(-1)?.nonce]
  const fee = replaced.reduce((most, { maxFeePerGas }) => BigInts.max(most, maxFeePerGas), 0n)
  return Page.act({
    id: "unstick",
    button: "Unstick…",
    question: `Replace ${replaced.length === 1 ? "the waiting transaction" : `the ${replaced.length} waiting transactions`}?`,
    effects: [
      least === most
        ? `Nonce ${least} is signed again at ${Page.gwei(fee)}.`
        : `Nonces ${least} to ${most} are signed again, at ${Page.gwei(fee)} at most.`
    ],
    stays: "Operations run once: old and new version have the same nonce.",
    action: "/unstick",
    fields: { formToken, chain: chainId.toString(), signer, dryRun: "false" },
    confirm: "Replace",
    isStop: false
  })
}

export const unstuck = (data: Data, view: View, of: Lane, isDryRun: boolean): Effect.Effect<Html, Missing> =>
  Effect.map(data.unstick(of, isDryRun), ({ left, replaced }: UnstickLane.Unstuck) => {
    const nothing = left.length + replaced.length === 0
    return html`${Page.head(
      isDryRun ? "New prices" : "Replacements sent",
      nothing
        ? "The lane has no waiting transaction."
        : isDryRun
          ? "Nothing was signed or sent yet."
          : "The new versions were sent.",
      isDryRun && replaced.length > 0 ? confirm(view, of, replaced) : null,
      html`<a href="${Page.path}/lanes">Lanes</a> › ${linkTo(of)}`
    )}
${Page.box(
  isDryRun ? "Would be replaced" : "Replaced",
  Page.table(
    "Replacements",
    ["Nonce", "Transaction", "New transaction", "Max fee", "Tip"],
    replaced.map(({ maxFeePerGas, maxPriorityFeePerGas, newTxHash, nonce, oldTxHash }) => [
      nonce.toString(),
      oldTxHash === null ? "–" : Page.transaction(oldTxHash, of.chainId),
      newTxHash === null ? "–" : Page.transaction(newTxHash, of.chainId),
      Page.gwei(maxFeePerGas),
      Page.gwei(maxPriorityFeePerGas)
    ]),
    "None."
  )
)}
${Page.box(
  "Not replaced",
  Page.table(
    "Not replaced",
    ["Nonce", "Reason"],
    left.map(({ nonce, reason }) => [nonce.toString(), reason]),
    "None."
  )
)}`
  })
