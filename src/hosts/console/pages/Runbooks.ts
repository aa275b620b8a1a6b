import { type Kind, kinds } from "../../../application/operate/Incidents.js"
import { type Html, html } from "../Html.js"
import * as Page from "../Page.js"

/** Runbooks of incidents, shown by the console. docs/runbooks.md is generated from them. */
export interface Runbook {
  readonly title: string
  /** Effect on callers and accepted work. */
  readonly effect: string
  /** The first thing to do, in a sentence. */
  readonly remedy: string
  readonly causes: ReadonlyArray<string>
  readonly checks: ReadonlyArray<string>
  readonly steps: ReadonlyArray<string>
}

export const runbooks: Readonly<Record<Kind, Runbook>> = {
  "database-fails": {
    title: "The database fails",
    effect: "New requests get 503 `unavailable`. Accepted work waits; nothing is lost.",
    remedy: "Free disk space, or bring the PostgreSQL server back. Work continues by itself.",
    causes: [
      "The disk that holds the SQLite file is full or read-only.",
      "The PostgreSQL server is down, is in recovery, or refuses connections.",
      "A backup or another process locks the SQLite file."
    ],
    checks: [
      "`GET /health/ready` answers 503 while no write succeeds.",
      "The log names the error code (`SQLITE_FULL`, `SQLITE_BUSY`, `57P03`) in lines of the journal.",
      "`df` on the disk of `database.path`; `select pg_is_in_recovery()` on the server."
    ],
    steps: [
      "Free space or repair the server. Do not delete the `-wal` file: it holds accepted work.",
      "Leave the service running: it tries again and continues.",
      "After a restore from a backup read the section Backup of docs/operations.md before you start it."
    ]
  },
  "node-silent": {
    title: "The node does not answer",
    effect: "Accepted work of the chain waits. New writes get 503 `node_unavailable`.",
    remedy:
      "Look at the provider of the node, or set another `networks[].rpc`. Waiting work continues by itself.",
    causes: [
      "The provider has an outage, or the key of the URL was revoked.",
      "The network between the service and the node is cut.",
      "The provider limits the rate, and every poll falls above the limit."
    ],
    checks: [
      "`castellan config check --connect` asks each node and names what fails.",
      "`castellan_rpc_errors_total` by `reason`: `rateLimited`, `unreachable` or `unavailable`.",
      "The provider's status page."
    ],
    steps: [
      "Wait, if the provider knows the outage: nothing expires sooner than `requestExpiryMillis`.",
      "Otherwise set another node in `networks[].rpc` and restart the processes one after the other.",
      "Pause the chain if callers should get a clear refusal meanwhile."
    ]
  },
  "node-behind": {
    title: "The node is behind its chain",
    effect: "Prices and nonces are old: transactions may be refused, and outcomes come late.",
    remedy: "Use a node that is in step with its chain.",
    causes: [
      "The node is syncing, or has lost its peers.",
      "The chain has halted.",
      "The clock of this machine is wrong."
    ],
    checks: [
      "Compare the head with a block explorer.",
      "`castellan_head_seconds`: the age of the head by this machine's clock."
    ],
    steps: [
      "Set another node in `networks[].rpc` if only this one is behind.",
      "Pause the chain if the chain itself has halted.",
      "Correct the clock if every chain seems to be behind by the same time."
    ]
  },
  "eoa-empty": {
    title: "A submitting EOA is empty",
    effect: "Writes that this EOA submits get 422 `insufficient_funds`. Accepted work waits.",
    remedy: "Send coins to the EOA.",
    causes: ["Gas was paid and the EOA was not topped up.", "A new signer was never funded on this chain."],
    checks: [
      "The balance in the console, or `castellan_eoa_balance_wei`.",
      "The explorer: where did the coins go?"
    ],
    steps: [
      "Send at least `networks[].lowBalance` to the address that the incident names.",
      "If coins left the EOA otherwise than for gas, pause the signer and rotate its key."
    ]
  },
  "sponsor-empty": {
    title: "The sponsor's deposit is empty",
    effect: "Sponsored writes get 422 `insufficient_funds`. Writes that the wallets pay for continue.",
    remedy: "Deposit coins for the paymaster at the EntryPoint.",
    causes: ["Sponsored gas has used the deposit up.", "The paymaster was deployed and never funded there."],
    checks: ["`castellan_sponsor_deposit_wei`.", "`balanceOf(paymaster)` of the EntryPoint."],
    steps: ["Call `depositTo(paymaster)` on the EntryPoint."]
  },
  "signer-fails": {
    title: "A signer fails",
    effect: "Work that this key signs waits. Other keys continue.",
    remedy: "Look at the key provider: custody, KMS or HSM.",
    causes: [
      "The provider has an outage, or refuses this key.",
      "Its credentials were rotated or have ended.",
      "An approval that the provider waits for was not given."
    ],
    checks: [
      "`castellan signers list` names the keys and what fails.",
      "`castellan_signature_errors_total` by `reason`, and `castellan_signature_seconds`."
    ],
    steps: [
      "Repair the provider: accepted work is signed as soon as it answers.",
      "Pause the signer if the key may have leaked; then rotate it."
    ]
  },
  "fee-cap": {
    title: "The base fee is above the cap",
    effect: "No transaction of the chain can be signed: accepted work waits for lower fees.",
    remedy: "Wait, or raise `networks[].maxFeePerGas`.",
    causes: ["The chain is congested.", "The cap is lower than what is usual on this chain."],
    checks: ["`castellan_base_fee_wei` against `networks[].maxFeePerGas`."],
    steps: ["Raise the cap if the price is worth it, and restart the processes one after the other."]
  },
  "transaction-stalled": {
    title: "A transaction is not mined",
    effect: "The transaction and those behind it wait, though their prices were raised.",
    remedy: "Replace the lane's transactions at new prices: Lanes, Unstick.",
    causes: [
      "Prices rose faster than the replacements.",
      "The fee cap allows no higher price.",
      "The node does not pass transactions on, or another transaction of the same key has the nonce."
    ],
    checks: [
      "The lane's page: nonces, versions and prices.",
      "The log: `replacement blocked by fee cap`, or `nonce used by a foreign transaction`."
    ],
    steps: [
      "Run Unstick: the new versions have the same nonces, so every op still runs once.",
      "Raise `networks[].maxFeePerGas` if the log says so.",
      "Stop whatever else signs with the key."
    ]
  },
  "work-waits": {
    title: "Accepted work waits",
    effect: "Operations wait for longer than usual, though no other incident says why.",
    remedy: "Open the oldest request: it says what it waits for.",
    causes: [
      "More arrives than the lane can send: one EOA has `maxInFlight` transactions on their way.",
      "Operations wait for a price, for a signature, or for each other."
    ],
    checks: [
      "Requests, oldest first, and the reason that each one gives.",
      "The log: `work of a lane waits; retrying`."
    ],
    steps: ["Spread the load over several signers, or raise `networks[].maxInFlight`."]
  },
  "request-held": {
    title: "A request waits for your decision",
    effect:
      "After a restore, the chain shows work that may be this request's. It is neither repeated nor answered.",
    remedy: "Compare it with the chain, then release it (run it) or drop it (it was done).",
    causes: ["The database was restored from a backup, or a standby took over that had missed commits."],
    checks: [
      "The request's page names the transaction on the chain.",
      "`castellan requests list --state held`."
    ],
    steps: [
      "Release it if the transaction on the chain is not this request's work.",
      "Drop it if the chain shows that the work is done: its caller gets 422 `request_dropped`."
    ]
  },
  "rate-limit-store-gone": {
    title: "The store of the rate limits does not answer",
    effect: "Requests are counted in PostgreSQL; with SQLite they get 503 `unavailable`.",
    remedy: "Bring Redis back.",
    causes: ["Redis is down, or its password has changed."],
    checks: ["`castellan_rate_limit_store_away` is 1.", "`redis-cli ping` from this machine."],
    steps: [
      "Repair Redis. Counting returns to it by itself; an account may have twice its limit in the first minute."
    ]
  },
  "clock-doubted": {
    title: "The clock may be wrong",
    effect:
      "Times in logs and answers are wrong, and key providers may refuse signatures. Over an hour off, nothing is deleted for its age and no request expires.",
    remedy: "Set this machine's clock right. The service notices it by itself.",
    causes: [
      "This machine's clock is behind a chain's newest block by over 30 seconds, or ahead of it by over an hour.",
      "The clock was set by over an hour.",
      "The node is far behind its chain."
    ],
    checks: [
      "`date -u` here and on another machine; on PostgreSQL, the clock of its server.",
      "The log line `clock over an hour from a chain's` names the chains and the difference."
    ],
    steps: [
      "Synchronise the clock with NTP.",
      "Run `castellan store confirm-clock` if the clock is right and the node is behind, or its chain makes no blocks."
    ]
  },
  "budget-near": {
    title: "A sponsor budget is nearly used up",
    effect:
      "When it is used up, sponsored writes of the account get 422 `sponsorship_exhausted` until midnight UTC.",
    remedy: "Raise `networks[].sponsor.dailyBudget` if the use is real.",
    causes: ["The account sends more than planned.", "A leaked API key spends the operator's gas."],
    checks: ["The account's requests of today.", "`castellan requests list --account ID`."],
    steps: ["Raise `dailyBudget`, or pause the account if the use is not its own."]
  },
  "eoa-low": {
    title: "A submitting EOA is low",
    effect: "None yet. At 0, writes of this EOA are refused.",
    remedy: "Send coins to the EOA before they run out.",
    causes: ["Gas was paid and the EOA was not topped up."],
    checks: ["Runway in the console: how long the balance lasts at the measured cost."],
    steps: ["Send coins, or raise `networks[].lowBalance` if the warning comes too late for you."]
  },
  "sponsor-low": {
    title: "The sponsor's deposit is below one day's budget",
    effect: "None yet. At 0, sponsored writes are refused.",
    remedy: "Deposit coins for the paymaster at the EntryPoint.",
    causes: ["Sponsored gas is using the deposit up."],
    checks: ["`castellan_sponsor_deposit_wei` against `networks[].sponsor.dailyBudget`."],
    steps: ["Call `depositTo(paymaster)` on the EntryPoint."]
  },
  "webhook-failing": {
    title: "A webhook fails",
    effect: "Events of the account wait, and are dropped after three days. Money is not affected.",
    remedy: "Notify the account's developers: the endpoint does not accept events.",
    causes: [
      "The receiver is down, slow, or answers other than 2xx.",
      "Its address is not reachable under `egress`."
    ],
    checks: [
      "Webhooks page: last error, age of the oldest event.",
      "`castellan webhooks dead ID` lists the dropped events."
    ],
    steps: ["Repair the receiver, then `castellan webhooks resume` delivers the waiting events."]
  }
}

const list = (entries: ReadonlyArray<string>): Html =>
  html`<ul class="do">${entries.map((entry) => html`<li>${Page.mark(entry)}</li>`)}</ul>`

export const page: Html = html`${Page.head("Runbooks", "What to do about each kind of incident.")}
${kinds.map((kind) => {
  const { causes, checks, effect, remedy, steps, title } = runbooks[kind]
  return html`<section class="box" id="${kind}" aria-labelledby="${kind}-t"><header><h2 id="${kind}-t">${title}</h2><small>${Page.code(kind)}</small></header><div class="in"><p><b>Effect.</b> ${Page.mark(effect)}</p><p><b>Do.</b> ${Page.mark(remedy)}</p><h3>Causes</h3>${list(causes)}<h3>Check</h3>${list(checks)}<h3>Remedy</h3>${list(steps)}</div></section>`
})}`
