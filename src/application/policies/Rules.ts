import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as Nonce from "../../domain/erc4337/Nonce.js"
import * as Policy from "../../domain/policy/Policy.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import { type Failure, type Unavailable, unavailable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import * as Metrics from "../observe/Metrics.js"
import * as Funding from "../payers/Funding.js"
import { heldMillis, holdId, PayerRefusal } from "../payers/Payer.js"
import * as Sponsorships from "../payers/Sponsorships.js"
import { Budgets, type Lack, type Reservation, type Window } from "../ports/Budgets.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { PreparedOp } from "../ports/journal/Records.js"
import type { AccountId } from "../ports/Tenants.js"
import * as Call from "../prepare/Call.js"
import type { Offer } from "../prepare/Offer.js"
import type { OfRequest } from "../prepare/OpContext.js"
import * as Links from "../prepare/ops/Links.js"
import type { Prepared } from "../prepare/Preparing.js"
import * as Reservations from "../prepare/Reservations.js"
import * as Reading from "./Reading.js"
import * as Rulebook from "./Rulebook.js"

/**
 * Judges the elements of requests by the account's spending rules, and holds what they may spend of its limits.
 *
 * Gotchas:
 *
 * - A hold covers one nonce: of all versions of an element with the same nonce at most one lands. A version with another
 *   nonce is a further amount until the operator's node shows that the earlier version cannot land any more. A caller's node
 *   could deny a payment and have it made again.
 * - Only the operator's node frees what was signed.
 */

/** A request whose elements are judged. `calls`: those in question. */
export type Asker = Pick<Offer, "calls" | "caller" | "context" | "endpoint" | "requestId">

type Batches = ReadonlyArray<Result.Result<Prepared, Failure> | "busy">

export class Rules extends Context.Service<
  Rules,
  {
    /** Fails the prepared and waiting elements that rules or the limits of one op or request do not allow. */
    readonly judge: <B extends Batches[number]>(
      askers: ReadonlyArray<Asker>,
      batches: ReadonlyArray<B>
    ) => Effect.Effect<ReadonlyArray<B | Result.Result<Prepared>>, Unavailable>
    /** Holds what the prepared ops may spend, and fails those that a limit has no room for. */
    readonly reserve: <B extends Batches[number]>(
      askers: ReadonlyArray<Asker>,
      batches: ReadonlyArray<B>
    ) => Effect.Effect<ReadonlyArray<B | Result.Result<Prepared>>, Unavailable>
    /** Whether the account has policies. */
    readonly isRuled: (accountId: AccountId) => Effect.Effect<boolean, Unavailable>
    /** Holds an op's spending from before its first signature until the chain has decided. */
    readonly bind: (
      asker: Asker,
      op: UserOp,
      userOpHash: Bytes32
    ) => Effect.Effect<void, PayerRefusal | Unavailable>
    /** Releases what unsigned elements hold. */
    readonly release: (context: OfRequest, calls: ReadonlyArray<Call.Call>) => Effect.Effect<void>
  }
>()("castellan/Rules") {}

type UserOp = Exclude<PreparedOp, { readonly kind: "direct" }>

const isDirect = ({ kind }: PreparedOp): boolean => kind === "direct"

/** An element as the policies of its subjects judge it. */
interface Element {
  readonly bound: ReadonlyArray<Rulebook.Bound>
  readonly wallet: Address
  readonly spending: Policy.Spending
}

const boundOf = (
  book: Rulebook.Book,
  { caller, context }: Asker,
  wallet: Address
): ReadonlyArray<Rulebook.Bound> => {
  const { keyId } = caller.principal
  const signers = context.kind === "ops" ? context.signers : [context.submitter]
  const subjects = ["account", ...(keyId === null ? [] : [`key:${keyId}`])]
  return [
    ...[...subjects, ...signers.map((signer) => `signer:${signer}`)].flatMap(
      (each) => book.bound.get(each) ?? []
    ),
    ...Rulebook.ofWallet(book, wallet)
  ]
}

const feesOf = ({ connection, ...context }: OfRequest, op: PreparedOp | undefined): bigint => {
  if (op === undefined) return 0n
  if (op.kind === "direct")
    return op.unsigned.gasLimit * connection.profile.caps.maxFeePerGas + op.l1Fee
  return context.kind === "ops" ? Gas.requiredPrefund(context.version, op.unsigned) : 0n
}

const elementOf = (
  book: Rulebook.Book,
  asker: Asker,
  call: Call.Call,
  op: PreparedOp | undefined
): Element => ({
  bound: boundOf(book, asker, call.wallet),
  wallet: call.wallet,
  spending: { ...Reading.of(call, asker.context), fees: feesOf(asker.context, op) }
})

/** Shows numbers of the account's own policies only. */
const refusalOf = (
  { layer, subject, version }: Rulebook.Bound,
  what: { readonly rule: string | null } | { readonly limit: string; readonly left: bigint },
  problem: string
): ElementFailure => {
  const name = "limit" in what ? `limit ${what.limit}` : what.rule === null ? "rules" : `rule ${what.rule}`
  const figures: Record<string, string> = { subject }
  if ("limit" in what) figures.limit = what.limit
  else if (what.rule !== null) figures.rule = what.rule
  const isOwn = layer === "account"
  if (isOwn) figures.version = version.toString()
  if (isOwn && "limit" in what) figures.left = what.left.toString()
  const text = isOwn ? `${subject} version ${version}, ${name}: ${problem}` : `the operator's ${subject}, ${name}`
  return elementFailure("policy_refused", Reasons.text("policy", { problem: text }), figures)
}

const roomOf = (bound: Rulebook.Bound, { name }: Policy.Limit, asked: bigint, left: bigint): ElementFailure =>
  refusalOf(bound, { limit: name, left }, `${asked} asked, ${left} left`)

const paymasterOf = ({ context }: Asker, op: PreparedOp | undefined): Address | null => {
  if (context.kind === "direct") return null
  return op === undefined || op.kind === "direct"
    ? context.payer.paymaster
    : Funding.paymasterOf(context.version, op.unsigned)
}

/** Paymasters that ops may name without a rule: the operator has configured them. */
const configured = ({ connection: { profile } }: OfRequest): ReadonlyArray<Address> => [
  ...(profile.sponsor === null ? [] : [profile.sponsor.paymaster]),
  ...profile.paymasterServices.map(({ paymaster }) => paymaster)
]

/** The objection of one policy, windows of its limits aside; `sums`: of the request's elements before it, which it raises. */
const objection = (
  book: Rulebook.Book,
  asker: Asker,
  bound: Rulebook.Bound,
  { spending, wallet }: Element,
  op: PreparedOp | undefined,
  at: number,
  sums: Map<string, bigint>
): ElementFailure | null => {
  const { layer, policy } = bound
  const { chainId } = asker.context
  const paymaster = paymasterOf(asker, op)
  if (paymaster !== null && !(policy.paymasters ?? configured(asker.context)).includes(paymaster))
    return refusalOf(bound, { rule: null }, `the paymaster ${paymaster} is not allowed`)
  const circumstances = { chainId, endpoint: asker.endpoint, at }
  const refused = Policy.judge(policy, spending.movements, circumstances, book.lists[layer])
  if (refused === "expired") return refusalOf(bound, { rule: null }, "it has expired")
  if (refused !== null) {
    const { movement, rule } = refused
    const problem = `${movement.kind}${movement.to === null ? "" : ` to ${movement.to}`} is not allowed`
    return refusalOf(bound, { rule }, problem)
  }
  const raised: Array<readonly [string, bigint]> = []
  for (const limit of policy.limits ?? []) {
    if (limit.chain !== chainId.toString()) continue
    const amount = Policy.amountOf(limit, spending)
    if (amount === null) return refusalOf(bound, { limit: limit.name, left: 0n }, "the amount has no bound")
    const pot = Rulebook.potOf(asker.context.accountId, bound, limit, wallet).name
    const before = limit.per === "request" ? (sums.get(pot) ?? 0n) : 0n
    if ((limit.per === "op" || limit.per === "request") && before + amount > limit.max)
      return roomOf(bound, limit, amount, limit.max - before)
    raised.push([pot, before + amount])
  }
  for (const [pot, sum] of raised) sums.set(pot, sum)
  return null
}

const isWindow = (per: Policy.Limit["per"]): per is Window & Policy.Limit["per"] =>
  per !== "op" && per !== "request"

interface Entry extends Reservation {
  readonly bound: Rulebook.Bound
  readonly limit: bigint
  readonly of: Policy.Limit
}

/** Start of the ids of an op's holds; each asset has one. */
const baseOf = ({ index, kind, requestId, userOpHash }: PreparedOp): string =>
  `${holdId({ requestId, index, given: kind === "given" ? userOpHash : null })}/`

const entriesOf = (
  { accountId, chainId }: OfRequest,
  { bound, spending, wallet }: Element,
  base: string,
  expiresAt: number
): ReadonlyArray<Entry> =>
  bound.flatMap((each) =>
    each.policy.mode === "observe"
      ? []
      : (each.policy.limits ?? []).flatMap((limit): ReadonlyArray<Entry> => {
          const wei = Policy.amountOf(limit, spending) ?? 0n
          if (!isWindow(limit.per) || limit.chain !== chainId.toString() || wei === 0n) return []
          const kept = limit.approvals === "ignore" ? "/ignore" : ""
          return [
            {
              ...Rulebook.potOf(accountId, each, limit, wallet),
              bound: each,
              of: limit,
              id: `${base}${limit.asset}${kept}`,
              wei,
              limit: limit.max,
              maxOpen: null,
              window: limit.per,
              expiresAt
            }
          ]
        })
  )

const lackOf = (entries: ReadonlyArray<Entry>, lack: Lack | null | undefined): ElementFailure | null => {
  const entry = entries.find(({ name }) => name === lack?.budget)
  return entry === undefined || lack == null ? null : roomOf(entry.bound, entry.of, entry.wei, lack.available)
}

const refused = (failure: ElementFailure) =>
  Effect.as(
    Metrics.count(Metrics.policyRefusals, {
      reason: failure.figures.limit === undefined ? "rule" : "limit"
    }),
    failure
  )

const make = Effect.gen(function* () {
  const rulebook = yield* Rulebook.Rulebook
  const budgets = yield* Budgets
  const rpcs = yield* ChainRpc
  const sponsorships = yield* Sponsorships.Sponsorships

  /** The judged batches of an account with policies; the others are returned unchanged. */
  const each = <B extends Batches[number]>(
    askers: ReadonlyArray<Asker>,
    batches: ReadonlyArray<B>,
    failingOf: (
      book: Rulebook.Book,
      asker: Asker,
      prepared: Prepared
    ) => Effect.Effect<ReadonlyMap<number, ElementFailure>, Unavailable>
  ): Effect.Effect<ReadonlyArray<B | Result.Result<Prepared>>, Unavailable> =>
    Effect.gen(function* () {
      const context = askers[0]?.context
      // The treasury's top-ups are the operator's own.
      if (context === undefined || context.access.key === "treasury") return batches
      const book = yield* rulebook.of(context.accountId)
      if (book === null) return batches
      return yield* Effect.forEach(batches, (batch, place) => {
        const [asker, made]: [Asker | undefined, Batches[number]] = [askers[place], batch]
        return asker === undefined || made === "busy" || Result.isFailure(made)
          ? Effect.succeed(batch)
          : Effect.map(failingOf(book, asker, made.success), (failing) =>
              Result.succeed(Links.leaveOut(Call.dependencies(asker.calls), made.success, failing))
            )
      })
    })

  const release: Rules["Service"]["release"] = ({ accountId, chainId }, calls) =>
    Effect.gen(function* () {
      if ((yield* rulebook.of(accountId)) === null) return
      for (const { index, requestId, ...call } of calls) {
        const given = call.kind === "given" ? call.userOpHash : null
        const holds = yield* budgets.open(chainId, `${holdId({ index, requestId, given })}/`)
        yield* budgets.release(
          chainId,
          holds.map(({ id }) => id)
        )
      }
    }).pipe((effect) => Effect.ignoreCause(effect, { log: "Debug" }))

  const judge: Rules["Service"]["judge"] = (askers, batches) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      each(askers, batches, (book, asker, { ops, waiting }) =>
        Effect.gen(function* () {
          const sums = new Map<string, bigint>()
          const failing = new Map<number, ElementFailure>()
          for (const call of asker.calls) {
            const op = ops.find(({ index }) => index === call.index)
            if (op === undefined && !waiting.has(call.index)) continue
            const element = elementOf(book, asker, call, op)
            for (const bound of element.bound) {
              const failure = objection(book, asker, bound, element, op, now, sums)
              if (failure === null) continue
              if (bound.policy.mode === "enforce") failing.set(call.index, yield* refused(failure))
              else
                yield* Effect.annotateLogs(Effect.logInfo("an observed policy would refuse an element"), {
                  requestId: asker.requestId,
                  index: call.index,
                  reason: failure.message
                })
            }
          }
          return failing
        })
      )
    )

  const reserve: Rules["Service"]["reserve"] = (askers, batches) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      each(askers, batches, (book, asker, { ops }) =>
        Effect.gen(function* () {
          const { calls, context } = asker
          const groups = ops.flatMap((op) => {
            const call = calls.find(({ index }) => index === op.index)
            if (call === undefined) return []
            const base = `${baseOf(op)}${Nonce.make(op.nonceKey, op.sequence)}/`
            return [
              {
                op,
                entries: entriesOf(context, elementOf(book, asker, call, op), base, now + heldMillis)
              }
            ]
          })
          const lacks = yield* Effect.mapError(budgets.reserve(groups.map(({ entries }) => entries)), () =>
            unavailable()
          )
          const failing = new Map<number, ElementFailure>()
          for (const [place, { entries, op }] of groups.entries()) {
            const failure = lackOf(entries, lacks[place])
            if (failure !== null) failing.set(op.index, yield* refused(failure))
            // Nothing shows the end of the signer's own transaction: its amounts stay counted.
            else if (isDirect(op))
              for (const { id, wei } of entries)
                yield* Effect.mapError(budgets.bind({ chainId: context.chainId, id, wei }, ""), () =>
                  unavailable()
                )
          }
          if (failing.size === 0) return failing
          const all = new Map(failing)
          Links.failDependants(Call.dependencies(calls), all)
          const left = calls.filter(({ index }) => all.has(index))
          yield* Effect.provideService(Reservations.giveBack(context, left), Budgets, budgets)
          yield* release(context, left)
          return failing
        })
      )
    )

  const bind: Rules["Service"]["bind"] = (asker, op, userOpHash) =>
    Effect.gen(function* () {
      const { calls, context } = asker
      const book = yield* rulebook.of(context.accountId)
      const call = calls.find(({ index }) => index === op.index)
      if (book === null || call === undefined || context.kind === "direct") return
      const nonce = Nonce.make(op.nonceKey, op.sequence)
      const base = `${baseOf(op)}${nonce}/`
      const now = yield* Clock.currentTimeMillis
      const entries = entriesOf(context, elementOf(book, asker, call, op), base, now + heldMillis)
      if (entries.length === 0) return
      const { chainId, connection, entryPoint } = context
      const { profile } = connection
      const chain =
        profile.rpc === null
          ? null
          : connection.trust === "operator"
            ? connection.chain
            : yield* rpcs.connect(Redacted.value(profile.rpc), "operator")
      const watched = chain === null ? null : { accountId: context.accountId, chain, profile }
      const take = Effect.map(budgets.reserve([entries]), ([lack]) =>
        // The sum of an ended hold is booked.
        lack?.reason === "ended" ? null : lackOf(entries, lack)
      )
      let lack = yield* take
      if (lack !== null) {
        const others = (yield* budgets.open(chainId, baseOf(op))).filter(({ id }) => !id.startsWith(base))
        yield* budgets.release(
          chainId,
          others.map(({ id }) => id)
        )
        if (watched !== null) yield* sponsorships.settle(watched)
        lack = yield* take
      }
      if (lack !== null) return yield* new PayerRefusal({ failure: yield* refused(lack) })
      // A caller's node could name a later block, so that a landing before it would be missed.
      const head = chain === null ? null : yield* chain.block("latest")
      const note = Sponsorships.note({
        userOpHash,
        entryPoint,
        since: head?.number ?? 0n,
        validUntil: op.window?.validUntil ?? 0,
        wallet: call.wallet,
        nonce
      })
      for (const [id, { wei }] of new Map(entries.map((entry) => [entry.id, entry])))
        yield* budgets.bind({ chainId, id, wei }, note)
      if (watched !== null) yield* sponsorships.watch(watched)
    }).pipe(
      Effect.mapError((error) =>
        error._tag === "PayerRefusal" || error._tag === "Unavailable" ? error : unavailable()
      )
    )

  return {
    judge,
    reserve,
    isRuled: (accountId) => Effect.map(rulebook.of(accountId), (book) => book !== null),
    bind,
    release
  }
})

export const layer: Layer.Layer<
  Rules,
  never,
  Budgets | ChainRpc | Rulebook.Rulebook | Sponsorships.Sponsorships
> = Layer.effect(Rules, make)
