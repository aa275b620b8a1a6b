import type * as Effect from "effect/Effect"
import type { AuditLog } from "../../../application/ports/AuditLog.js"
import type { Budgets } from "../../../application/ports/Budgets.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type { TransactionJournal } from "../../../application/ports/journal/TransactionJournal.js"
import type { Lane } from "../../../application/ports/journal/Transactions.js"
import type { NetworkProfile } from "../../../application/ports/NetworkProfile.js"
import type { RequestHistory } from "../../../application/ports/RequestHistory.js"
import type { TenantStore } from "../../../application/ports/TenantStore.js"
import type { Webhooks } from "../../../application/ports/Webhooks.js"
import type { Listed } from "../../../application/tenants/FileAccounts.js"
import type * as UnstickLane from "../../../application/usecases/operator/UnstickLane.js"

/** Data and actions of the console. */
export interface Data {
  /** Updates gauges before they are read. */
  readonly refresh: Effect.Effect<void>
  readonly profiles: ReadonlyArray<NetworkProfile>
  /** Accounts of the configuration file. */
  readonly accounts: ReadonlyArray<Omit<Listed, "keys">>
  readonly transactions: Pick<TransactionJournal["Service"], "open" | "openOf">
  readonly history: RequestHistory["Service"]
  readonly requests: Pick<RequestJournal["Service"], "request">
  readonly tenants: Pick<TenantStore["Service"], "content" | "pause" | "resume">
  readonly budgets: Pick<Budgets["Service"], "open">
  readonly webhooks: Pick<Webhooks["Service"], "list" | "oldest" | "dead" | "changes">
  readonly audit: Pick<AuditLog["Service"], "find">
  readonly unstick: (
    lane: Lane,
    dryRun: boolean
  ) => Effect.Effect<UnstickLane.Unstuck, { readonly message: string }>
}

/** Input of a page: the session's form token, the query, and the time. */
export interface View {
  readonly formToken: string
  readonly query: URLSearchParams
  /** Unix milliseconds. */
  readonly now: number
}

/** Start of a list's page, newest first: entries below the query's number. */
export const placeOf = ({ query }: View): { readonly before?: bigint } => {
  const [number] = /^[0-9]{1,15}$/.exec(query.get("before") ?? "") ?? []
  return number === undefined ? {} : { before: BigInt(number) }
}

/** Reason for a missing page. */
export interface Missing {
  readonly message: string
  /** 404 when the record does not exist; default 503: it cannot be read now. */
  readonly status?: 404
}
