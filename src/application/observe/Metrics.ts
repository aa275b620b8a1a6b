import type * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/**
 * All metrics, in the units of Prometheus: seconds, wei, counts. Labels are bounded: values that a caller chooses (a
 * URL, a salt) are never labels.
 */

const counter = (name: string, description: string, attributes: Labels = {}) =>
  Metric.counter(`castellan_${name}`, { description, incremental: true, attributes })

const gauge = (name: string, description: string) => Metric.gauge(`castellan_${name}`, { description })

const histogram = (name: string, description: string, boundaries: Array<number>, attributes: Labels = {}) =>
  Metric.histogram(`castellan_${name}`, { description, boundaries, attributes })

type Labels = Readonly<Record<string, string>>

export const note = <Out>(
  metric: Metric.Metric<number, Out>,
  labels: Labels,
  value: number
): Effect.Effect<void> => Metric.update(Metric.withAttributes(metric, labels), value)

export const count = (metric: Metric.Counter<number>, labels: Labels): Effect.Effect<void> =>
  note(metric, labels, 1)

const latency = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]

/** Labels: endpoint (of the interface, or `other`), status (0: the caller had left), code (empty on success). */
export const requests = (labels: Labels) => counter("requests_total", "Requests that were answered.", labels)
/** Labels: endpoint. */
export const requestSeconds = (labels: Labels) =>
  histogram("request_seconds", "Time from a request to its answer.", latency, labels)

/** Labels: node (host of the operator's own, `caller` for every other), reason. */
export const rpcErrors = counter("rpc_errors_total", "Failed JSON-RPC calls.")

/** Labels: reason (`limit`, `rule`, `hook`). */
export const policyRefusals = counter(
  "policy_refusals_total",
  "Elements that spending rules, their limits or decision hooks refused."
)

/** Labels: signer (address). */
export const signatureSeconds = histogram(
  "signature_seconds",
  "Time from a digest to its signature.",
  latency
)
/** Labels: signer (address), reason. */
export const signatureErrors = counter("signature_errors_total", "Digests that were not signed.")

/** Labels: chain. */
export const transactionsSigned = counter(
  "transactions_signed_total",
  "Transactions that were signed, replacements included."
)
/** Labels: chain, outcome (`success`, `reverted`, `foreign`). */
export const transactionsMined = counter(
  "transactions_mined_total",
  "Nonces that the chain has used. A nonce that a reorganisation frees counts again."
)
/** Labels: chain. */
export const bundleOps = histogram(
  "bundle_ops",
  "Ops that a transaction carries.",
  [1, 2, 4, 8, 16, 32, 64, 128, 256]
)

/** Labels: chain, signer (address). */
export const lanePending = gauge("lane_pending", "Transactions of an EOA that are signed and not mined.")
/** Labels: chain, signer (address). */
export const laneOldestSeconds = gauge(
  "lane_oldest_seconds",
  "How long the oldest transaction of an EOA that is not mined has been waiting since it was last signed."
)
/** Labels: chain, signer (address). */
export const eoaBalance = gauge("eoa_balance_wei", "Balance of an EOA that submits, when it was last read.")

/** Labels: chain. */
export const headBlock = gauge("head_block", "Newest block that the operator's node returned.")
/** Labels: chain. */
export const headSeconds = gauge(
  "head_seconds",
  "Age of that block, by its timestamp and the service's clock."
)
/** Labels: chain. */
export const nodeUp = gauge("node_up", "1: the operator's node answered the last poll; 0: it did not.")
/** Labels: chain. */
export const nodeSeconds = gauge("node_seconds", "Answer time of the operator's node in the last poll.")
/** Labels: chain. */
export const baseFee = gauge("base_fee_wei", "Base fee of the newest block.")
/** Labels: chain, entrypoint (address). */
export const sponsorDeposit = gauge("sponsor_deposit_wei", "Deposit of the operator's paymaster.")
/** Labels: chain, kind (see the runbooks). */
export const incident = gauge("incident", "1: the incident of this kind lasts; 0: it has ended.")
/** Labels: chain, outcome (`success`, `failed`). */
export const opsSettled = counter("ops_settled_total", "Operations with an outcome on the chain.")
/** Labels: chain, signer (address). */
export const gasPaid = counter("gas_paid_wei_total", "Wei that an EOA paid for its mined transactions.")
/** Labels: none. */
export const rateLimitStoreAway = gauge(
  "rate_limit_store_away",
  "1: the store that counts requests does not answer; 0: it does."
)
/** Labels: none. */
export const inclusionSeconds = histogram(
  "inclusion_seconds",
  "Time from an op's acceptance to the block that includes it.",
  latency
)

/** Labels: none. */
export const workStranded = gauge(
  "work_stranded",
  "Lanes and ops blocked for more than three seconds; the log has each cause."
)
/** Labels: version. */
export const build = gauge("build_info", "1: this version runs.")
/** Labels: chain, account. */
export const budgetSpent = gauge("budget_spent_wei", "Wei of the sponsor's daily budget used today.")
/** Labels: chain, account. */
export const budgetLimit = gauge("budget_limit_wei", "The sponsor's daily budget in wei.")
/** Labels: chain, payer (`treasury`, `accounts`), reason (`balance_unknown`, `cap`, `lack`, `paused`, `refused`). */
export const topUpBlocked = gauge(
  "topup_blocked",
  "Balances below their level that their payer does not top up, or whose level is unknown."
)
/** Labels: none. */
export const clockDoubted = gauge(
  "clock_doubted",
  "1: the clock is over an hour from a chain's time, or was set by as much, and unconfirmed: nothing is deleted for its age."
)
/** Labels: outcome (`delivered`, `failed`, `dead`: abandoned). */
export const webhookDeliveries = counter("webhook_deliveries_total", "Delivery attempts of webhook events.")
/** Labels: none. */
export const webhookOldestSeconds = gauge(
  "webhook_oldest_seconds",
  "Age of the oldest undelivered event of an enabled webhook."
)
/** Labels: chain, node (`operator`, `caller`: the URL of an account). */
export const watchBlocksBehind = gauge(
  "watch_blocks_behind",
  "Blocks of the chain that watches of a node have not read yet; of several such nodes the latest to be read."
)
/** Labels: chain, node (`operator`, `caller`: the URL of an account). */
export const watchReadErrors = counter(
  "watch_read_errors_total",
  "Failed watch polls: the node did not answer, or its answers are inconsistent."
)
/** Labels: none. */
export const journalErrors = counter("journal_errors_total", "Failed journal calls.")
