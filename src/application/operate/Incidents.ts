import type { ChainHealth } from "../observe/Health.js"
import type { Budget } from "../ports/Budgets.js"
import * as ClockTrust from "../ports/clock/ClockTrust.js"
import type { TransactionRecord } from "../ports/journal/Transactions.js"
import type { Waiting } from "../ports/operator/RequestHistory.js"

/**
 * Incidents: conditions that stop money from moving, or soon will. Pure rules over measurements; each kind has a
 * section of docs/runbooks.md with its name.
 */

export const kinds = [
  "database-fails",
  "node-silent",
  "node-behind",
  "eoa-empty",
  "sponsor-empty",
  "signer-fails",
  "fee-cap",
  "transaction-stalled",
  "work-waits",
  "request-held",
  "rate-limit-store-gone",
  "clock-doubted",
  "budget-near",
  "eoa-low",
  "sponsor-low",
  "webhook-failing"
] as const

export type Kind = (typeof kinds)[number]

export interface Incident {
  readonly kind: Kind
  /** Null: it concerns the whole service. */
  readonly chainId: bigint | null
  /** The EOA, account, request or webhook; empty: none. */
  readonly subject: string
  /** `stops`: work that needs the subject has stopped. `warns`: it continues. */
  readonly level: "stops" | "warns"
  /** Values for this incident's messages: amounts in wei, times in milliseconds. */
  readonly figures: Readonly<Record<string, string | number | bigint>>
}

/** An incident, and the time of the reading that found it first, Unix milliseconds. */
export interface Standing extends Incident {
  readonly since: number
}

export interface Spending extends Budget {
  readonly spent: bigint
  readonly limit: bigint
}

export interface Facts {
  /** Unix milliseconds. */
  readonly now: number
  readonly chains: ReadonlyArray<ChainHealth>
  readonly waiting: ReadonlyArray<Waiting>
  /** Transactions that are not settled. */
  readonly transactions: ReadonlyArray<TransactionRecord>
  readonly budgets: ReadonlyArray<Spending>
  /** Requests that wait for the operator's decision. */
  readonly held: ReadonlyArray<{ readonly requestId: string; readonly chainId: bigint }>
  /** Whether the database takes a write; `errors`: failed calls of the last minute. */
  readonly database: { readonly isWritable: boolean; readonly errors: number }
  /** Signers with failed signatures in the last minute, or with one pending longer than `slowSignature`. */
  readonly failingSigners: ReadonlyMap<string, number>
  readonly isClockDoubted: boolean
  readonly isRateLimitStoreAway: boolean
  readonly failingWebhooks: ReadonlyArray<{ readonly webhookId: string; readonly accountId: string }>
}

/** A slower signature counts as failed, milliseconds. */
export const slowSignature = 10_000

/** Development chains make blocks only for transactions. */
const hasClock = ({ profile: { chainId } }: ChainHealth): boolean => chainId !== 1_337n && chainId !== 31_337n

/** The head block's age that is no longer usual, milliseconds: 30 seconds, and more on slow chains. */
const usualHeadAge = ({ profile }: ChainHealth): number => (profile.chainId === 1n ? 90_000 : 30_000)

/** A chain's newest block may be this far in the future of a right clock, milliseconds. */
const usualFuture = 30_000

/** Lead of the clock over the chain, milliseconds; null: it gives no reason to doubt the clock. */
const clockAhead = (chain: ChainHealth, now: number): number | null => {
  const { head, headAt } = chain
  if (head === null || headAt === null || !hasClock(chain)) return null
  const ahead = now - head.timestamp * 1_000
  // A node that is behind by an hour and still follows its chain is as rare as a clock that far ahead.
  const grows = Math.abs(now - headAt) <= usualHeadAge(chain)
  return ahead < -usualFuture || (grows && ahead > ClockTrust.toleratedMillis) ? ahead : null
}

const ofChain = (chain: ChainHealth, { now, transactions, waiting }: Facts): ReadonlyArray<Incident> => {
  const { answeredAt, eoas, failing, head, lowBalance, profile } = chain
  const { bumpAfterMillis, caps, chainId, sponsor } = profile
  const incidents: Array<Incident> = []
  const add = (kind: Kind, level: Incident["level"], figures: Incident["figures"], subject = ""): void =>
    void incidents.push({ kind, chainId, subject, level, figures })
  const work = waiting.find((each) => each.chainId === chainId)
  if (failing !== null && (failing.polls > 1 || answeredAt === null)) {
    add("node-silent", "stops", { since: failing.since, polls: failing.polls, message: failing.message })
  } else if (head !== null && hasClock(chain) && now - head.timestamp * 1_000 > usualHeadAge(chain))
    add("node-behind", "stops", { head: head.number, age: now - head.timestamp * 1_000 })
  if (head?.baseFeePerGas != null && head.baseFeePerGas > caps.maxFeePerGas)
    add("fee-cap", "stops", { baseFee: head.baseFeePerGas, cap: caps.maxFeePerGas })
  for (const [address, { wei }] of eoas) {
    if (wei === 0n) add("eoa-empty", "stops", { balance: wei, bound: lowBalance }, address)
    else if (wei < lowBalance) add("eoa-low", "warns", { balance: wei, bound: lowBalance }, address)
  }
  if (sponsor !== null && sponsor.dailyBudget > 0n)
    for (const [entryPoint, { wei }] of chain.deposits) {
      if (wei === 0n) add("sponsor-empty", "stops", { deposit: wei }, entryPoint)
      else if (wei < sponsor.dailyBudget)
        add("sponsor-low", "warns", { deposit: wei, budget: sponsor.dailyBudget }, entryPoint)
    }
  const stalled = Map.groupBy(
    transactions.filter(
      (each) =>
        each.chainId === chainId &&
        each.state === "signed" &&
        // Replaced without success, or long past the time of its replacement.
        (each.versions.length > 2 ||
          now - each.signedAt > (each.versions.length > 1 ? bumpAfterMillis : 2 * bumpAfterMillis))
    ),
    ({ signer }) => signer
  )
  for (const [signer, own] of stalled) {
    const oldest = Math.min(...own.map(({ signedAt }) => signedAt))
    add("transaction-stalled", "stops", { transactions: own.length, age: now - oldest }, signer)
  }
  if (
    work !== undefined &&
    work.oldestAt !== null &&
    now - work.oldestAt > 2 * Math.max(bumpAfterMillis, 30_000) &&
    !incidents.some(({ level }) => level === "stops")
  )
    add("work-waits", "warns", { ops: work.ops, age: now - work.oldestAt })
  return incidents
}

/** The incidents that these facts show, the most harmful first. */
export const of = (facts: Facts): ReadonlyArray<Incident> => {
  const { budgets, database, failingSigners, failingWebhooks, held, isClockDoubted } = facts
  const service = { chainId: null, subject: "" }
  const incidents: Array<Incident> = facts.chains.flatMap((chain) => ofChain(chain, facts))
  if (!database.isWritable || database.errors > 0)
    incidents.push({
      ...service,
      kind: "database-fails",
      level: database.isWritable ? "warns" : "stops",
      figures: { errors: database.errors }
    })
  for (const [subject, failures] of failingSigners)
    incidents.push({ kind: "signer-fails", chainId: null, subject, level: "stops", figures: { failures } })
  for (const { requestId, chainId } of held)
    incidents.push({ kind: "request-held", chainId, subject: requestId, level: "stops", figures: {} })
  if (facts.isRateLimitStoreAway)
    incidents.push({ ...service, kind: "rate-limit-store-gone", level: "warns", figures: {} })
  const [ahead] = facts.chains
    .flatMap((chain) => clockAhead(chain, facts.now) ?? [])
    .sort((one, other) => Math.abs(other) - Math.abs(one))
  if (isClockDoubted || ahead !== undefined)
    incidents.push({
      ...service,
      kind: "clock-doubted",
      level: "warns",
      figures: ahead === undefined ? {} : { ahead }
    })
  for (const { accountId, chainId, limit, spent } of budgets)
    if (limit > 0n && spent * 5n >= limit * 4n)
      incidents.push({
        kind: "budget-near",
        chainId,
        subject: accountId ?? "",
        level: spent >= limit ? "stops" : "warns",
        figures: { spent, limit }
      })
  for (const { accountId, webhookId } of failingWebhooks)
    incidents.push({
      ...service,
      kind: "webhook-failing",
      subject: webhookId,
      level: "warns",
      figures: { account: accountId }
    })
  const rank = ({ kind, level }: Incident): number => kinds.indexOf(kind) + (level === "stops" ? 0 : 100)
  return incidents.sort((one, other) => rank(one) - rank(other))
}

const nameOf = ({ chainId, kind, subject }: Incident): string => `${kind} ${chainId} ${subject}`

/** Adds the start time to each incident; incidents in `before` keep theirs. */
export const date = (
  incidents: ReadonlyArray<Incident>,
  before: ReadonlyArray<Standing>,
  now: number
): ReadonlyArray<Standing> => {
  const since = new Map(before.map((each) => [nameOf(each), each.since]))
  return incidents.map((each) => ({ ...each, since: since.get(nameOf(each)) ?? now }))
}

export const begun = <I extends Incident>(
  after: ReadonlyArray<I>,
  before: ReadonlyArray<Incident>
): ReadonlyArray<I> => {
  const known = new Set(before.map(nameOf))
  return after.filter((each) => !known.has(nameOf(each)))
}

/** State of a chain's work, by its incidents. */
export const verdictOf = (
  chainId: bigint,
  incidents: ReadonlyArray<Incident>
): "moving" | "late" | "partly" | "stopped" => {
  const own = incidents.filter((each) => each.chainId === chainId || each.chainId === null)
  const stops = own.filter(({ level }) => level === "stops")
  const partial: ReadonlyArray<Kind> = [
    "eoa-empty",
    "sponsor-empty",
    "signer-fails",
    "request-held",
    "budget-near",
    "transaction-stalled"
  ]
  if (stops.some(({ kind }) => !partial.includes(kind))) return "stopped"
  if (stops.length > 0) return "partly"
  return own.some(({ kind }) => kind === "work-waits") ? "late" : "moving"
}
