import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as Policy from "../../domain/policy/Policy.js"
import type { Address } from "../../domain/primitives/Address.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import * as Reasons from "../failures/Reasons.js"
import * as Funding from "../payers/Funding.js"
import type { PreparedOp } from "../ports/journal/Records.js"
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
  readonly context:
    | (OpContext & Pick<Shared, "kind" | "signers"> & { readonly access?: Shared["access"] })
    | Direct
}

/** An element as the policies of its subjects judge it. */
export interface Element {
  readonly bound: ReadonlyArray<Rulebook.Bound>
  readonly wallet: Address
  readonly spending: Policy.Spending
}

const boundOf = (
  book: Rulebook.Book,
  { caller, context }: Judged,
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

const feesOf = (context: Judged["context"], op: PreparedOp | undefined): bigint => {
  if (op === undefined) return 0n
  if (op.kind === "direct")
    return op.unsigned.gasLimit * context.connection.profile.caps.maxFeePerGas + op.l1Fee
  return context.kind === "ops" ? Gas.requiredPrefund(context.version, op.unsigned) : 0n
}

export const elementOf = (
  book: Rulebook.Book,
  asker: Judged,
  call: Call.Call,
  op: PreparedOp | undefined
): Element => ({
  bound: boundOf(book, asker, call.wallet),
  wallet: call.wallet,
  spending: { ...Reading.of(call, asker.context), fees: feesOf(asker.context, op) }
})

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
    : `the operator's ${subject}, ${name}`
  return elementFailure("policy_refused", Reasons.text("policy", { problem: text }), figures)
}

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

/** The objection of one policy, windows of its limits aside; `sums`: of the request's elements before it, which it raises. */
export const objection = (
  book: Rulebook.Book,
  asker: Judged,
  bound: Rulebook.Bound,
  { spending, wallet }: Element,
  op: Priced | undefined,
  at: number,
  sums: Map<string, bigint>
): Objection | null => {
  const { layer, policy } = bound
  const { chainId } = asker.context
  const paymaster = paymasterOf(asker, op)
  if (paymaster !== null && !(policy.paymasters ?? configured(asker.context)).includes(paymaster))
    return ofRules(`the paymaster ${paymaster} is not allowed`)
  const circumstances = { chainId, endpoint: asker.endpoint, at }
  const refused = Policy.judge(policy, spending.movements, circumstances, book.lists[layer])
  if (refused === "expired") return ofRules("it has expired")
  if (refused !== null) {
    const { movement, rule } = refused
    return ofRules(`${movement.kind}${movement.to === null ? "" : ` to ${movement.to}`} is not allowed`, rule)
  }
  const raised: Array<readonly [string, bigint]> = []
  for (const limit of policy.limits ?? []) {
    if (limit.chain !== chainId.toString()) continue
    const amount = Policy.amountOf(limit, spending)
    if (amount === null) return ofLimit(limit, 0n, 0n, "the amount has no bound")
    const pot = Rulebook.potOf(asker.context.accountId, bound, limit, wallet).name
    const before = limit.per === "request" ? (sums.get(pot) ?? 0n) : 0n
    if ((limit.per === "op" || limit.per === "request") && before + amount > limit.max)
      return ofLimit(limit, limit.max - before, amount)
    raised.push([pot, before + amount])
  }
  for (const [pot, sum] of raised) sums.set(pot, sum)
  return null
}
