import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as Policy from "../../domain/policy/Policy.js"
import type { Address } from "../../domain/primitives/Address.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import * as Reasons from "../failures/Reasons.js"
import * as Funding from "../payers/Funding.js"
import type { PreparedOp } from "../ports/journal/Records.js"
import type { PolicyName } from "../ports/Policies.js"
import type { AccountId } from "../ports/Tenants.js"
import type * as Call from "../prepare/Call.js"
import type { Offer } from "../prepare/Offer.js"
import type { Direct, OpContext, Shared } from "../prepare/OpContext.js"
import * as Reading from "./Reading.js"
import * as Rulebook from "./Rulebook.js"

/** Objections of policies to an element. Pure. */

/** A request whose elements are judged. `calls`: those in question. */
export type Asker = Pick<Offer, "calls" | "caller" | "context" | "endpoint" | "requestId">

/** A request that is judged only, as one for unsigned ops. */
export type Judged = Omit<Asker, "context"> & {
  /** Its caller learns the verdict and executes nothing, so the numbers of the operator's layer are not judged. */
  readonly isTrial?: true
  readonly context:
    | (OpContext & Pick<Shared, "kind" | "signers"> & { readonly access?: Shared["access"] })
    | Direct
}

/** An element as the policies of its subjects judge it. */
export interface Element {
  readonly bound: ReadonlyArray<Rulebook.Bound>
  /** Null: a signature that no wallet is named for. */
  readonly wallet: Address | null
  readonly spending: Policy.Spending
}

/** The policies that bind a caller's use of these signers. */
export const boundOf = (
  book: Rulebook.Book,
  { principal: { keyId } }: Judged["caller"],
  signers: ReadonlyArray<Address>,
  wallet: Address | null
): ReadonlyArray<Rulebook.Bound> => {
  const subjects = ["account", ...(keyId === null ? [] : [`key:${keyId}`])]
  return [
    ...[...subjects, ...signers.map((signer) => `signer:${signer}`)].flatMap(
      (each) => book.bound.get(each) ?? []
    ),
    ...(wallet === null ? [] : Rulebook.ofWallet(book, wallet))
  ]
}

/** Highest cost of an op, wei; without one, none. */
export const feesOf = (context: Judged["context"], op: PreparedOp | undefined): bigint => {
  if (op === undefined) return 0n
  if (op.kind === "direct")
    return op.unsigned.gasLimit * context.connection.profile.caps.maxFeePerGas + op.l1Fee
  return context.kind === "ops" ? Gas.requiredPrefund(context.version, op.unsigned) : 0n
}

const signersOf = (context: Judged["context"]): ReadonlyArray<Address> =>
  context.kind === "ops" ? context.signers : [context.submitter]

export const elementOf = (
  book: Rulebook.Book,
  { caller, context }: Judged,
  call: Call.Call,
  op: PreparedOp | undefined
): Element & { readonly wallet: Address } => ({
  bound: boundOf(book, caller, signersOf(context), call.wallet),
  wallet: call.wallet,
  spending: { ...Reading.of(call, context), fees: feesOf(context, op) }
})

/** Names of the policies that bind a request's elements, each once. */
export const namesOf = (
  book: Rulebook.Book,
  { caller, calls, context }: Judged
): ReadonlyArray<PolicyName> => {
  const signers = signersOf(context)
  const wallets = new Set(calls.map(({ wallet }) => wallet))
  const bound = new Set([...wallets].flatMap((wallet) => boundOf(book, caller, signers, wallet)))
  return [...bound].map(({ layer, subject, version }) => ({ layer, subject, version }))
}

/** The ground on which a policy refuses an element. */
export interface Objection {
  /** The rule that refuses; null: a limit does, or no rule allows. */
  readonly rule: string | null
  readonly limit: string | null
  /** Room of the limit, least units. */
  readonly left: bigint | null
  readonly problem: string
}

const ofRules = (problem: string, rule: string | null = null): Objection => ({
  rule,
  limit: null,
  left: null,
  problem
})

export const ofLimit = (
  { name }: Policy.Limit,
  left: bigint,
  asked: bigint,
  problem = `${asked} asked, ${left} left`
): Objection => ({ rule: null, limit: name, left, problem })

/** Shows numbers of the account's own policies only. */
export const refusalOf = (
  { layer, subject, version }: Rulebook.Bound,
  { left, limit, problem, rule }: Objection
): ElementFailure => {
  const name = limit !== null ? `limit ${limit}` : rule === null ? "rules" : `rule ${rule}`
  const figures: Record<string, string> = { subject }
  if (limit !== null) figures.limit = limit
  else if (rule !== null) figures.rule = rule
  const isOwn = layer === "account"
  if (isOwn) figures.version = version.toString()
  if (isOwn && left !== null) figures.left = left.toString()
  const text = isOwn
    ? `${subject} version ${version}, ${name}: ${problem}`
    : `the operator's policy of ${subject} refuses it by its ${name}; the operator can change it`
  return elementFailure("policy_refused", Reasons.text("policy", { problem: text }), figures)
}

/**
 * The policy without its numbers, which an account could otherwise find by trial. It may allow more than the whole
 * policy, and refuses nothing else.
 */
const withoutNumbers = ({ limits: _, rules, ...rest }: Policy.Policy): Policy.Policy => ({
  ...rest,
  rules: rules.flatMap((rule) => {
    const { args, maxAmount, ...match } = rule.match
    const named = args?.filter(({ max }) => max === undefined)
    const isWhole = maxAmount === undefined && named?.length === args?.length
    if (rule.effect === "refuse" && !isWhole) return []
    return [{ ...rule, match: { ...match, ...(named !== undefined && { args: named }) } }]
  })
})

/** The policy as an account may try it: of the operator's layer it learns no numbers. */
export const shown = (bound: Rulebook.Bound): Rulebook.Bound =>
  bound.layer === "account" ? bound : { ...bound, policy: withoutNumbers(bound.policy) }

/** The part of an op that names its payer. */
type Priced<O = PreparedOp> = O extends PreparedOp ? Pick<O, "kind" | "unsigned"> : never

const paymasterOf = ({ context }: Judged, op: Priced | undefined): Address | null => {
  if (context.kind === "direct") return null
  return op === undefined || op.kind === "direct"
    ? context.payer.paymaster
    : Funding.paymasterOf(context.version, op.unsigned)
}

/** Paymasters that ops may name without a rule: the operator has configured them. */
const configured = ({ connection: { profile } }: Judged["context"]): ReadonlyArray<Address> => [
  ...(profile.sponsor === null ? [] : [profile.sponsor.paymaster]),
  ...profile.paymasterServices.map(({ paymaster }) => paymaster)
]

/** The circumstances of an account's element. */
export interface Place extends Policy.Circumstances {
  readonly accountId: AccountId
}

/**
 * The objection of one policy to what an element spends, windows of its limits aside; `sums`: of the request's elements
 * before it, which it raises.
 */
export const ofSpending = (
  book: Rulebook.Book,
  place: Place,
  bound: Rulebook.Bound,
  { spending, wallet }: Pick<Element, "spending" | "wallet">,
  sums: Map<string, bigint>
): Objection | null => {
  const { layer, policy } = bound
  const refused = Policy.judge(policy, spending.movements, place, book.lists[layer])
  if (refused === "expired") return ofRules("it has expired")
  if (refused !== null) {
    const {
      movement: { amount, kind, to },
      nearest,
      rule
    } = refused
    const what = `${kind}${amount ? ` of ${amount}` : ""}${to === null ? "" : ` to ${to}`}`
    const why = nearest === null ? "" : `: ${nearest.member} of rule ${nearest.rule} does not fit`
    return ofRules(`${what} is not allowed${why}`, rule)
  }
  const raised: Array<readonly [string, bigint]> = []
  for (const limit of policy.limits ?? []) {
    if (!Policy.isOn(limit, place.chainId)) continue
    const amount = Policy.amountOf(limit, spending)
    if (amount === null) return ofLimit(limit, 0n, 0n, "the amount has no bound")
    const pot = Rulebook.potOf(place.accountId, bound, limit, wallet).name
    const before = limit.per === "request" ? (sums.get(pot) ?? 0n) : 0n
    if ((limit.per === "op" || limit.per === "request") && before + amount > limit.max)
      return ofLimit(limit, limit.max - before, amount)
    raised.push([pot, before + amount])
  }
  for (const [pot, sum] of raised) sums.set(pot, sum)
  return null
}

/** Likewise to an op or a transaction, with its paymaster. */
export const objection = (
  book: Rulebook.Book,
  asker: Judged,
  bound: Rulebook.Bound,
  element: Element,
  op: Priced | undefined,
  at: number,
  sums: Map<string, bigint>
): Objection | null => {
  const { accountId, chainId } = asker.context
  const paymaster = paymasterOf(asker, op)
  return paymaster !== null && !(bound.policy.paymasters ?? configured(asker.context)).includes(paymaster)
    ? ofRules(`the paymaster ${paymaster} is not allowed`)
    : ofSpending(book, { accountId, chainId, endpoint: asker.endpoint, at }, bound, element, sums)
}
