import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as Transaction from "../../domain/evm/Transaction.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import * as Connection from "../chain/Connection.js"
import type * as Bodies from "../endpoints/Bodies.js"
import * as TopUp from "../endpoints/operations/TopUp.js"
import { Submissions } from "../endpoints/Submissions.js"
import type { Failure } from "../failures/Failure.js"
import * as Keys from "../keys/Keys.js"
import type { Engine } from "../lanes/Engine.js"
import * as Metrics from "../observe/Metrics.js"
import type * as Troubles from "../observe/Troubles.js"
import * as Deposits from "../payers/Deposits.js"
import { Budgets, type BudgetsError, type Hold } from "../ports/Budgets.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { TransactionRecord } from "../ports/journal/Transactions.js"
import type * as NetworkProfile from "../ports/NetworkProfile.js"
import { Networks } from "../ports/Networks.js"
import { Replicas } from "../ports/Replicas.js"
import { SystemSigners } from "../ports/Signers.js"
import type { AccountId } from "../ports/Tenants.js"
import * as L1Fees from "../prepare/estimate/L1Fees.js"
import * as OpContext from "../prepare/OpContext.js"
import type { Caller } from "../request/Caller.js"
import * as KillSwitch from "../tenants/KillSwitch.js"
import * as Targets from "./Targets.js"

/**
 * Keeps the operator's balances up with money of the treasury, by requests that take the way of direct transactions.
 *
 * A top-up is held in the budgets, with the highest possible cost of its gas, and bound before its request is accepted.
 * The hold ends when the journal shows the request's end at settled depth. A target has one hold at a time.
 */

/** The account of the requests. No other account has its name: names have no outer white space. */
export const account = "treasury " as AccountId

/** Budget of all top-ups of a chain; with a colon and the target's name behind it, the target's. Ids begin likewise. */
const budget = "topUp"

/** Interval of rounds, and the length of a sequence number: two processes use one idempotency key in it. */
export const everyMillis = 30_000

/** Life of a reservation that is not bound, milliseconds. */
const heldMillis = 60_000

const reasons = ["balance_unknown", "cap", "lack", "paused", "refused"] as const

/** The treasury does not top up a balance. */
class Blocked extends Data.TaggedError("Blocked")<{
  readonly reason: (typeof reasons)[number]
  readonly why: string
}> {}

const ofFailure = ({ _tag, code, details, message }: Failure): Blocked => {
  const why = details[0]?.message ?? message
  if (code === "writes_paused") return new Blocked({ reason: "paused", why })
  if (code === "insufficient_funds") return new Blocked({ reason: "lack", why })
  const isUnknown = _tag === "Unavailable" || code === "node_refused"
  return new Blocked({ reason: isUnknown ? "balance_unknown" : "refused", why })
}

/** Stops one target; failures of the stores stop the round. */
const isBlocked = (error: Blocked | Failure | BudgetsError | JournalError): error is Blocked | Failure =>
  error._tag !== "BudgetsError" && error._tag !== "JournalError"

const answered = Effect.mapError(Connection.refusal("operator"))

/** Whose balances are kept up, and on which terms. */
export interface Payer extends Pick<NetworkProfile.TopUp, "dailyCap" | "keep"> {
  /** Null: the operator. */
  readonly owner: AccountId | null
  /** The account's key that pays; absent: the operator's treasury. */
  readonly signer?: NonNullable<TopUp.Request["signer"]>
  /** The account's key that has set the terms; rules bind the top-ups as that key's requests. */
  readonly keyId: string | null
  /** Number of targets. */
  readonly count: number
}

export interface Site extends Payer {
  readonly connection: Connection.Connection
  readonly chainId: bigint
  readonly treasury: Address.Address
}

export const callerOf = ({ keyId, owner }: Pick<Payer, "keyId" | "owner">, requestId: string): Caller => ({
  principal: {
    accountId: owner ?? account,
    name: owner ?? "treasury",
    tier: "free",
    scopes: new Set(),
    paused: false,
    keyId
  },
  requestId,
  isAsynchronous: true
})

/** Beginning of the ids of the owner's holds; the target's name and the sequence number follow. */
const beginningOf = ({ owner }: Pick<Payer, "owner">): string =>
  owner === null ? `${budget}:` : `${budget} ${owner}:`

/** Most wei that a transaction in the pool may take from its sender. */
const spending = ({ state, versions }: TransactionRecord): bigint => {
  if (state !== "signed") return 0n
  const parsed = Transaction.parse(versions.at(-1)?.raw ?? Hex.empty)
  if (Result.isFailure(parsed)) return 0n
  const { gasLimit, maxFeePerGas, value } = parsed.success.transaction
  return gasLimit * maxFeePerGas + value
}

/** The balance less the sums that work in flight may spend, wei. */
const balanceOf = Effect.fnUntraced(function* (
  { chainId, connection }: Site,
  { address, deposit }: Targets.Target
) {
  if (deposit !== null) {
    const budgets = yield* Budgets
    // Ops of all accounts share a deposit.
    const holds = yield* budgets.open(chainId)
    const name = Deposits.budget(deposit)
    return holds.reduce(
      (left, hold) => (hold.name === name && hold.landed === null ? left - hold.wei : left),
      yield* Deposits.read(connection, deposit)
    )
  }
  const journal = yield* TransactionJournal
  const requests = yield* RequestJournal
  const inFlight = yield* journal.openOf({ chainId, signer: address })
  const space = { authority: Address.zero, chainId, entryPoint: Address.zero, wallet: address }
  const { spaces } = yield* requests.read({ idempotency: [], spaces: [space] })
  const balance = yield* answered(connection.chain.balance(address))
  return inFlight.reduce((left, record) => left - spending(record), balance - (spaces[0]?.held ?? 0n))
})

const readRequest = Schema.decodeUnknownOption(Schema.fromJsonString(TopUp.Request))

/** Cost of a hold's request so far, and whether it can change; null: the request has no outcome. */
const endOf = Effect.fnUntraced(function* ({ chainId, connection: { chain }, owner }: Site, { notes }: Hold) {
  const requests = yield* RequestJournal
  const transactions = yield* TransactionJournal
  const [record] = yield* requests.requests(notes)
  if (record === undefined) {
    // No process can accept a declined request.
    const lanes = yield* Effect.forEach(notes, requests.decline)
    return lanes.every((lane) => lane === null) ? { wei: 0n, isFinal: true } : null
  }
  const request = Option.getOrNull(readRequest(record.body))
  if (record.outcome === null || request === null) return null
  let wei = 0n
  let isFinal = true
  for (const txHash of record.txHashes) {
    const transaction = yield* transactions.findTransaction(owner ?? account, chainId, txHash)
    const receipt = yield* answered(chain.receipt(txHash))
    if (transaction === null || receipt === null) return null
    const { effectiveGasPrice, gasUsed, l1Fee = 0n, success } = receipt
    wei += gasUsed * effectiveGasPrice + l1Fee + (success ? request.value : 0n)
    isFinal &&= transaction.state === "settled"
  }
  return { wei, isFinal }
})

/** Books the ends of top-ups. Returns the targets of those without an end before this round. */
const follow = Effect.fnUntraced(function* (site: Site) {
  const { chainId } = site
  const budgets = yield* Budgets
  const open = new Set<string>()
  const beginning = beginningOf(site)
  for (const hold of yield* budgets.open(chainId, beginning)) {
    if (hold.name !== budget || hold.accountId !== site.owner) continue
    const end = yield* endOf(site, hold)
    // A node behind the one that has the receipt shows an older balance: the next top-up waits for the next round.
    if (end === null || (hold.landed === null && end.wei > 0n))
      open.add(hold.id.slice(beginning.length, hold.id.lastIndexOf(":")))
    if (end?.isFinal === true) yield* budgets.settle(chainId, hold.id, end.wei)
    // Null again after a reorganisation.
    else if (hold.landed !== (end?.wei ?? null)) yield* budgets.land(chainId, hold.id, end?.wei ?? null)
  }
  return open
})

/** Fails unless the treasury has this sum in addition to `keep` and to what is held for all top-ups. */
const afford = Effect.fnUntraced(function* (site: Site, most: bigint) {
  const { chainId, connection, keep, owner, treasury } = site
  const budgets = yield* Budgets
  const journal = yield* TransactionJournal
  // Read before the balance: of a top-up that is mined in between, both count the sum.
  const pot = { accountId: owner, chainId, name: budget }
  const { held } = yield* budgets.figures(pot, yield* Clock.currentTimeMillis, "open")
  const holds = yield* budgets.open(chainId, beginningOf(site))
  const own = new Set(holds.flatMap(({ notes }) => notes))
  const others = (yield* journal.openOf({ chainId, signer: treasury })).reduce(
    (sum, record) => (own.has(record.direct ?? "") ? sum : sum + spending(record)),
    0n
  )
  const available = (yield* answered(connection.chain.balance(treasury))) - keep - held - others
  if (available < most)
    return yield* new Blocked({
      reason: "lack",
      why: `the treasury has ${available} of ${most} wei in addition to keep and open top-ups`
    })
})

/** Tops up the target if its balance is low. */
const raise = Effect.fnUntraced(function* (site: Site, target: Targets.Target) {
  const { chainId, connection, dailyCap, owner, signer, treasury } = site
  const { chain, profile } = connection
  const balance = yield* balanceOf(site, target)
  if (balance >= target.below) return
  const value = target.upTo - balance
  const { address: to, data } = target
  yield* afford(site, value)
  const draft = { from: treasury, to, data, value }
  const estimate = yield* answered(chain.estimateGas(draft))
  if (!estimate.success) return yield* new Blocked({ reason: "refused", why: "the transfer would revert" })
  const gas = Gas.overshoot(estimate.gas, OpContext.defaultGasOvershoot)
  const l1Fee = yield* L1Fees.ofTransaction(connection, { ...draft, chainId, gasLimit: gas })
  const most = value + gas * profile.caps.maxFeePerGas + l1Fee
  yield* afford(site, most)

  const now = yield* Clock.currentTimeMillis
  const turn = `${target.name}:${Math.floor(now / everyMillis)}`
  // One key names one request, on whatever chain.
  const key = `${chainId}:${turn}`
  const request = {
    chainId: Number(chainId),
    to,
    value,
    data,
    gas,
    ...(signer !== undefined && { signer })
  }
  const encoded = yield* Effect.orDie(Schema.encodeEffect(TopUp.Request)(request))
  const body = JSON.stringify({ keyId: site.keyId, ...encoded })
  const accepted = Deferred.makeUnsafe<void>()
  const { process } = yield* Replicas
  const caller: Caller = {
    // No other process has the id, nor this one after a restart.
    ...callerOf(site, Keccak.hashText(`${process} ${owner ?? ""} ${key}`).slice(2, 34)),
    idempotency: { key, bodyHash: Keccak.hashText(body) },
    onAccepted: () => void Deferred.doneUnsafe(accepted, Effect.void)
  }
  const offer = yield* TopUp.kind.offerOf(caller, request, body)
  const budgets = yield* Budgets
  const entry = {
    accountId: owner,
    chainId,
    id: `${beginningOf(site)}${turn}`,
    wei: most,
    window: "day" as const,
    expiresAt: now + heldMillis
  }
  const [refused] = yield* budgets.reserve([
    [
      { ...entry, name: `${budget}:${target.name}`, limit: target.dailyCap, maxOpen: 1 },
      { ...entry, name: budget, limit: dailyCap, maxOpen: null }
    ]
  ])
  if (refused?.reason === "limit")
    return yield* new Blocked({
      reason: "cap",
      why: `${most} wei needed, ${refused.available} left today of ${refused.budget}`
    })
  // Another process tops it up.
  if (refused != null) return
  // From now on none does. One may have, since the balances were read; the next round ends a hold that is not bound.
  yield* afford(site, 0n)
  if ((yield* balanceOf(site, target)) > balance || !(yield* budgets.bind(entry, caller.requestId))) return
  const { run } = yield* Submissions
  yield* Effect.raceFirst(Effect.asVoid(run(caller, offer)), Deferred.await(accepted))
})

const troubleOf = (chainId: bigint, subject: string): Troubles.Trouble => ({
  what: "top-up blocked; see castellan_topup_blocked in the runbooks",
  place: chainId.toString(),
  subject
})

/** Books and raises the balances of one payer. */
export const pay = Effect.fnUntraced(function* <R>(
  payer: Payer,
  chainId: bigint,
  troubles: Troubles.Troubles,
  targetsOf: (site: Site) => Effect.Effect<ReadonlyArray<NetworkProfile.TopUpTarget>, Failure, R>
) {
  const blocked = new Map<Blocked["reason"], number>()
  const place = payer.owner ?? ""
  const note = (subject: string, error: Blocked | Failure, count = 1) => {
    const { reason, why } = error._tag === "Blocked" ? error : ofFailure(error)
    blocked.set(reason, (blocked.get(reason) ?? 0) + count)
    return Effect.annotateLogs(troubles.failed(troubleOf(chainId, `${place}${subject}`)), {
      chainId: chainId.toString(),
      target: subject,
      reason,
      detail: why,
      ...(payer.owner !== null && { accountId: payer.owner })
    })
  }
  yield* Effect.gen(function* () {
    const caller = callerOf(payer, "")
    const { address: treasury } = yield* TopUp.payerOf(caller, payer.signer)
    const replicas = yield* Replicas
    if (!replicas.owns({ chainId, signer: treasury })) return
    const connection = yield* Connection.openOperator(caller, { chainId: Number(chainId) })
    const site = { ...payer, connection, chainId, treasury }
    // Held sums end whatever the terms are now.
    const open = yield* follow(site)
    if (payer.owner !== null)
      yield* KillSwitch.check({ what: { kind: "account", accountId: payer.owner }, path: "" })
    const named = yield* targetsOf(site)
    const system = yield* SystemSigners
    const { address: serviceEoa } = named.some(({ to }) => to === "serviceEoa")
      ? yield* Effect.mapError(system.serviceEoa, Keys.refusal("serviceEoa"))
      : { address: Address.zero }
    const targets = Targets.resolve(named, { serviceEoa, treasury })
    if (typeof targets === "string") return yield* new Blocked({ reason: "refused", why: targets })
    for (const target of targets)
      if (!open.has(target.name))
        yield* raise(site, target).pipe(
          Effect.tap(() => troubles.passed(troubleOf(chainId, `${place}${target.name}`))),
          Effect.catchIf(isBlocked, (error) => note(target.name, error))
        )
    yield* troubles.passed(troubleOf(chainId, place))
  }).pipe(Effect.catchIf(isBlocked, (error) => note("", error, payer.count)))
  return blocked
})

/** Reports how many targets of these payers are blocked. */
export const measure = (
  chainId: bigint,
  payer: "accounts" | "treasury",
  blocked: ReadonlyArray<ReadonlyMap<Blocked["reason"], number>>
): Effect.Effect<void> =>
  Effect.forEach(
    reasons,
    (reason) =>
      Metrics.note(
        Metrics.topUpBlocked,
        { chain: chainId.toString(), payer, reason },
        blocked.reduce((sum, each) => sum + (each.get(reason) ?? 0), 0)
      ),
    { discard: true }
  )

/** One round of the operator's targets; returns how many are blocked, by reason. */
const operatorRound = Effect.fnUntraced(function* (chainId: bigint, troubles: Troubles.Troubles) {
  const networks = yield* Networks
  const topUp = (yield* networks.profile(account, chainId))?.topUp ?? null
  if (topUp === null) return new Map<Blocked["reason"], number>()
  const { targets, ...terms } = topUp
  return yield* pay({ ...terms, owner: null, keyId: null, count: targets.length }, chainId, troubles, () =>
    Effect.succeed(targets)
  )
})

export type Requirements =
  | Bodies.Surroundings
  | Engine
  | Replicas
  | RequestJournal
  | Submissions
  | TransactionJournal

/** One round over all chains: books what has ended, and tops up what is low, where this process owns the treasury's lane. */
export const round = Effect.fnUntraced(function* (troubles: Troubles.Troubles) {
  const { chainIds } = yield* Networks
  for (const chainId of yield* chainIds) {
    yield* measure(chainId, "treasury", [yield* operatorRound(chainId, troubles)])
  }
})
