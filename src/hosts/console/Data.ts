import type * as Effect from "effect/Effect"
import type { Observer } from "../../application/operate/Situation.js"
import type * as UnstickLane from "../../application/operate/UnstickLane.js"
import type { AuditLog } from "../../application/ports/AuditLog.js"
import type { Budgets } from "../../application/ports/Budgets.js"
import type { JournalError } from "../../application/ports/journal/JournalError.js"
import type { RecoveryJournal } from "../../application/ports/journal/RecoveryJournal.js"
import type { RequestJournal } from "../../application/ports/journal/RequestJournal.js"
import type { RequestRecord } from "../../application/ports/journal/Requests.js"
import type { TransactionJournal } from "../../application/ports/journal/TransactionJournal.js"
import type { Lane } from "../../application/ports/journal/Transactions.js"
import type { NetworkProfile } from "../../application/ports/NetworkProfile.js"
import type { OperatorLog } from "../../application/ports/operator/OperatorLog.js"
import type { Refusal } from "../../application/ports/operator/Refusals.js"
import type { RequestHistory } from "../../application/ports/operator/RequestHistory.js"
import type { Policies } from "../../application/ports/Policies.js"
import type { TenantStore } from "../../application/ports/TenantStore.js"
import type { Webhooks } from "../../application/ports/Webhooks.js"
import type { Listed } from "../../application/tenants/FileAccounts.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Hex } from "../../domain/primitives/Hex.js"

/** A refused request, or a failed one, with how often the same happened to the account lately. */
export interface Failure extends Omit<Refusal, "answer"> {
  readonly times: number
}

export interface Data {
  /** Updates gauges before they are read. */
  readonly refresh: Effect.Effect<void>
  readonly observer: Observer
  readonly profiles: ReadonlyArray<NetworkProfile>
  /** Accounts of the configuration file. */
  readonly accounts: ReadonlyArray<Listed>
  readonly transactions: Pick<TransactionJournal["Service"], "open" | "openOf">
  readonly history: Pick<RequestHistory["Service"], "find" | "search">
  /** Addresses of the salt's wallets under the factories of the configuration file, of each custody. */
  readonly walletsOf: (salt: string) => ReadonlyArray<Address>
  readonly requests: Pick<RequestJournal["Service"], "bodies" | "events" | "request">
  readonly recovery: Pick<RecoveryJournal["Service"], "unhold">
  readonly tenants: Pick<TenantStore["Service"], "content" | "pause" | "resume" | "endKey" | "uses">
  readonly budgets: Pick<Budgets["Service"], "figures" | "open">
  readonly policies: Pick<Policies["Service"], "changes" | "current">
  readonly webhooks: Pick<Webhooks["Service"], "list" | "oldest" | "dead" | "changes">
  readonly audit: Pick<AuditLog["Service"], "find">
  readonly operators: OperatorLog["Service"]
  /** The newest failures, each kind of an account once. */
  readonly failures: Effect.Effect<ReadonlyArray<Failure>>
  readonly refusal: (requestId: string) => Effect.Effect<Refusal | null>
  /** Reason of an accepted request's delay, as far as this process knows; null: no delay. */
  readonly delayOf: (request: Pick<RequestRecord, "lane" | "requestId">) => string | null
  /** Nonces that hold the lane up, since the journal does not know their transactions. */
  readonly unknown: (lane: Lane) => ReadonlyArray<bigint>
  /** An operator's node calls a contract; null: the chain has no such node, or the call failed. */
  readonly call: (chainId: bigint, to: Address, data: Hex) => Effect.Effect<Hex | null>
  readonly unstick: (
    lane: Lane,
    dryRun: boolean
  ) => Effect.Effect<UnstickLane.Unstuck, { readonly message: string }>
  /** Cancels what was never signed; false: the request is unknown, or not kept any more. */
  readonly cancel: (
    requestId: string,
    code: "request_cancelled" | "request_dropped"
  ) => Effect.Effect<boolean, JournalError>
}

/** Input of a page: the operator, the session's form token, the query, and the time. */
export interface View {
  readonly operator: string
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
